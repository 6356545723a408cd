"""Products with constant matrices whose axes stay apart."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...ops import linear
from ...types import Array, F16, F32, Tensor, product
from ..kernel import Run, Site, kernel
from ..products import BOUNDS
from .conv import FULLY_CONNECTED


@kernel(linear.LINEAR)
def LINEAR(site: Site, x: Tensor, w: Tensor, b: Tensor, flat: int, act: int) -> Run:
    """FULLY_CONNECTED's own on floats and bytes; other numbers as they multiply and add, integers wrapping."""
    rows, units = product(x.shape[:x.rank - flat]), product(b.shape)
    depth = product(x.shape[x.rank - flat:])
    if x.type not in (F32, F16) and not site.out.scale:
        return _plain(site, rows, units, depth, act)
    data = None if w.data is None else w.data.reshape(units, depth)
    bias = None if b.data is None else b.data.reshape(units)
    inner = replace(site, outs=(replace(site.out, dims=(rows, units)),))
    run: Run = FULLY_CONNECTED(inner, x, replace(w, dims=(units, depth), data=data),
                               replace(b, dims=(units,), data=bias), act)
    site.largest = inner.largest
    return lambda out, x, w, b, *scratch: run(out.reshape(rows, units), x, w, b, *scratch)


def _plain(site: Site, rows: int, units: int, depth: int, act: int) -> Run:
    site.product(rows, depth, units)
    low, high = BOUNDS[act]

    def run(out: Array, x: Array, w: Array, b: Array) -> None:
        sums = np.matmul(x.reshape(rows, depth), w.reshape(units, depth).T) + b.reshape(units)
        sums = sums if low is None else np.maximum(sums, low)
        np.copyto(out.reshape(rows, units), sums if high is None else np.minimum(sums, high), casting="unsafe")
    return run
