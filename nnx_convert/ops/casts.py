"""Between types as ONNX has it: what wraps, what saturates, and the types that NNAPI has not."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Int, T, To
from ..schema import Rule, host
from ..signature import Kind
from ..types import Tensor, Type
from .host import TEXTS

#: How a number becomes a power of two.
NEAREST, UP, DOWN = range(3)

ROUNDED = Rule("rounding is 0 nearest, 1 up or 2 down", lambda rounding: rounding in range(3))


@host(60400, TEXTS, ROUNDED)
def CONVERT(x: T, to: Annotated[Type, Kind(TEXTS, output="type")], saturate: Bool, rounding: Int) -> To:
    """x as another type: integers wrap, float8 saturates if so wanted, texts are in decimal; powers of two rounded."""
    return Tensor(to, x.shape)
