"""Products with constants, for `test_rules`: axes summed over, new ones, rows of every number of axes."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rule_cases import F, IMAGE, Kind, Made, grid

from nnx_convert.graph import Build, Value
from nnx_convert.ops.linear import LINEAR
from nnx_convert.types import F32, I32, Q8, QPC, ChannelQuant, Quant, Tensor


def linear(w: tuple[int, ...], units: tuple[int, ...], flat: int, act: int = 0) -> Made:
    """LINEAR with weights of these axes."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        weights = np.arange(np.prod(w)).reshape(w) % 7 - 3
        bias = np.arange(np.prod(units)).reshape(units)
        return g.add(LINEAR, xs[0], g.const(weights, F32), g.const(bias, F32), flat=flat, act=act)
    return make


def coded(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """LINEAR on bytes."""
    w = Value("w", Tensor(Q8, (3, 4), Quant(0.25, 100), np.arange(90, 102, dtype=np.uint8).reshape(3, 4)))
    b = Value("b", Tensor(I32, (3,), Quant(0.125, 0), np.array([5, -7, 0], np.int32)))
    return g.add(LINEAR, xs[0], w, b, outs=(grid(Q8, 2.0, 9),))


def per_channel(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """LINEAR with a scale for each of what it makes."""
    w = np.arange(-60, 60, 10).astype(np.int8).reshape(3, 4)
    weights = Value("w", Tensor(QPC, (3, 4), ChannelQuant((0.5, 0.25, 0.125), 0), w))
    return g.add(LINEAR, xs[0], weights, g.const([100, -5, 3], I32), outs=(grid(Q8, 64.0, 3),))


LINEARS: dict[str, tuple[Made, list[Kind]]] = {
    "linear": (linear((5, 4), (5,), 1, 1), [F]), "linear_flat": (linear((5, 3, 4), (5,), 2), [F]),
    "linear_all": (linear((5, 24), (5,), 3, 3), [F]), "linear_row": (linear((2, 4), (2,), 1), [(F32, (4,))]),
    "linear_image": (linear((2, 3, 3, 4, 5), (2, 3), 3), [IMAGE]),
    "linear_wide": (linear((2, 4), (2,), 1), [(F32, (2, 1, 3, 2, 4))]),
    "linear_byte": (coded, [(Q8, (2, 3, 4))]), "linear_per_channel": (per_channel, [(Q8, (2, 4))]),
}
#: Where they need the host: scales per channel come with level 29.
LINEARS_HOSTED = {"linear_per_channel": (0, 1, 2)}
