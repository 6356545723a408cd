"""Matrices that a run computes, as operands of products: by leading axes, and packed into panels of columns."""
from __future__ import annotations

import math
from dataclasses import replace

from ...types import Shape
from .ir import Function, vector
from .places import ITEM, Border, Place
from .turns import pieces, turned


def operand(p: Place, lead: Shape, turn: bool = False) -> Place:
    """Matrices with the leading axes of a result, their last two axes in the order in which they count.

    Leading axes that are as many matrices in all are seen in another shape, others are repeated.
    """
    own = p.shape[:-2]
    if own != lead and math.prod(own) == math.prod(lead):
        p = p.reshaped((*lead, *p.shape[-2:]))
    more = len(lead) - len(p.shape[:-2])
    strides = (0,) * more + tuple(0 if n == 1 else s for n, s in zip(p.shape[:-2], p.strides[:-2], strict=True))
    order = (-1, -2) if turn else (-2, -1)
    return replace(p, shape=(*lead, *(p.shape[a] for a in order)), strides=(*strides, *(p.strides[a] for a in order)),
                   border=Border())


def pack(f: Function, matrix: Place, at: str, room: str, count: int) -> None:
    """Emit the packing of a panel of so many columns, which begin at an address, into a room: its rows one after the
    other, in whole vectors, zeros behind."""
    lanes, depth = f.machine.lanes, matrix.shape[-2]
    size = -(-count // lanes) * lanes * ITEM
    if matrix.strides[-1] != ITEM:
        f.do(f"call void @{turned(f.module, count, depth, matrix.strides[-1], size)}(ptr {at}, ptr {room})")
        return

    def row(k: str, _: list[str]) -> None:
        source, to = f.at(at, f.mul(k, matrix.strides[-2])), f.at(room, f.mul(k, size))
        for first in range(0, count, lanes):
            value = f.load_first(min(lanes, count - first), lanes, "float", source, first * ITEM)
            f.store(vector(lanes), value, to, first * ITEM)
    f.loop(0, depth, 1, [], row)


def pack_all(f: Function, matrix: Place, at: str, room: str, wide: int) -> None:
    """Emit the packing of a whole matrix, a panel of `wide` columns after the other."""
    depth = matrix.shape[-2]
    pieces(f, matrix.shape[-1], wide, lambda first, count: pack(
        f, matrix, f.at(at, f.mul(first, matrix.strides[-1])), f.at(room, f.mul(first, depth * ITEM)), count))
