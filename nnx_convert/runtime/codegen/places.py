"""Where arrays of native code are: strided stretches of the arena, with a border where a reader wants one."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...frozen import frozen
from ...types import Array, Shape

#: Bytes behind the arena's and the weights' last array that vectors may read (and never write).
SLACK = 128
#: Bytes of a number of 32 bits.
ITEM = 4


@frozen
class Border:
    """Cells around an image that are no part of it: `fill` is the byte they are of, in every element."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0
    fill: int = 0

    def __bool__(self) -> bool:
        return any((self.top, self.left, self.bottom, self.right))

    def joined(self, other: Border) -> Border | None:
        """The border that does for both; None where they are of different bytes."""
        if self and other and self.fill != other.fill:
            return None
        top, left, bottom, right = (max(a, b) for a, b in zip(self.sides, other.sides, strict=True))
        return Border(top, left, bottom, right, (self if self else other).fill)

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """Top, left, bottom, right."""
        return self.top, self.left, self.bottom, self.right


@frozen
class Place:
    """An array in memory: `base` is the pointer (`%arena`, `%weights`) it is `offset` bytes behind.

    `strides` are in bytes, `item` is an element's size. A border lies around axes 1 and 2, outside of the sizes.
    """

    base: str
    offset: int
    shape: Shape
    strides: Shape
    item: int
    border: Border = Border()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def even(self) -> bool:
        """Whether all rows of the last axis are equally far apart."""
        return packed(self.shape[:-1], self.strides[:-1], self.strides[-2] if len(self.shape) > 1 else 0)

    def reshaped(self, shape: Shape) -> Place:
        """The same bytes in another shape, of a dense array."""
        return replace(self, shape=shape, strides=dense_strides(shape, self.item), border=Border())

    def shifted(self, rows: int, columns: int) -> Place:
        """The image as it begins so many rows and columns earlier, in its border."""
        return replace(self, offset=self.offset - rows * self.strides[1] - columns * self.strides[2])

    def of(self, memory: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Array:
        """The array in the bytes of its base."""
        return np.ndarray(self.shape, dtype, memory.data, self.offset, self.strides)


def packed(shape: Shape, strides: Shape, item: int) -> bool:
    """Whether axes follow each other without gaps; what the stride of an axis of one or none is does not count."""
    want = item
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and stride != want:
            return False
        want *= n
    return True


def dense_strides(shape: Shape, item: int) -> Shape:
    """The strides of elements that follow each other."""
    strides = []
    for n in reversed(shape):
        strides.append(item)
        item *= max(n, 1)
    return tuple(reversed(strides))


def room(shape: Shape, item: int, border: Border) -> tuple[int, Shape, int]:
    """How an array with a border lies: bytes in all, strides, and where its first element is."""
    if not border:
        return max(math.prod(shape), 1) * item, dense_strides(shape, item), 0
    n, h, w, c = shape
    full = (n, h + border.top + border.bottom, w + border.left + border.right, c)
    strides = dense_strides(full, item)
    return math.prod(full) * item, strides, border.top * strides[1] + border.left * strides[2]


def around(shape: Shape, axis: int) -> tuple[int, int, int]:
    """How many elements are before an axis, along it, and behind it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])
