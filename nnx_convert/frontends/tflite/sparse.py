"""Sparse constants, kept compressed: TFLite's sparsity parameters as DENSIFY takes them.

TFLite stores a level's size only where the level is dense, so the others follow from the shape. The first n
entries of the traversal order are the axes, the last k the block axes, which divide the axes of the block map.
"""
from __future__ import annotations


import numpy as np
import tflite

from ...errors import FormatError
from ...frozen import frozen
from ...graph import Sparse
from ...types import Shape
from .records import Level, Sparsity

DENSE, SPARSE_CSR = tflite.DimensionType.DENSE, tflite.DimensionType.SPARSE_CSR


@frozen(eq=False)
class Kept:
    """The checked parameters: sizes in traversal order, a pair of vectors per level, `count` stored elements."""

    sparsity: Sparsity
    sizes: Shape
    pairs: tuple[np.ndarray | None, ...]
    count: int


def compressed(name: str, s: Sparsity, dims: Shape) -> Kept:
    """The sparsity of a tensor of this shape, tested level by level; raises `FormatError` naming the tensor."""
    sizes = level_sizes(name, s, dims)
    pairs: list[np.ndarray | None] = []
    count = 1
    for level, size in zip(s.levels, sizes, strict=True):
        segments, indices, count = below(name, level, size, count)
        pairs += (segments, indices)
    return Kept(s, sizes, tuple(pairs), count)


def stored(kept: Kept, data: np.ndarray) -> Sparse:
    """The constant, given its stored elements."""
    s = kept.sparsity
    return Sparse(data, s.order, s.blocks, tuple(level.format for level in s.levels), kept.sizes, kept.pairs)


def level_sizes(name: str, s: Sparsity, dims: Shape) -> Shape:
    """The sizes of all levels, in traversal order."""
    n, k = len(dims), len(s.blocks)
    if sorted(s.order[:n]) != list(range(n)) or sorted(s.order[n:]) != list(range(n, n + k)) or len(s.levels) != n + k:
        raise FormatError(f"tensor {name!r}: its traversal order does not have {n} axes and then {k} block axes")
    if list(s.blocks) != sorted(set(s.blocks)) or not all(0 <= b < n for b in s.blocks):
        raise FormatError(f"tensor {name!r}: its block map {list(s.blocks)} does not ascend within {n} axes")
    inner = {axis: level for axis, level in zip(s.order, s.levels, strict=True) if axis >= n}
    if any(level.format != DENSE or level.size <= 0 for level in inner.values()):
        raise FormatError(f"tensor {name!r}: a level inside its blocks is not dense")
    block = {b: inner[n + i].size for i, b in enumerate(s.blocks)}
    if any(dims[b] % size for b, size in block.items()):
        raise FormatError(f"tensor {name!r}: its blocks do not divide it")
    sizes = tuple(inner[a].size if a >= n else dims[a] // block.get(a, 1) for a in s.order)
    if any(level.format == DENSE and level.size != size for level, size in zip(s.levels, sizes, strict=True)):
        raise FormatError(f"tensor {name!r}: its dense levels do not have the sizes of its shape {list(dims)}")
    return sizes


def below(name: str, level: Level, size: int, count: int) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """A level under `count` positions: its segments and indices, and the number of positions below it."""
    if level.format == DENSE:
        return None, None, count * size
    if level.format != SPARSE_CSR or level.segments is None or level.indices is None:
        raise FormatError(f"tensor {name!r} has a level of unknown format {level.format}")
    segments, indices = level.segments, level.indices
    ordered = segments.size == count + 1 and segments[0] == 0 and (np.diff(segments) >= 0).all()
    if not ordered or segments[-1] != indices.size or ((indices < 0) | (indices >= size)).any():
        raise FormatError(f"tensor {name!r} has segments or indices outside its dimensions")
    return segments, indices, int(indices.size)
