"""Additions of int16 as TFLite does them where a file sets `pot_scale_int16`: NNAPI has no such type."""
from __future__ import annotations

from ..kinds import BROADCASTS, Act, T, broadcast
from ..schema import host
from ..types import I16, Q16S

WIDE = {Q16S: 27, I16: 27}


@host(60120, WIDE, BROADCASTS)
def ADD_BY_SHIFTS(x: T, y: T, act: Act) -> T:
    """ADD; by shifts alone where all scales are powers of two and the larger one of x and y is the output's."""
    return x.free(broadcast(x.shape, y.shape))


@host(60121, WIDE, BROADCASTS)
def SUB_BY_SHIFTS(x: T, y: T, act: Act) -> T:
    """SUB, as ADD_BY_SHIFTS."""
    return x.free(broadcast(x.shape, y.shape))
