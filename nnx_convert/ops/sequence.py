"""Lists: what ONNX calls sequences and optional values."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Int, T, To
from ..schema import Rule, host
from ..signature import Kind
from ..types import I32, I64, LIST, OBJECTS, UNKNOWN, Tensor, Type
from .host import ALL

EVERY = ALL | dict.fromkeys(OBJECTS, 27)
Every = Annotated[Tensor, Kind(EVERY)]
ToEvery = Annotated[Type, Kind(EVERY, output="type")]
List = Annotated[Tensor, Kind({LIST: 27})]
Whole = Annotated[Tensor, Kind({I32: 27, I64: 27})]

ONE = Rule("position is one number", lambda position: position is None or position.size == 1)
#: Of as many elements as a run finds: a list is never a constant.
OPEN = Tensor(LIST, (UNKNOWN,))


@host(60410, EVERY)
def LIST_OF(scalars: Bool, *xs: Every) -> List:
    """The list of the values xs; scalars: they have one element each, and rank 0 in the list."""
    return OPEN


@host(60411, {LIST: 27}, ONE)
def LIST_AT(xs: T, position: Whole, to: ToEvery) -> To:
    """xs[position], a negative position counted from the end."""
    return Tensor(to, None)


@host(60412, {LIST: 27}, ONE)
def LIST_INSERT(xs: T, x: Every, position: Whole | None, scalar: Bool) -> T:
    """xs with x before the element at position, at the end without one; scalar: x has rank 0 there."""
    return OPEN


@host(60413, {LIST: 27}, ONE)
def LIST_ERASE(xs: T, position: Whole | None) -> T:
    """xs without the element at position, without the last where there is no position."""
    return OPEN


@host(60414, {LIST: 27})
def LIST_SIZE(xs: T) -> Annotated[Tensor, Kind({I64: 27})]:
    """How many elements xs has."""
    return Tensor(I64, (1,))


@host(60415, EVERY)
def SPLIT_TO_LIST(x: T, sizes: Whole | None, axis: Int, each: Bool, keep: Bool) -> List:
    """x cut along axis into parts of these sizes, or of one size each; without sizes of 1, dropped if not keep."""
    return OPEN


@host(60416, {LIST: 27})
def JOIN_LIST(xs: T, axis: Int, new: Bool, to: ToEvery) -> To:
    """The elements of xs one after the other along axis, along a new one if new."""
    return Tensor(to, None)
