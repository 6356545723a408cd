"""NNAPI-EX operations that are no twins; most are a base operation's kernel over other operands.

Truth values are bytes, 0 or 1; an input counts as true where its byte is not 0.
"""
from __future__ import annotations

from functools import partial

import numpy as np

from ...ops import ex
from ...ops.conv import scatter_pads
from ...schema import OpDef
from ...types import Array, Tensor
from ..kernel import Run, Site, ints, kernel
from .conv import TRANSPOSE_CONV_2D
from .convert import CAST
from .elements import compared, in_pieces
from .gather import GATHER
from .reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_SUM
from .shape import along
from .tables import reals

COMPARISONS = {ex.EQUAL_EX: np.equal, ex.NOT_EQUAL_EX: np.not_equal, ex.GREATER_EQUAL_EX: np.greater_equal,
               ex.LESS_EX: np.less}


def _comparison(op: OpDef, function: np.ufunc) -> None:
    @kernel(op)
    def prepare(site: Site, x: Tensor, y: Tensor) -> Run:
        """Of real values: unlike TFLite's comparisons, also where a scale is so small that those round them alike."""
        return compared(site, x, y, function, (partial(reals, x), partial(reals, y)))


for _op, _function in COMPARISONS.items():
    _comparison(_op, _function)


@kernel(ex.LOGICAL_AND_EX, inplace=("x", "y"))
def LOGICAL_AND_EX(site: Site, x: Tensor, y: Tensor) -> Run:
    def step(out: Array, x: Array, y: Array) -> None:
        np.logical_and(x, y, out=out.view(np.bool_))
    return in_pieces(site, (x, y), step, passes=1)


@kernel(ex.LOGICAL_OR_EX, inplace=("x", "y"))
def LOGICAL_OR_EX(site: Site, x: Tensor, y: Tensor) -> Run:
    def step(out: Array, x: Array, y: Array) -> None:
        np.logical_or(x, y, out=out.view(np.bool_))
    return in_pieces(site, (x, y), step, passes=1)


@kernel(ex.LOGICAL_NOT_EX, inplace=("x",))
def LOGICAL_NOT_EX(site: Site, x: Tensor) -> Run:
    def run(out: Array, x: Array) -> None:
        np.logical_not(x, out=out.view(np.bool_))
    return run


@kernel(ex.CAST_EX)
def CAST_EX(site: Site, x: Tensor, to: int) -> Run:
    return CAST(site, x, to)


@kernel(ex.REDUCE_MAX_EX)
def REDUCE_MAX_EX(site: Site, x: Tensor, axes: Tensor) -> Run:
    return REDUCE_MAX(site, x, axes, False)


@kernel(ex.REDUCE_MIN_EX)
def REDUCE_MIN_EX(site: Site, x: Tensor, axes: Tensor) -> Run:
    return REDUCE_MIN(site, x, axes, False)


@kernel(ex.REDUCE_SUM_EX)
def REDUCE_SUM_EX(site: Site, x: Tensor, axes: Tensor) -> Run:
    return REDUCE_SUM(site, x, axes, False)


@kernel(ex.SQUARED_DIFFERENCE_EX, inplace=("x", "y"))
def SQUARED_DIFFERENCE_EX(site: Site, x: Tensor, y: Tensor) -> Run:
    def run(out: Array, x: Array, y: Array) -> None:
        np.subtract(x, y, out=out)
        np.multiply(out, out, out=out)
    return run


@kernel(ex.PACK_EX)
def PACK_EX(site: Site, xs: tuple[Tensor, ...], count: int, axis: int) -> Run:
    def run(out: Array, xs: tuple[Array, ...]) -> None:
        np.stack(xs, axis, out=out)
    return run


@kernel(ex.UNPACK_EX)
def UNPACK_EX(site: Site, x: Tensor, count: int, axis: int) -> Run:
    at = axis % x.rank

    def run(*arrays: Array) -> None:
        *outs, x = arrays
        for i, out in enumerate(outs):
            np.copyto(out, x[along(at, i)])
    return run


@kernel(ex.ONE_HOT_EX)
def ONE_HOT_EX(site: Site, indices: Tensor, depth: int, on: float, off: float, axis: int | None, to: int) -> Run:
    at = ex.inner(axis) % (indices.rank + 1)
    classes = np.arange(depth, dtype=np.int32).reshape(-1, *(1,) * (indices.rank - at))
    site.scratch(site.out.shape, np.bool_)

    def run(out: Array, indices: Array, hot: Array) -> None:
        np.equal(np.expand_dims(indices, at), classes, out=hot)
        out.fill(off)
        np.copyto(out, out.dtype.type(on), where=hot)
    return run


@kernel(ex.TRANSPOSE_CONV_EX)
def TRANSPOSE_CONV_EX(site: Site, shape: Tensor, w: Tensor, x: Tensor, scheme: int, sw: int, sh: int) -> Run:
    _, height, width, _ = ints(shape)
    pl, pr = scatter_pads(scheme, x.shape[2], width, w.shape[2], sw)
    pt, pb = scatter_pads(scheme, x.shape[1], height, w.shape[1], sh)
    inner = TRANSPOSE_CONV_2D(site, x, w, None, pl, pr, pt, pb, sw, sh, 0, False)

    def run(out: Array, shape: Array, w: Array, x: Array, *scratch: Array) -> None:
        inner(out, x, w, None, *scratch)
    return run


@kernel(ex.GATHER_EX)
def GATHER_EX(site: Site, x: Tensor, indices: Tensor, axis: int) -> Run:
    return GATHER(site, x, axis, indices)
