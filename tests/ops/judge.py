"""How far results are from an oracle's: float rounding, steps of a grid, or not at all."""
from __future__ import annotations

import numpy as np
import oracle
from row_case import BYTES, FLOATS, Array, Instance, fitted

from nnx_convert.types import Quant, Tensor

#: Roundings of the type, of numbers as large as those that are added up.
ROUNDINGS = 16
#: Steps of the output's grid that integers may be off: every kernel rounds within one of the real result.
STEPS = 1 + 1e-6
#: Elements that TFLite's integers cannot tell apart: raw values with 8 more bits, times the scale, are compared.
INDISTINCT = {"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"}


def prepared(i: Instance) -> tuple[Instance, list[Array]]:
    """The case on grids that hold its results, and these."""
    want = oracle.results(i)
    free = oracle.results(i, act=0) if i.args.get("act") else want
    assert want is not None and free is not None
    return (i if i.op.name in oracle.MOVED else fitted(i, free)), want


def wrong(i: Instance, n: int, got: Array, want: Array) -> str:
    """What is wrong with output n; "" where nothing is."""
    t = i.outs[n]
    if got.shape != want.shape or got.dtype != t.type.dtype:
        return f"{got.dtype}{got.shape}, not {t.type.dtype}{want.shape}"
    with np.errstate(all="ignore"):
        good = _good(i, t, got, want)
    if good.all():
        return ""
    at = tuple(int(k) for k in np.argwhere(~good)[0])
    return f"{got[at]} at {list(at)}, not {_stored(t, want)[at]}"


def _good(i: Instance, t: Tensor, got: Array, want: Array) -> Array:
    real, wide = got.astype(np.float64), want.astype(np.float64)
    if i.op.name in oracle.MOVED:
        return np.asarray((real == wide) | np.isnan(real) & np.isnan(wide))
    if t.type in FLOATS:
        eps = float(np.finfo(t.type.dtype).eps)
        near = np.abs(real - wide) <= ROUNDINGS * eps * (np.abs(wide) + oracle.magnitude(i))
        return np.asarray(near | (real == wide.astype(t.type.dtype)) | np.isnan(real) & np.isnan(wide))
    if t.type in BYTES and want.dtype != np.bool_:
        return np.asarray(np.abs(real - _stored(t, wide)) <= STEPS)
    return np.asarray((real == wide) | _alike(i))


def _stored(t: Tensor, want: Array) -> Array:
    """Real values on a grid, not rounded."""
    if t.type not in BYTES or not isinstance(t.quant, Quant):
        return want
    info = np.iinfo(t.type.dtype)
    return np.clip(np.nan_to_num(want / t.quant.scale + t.quant.zero, nan=t.quant.zero), info.min, info.max)


def _alike(i: Instance) -> Array:
    """The elements that a comparison cannot tell apart."""
    if i.op.name not in INDISTINCT or i.key not in BYTES:
        return np.zeros((), bool)
    a = oracle.arguments(i, False)
    return np.asarray(np.abs(a.x - a.y) <= 1 / 256)
