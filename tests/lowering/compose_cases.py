"""Small graphs for the rules of TFLite's rarer composites, and where a host operation is left."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rule_cases import IMAGE, F, I, Kind, Made, Y, grid, of

from nnx_convert.graph import Build, Value
from nnx_convert.ops import host_arrays as a, host_math as m
from nnx_convert.types import F32, I32, Q8, Type

LOW = float(np.finfo(np.float32).min)
SQUARE, ROW, TALL = (F32, (3, 4, 4)), (F32, (3, 4)), (F32, (2, 5, 3))


def updated(kind: Type, start: Sequence[int]) -> Made:
    """A corner of x written over at a known place."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        update = g.const(np.arange(4).reshape(1, 2, 2), kind, xs[0].tensor)
        return g.add(a.DYNAMIC_UPDATE_SLICE, xs[0], update, list(start), outs=(xs[0].tensor,))
    return make


def spread(*dilations: int) -> Made:
    """x with sevens between its elements."""
    return lambda g, xs: g.add(a.DILATE, xs[0], list(dilations), g.const([7], F32))


def windows(start: float, function: int, *numbers: list[int]) -> Made:
    """x folded by windows; numbers: sizes, strides, dilations."""
    return lambda g, xs: g.add(a.REDUCE_WINDOW, xs[0], g.const([start], F32), *numbers, function=function)


def bounds(*values: float) -> Made:
    """x among boundaries."""
    return lambda g, xs: g.add(m.BUCKETIZE, xs[0], g.const(values, F32))


COMPOSED: dict[str, tuple[Made, list[Kind]]] = {
    "sign": (of(m.SIGN), [F]), "sign_int": (of(m.SIGN), [I]),
    "fake_quant": (of(m.FAKE_QUANT, least=-1.5, most=4.3, bits=8, narrow=False), [F]),
    "gelu_byte": (of(m.GELU, approximate=False, out=grid(Q8, 0.25, 9)), [Y]),
    "buckets": (bounds(-2, 0, 0, 3), [F]), "buckets_int": (bounds(-2, 0.5), [I]),
    **{f"cumsum_{axis}_{exclusive}_{reverse}": (of(m.CUMSUM, axis=axis, exclusive=exclusive, reverse=reverse), [F])
       for axis in (1, -1) for exclusive in (False, True) for reverse in (False, True)},
    "cumsum_int": (of(m.CUMSUM, axis=1, exclusive=False, reverse=False), [I]),
    "diag": (of(a.MATRIX_DIAG), [F]), "set_diag": (of(a.MATRIX_SET_DIAG), [SQUARE, ROW]),
    "set_diag_wide": (of(a.MATRIX_SET_DIAG), [(F32, (2, 3, 5)), (F32, (2, 3))]),
    "set_diag_tall": (of(a.MATRIX_SET_DIAG), [TALL, (F32, (2, 3))]),
    "reverse_sequence": (of(a.REVERSE_SEQUENCE, lengths=[1, 3], axis=1, batch=0), [F]),
    "reverse_sequence_across": (of(a.REVERSE_SEQUENCE, lengths=[0, 2, 1, 2], axis=0, batch=2), [F]),
    "update": (updated(F32, [1, 0, 2]), [F]), "update_beyond": (updated(F32, [-3, 9, 1]), [F]),
    "update_byte": (updated(Q8, [0, 1, 1]), [Y]), "update_int": (updated(I32, [0, 0, 0]), [I]),
    "dilate": (spread(2, 1, 3), [F]), "dilate_one": (spread(1, 1, 1), [F]),
    "window_max": (windows(LOW, a.MOST, [1, 2, 3, 1], [1, 1, 2, 1], [1] * 4), [IMAGE]),
    "window_sum": (windows(0.0, a.SUM, [1, 2, 3, 1], [1, 1, 2, 1], [1] * 4), [IMAGE]),
}
#: Cases that need a host operation, by the targets (as their indices in TARGETS) on which they do.
COMPOSED_HOSTED = {name: where for where, names in {
    (0, 1): "gelu_byte",
    (0, 1, 2): """
        sign sign_int buckets buckets_int diag set_diag set_diag_wide set_diag_tall reverse_sequence
        reverse_sequence_across update update_beyond update_byte dilate fake_quant
    """ + " ".join(n for n in COMPOSED if n.startswith("cumsum_")),
    tuple(range(8)): "cumsum_int update_int window_sum",
}.items() for name in names.split()}
