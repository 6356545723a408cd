"""Sequences and optional values: known while importing where that can be, else lists at run time."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import sequence as s
from ....types import B8, LIST, UNKNOWN, Shape, Tensor, known
from ..constants import element_of, type_of
from ..importer import Op
from ..lists import described, inner, optional_type, sequence_type, tensor_type, type_of_value, what
from ..registry import Items, Kind, imports
from ..scope import Region

#: More parts than these are not taken apart while importing.
MOST = 256
#: ONNX's number of float32.
FLOAT = 1

Sequence = Value | Items


def materialised(g: Op, items: Items) -> Value:
    """A sequence known while importing as a list."""
    values = items.values
    scalars = bool(values) and all(v in g.session.scalars for v in values)
    return listed(g, g(s.LIST_OF, scalars=scalars, xs=values), items.kind)


def listed(g: Op, value: Value, kind: Any) -> Value:
    """A list of this type."""
    g.session.kinds[value] = kind
    return value


def run_time(g: Op, xs: Sequence) -> Value:
    """A sequence as a list, however it is known; raises `FormatError` on what is none."""
    if isinstance(xs, Items):
        return materialised(g, xs)
    if xs.type != LIST:
        raise FormatError(f"takes a sequence, not a tensor {xs.name!r}")
    return xs


def optional(g: Op, given: Sequence) -> Sequence:
    """A value as an optional one; itself where it is one."""
    own = type_of_value(g.session, given)
    if what(own) == "optional":
        return given
    return Items((given if isinstance(given, Value) else materialised(g, given),), optional_type(own))


def number(g: Op, position: Value | None) -> int | None:
    """A position that is known."""
    found = None if position is None else g.ints(position)
    return int(found[0]) if found and len(found) == 1 and known(found[0]) else None


def place(at: int, size: int, end: int) -> int:
    """A position from the start, below `end`; raises `FormatError`."""
    found = at + size if at < 0 else at
    if not 0 <= found < end:
        raise FormatError(f"position {at} is not in a sequence of {size}")
    return found


def element(g: Op, xs: Value, position: Any) -> Value:
    """An element of a list."""
    kind = inner(type_of_value(g.session, xs))
    out, scalar = described(kind)
    found = g(s.LIST_AT, xs, position, to=out.type, out=out)
    if out.type == LIST:
        return listed(g, found, kind)
    return g.scalar(found) if scalar else found


@imports()
def SequenceEmpty(g: Op, *, dtype: int = FLOAT) -> Items:
    type_of(dtype)
    return Items((), sequence_type(tensor_type(dtype)))


@imports()
def SequenceConstruct(g: Op, *xs: Value) -> Items:
    if not xs or any(x is None or x.type != xs[0].type for x in xs):
        raise FormatError("makes a sequence of values that are not of one type")
    return Items(xs, sequence_type(type_of_value(g.session, xs[0])))


@imports()
def SequenceInsert(g: Op, xs: Sequence, x: Value, position: Value | None = None) -> Sequence:
    at, scalar = number(g, position), x in g.session.scalars
    if isinstance(xs, Items) and (at is not None or position is None):
        size = len(xs.values)
        i = size if at is None else place(at, size, size + 1)
        return Items((*xs.values[:i], x, *xs.values[i:]), xs.kind)
    now = run_time(g, xs)
    found = g(s.LIST_INSERT, now, x, position, scalar=scalar)
    return listed(g, found, sequence_type(type_of_value(g.session, x)))


@imports()
def SequenceErase(g: Op, xs: Sequence, position: Value | None = None) -> Sequence:
    at = number(g, position)
    if isinstance(xs, Items) and (at is not None or position is None):
        i = place(-1 if at is None else at, len(xs.values), len(xs.values))
        return Items(xs.values[:i] + xs.values[i + 1:], xs.kind)
    now = run_time(g, xs)
    return listed(g, g(s.LIST_ERASE, now, position), type_of_value(g.session, now))


@imports()
def SequenceAt(g: Op, xs: Sequence, position: Value) -> Value:
    at = number(g, position)
    if isinstance(xs, Items) and at is not None:
        return xs.values[place(at, len(xs.values), len(xs.values))]
    if isinstance(xs, Items) and alike(g, xs.values):
        return alternative(g, xs, position)
    return element(g, run_time(g, xs), position)


def alike(g: Op, values: tuple[Value, ...]) -> bool:
    """Whether the values have one shape, all of it known."""
    fixed = all(v.tensor.dims is not None and all(map(known, v.shape)) for v in values)
    return bool(values) and fixed and len({g.shape(v) for v in values}) == 1


def alternative(g: Op, xs: Items, position: Value) -> Value:
    """One of several values of one shape: a row of them all."""
    first = xs.values[0]
    shape = g.shape(first)
    rows = [g.reshape(v, (1, *shape)) for v in xs.values]
    whole, = g.call("Concat", *rows, axis=0)
    picked, = g.call("Gather", whole, g.reshape(position, ()), axis=0)
    found: Value = picked
    return found


@imports()
def SequenceLength(g: Op, xs: Sequence) -> Value:
    if isinstance(xs, Items):
        return g.const(np.array(len(xs.values), np.int64))
    return g.scalar(g(s.LIST_SIZE, run_time(g, xs)))


@imports()
def ConcatFromSequence(g: Op, xs: Sequence, *, axis: int, new_axis: int = 0) -> Value:
    if not isinstance(xs, Items):
        now = run_time(g, xs)
        out, scalar = described(inner(type_of_value(g.session, now)))
        dims = None if out.dims is None else with_axis(() if scalar else out.dims, axis, UNKNOWN) if new_axis else \
            (UNKNOWN,) * len(out.dims)
        return g(s.JOIN_LIST, now, axis, bool(new_axis), to=out.type, out=Tensor(out.type, dims, out.quant))
    values = xs.values
    if not values:
        raise FormatError("a sequence without elements is joined")
    if new_axis:
        rank = g.rank(values[0]) + 1
        at = place(axis, rank, rank)
        values = tuple(g.reshape(v, with_axis(g.shape(v), at, 1)) for v in values)
    found: Value = g.call("Concat", *values, axis=axis)[0]
    return found


def with_axis(shape: Shape, at: int, size: int) -> Shape:
    """A shape with one axis more, at a place that may count from the end."""
    at %= len(shape) + 1
    return (*shape[:at], size, *shape[at:])


@imports()
def SplitToSequence(g: Op, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1) -> Sequence:
    rank = g.rank(x)
    at, keep = place(axis, rank, rank), bool(keepdims) or split is not None
    sizes = parts(g, split, g.shape(x)[at])
    if sizes is None:
        each = split is not None and g.rank(split) == 0
        made = g(s.SPLIT_TO_LIST, x, split, at, each, keep)
        return listed(g, made, sequence_type(tensor_type(element_of(x.type))))
    found = [x] if len(sizes) == 1 else g.call(
        "Split", x, g.const(np.array(sizes, np.int64)), outputs=len(sizes), axis=at, version=13)
    shape = g.shape(x)[:at] + g.shape(x)[at + 1:]
    values = tuple(found if keep else (g.reshape(v, shape) for v in found))
    return Items(values, sequence_type(tensor_type(element_of(x.type))))


def parts(g: Op, split: Value | None, size: int) -> list[int] | None:
    """The sizes of the parts; None where only a run tells. Raises `FormatError` where they do not add up."""
    given = None if split is None else g.ints(split)
    if not known(size) or split is not None and (given is None or not all(map(known, given))):
        return None
    if given is None:
        found = [1] * size
    elif split is not None and g.rank(split) == 0:
        if given[0] <= 0:
            raise FormatError(f"cuts parts of {given[0]}")
        found = [min(given[0], size - i) for i in range(0, size, given[0])]
    else:
        found = list(given)
    if sum(found) != size or min(found, default=0) < 0:
        raise FormatError(f"{found} are no parts of {size}")
    return found if 0 < len(found) <= MOST else None


@imports()
def SequenceMap(g: Op, xs: Sequence, *more: Value | Items, body: Region) -> Any:
    """Unrolled where the sequences are known; else the standard's body, a loop."""
    if not isinstance(xs, Items) or any(isinstance(m, Value) and m.type == LIST for m in more):
        return NotImplemented
    if any(isinstance(m, Items) and len(m.values) != len(xs.values) for m in more):
        raise FormatError("the sequences differ in length")
    if not xs.values:
        return NotImplemented
    rounds = [g.inline(body, [x, *(m.values[i] if isinstance(m, Items) else m for m in more)])
              for i, x in enumerate(xs.values)]
    columns = zip(*rounds, strict=True)
    return [Items(tuple(c), sequence_type(type_of_value(g.session, c[0]))) for c in columns]


@imports()
def Optional(g: Op, x: Sequence | None = None, *, type: Kind | None = None) -> Items:
    if x is None:
        if type is None:
            raise FormatError("has neither a value nor a type")
        return Items((), optional_type(type.of))
    own = type_of_value(g.session, x)
    return Items((x if isinstance(x, Value) else materialised(g, x),), optional_type(own))


@imports()
def OptionalHasElement(g: Op, x: Sequence | None = None) -> Value:
    """A value that is no optional one is there."""
    if x is None or what(type_of_value(g.session, x)) != "optional":
        return g.const(np.array(x is not None))
    if isinstance(x, Items):
        return g.const(np.array(bool(x.values)))
    return g.cast(g.scalar(g(s.LIST_SIZE, x)), B8)


@imports()
def OptionalGetElement(g: Op, x: Sequence) -> Sequence:
    if what(type_of_value(g.session, x)) != "optional":
        return x
    if isinstance(x, Items):
        if not x.values:
            raise FormatError("an optional value without an element is read")
        return x.values[0]
    return element(g, x, g.const(np.array(0, np.int64)))
