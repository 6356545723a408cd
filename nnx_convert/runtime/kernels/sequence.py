"""Lists: what ONNX calls sequences and optional values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...ops import sequence as s
from ...types import LIST, Array, Tensor, Type
from ..given import objects
from ..kernel import Compute, Site, sized


@sized(s.LIST_OF)
def LIST_OF(site: Site, scalars: bool, xs: tuple[Tensor, ...]) -> Compute:
    return lambda xs: [objects([element(x, scalars) for x in xs])]


def element(x: Array, scalar: bool) -> Array:
    """A value as an element of a list, which may have rank 0."""
    return x.reshape(()) if scalar else x


@sized(s.LIST_AT)
def LIST_AT(site: Site, xs: Tensor, position: Tensor, to: Type) -> Compute:
    def run(xs: Array, position: Array) -> list[Array]:
        return [out(xs[place(position, len(xs), len(xs))], to)]
    return run


def out(x: Any, to: Type) -> Array:
    """An element of a list as a value: rank 0 is [1]; raises `RunError` where it has another type."""
    found = np.asarray(x)
    if found.dtype != to.dtype:
        raise RunError(f"an element is {found.dtype}, not {to.dtype}")
    return found if found.ndim or to == LIST else found.reshape(1)


def place(position: Array | None, size: int, end: int) -> int:
    """A position from the start, below `end`; without one, the last. Raises `RunError`."""
    at = -1 if position is None else int(position.item())
    found = at + size if at < 0 else at
    if not 0 <= found < end:
        raise RunError(f"position {at} is not in a list of {size}")
    return found


@sized(s.LIST_INSERT)
def LIST_INSERT(site: Site, xs: Tensor, x: Tensor, position: Tensor | None, scalar: bool) -> Compute:
    def run(xs: Array, x: Array, position: Array | None) -> list[Array]:
        items = list(xs)
        at = len(items) if position is None else place(position, len(items), len(items) + 1)
        items.insert(at, element(x, scalar))
        return [objects(items)]
    return run


@sized(s.LIST_ERASE)
def LIST_ERASE(site: Site, xs: Tensor, position: Tensor | None) -> Compute:
    def run(xs: Array, position: Array | None) -> list[Array]:
        items = list(xs)
        del items[place(position, len(items), len(items))]
        return [objects(items)]
    return run


@sized(s.LIST_SIZE)
def LIST_SIZE(site: Site, xs: Tensor) -> Compute:
    return lambda xs: [np.array([len(xs)], np.int64)]


@sized(s.SPLIT_TO_LIST)
def SPLIT_TO_LIST(site: Site, x: Tensor, sizes: Tensor | None, axis: int, each: bool, keep: bool) -> Compute:
    at, whole = axis % x.rank, x.shape[axis]

    def run(x: Array, sizes: Array | None) -> list[Array]:
        parts = parted(sizes, each, whole)
        ends = np.cumsum(parts)
        cut = np.split(x, ends[:-1], at) if len(parts) else []
        return [objects([p.squeeze(at) if sizes is None and not keep else p for p in cut])]
    return run


def parted(sizes: Array | None, each: bool, whole: int) -> list[int]:
    """The sizes of the parts: ones, of one size with a smaller rest, or these. Raises `RunError`."""
    if sizes is None:
        return [1] * whole
    if each:
        one = int(sizes.item())
        if one <= 0:
            raise RunError(f"parts of {one}")
        return [one] * (whole // one) + [whole % one] * (whole % one > 0)
    parts: list[int] = sizes.reshape(-1).tolist()
    if min(parts, default=0) < 0 or sum(parts) != whole:
        raise RunError(f"{parts} are no parts of {whole}")
    return parts


@sized(s.JOIN_LIST)
def JOIN_LIST(site: Site, xs: Tensor, axis: int, new: bool, to: Type) -> Compute:
    def run(xs: Array) -> list[Array]:
        items: Sequence[Array] = [np.asarray(x) for x in xs]
        if not items:
            raise RunError("a list without elements is joined")
        return [out(np.stack(items, axis) if new else np.concatenate(items, axis), to)]
    return run
