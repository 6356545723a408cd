"""Small graphs for the rules of elements at computed places, and where a host operation is left."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rule_cases import F, I, Made, of

from nnx_convert.graph import Build, Value
from nnx_convert.ops import elementwise as e, folds, host, indexing as i
from nnx_convert.types import F32, I32, UNKNOWN, Tensor, Type

CUBE = (F32, (2, 3, 4))


def assigned(*slices: slice, kind: Type = F32, shuffled: bool = False) -> Made:
    """x with a box written over, as exporters write a slice: one tuple for each element of it."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        grid = np.stack(np.meshgrid(*(np.arange(*s.indices(n)) for s, n in zip(slices, (2, 3, 4), strict=False)),
                                    indexing="ij"), -1)
        grid = grid[::-1] if shuffled else grid
        updates = np.arange(grid[..., 0].size * int(np.prod((2, 3, 4)[len(slices):])))
        update = g.const(updates.reshape(*grid.shape[:-1], *(2, 3, 4)[len(slices):]), kind)
        return g.add(i.SCATTER_TUPLES, xs[0], g.const(grid, I32), update, fold=i.REPLACE)
    return make


def at(op: str, indices: object, **named: Any) -> Made:
    """Elements at known places."""
    return lambda g, xs: g.add(getattr(i, op), xs[0], g.const(indices, I32), **named)


def computed(op: str, indices: object, **named: Any) -> Made:
    """Elements at places that a run computes."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        zero = g(e.MINIMUM, g(e.MAXIMUM, xs[1], g.const([0], I32)), g.const([0], I32))
        return g.add(getattr(i, op), xs[0], g(e.ADD, zero, g.const(indices, I32), act=0), **named)
    return make


def spread(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """x repeated as often as a run says."""
    zero = g(e.MINIMUM, g(e.MAXIMUM, xs[1], g.const([0], I32)), g.const([0], I32))
    sizes = g(e.ADD, zero, g.const([5, 3, 4], I32), act=0)
    return g.add(host.BROADCAST_TO, xs[0], sizes, outs=(Tensor(F32, (UNKNOWN, 3, 4)),))


ELEMENTS = [[[1, 0, 2, 2]], [[0, 0, 1, 2]]]
TUPLES = [[[1, 3], [0, 0]], [[2, 1], [2, 2]]]
INDEXED: dict[str, tuple[Made, list[tuple[Type, tuple[int, ...]]]]] = {
    "elements": (at("GATHER_ELEMENTS", ELEMENTS, axis=1), [F]),
    "elements_row": (at("GATHER_ELEMENTS", [2, 0], axis=0), [(F32, (3,))]),
    "elements_last": (at("GATHER_ELEMENTS", [[[3, 0]] * 3] * 2, axis=-1), [F]),
    "elements_computed": (computed("GATHER_ELEMENTS", ELEMENTS, axis=1), [F, (I32, (2, 1, 4))]),
    "elements_int": (at("GATHER_ELEMENTS", ELEMENTS, axis=1), [I]),
    "nd_batched": (at("GATHER_ND_BATCHED", TUPLES, batch=1), [F]),
    "nd_batched_0": (at("GATHER_ND_BATCHED", [[1, 2, 0], [0, 0, 3]], batch=0), [F]),
    "nd_batched_rows": (computed("GATHER_ND_BATCHED", [[[1], [0]], [[2], [2]]], batch=1), [F, (I32, (2, 2, 1))]),
    **{f"trilu_{k}_{upper}": (of(i.TRILU, k=[k], upper=upper), [F]) for k in (-1, 0, 2) for upper in (False, True)},
    "argmax_last": (of(folds.ARGMAX_LAST, axis=1), [F]), "argmin_last": (of(folds.ARGMIN_LAST, axis=-1), [F]),
    "argmax_last_int": (of(folds.ARGMAX_LAST, axis=0), [I]),
    "spread": (spread, [(F32, (1, 3, 4)), (I32, (3,))]), "spread_row": (spread, [(F32, (3, 4)), (I32, (3,))]),
    "assigned": (assigned(slice(0, 2), slice(1, 2)), [F]),
    "assigned_first": (assigned(slice(0, 1)), [F]), "assigned_whole": (assigned(slice(0, 2)), [F]),
    "assigned_inside": (assigned(slice(1, 2), slice(0, 2), slice(1, 3)), [F]),
    "assigned_shuffled": (assigned(slice(0, 2), slice(1, 2), shuffled=True), [F]),
}
#: Cases that need a host operation, by the targets (as their indices in TARGETS) on which they do.
INDEXED_HOSTED = {name: where for where, names in {
    (0, 1): "elements elements_last elements_row nd_batched nd_batched_0 argmax_last argmax_last_int",
    (0, 1, 2): "argmin_last assigned assigned_first assigned_inside " + " ".join(
        n for n in INDEXED if n.startswith("trilu")),
    (0, 1, 2, 3, 4): "elements_computed spread spread_row",
    (0, 1, 2, 3, 4, 6): "nd_batched_rows",
    (0, 1, 2, 3, 4, 5, 6): "elements_int",
    tuple(range(8)): "assigned_shuffled",
}.items() for name in names.split()}
