"""Custom operators: those of library users, and those whose meaning is public."""
from __future__ import annotations

import numpy as np

from ....graph import Value, Values
from ....ops import custom
from ....types import Q8, Tensor
from ..importer import Op
from ..registry import imports
from ..tensors import gridded


def octets(g: Op, data: bytes) -> Value | None:
    """Bytes as a constant; None where there are none."""
    return g.build.const(np.frombuffer(data, np.uint8), Q8, gridded(Tensor(Q8, None))) if data else None


@imports("CUSTOM")
def registered(g: Op, *xs: Value | None) -> Values:
    """One that the user of this library has registered."""
    return g.add(custom.CUSTOM, octets(g, g.record.name.removeprefix("CUSTOM ").encode()), octets(g, g.custom), xs=xs,
                 count=len(g.outs), outs=g.outs)
