"""Sparse constants."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..kinds import EXPERIMENTAL, T1, Ints1, T
from ..schema import Rule, op
from ..types import B8, F16, F32, I32, Q8, Q8S, Q16A, Q16S, QS, Tensor, Undecided, given, product

DENSE, SPARSE_CSR = 0, 1
SPARSE = dict.fromkeys((F16, F32, QS, Q8, Q8S, B8, I32, Q16S, Q16A), EXPERIMENTAL)
#: No dense tensor that a few bytes may ask for is larger than this many elements.
LARGEST = 1 << 28
Pairs = Sequence[Tensor | None]


def blocks_of(block_map: Tensor | None) -> tuple[int, ...]:
    """The dimension each block dimension divides; empty where there are no blocks."""
    return block_map.ints() if given(block_map) else ()


def dense_shape(order: Tensor, block_map: Tensor | None, dims: Tensor) -> tuple[int, ...]:
    """The sizes of the dense dimensions, `dims` being those of the levels: dimension order[i] has dims[i]."""
    axes, blocks = order.ints(), blocks_of(block_map)
    n = len(axes) - len(blocks)
    shape = dict(zip(axes, dims.ints(), strict=True))
    for block, axis in enumerate(blocks):
        shape[axis] *= shape[n + block]
    return tuple(shape[axis] for axis in range(n))


def levels(formats: Tensor, dims: Tensor, pairs: Pairs) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Of each SPARSE_CSR level: positions before it, its size, segments, indices. Last: the positions in all, -1.

    Raises `Undecided` where the lists are not constant.
    """
    empty, count = np.zeros(0, np.int64), 1
    for level, (format_, size) in enumerate(zip(formats.ints(), dims.ints(), strict=True)):
        if format_ == DENSE:
            count *= size
            continue
        segments, indices = (values(pairs[2 * level + side]) for side in (0, 1))
        yield count, size, segments, indices
        count = len(indices)
    yield count, -1, empty, empty


def values(x: Tensor | None) -> np.ndarray:
    """The elements of a list; raises `Undecided` where it is not constant, and one left out is empty."""
    if x is None:
        return np.zeros(0, np.int32)
    if x.data is None:
        raise Undecided
    return x.data.reshape(-1)


def _paired(sparse: bool, segments: Tensor | None, indices: Tensor | None) -> bool:
    """Whether the lists of a level are there as its format wants; a list of no indices may be left out."""
    if not sparse:
        return not given(segments) and not given(indices)
    return given(segments) and (given(indices) or int(values(segments)[-1]) == 0)


def _traversed(order: Tensor, block_map: Tensor | None) -> bool:
    axes, k = order.ints(), len(blocks_of(block_map))
    n = len(axes) - k
    return sorted(axes[:n]) == list(range(n)) and sorted(axes[n:]) == list(range(n, n + k))


def _mapped(order: Tensor, block_map: Tensor | None) -> bool:
    blocks = blocks_of(block_map)
    n = order.size - len(blocks)
    return n > 0 and all(0 <= b < n for b in blocks) and all(a < b for a, b in pairwise(blocks))


def _segmented(formats: Tensor, dims: Tensor, pairs: Pairs) -> bool:
    found = [(before, s, i) for before, size, s, i in levels(formats, dims, pairs) if size >= 0]
    return all(len(s) == before + 1 and s[0] == 0 and s[-1] == len(i) and bool(np.all(s[:-1] <= s[1:]))
               for before, s, i in found)


def _indexed(formats: Tensor, dims: Tensor, pairs: Pairs) -> bool:
    return all(_ascending(s, i) and bool(np.all((i >= 0) & (i < size)))
               for _, size, s, i in levels(formats, dims, pairs) if size >= 0)


def _ascending(segments: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the indices increase within every segment."""
    rises = np.r_[True, indices[1:] > indices[:-1], True]
    rises[segments] = True
    return bool(rises.all())


def _stored(formats: Tensor, dims: Tensor, pairs: Pairs) -> int:
    *_, (count, *_rest) = levels(formats, dims, pairs)
    return count


@op(SPARSE,
    Rule("order, formats and dims have one length, n + k", lambda order, formats, dims:
         order.shape == formats.shape == dims.shape),
    Rule("there is a pair (segments, indices) per level, 5 + 2 * (n + k) inputs in all", lambda order, pairs:
         len(pairs) == 2 * order.size),
    Rule("block_map ascends and names dimensions of the dense tensor; it is left out where there are no blocks",
         _mapped, of=("order", "block_map")),
    Rule("order is a permutation of the n dimensions, then one of the k block dimensions",
         _traversed, of=("order", "block_map")),
    Rule("formats are 0 DENSE or 1 SPARSE_CSR", lambda formats: all(
        f in (DENSE, SPARSE_CSR) for f in formats.ints())),
    Rule("dims are positive", lambda dims: all(d > 0 for d in dims.ints())),
    Rule(f"the dense tensor has at most {LARGEST} elements", lambda dims: product(dims.ints()) <= LARGEST),
    Rule("a pair is given exactly where its level is SPARSE_CSR", lambda formats, pairs: all(
        _paired(f == SPARSE_CSR, *pairs[2 * i:2 * i + 2]) for i, f in enumerate(formats.ints()))),
    Rule("segments number one more than the positions of the level before, start at 0, do not fall, and end at "
         "the number of indices", _segmented, of=("formats", "dims", "pairs")),
    Rule("indices lie within their level's size and increase in each segment", _indexed,
         of=("formats", "dims", "pairs")),
    Rule("x holds as many elements as the levels have positions", lambda x, formats, dims, pairs:
         x.size == _stored(formats, dims, pairs)))
def DENSIFY(x: T1, order: Ints1, block_map: Ints1 | None, formats: Ints1, dims: Ints1,
            *pairs: Ints1 | None) -> T:
    """x, the stored elements level by level, spread out over zeros; dims are the levels' sizes, blocks last."""
    return x.like(dense_shape(order, block_map, dims))
