"""Picking rows and elements by index."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import RunError
from ...ops import gather
from ...types import Array, Tensor
from ..kernel import Run, Site, kernel

#: What is said of indices that are only beyond what native code can tell.
BEYOND = "an index is not one of 32 bits"


@kernel(gather.GATHER)
def GATHER(site: Site, x: Tensor, axis: int, indices: Tensor) -> Run:
    take = picked(x, axis, indices)

    def run(out: Array, x: Array, indices: Array) -> None:
        take(out, x, indices)
    return run


@kernel(gather.EMBEDDING_LOOKUP)
def EMBEDDING_LOOKUP(site: Site, lookups: Tensor, values: Tensor) -> Run:
    take = picked(values, 0, lookups)

    def run(out: Array, lookups: Array, values: Array) -> None:
        take(out, values, lookups)
    return run


def picked(x: Tensor, axis: int, indices: Tensor) -> Callable[[Array, Array, Array], None]:
    """Takes x at the indices along axis; raises `RunError` naming an index that is not in [0, size of axis)."""
    size = x.shape[axis]
    constant = indices.data is not None
    if indices.data is not None:
        within(indices.data, size)

    def take(out: Array, x: Array, indices: Array) -> None:
        if not constant:
            within(indices, size)
        # Every index is known to be in bounds: clip is the mode that writes to `out` without a copy between.
        np.take(x, indices, axis, out=out, mode="clip")
    return take


def within(indices: Array, size: int, least: int = 0) -> None:
    """Raise `RunError` where an index is not in [least, size), naming the least such one, as native code does: the
    least one of 32 bits, if there is any."""
    if indices.size and (indices.min() < least or indices.max() >= size):
        wrong = indices[(indices < least) | (indices >= size)]
        held = wrong[wrong == wrong.astype(np.int32)]
        raise RunError(f"index {held.min()} is not in [{least}, {size})" if held.size else BEYOND)


def axis_of(given: Array, rank: int, last: int | None = None) -> int:
    """The axis that a run gives, from 0 on; raises `RunError` where there is none, or one from `last` on."""
    axis = int(given.item())
    if not -rank <= axis < rank or last is not None and axis % rank >= last:
        raise RunError(f"there is no axis {axis} among {rank if last is None else last}")
    return axis % rank


@kernel(gather.HASHTABLE_LOOKUP)
def HASHTABLE_LOOKUP(site: Site, lookups: Tensor, keys: Tensor, values: Tensor) -> Run:
    last = keys.shape[0] - 1

    def run(out: Array, hits: Array, lookups: Array, keys: Array, values: Array) -> None:
        if last < 0:
            out.fill(0)
            hits.fill(0)
            return
        at = np.minimum(np.searchsorted(keys, lookups), last)
        np.equal(keys[at], lookups, out=hits, casting="unsafe")
        np.take(values, at, 0, out=out, mode="clip")
        out[hits == 0] = 0
    return run
