"""Searches and running folds along an axis that NNAPI has no operation for."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ops import folds as f
from ...schema import OpDef
from ...types import Array, Tensor
from ..kernel import Run, Site, kernel
from .gather import axis_of


def _search_last(op: OpDef, find: Callable[..., Array]) -> None:
    """The last extreme along an axis."""
    @kernel(op)
    def prepare(site: Site, x: Tensor, axis: int) -> Run:
        shape, last = site.out.shape, x.shape[axis] - 1

        def run(out: Array, x: Array) -> None:
            at = last - find(np.flip(x, axis), axis=axis)
            np.copyto(out, at.reshape(shape), casting="unsafe")
        return run


_search_last(f.ARGMAX_LAST, np.argmax)
_search_last(f.ARGMIN_LAST, np.argmin)


@kernel(f.CUMULATE)
def CUMULATE(site: Site, x: Tensor, axis: Tensor, exclusive: bool, reverse: bool, product: bool) -> Run:
    """In the tensor's own type, so that integers wrap."""
    function = np.multiply if product else np.add

    def run(out: Array, x: Array, axis: Array) -> None:
        at = axis_of(axis, x.ndim)
        rows, to = (np.moveaxis(a, at, 0)[::-1] if reverse else np.moveaxis(a, at, 0) for a in (x, out))
        if not exclusive:
            function.accumulate(rows, 0, x.dtype, out=to)
        elif len(rows):
            to[0] = int(product)
            function.accumulate(rows[:-1], 0, x.dtype, out=to[1:])
    return run
