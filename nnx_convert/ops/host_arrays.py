"""What NNAPI has no operation for: sizes, diagonals, windows, segments, elements by their index."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..kinds import Bool, Int, Ints, Ints1, Natural, T, rank, scheme_pads, window
from ..schema import Rule, composite, host
from ..signature import Kind
from ..types import I32, STR, UNKNOWN, Shape, Tensor, Type, known
from .host import ALL, AnyT

#: TFLite's codes of what a window is folded by.
SUM, PRODUCT, LEAST, MOST, EVERY, ANY = range(1, 7)
#: Codes of how the rows of a bag are combined.
BAG_SUM, BAG_MEAN, BAG_ROOT = range(3)

FOLDED = Rule("function is 1 sum, 2 product, 3 least, 4 most, 5 all or 6 any", lambda function: function in range(1, 7))
COMBINED = Rule("combiner is 0 sum, 1 mean or 2 sum over the root of the sum of squares",
                lambda combiner: combiner in range(3))
SEGMENTS = Rule("ids count along the first axes of x", lambda x, ids: x.shape[:ids.rank] == ids.shape)


# Composites.
@composite(ALL)
def MATRIX_DIAG(x: T) -> T:
    """Square matrices, the rows of x on their diagonals, zero elsewhere."""
    return x.like((*x.shape, x.shape[-1]))


@composite(ALL, Rule("diagonal has one row per matrix of x", lambda x, diagonal:
                     diagonal.shape == (*x.shape[:-2], min(x.shape[-2:]))))
def MATRIX_SET_DIAG(x: Annotated[T, rank(2, 8)], diagonal: T) -> T:
    """The matrices x with other diagonals."""
    return x


@composite(ALL, Rule("axis and batch are two axes of x", lambda x, axis, batch: axis != batch and
                     max(axis, batch) < x.rank),
           Rule("lengths has one length per index of batch", lambda x, lengths, batch:
                lengths.shape == (x.shape[batch],)))
def REVERSE_SEQUENCE(x: T, lengths: Ints1, axis: Natural, batch: Natural) -> T:
    """x, the first lengths[b] elements along axis back to front for each index b of batch."""
    return x


@composite(ALL, Rule("update fits into x", lambda x, update: len(update.shape) == len(x.shape) and all(
               m <= n for m, n in zip(update.shape, x.shape, strict=True))),
           Rule("start has one number per axis of x", lambda x, start: start.shape == (x.rank,)))
def DYNAMIC_UPDATE_SLICE(x: T, update: T, start: Ints1) -> T:
    """x with update written at start, which is moved so that all of it fits."""
    return x


@composite(ALL, Rule("dilations are positive, one per axis of x", lambda x, dilations:
                     dilations.shape == (x.rank,) and all(d > 0 for d in dilations.ints())),
           Rule("value is one number", lambda value: value.size == 1))
def DILATE(x: T, dilations: Ints1, value: T) -> T:
    """x, dilations[i] - 1 times value between its elements along each axis i."""
    return x.like(tuple(spread(n, d) for n, d in zip(x.shape, dilations.ints(), strict=True)))


def spread(size: int, dilation: int) -> int:
    """A size with gaps between its elements."""
    return 0 if known(size) and size == 0 else (size - 1) * dilation + 1


@composite(ALL, FOLDED, Rule("sizes, strides and dilations are positive, one per axis of x",
                             lambda x, sizes, strides, dilations: all(v.shape == (x.rank,) and all(
                                 n > 0 for n in v.ints()) for v in (sizes, strides, dilations))),
           Rule("start is one number", lambda start: start.size == 1))
def REDUCE_WINDOW(x: T, start: T, sizes: Ints1, strides: Ints1, dilations: Ints1, function: Int) -> T:
    """start and the elements of each window of x folded: 1 sum, 2 product, 3 least, 4 most, 5 all, 6 any."""
    parts = zip(x.shape, sizes.ints(), strides.ints(), dilations.ints(), strict=True)
    return x.like(tuple(window(n, k, s, d, (0, 0)) for n, k, s, d in parts))


# Host operations.
@host(60007, ALL)
def SHAPE(x: T) -> Ints:
    """The sizes of x."""
    return Tensor(I32, (x.rank,))


@host(60008, ALL)
def RANGE(start: T, limit: T, delta: T) -> T:
    """start, start + delta, ... as far as limit, without it."""
    return start.like((UNKNOWN,))


@host(60009, ALL, outs=("values", "indices"))
def TOPK(x: T, k: Ints1) -> tuple[T, Ints]:
    """The k largest along the last axis, k being computed, the smaller index first among equals."""
    shape = (*x.shape[:-1], k.ints()[0])
    return x.like(shape), Tensor(I32, shape)


@host(60010, ALL, Rule("x has rank 1", lambda x: x.rank == 1), outs=("values", "indices"))
def UNIQUE(x: T) -> tuple[T, Ints]:
    """The distinct elements in the order they come in, and for each element of x which of them it is."""
    return x.like((UNKNOWN,)), Tensor(I32, x.shape)


@host(60011, ALL)
def SPARSE_TO_DENSE(indices: Ints, shape: Ints1, values: T, default: T) -> T:
    """A tensor of default with the values at the rows of indices, or one of them everywhere there."""
    return values.like(shape.ints())


@host(60012, ALL, COMBINED)
def EMBEDDING_LOOKUP_SPARSE(lookups: Ints1, indices: Ints, shape: Ints1, weights: T, values: T, combiner: Int) -> T:
    """Weighted rows of values combined, those whose indices differ in the last number alone together."""
    return values.free((*shape.ints()[:-1], *values.shape[1:]))


def by_segment(x: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    """One row per segment."""
    return x.like((count.ints()[0], *x.shape[ids.rank:]))


@host(60013, ALL, SEGMENTS)
def UNSORTED_SEGMENT_SUM(x: T, ids: Ints, count: Ints1) -> T:
    """The sum of the rows of x with each id; 0 where none has it. Negative ids are passed over."""
    return by_segment(x, ids, count)


@host(60014, ALL, SEGMENTS)
def UNSORTED_SEGMENT_PROD(x: T, ids: Ints, count: Ints1) -> T:
    """The product of the rows of x with each id; 1 where none has it. Negative ids are passed over."""
    return by_segment(x, ids, count)


@host(60015, ALL, SEGMENTS)
def UNSORTED_SEGMENT_MAX(x: T, ids: Ints, count: Ints1) -> T:
    """The largest of the rows of x with each id; the lowest number where none has it. Negative ids are passed over."""
    return by_segment(x, ids, count)


@host(60016, ALL, SEGMENTS)
def UNSORTED_SEGMENT_MIN(x: T, ids: Ints, count: Ints1) -> T:
    """The least of the rows of x with each id; the largest number where none has it. Negative ids are passed over."""
    return by_segment(x, ids, count)


@host(60017, ALL)
def CONV_3D_TRANSPOSE(shape: Ints1, w: AnyT, x: T, b: AnyT | None, scheme: Int, sd: Int, sh: Int, sw: Int,
                      act: Int) -> T:
    """w [kd, kh, kw, out, in] scattered by x [n, d, h, w, in] into an output of a given shape."""
    return x.free(shape.ints())


def edges(shape: Shape, w: Shape, strides: Sequence[int], scheme: int) -> list[tuple[int, int]]:
    """What a transposed convolution cuts off at the head and the tail of each axis of its output [d, h, w]."""
    return [scheme_pads(scheme, n, k, s) for n, k, s in zip(shape, w, strides, strict=True)]


@host(60018, ALL, Rule("boxes have two corners each", lambda boxes: boxes.rank == 2 and boxes.shape[1] == 4),
      Rule("scores are one per box", lambda boxes, scores: boxes.shape[:1] == scores.shape),
      outs=("indices", "scores", "count"))
def NON_MAX_SUPPRESSION(boxes: T, scores: T, most: Ints1, iou_threshold: T, score_threshold: T, sigma: T
                        ) -> tuple[Ints, Annotated[Tensor, Kind(ALL)], Ints]:
    """The boxes that no better one overlaps by iou_threshold, best first, then zeros; with sigma scores fade."""
    n = most.ints()[0]
    return Tensor(I32, (n,)), Tensor(Type.TENSOR_FLOAT32, (n,)), Tensor(I32, (1,))


@host(60019, ALL, Rule("x is an image", lambda x: x.rank == 4), Rule("size is two numbers", lambda size:
                                                                     size.shape == (2,)))
def RESIZE(x: T, size: Ints1, nearest: Bool, align: Bool, half: Bool) -> T:
    """RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR to a height and a width that are computed."""
    return x.like((x.shape[0], *size.ints(), x.shape[3]))


@host(60020, {STR: 27}, Rule("x is one text", lambda x: x.shape == (1,)),
      Rule("size is positive and skip is not negative", lambda size, skip: size > 0 and skip >= 0))
def SKIP_GRAM(x: T, size: Int, skip: Int, every: Bool) -> T:
    """Runs of size words of a text, up to skip words left out between two; if every, the shorter ones after them."""
    return Tensor(STR, (UNKNOWN,))
