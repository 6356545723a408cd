"""Operations that rearrange elements: axes turned, parts cut out with steps, blocks moved."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ops import cutting, ex, host, image, shape as s
from ...schema import OpDef
from ..bind import Bound
from .copies import along, parted, plain, there
from .elements import spread
from .machine import Machine
from .places import Border, Place
from .strides import Moves, Pairs, ordered, simple, sliced, split
from .tasks import Family, Group, Phases, Task, Workshop, flat, native

Make = Callable[[Workshop, Bound], Pairs]


def _always(_: Bound) -> bool:
    return True


def moving(make: Make, *ops: OpDef, constants: tuple[str, ...] = (), can: Callable[[Bound], bool] = _always) -> None:
    """Register operations that move elements, their arguments of these names known; `can` says what else they ask."""
    def takes(b: Bound, _: Machine) -> bool:
        known = all(b.args[n] is None or b.args[n].data is not None for n in constants)
        return known and plain(b) and not b.args.get("nchw") and bool(b.outs[0].shape) and can(b)

    def made(w: Workshop, group: Group) -> Task | Phases:
        pairs = tuple(simple(*pair) for pair in make(w, group.head) if not there(*pair))
        return Moves(pairs) if pairs else Phases(())
    native(Family(takes, made, strided=True), *ops)


def ends(w: Workshop, b: Bound) -> tuple[Place, Place]:
    """Where the array is that an operation moves, and the result."""
    return w.place(b.slots["x"]), w.place(b.outputs[0])


def _turned(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    perm = (1, 0) if b.args["perm"] is None else b.args["perm"].ints()
    return (ordered(x, perm), out),


def _strided(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    begins, lasts, steps = (b.args[n].ints() for n in ("begin", "end", "strides"))
    cuts, kept = list[range](), list[int]()
    for i, (n, begin, end, step) in enumerate(zip(x.shape, begins, lasts, steps, strict=True)):
        low, high = None if b.args["begin_mask"] >> i & 1 else begin, None if b.args["end_mask"] >> i & 1 else end
        cut = range(*slice(low, high, step).indices(n))
        shrunk = b.args["shrink_mask"] >> i & 1
        cuts.append(cut[:1] if shrunk else cut)
        kept += [] if shrunk else [i]
    return (ordered(sliced(x, cuts), kept), ordered(out, range(len(kept)))),


def _to_space(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    block, c = b.args["block"], out.shape[3]
    cells = ordered(split(x, 3, (block, block, c)), (0, 1, 3, 2, 4, 5))
    return (cells, split(split(out, 2, (x.shape[2], block)), 1, (x.shape[1], block))),


def _to_depth(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    block, (_, h, wide, _) = b.args["block"], out.shape
    cells = split(split(x, 2, (wide, block)), 1, (h, block))
    return (ordered(cells, (0, 1, 3, 2, 4, 5)), split(out, 3, (block, block, x.shape[3]))),


def _from_batch(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    bh, bw = b.args["blocks"].ints()
    cells = ordered(split(x, 0, (bh, bw, out.shape[0])), (2, 3, 0, 4, 1, 5))
    return (cells, split(split(out, 2, (x.shape[2], bw)), 1, (x.shape[1], bh))),


def _shuffled(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    axis, groups = b.args["axis"] % len(x.shape), b.args["groups"]
    each = x.shape[axis] // groups
    parts = split(x, axis, (groups, each))
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(parts.shape))]
    return (ordered(parts, order), split(out, axis, (each, groups))),


def _tiled(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    for axis in reversed(range(len(x.shape))):
        out = split(out, axis, (b.args["multiples"].ints()[axis], x.shape[axis]))
    pairs = [(a, c) for n, stride in zip(x.shape, x.strides, strict=True) for a, c in ((0, 0), (n, stride))]
    return (replace(x, shape=out.shape, strides=tuple(c for _, c in pairs)), out),


def _reversed(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    axis = b.args["axis"].ints()[0]
    return (sliced(x, [range(n)[::-1 if i == axis else 1] for i, n in enumerate(x.shape)]), out),


def _joined(w: Workshop, b: Bound) -> Pairs:
    """Arrays stacked along a new axis."""
    out = w.place(b.outputs[0])
    axis = b.args["axis"] % len(out.shape)
    rest = [a for a in range(len(out.shape)) if a != axis]
    given = [w.place(slot) for slot in flat(b.slots["xs"])]
    return tuple((x, ordered(layer, rest)) for x, layer in zip(given, along(out, axis, [1] * len(given)), strict=True))


def _taken_apart(w: Workshop, b: Bound) -> Pairs:
    x = w.place(b.slots["x"])
    axis = b.args["axis"] % len(x.shape)
    rest = [a for a in range(len(x.shape)) if a != axis]
    layers = zip(along(x, axis, [1] * len(b.outputs)), b.outputs, strict=True)
    return tuple((ordered(layer, rest), ordered(w.place(slot), range(len(rest)))) for layer, slot in layers)


# Numbers that are computed for NNAPI's operations are constants here.
def _cut(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    cuts = [range(n) for n in x.shape]
    for axis, *bounds in zip(*(b.args[n].ints() for n in ("axes", "begin", "end", "strides")), strict=True):
        cuts[axis] = range(*slice(*bounds).indices(x.shape[axis]))
    return (sliced(x, cuts), out),


def _all_parted(b: Bound) -> bool:
    """Whether the parts are all there is."""
    shape = b.args["x"].shape
    axis = b.args["axis"] % len(shape)
    return bool(sum(t.shape[axis] for t in b.outs) == shape[axis])


def _repeated(w: Workshop, b: Bound) -> Pairs:
    x, out = ends(w, b)
    return (replace(x, shape=out.shape, strides=spread(x, out.shape), border=Border()), out),


moving(_turned, s.TRANSPOSE, constants=("perm",))
moving(_strided, s.STRIDED_SLICE, constants=("begin", "end", "strides"))
moving(_to_space, image.DEPTH_TO_SPACE)
moving(_to_depth, image.SPACE_TO_DEPTH)
moving(_from_batch, image.BATCH_TO_SPACE_ND, constants=("blocks",))
moving(_shuffled, s.CHANNEL_SHUFFLE)
moving(_tiled, s.TILE, constants=("multiples",))
moving(_reversed, s.REVERSE, constants=("axis",))
moving(_joined, s.PACK, ex.PACK_EX)
moving(_taken_apart, ex.UNPACK_EX)
moving(_cut, cutting.CUT, constants=("axes", "begin", "end", "strides"))
moving(lambda w, b: tuple(parted(w, b)), cutting.SPLIT_BY, cutting.CHUNK, can=_all_parted)
moving(_repeated, host.BROADCAST_TO)
