"""What arithmetic on sizes gives, numbers and open sizes alike: NumPy computes with objects all the same."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...symbols import at_least
from ...types import Shape, Undecided, known, product

Table = dict[str, Callable[..., Any]]
#: More elements than any list of sizes, axes, pads or scales has.
LONGEST = 4096
#: Bounds of a slice from here on mean the end.
ENDLESS = 10 ** 9
TABLE: Table = {}
#: Operators with several outputs: their functions are told how many, and give a list.
MANY = ("Split",)
#: Operators on the sizes of their inputs, which their functions are given in place of the elements.
OF_SIZES = ("Shape", "Size")


def evaluated(op: str, inputs: Sequence[np.ndarray | None], attributes: dict[str, Any], count: int = 1
              ) -> list[np.ndarray] | None:
    """The elements of an operator's outputs, given those of its inputs; None where they cannot be told.

    Arrays of objects hold numbers and open sizes. Raises nothing: what is no size is left to the operator itself.
    """
    fn = TABLE.get(op)
    if fn is None:
        return None
    try:
        parts = fn(count, *inputs, **attributes) if op in MANY else [fn(*inputs, **attributes)]
        found = [np.asarray(part) for part in parts]
    except (Undecided, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, AttributeError):
        return None
    return found if len(found) == count and sum(part.size for part in found) <= LONGEST else None


def objects(values: Any, shape: Shape | None = None) -> np.ndarray:
    """An array of objects, each a number or an open size."""
    flat = list(values)
    found = np.empty(len(flat), object)
    found[:] = flat
    return found if shape is None else found.reshape(shape)


def certain(array: np.ndarray) -> bool:
    """Whether all elements are numbers."""
    return array.dtype != object or all(map(known, array.reshape(-1).tolist()))


def folds(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function of some operators' elements."""
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(names or (fn.__name__,), fn))
        return fn
    return register


def divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotients of integers one by one; raises `TypeError` on floats."""
    if "f" in (x.dtype.kind, y.dtype.kind):
        raise TypeError
    return np.asarray(np.frompyfunc(quotient, 2, 1)(x.astype(object), y.astype(object)), object)


TABLE.update(Add=np.add, Sub=np.subtract, Mul=np.multiply, Neg=np.negative, Identity=lambda x: x,
             Min=lambda *xs: least(xs, False), Max=lambda *xs: least(xs, True),
             Div=divided, Where=lambda c, x, y: np.where(c.astype(bool), x, y),
             Equal=lambda x, y: x == y, Less=lambda x, y: x < y, Greater=lambda x, y: x > y,
             Concat=lambda *xs, axis: np.concatenate(xs, axis),
             Size=lambda shape: np.asarray(product(tuple(shape.tolist())), object))


def least(xs: Sequence[np.ndarray], most: bool) -> np.ndarray:
    """The least or the greatest of elements one by one; raises `Undecided` where sizes do not tell."""
    found = xs[0]
    for x in xs[1:]:
        found = np.where((found >= x if most else found <= x).astype(bool), found, x)
    return found


def quotient(a: Any, b: Any) -> Any:
    """a / b without its fraction, toward zero; raises `Undecided` where an open size might be below it."""
    if known(a) and known(b):
        whole = abs(a) // abs(b)
        return whole if (a < 0) == (b < 0) else -whole
    if any((least := at_least(n)) is None or least < 0 for n in (a, b)):
        raise Undecided
    return a // b


def axes_of(at: np.ndarray | None, axes: Sequence[int] | None) -> Sequence[int] | None:
    """Axes, which are an input or, in old versions, an attribute; None where neither is given."""
    if at is None:
        return axes
    found: list[int] = at.astype(np.int64).reshape(-1).tolist()
    return found


@folds("Shape")
def part_of_shape(shape: np.ndarray, start: int = 0, end: int | None = None) -> np.ndarray:
    return shape[start:end]


@folds()
def Cast(x: np.ndarray, to: int = 0, **_: Any) -> np.ndarray:
    if to not in (6, 7, 12, 13):                 # INT32, INT64 and the unsigned ones: no size is beyond them
        raise ValueError
    return x


@folds()
def Gather(x: np.ndarray, at: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.take(x, at.astype(np.int64), axis)


@folds()
def Split(count: int, x: np.ndarray, sizes: Any = None, *, axis: int = 0, split: Any = None, **_: Any
          ) -> list[np.ndarray]:
    given = sizes if split is None else split
    return np.split(x, count if given is None else np.cumsum([int(n) for n in given])[:-1], axis)


@folds()
def Reshape(x: np.ndarray, shape: np.ndarray, allowzero: int = 0) -> np.ndarray:
    return x.reshape([int(n) for n in shape])


@folds()
def Squeeze(x: np.ndarray, at: np.ndarray | None = None, axes: Sequence[int] | None = None) -> np.ndarray:
    chosen = axes_of(at, axes)
    return np.squeeze(x, None if chosen is None else tuple(chosen))


@folds()
def Unsqueeze(x: np.ndarray, at: np.ndarray | None = None, axes: Sequence[int] = ()) -> np.ndarray:
    return np.expand_dims(x, tuple(axes_of(at, axes) or ()))


@folds()
def Flatten(x: np.ndarray, axis: int = 1) -> np.ndarray:
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


@folds()
def Slice(x: np.ndarray, start: Any = None, end: Any = None, axis: Any = None, step: Any = None, *,
          starts: Any = None, ends: Any = None, axes: Any = None) -> np.ndarray:
    first, last = (start, end) if starts is None else (starts, ends)
    where = axis if axis is not None else axes if axes is not None else range(len(first))
    steps = step if step is not None else [1] * len(first)
    at: list[slice] = [slice(None)] * x.ndim
    for a, lo, hi, by in zip(where, first, last, steps, strict=True):
        at[int(a)] = slice(int(lo), int(hi), int(by))
    return x[tuple(at)]


def reduced(fn: Callable[..., Any], x: np.ndarray, at: Any, *, axes: Any = None, keepdims: int = 1,
            noop_with_empty_axes: int = 0) -> np.ndarray:
    """A reduction; over all axes where none is named, or over none at all where the attribute says so."""
    chosen = axes_of(at, axes)
    if not chosen and noop_with_empty_axes:
        return x
    return np.asarray(fn(x, tuple(chosen) if chosen else None, keepdims=bool(keepdims)), object)


@folds("ReduceProd")
def reduce_prod(x: np.ndarray, at: Any = None, **said: Any) -> np.ndarray:
    return reduced(np.prod, x, at, **said)


@folds("ReduceSum")
def reduce_sum(x: np.ndarray, at: Any = None, **said: Any) -> np.ndarray:
    return reduced(np.sum, x, at, **said)


@folds()
def ConstantOfShape(shape: np.ndarray, value: np.ndarray | None = None) -> np.ndarray:
    if value is None or value.dtype.kind not in "iu":
        raise ValueError
    return np.full([int(n) for n in shape], value.reshape(-1)[0]).astype(object)


@folds()
def Expand(x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in shape)))


@folds()
def Mod(x: np.ndarray, y: np.ndarray, fmod: int = 0) -> np.ndarray:
    return x - y * divided(x, y) if fmod else np.asarray(np.mod(x, y), object)
