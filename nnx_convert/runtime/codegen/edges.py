"""Arrays with edges: of one value, of what they mirror or repeat; and blocks of cells as batches."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ...ops import cutting as c, image, shape as s
from ...types import Array, Shape
from ..bind import Bound
from ..kernels.cutting import MODES
from ..kernels.shape import zero_of
from .copies import window
from .layouts import ends, moving
from .places import Place
from .strides import Pairs, ordered, sliced, split
from .tasks import Workshop

#: Copies that one array may take.
MOST = 256
#: A part of an axis: where it begins in the result, and the first element it is of, how far apart these are, how many.
Part = tuple[int, int, int, int]


def _padded(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    amounts = b.args["paddings"].ints()
    filler = _filler(w, out, b, b.args.get("value", zero_of(b.args["x"])))
    return (x, window(out, amounts[0::2], x.shape)), *around(filler, out, amounts[0::2], x.shape)


def _filler(w: Workshop, out: Place, b: Bound, value: float) -> Place:
    """A row of a value, as large an array as the result."""
    row = np.full(out.shape[-1], value, b.outs[0].type.dtype)
    return Place("%weights", w.pack(row), out.shape, (0,) * (len(out.shape) - 1) + (out.item,), out.item)


def around(filler: Place, out: Place, heads: Sequence[int], sizes: Shape) -> Pairs:
    """What lies around a part of the result, axis by axis, as far as it has not been filled yet."""
    pairs: list[tuple[Place, Place]] = []
    for axis, (head, n) in enumerate(zip(heads, sizes, strict=True)):
        for at, size in ((0, head), (head + n, out.shape[axis] - head - n)):
            begin = tuple(heads[a] if a < axis else at if a == axis else 0 for a in range(len(heads)))
            shape = tuple(sizes[a] if a < axis else size if a == axis else out.shape[a] for a in range(len(heads)))
            if size:
                pairs.append((replace(filler, shape=shape), window(out, begin, shape)))
    return tuple(pairs)


# What is mirrored or repeated.
def parts(index: Array) -> list[Part]:
    """The elements of an axis as few parts of elements that are equally far apart."""
    found, at = list[Part](), 0
    while at < len(index):
        step = int(index[at + 1] - index[at]) if at + 1 < len(index) else 1
        end = at + 1
        while end < len(index) and index[end] - index[end - 1] == step:
            end += 1
        found.append((at, int(index[at]), step, end - at))
        at = end
    return found


def indexed(x: Place, out: Place, indices: Sequence[Array]) -> Pairs:
    """The copies that give x's elements of these indices along its axes."""
    pairs = []
    for part in product(*map(parts, indices)):
        offset = x.offset + sum(first * stride for (_, first, _, _), stride in zip(part, x.strides, strict=True))
        strides = tuple(step * stride for (_, _, step, _), stride in zip(part, x.strides, strict=True))
        shape = tuple(count for *_, count in part)
        pairs.append((replace(x, offset=offset, shape=shape, strides=strides),
                      window(out, tuple(at for at, *_ in part), shape)))
    return tuple(pairs)


def _mirrors(b: Bound) -> list[Array]:
    """The elements that are mirrored along each axis, without or with the last one."""
    amounts, mode = b.args["paddings"].ints(), "reflect" if b.args["mode"] == 0 else "symmetric"
    return [_around(np.arange(n), amounts[2 * a:2 * a + 2], mode) for a, n in enumerate(b.args["x"].shape)]


def _around(index: Array, amounts: Sequence[int], mode: str) -> Array:
    found: Array = np.pad(index, amounts, mode)  # type: ignore[call-overload]
    return found


def _mirrored(w: Workshop, b: Bound) -> Pairs:
    return indexed(*ends(w, b), _mirrors(b))


# PAD_BY.
def _sides(b: Bound) -> list[tuple[int, int]]:
    """What is added before and after each axis; below 0, what is cut."""
    amounts, places = b.args["pads"].ints(), b.args["axes"].ints()
    found = [(0, 0)] * len(b.args["x"].shape)
    for i, axis in enumerate(places):
        found[axis] = amounts[i], amounts[i + len(places)]
    return found


def _left(b: Bound) -> list[Array]:
    """The elements of each axis that are not cut."""
    return [np.arange(n)[max(-a, 0):max(n - max(-z, 0), 0)]
            for n, (a, z) in zip(b.args["x"].shape, _sides(b), strict=True)]


def _sources(b: Bound) -> list[Array]:
    """The elements of each axis with those that are repeated."""
    return [_around(kept, (max(a, 0), max(z, 0)), MODES[b.args["mode"]])
            for kept, (a, z) in zip(_left(b), _sides(b), strict=True)]


def _few(indices: Sequence[Array]) -> bool:
    return math.prod(len(parts(index)) for index in indices) <= MOST


def _some_left(b: Bound) -> bool:
    return all(map(len, _left(b))) and (b.args["mode"] == c.CONSTANT or _few(_sources(b)))


def _padded_by(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    if b.args["mode"] != c.CONSTANT:
        return indexed(x, out, _sources(b))
    inner = sliced(x, [range(int(kept[0]), int(kept[-1]) + 1) for kept in _left(b)])
    heads = [max(a, 0) for a, _ in _sides(b)]
    filler = _filler(w, out, b, b.args["value"].data.item())
    return (inner, window(out, tuple(heads), inner.shape)), *around(filler, out, heads, inner.shape)


# Blocks.
def _to_batch(w: Workshop, b: Bound) -> Pairs:
    """For each place in a block a batch: of the rows and columns of the image that are there, and zeros around."""
    x, out = ends(w, b)
    (bh, bw), (top, _, left, _) = b.args["blocks"].ints(), b.args["pads"].ints()
    filler, pairs = _filler(w, out, b, zero_of(b.args["x"])), list[tuple[Place, Place]]()
    batches = split(out, 0, (bh * bw, x.shape[0]))
    for n, (i, j) in enumerate(product(range(bh), range(bw))):
        to = ordered(replace(batches, offset=batches.offset + n * batches.strides[0]), (1, 2, 3, 4))
        rows, columns = (range((at - head) % block, size, block) for at, head, block, size in (
            (i, top, bh, x.shape[1]), (j, left, bw, x.shape[2])))
        begin = 0, (rows.start + top) // bh, (columns.start + left) // bw, 0
        cut = sliced(x, [range(x.shape[0]), rows, columns, range(x.shape[3])])
        if min(cut.shape):
            pairs.append((cut, window(to, begin, cut.shape)))
        pairs += around(filler, to, begin, cut.shape) if min(cut.shape) else [(replace(filler, shape=to.shape), to)]
    return tuple(pairs)


def _small_blocks(b: Bound) -> bool:
    return bool(0 < math.prod(b.args["blocks"].ints()) <= MOST // 8)


NATIVE = (
    moving(_padded, s.PAD, s.PAD_V2, constants=("paddings",)),
    moving(_mirrored, s.MIRROR_PAD, constants=("paddings",), can=lambda b: _few(_mirrors(b))),
    moving(_padded_by, c.PAD_BY, constants=("pads", "value", "axes"), can=_some_left),
    moving(_to_batch, image.SPACE_TO_BATCH_ND, constants=("blocks", "pads"), can=_small_blocks),
)
