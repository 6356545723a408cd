"""Operations that rearrange elements: axes turned, parts cut out with steps, blocks moved, edges added."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from ...ops import ex, image, shape as s
from ...schema import OpDef
from ...types import Quant, Tensor
from ..bind import Bound
from .copies import plain, window
from .machine import Machine
from .places import Place
from .strides import Moves, Pairs, ordered, simple, sliced, split
from .tasks import Family, Group, Task, Workshop, flat, native

Make = Callable[[Workshop, Bound], Pairs]


def _moving(make: Make, *ops: OpDef, constants: tuple[str, ...] = ()) -> None:
    """Register operations that move elements, their arguments of these names known."""
    def takes(b: Bound, _: Machine) -> bool:
        known = all(b.args[n] is None or b.args[n].data is not None for n in constants)
        return known and plain(b) and not b.args.get("nchw") and bool(b.outs[0].shape)

    def made(w: Workshop, group: Group) -> Task:
        return Moves(tuple(simple(*pair) for pair in make(w, group.head)))
    native(Family(takes, made, strided=True), *ops)


def _ends(w: Workshop, b: Bound) -> tuple[Place, Place]:
    return w.place(b.slots["x"]), w.place(b.outputs[0])


def _turned(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    perm = (1, 0) if b.args["perm"] is None else b.args["perm"].ints()
    return (ordered(x, perm), out),


def _strided(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    begins, ends, steps = (b.args[n].ints() for n in ("begin", "end", "strides"))
    cuts, kept = list[range](), list[int]()
    for i, (n, begin, end, step) in enumerate(zip(x.shape, begins, ends, steps, strict=True)):
        low, high = None if b.args["begin_mask"] >> i & 1 else begin, None if b.args["end_mask"] >> i & 1 else end
        cut = range(*slice(low, high, step).indices(n))
        shrunk = b.args["shrink_mask"] >> i & 1
        cuts.append(cut[:1] if shrunk else cut)
        kept += [] if shrunk else [i]
    return (ordered(sliced(x, cuts), kept), ordered(out, range(len(kept)))),


def _to_space(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    block, c = b.args["block"], out.shape[3]
    cells = ordered(split(x, 3, (block, block, c)), (0, 1, 3, 2, 4, 5))
    return (cells, split(split(out, 2, (x.shape[2], block)), 1, (x.shape[1], block))),


def _to_depth(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    block, (_, h, wide, _) = b.args["block"], out.shape
    cells = split(split(x, 2, (wide, block)), 1, (h, block))
    return (ordered(cells, (0, 1, 3, 2, 4, 5)), split(out, 3, (block, block, x.shape[3]))),


def _from_batch(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    bh, bw = b.args["blocks"].ints()
    cells = ordered(split(x, 0, (bh, bw, out.shape[0])), (2, 3, 0, 4, 1, 5))
    return (cells, split(split(out, 2, (x.shape[2], bw)), 1, (x.shape[1], bh))),


def _shuffled(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    axis, groups = b.args["axis"] % len(x.shape), b.args["groups"]
    each = x.shape[axis] // groups
    parts = split(x, axis, (groups, each))
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(parts.shape))]
    return (ordered(parts, order), split(out, axis, (each, groups))),


def _tiled(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    for axis in reversed(range(len(x.shape))):
        out = split(out, axis, (b.args["multiples"].ints()[axis], x.shape[axis]))
    pairs = [(a, c) for n, stride in zip(x.shape, x.strides, strict=True) for a, c in ((0, 0), (n, stride))]
    return (replace(x, shape=out.shape, strides=tuple(c for _, c in pairs)), out),


def _reversed(w: Workshop, b: Bound) -> Pairs:
    x, out = _ends(w, b)
    axis = b.args["axis"].ints()[0]
    return (sliced(x, [range(n)[::-1 if i == axis else 1] for i, n in enumerate(x.shape)]), out),


def _joined(w: Workshop, b: Bound) -> Pairs:
    """Arrays stacked along a new axis."""
    out = w.place(b.outputs[0])
    axis = b.args["axis"] % len(out.shape)
    rest = [a for a in range(len(out.shape)) if a != axis]
    return tuple((w.place(slot), ordered(_layer(out, axis, n), rest)) for n, slot in enumerate(flat(b.slots["xs"])))


def _taken_apart(w: Workshop, b: Bound) -> Pairs:
    x = w.place(b.slots["x"])
    axis = b.args["axis"] % len(x.shape)
    rest = [a for a in range(len(x.shape)) if a != axis]
    parts = (ordered(_layer(x, axis, n), rest) for n in range(len(b.outputs)))
    return tuple((part, ordered(w.place(slot), range(len(rest)))) for part, slot in zip(parts, b.outputs, strict=True))


def _layer(p: Place, axis: int, number: int) -> Place:
    return window(p, tuple(number if a == axis else 0 for a in range(len(p.shape))),
                  tuple(1 if a == axis else n for a, n in enumerate(p.shape)))


# Edges.
def _padded(w: Workshop, b: Bound) -> Pairs:
    """The array in the middle; around it, axis by axis, what has not been filled yet."""
    x, out = _ends(w, b)
    amounts, dtype = b.args["paddings"].ints(), b.outs[0].type.dtype
    heads, tails = amounts[0::2], amounts[1::2]
    row = np.full(out.shape[-1], b.args.get("value", _zero(b.args["x"])), dtype)
    filler = Place("%weights", w.pack(row), out.shape, (0,) * (len(out.shape) - 1) + (out.item,), out.item)
    pairs: list[tuple[Place, Place]] = [(x, window(out, heads, x.shape))]
    for axis, (head, tail, n) in enumerate(zip(heads, tails, x.shape, strict=True)):
        for at, size in ((0, head), (head + n, tail)):
            begin = tuple(heads[a] if a < axis else at if a == axis else 0 for a in range(len(heads)))
            sizes = tuple(x.shape[a] if a < axis else size if a == axis else out.shape[a] for a in range(len(heads)))
            if size:
                pairs.append((replace(filler, shape=sizes), window(out, begin, sizes)))
    return tuple(pairs)


def _zero(x: Tensor) -> int:
    return x.quant.zero if isinstance(x.quant, Quant) else 0


def _mirrored(w: Workshop, b: Bound) -> Pairs:
    """Each part of the result, middles and edges of all axes: what it mirrors, back to front along its edges."""
    x, out = _ends(w, b)
    amounts, edge = b.args["paddings"].ints(), 1 if b.args["mode"] == 0 else 0
    parts = [_sides(n, amounts[2 * a], amounts[2 * a + 1], edge) for a, n in enumerate(x.shape)]
    return tuple((sliced(x, [source for _, source in part]),
                  window(out, tuple(at for at, _ in part), tuple(len(source) for _, source in part)))
                 for part in product(*parts))


def _sides(n: int, head: int, tail: int, edge: int) -> list[tuple[int, range]]:
    """Where parts of an axis begin, and the elements they are of."""
    found = [(0, range(edge, edge + head)[::-1]), (head, range(n)),
             (head + n, range(n - edge - tail, n - edge)[::-1])]
    return [(at, cut) for at, cut in found if len(cut)]


_moving(_turned, s.TRANSPOSE, constants=("perm",))
_moving(_strided, s.STRIDED_SLICE, constants=("begin", "end", "strides"))
_moving(_to_space, image.DEPTH_TO_SPACE)
_moving(_to_depth, image.SPACE_TO_DEPTH)
_moving(_from_batch, image.BATCH_TO_SPACE_ND, constants=("blocks",))
_moving(_shuffled, s.CHANNEL_SHUFFLE)
_moving(_tiled, s.TILE, constants=("multiples",))
_moving(_reversed, s.REVERSE, constants=("axis",))
_moving(_joined, s.PACK, ex.PACK_EX)
_moving(_taken_apart, ex.UNPACK_EX)
_moving(_padded, s.PAD, s.PAD_V2, constants=("paddings",))
_moving(_mirrored, s.MIRROR_PAD, constants=("paddings",))
