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
from .tasks import Family, Group, Native, Phases, Task, Workshop, flat, kind, native

Make = Callable[[Workshop, Bound], Pairs]
#: What an operation gives, of an array in this place: its elements where they are.
View = Callable[[Place, Bound], Place]
VIEWS: dict[str, View] = {}


def _always(_: Bound) -> bool:
    return True


def moving(make: Make, *ops: OpDef, constants: tuple[str, ...] = (), can: Callable[[Bound], bool] = _always) -> Native:
    """Operations that move elements, their arguments of these names known; `can` says what else they ask."""
    def made(w: Workshop, group: Group) -> Task | Phases:
        return _moves(make(w, group.head))
    return native(Family(_mover(constants, can), made, strided=True), *ops)


def viewing(view: View, *ops: OpDef, constants: tuple[str, ...] = ()) -> Native:
    """Operations whose result is a view of what they read: several in a row are one copy."""
    VIEWS.update((op.name, view) for op in ops)
    return native(Family(_mover(constants, _always), _made_view, strided=True, fuses=_views), *ops)


def _mover(constants: tuple[str, ...], can: Callable[[Bound], bool]) -> Callable[[Bound, Machine], bool]:
    def takes(b: Bound, _: Machine) -> bool:
        known = all(b.args[n] is None or b.args[n].data is not None for n in constants)
        return known and plain(b) and not b.args.get("nchw") and bool(b.outs[0].shape) and can(b)
    return takes


def _moves(pairs: Pairs) -> Task | Phases:
    left = tuple(simple(*pair) for pair in pairs if not there(*pair))
    return Moves(left) if left else Phases(())


def _views(group: Group, b: Bound, _: Machine) -> bool:
    """Whether an operation views the elements of a view, as they are; where one is left, its axes may be, too."""
    return kind(b.op) in VIEWS and group.outs[0].size > 1 and group.outs[0].shape == b.args["x"].shape


def _made_view(w: Workshop, group: Group) -> Task | Phases:
    found, out = w.place(group.head.slots["x"]), w.place(group.outputs[0])
    for b in group.members:
        found = VIEWS[kind(b.op)](found, b)
    if group.reshaped:
        out = out.reshaped(group.outs[0].shape)
    return _moves(((found, ordered(out, range(len(found.shape)))),))


def ends(w: Workshop, b: Bound) -> tuple[Place, Place]:
    """Where the array is that an operation moves, and the result."""
    return w.place(b.slots["x"]), w.place(b.outputs[0])


def _turned(x: Place, b: Bound) -> Place:
    return ordered(x, (1, 0) if b.args["perm"] is None else b.args["perm"].ints())


def _strided(x: Place, b: Bound) -> Place:
    begins, lasts, steps = (b.args[n].ints() for n in ("begin", "end", "strides"))
    cuts, kept = list[range](), list[int]()
    for i, (n, begin, end, step) in enumerate(zip(x.shape, begins, lasts, steps, strict=True)):
        low, high = None if b.args["begin_mask"] >> i & 1 else begin, None if b.args["end_mask"] >> i & 1 else end
        cut = range(*slice(low, high, step).indices(n))
        shrunk = b.args["shrink_mask"] >> i & 1
        cuts.append(cut[:1] if shrunk else cut)
        kept += [] if shrunk else [i]
    return ordered(sliced(x, cuts), kept)


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


def _reversed(x: Place, b: Bound) -> Place:
    axis = b.args["axis"].ints()[0]
    return sliced(x, [range(n)[::-1 if i == axis else 1] for i, n in enumerate(x.shape)])


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
def _cut(x: Place, b: Bound) -> Place:
    cuts = [range(n) for n in x.shape]
    for axis, *bounds in zip(*(b.args[n].ints() for n in ("axes", "begin", "end", "strides")), strict=True):
        cuts[axis] = range(*slice(*bounds).indices(x.shape[axis]))
    return sliced(x, cuts)


def _all_parted(b: Bound) -> bool:
    """Whether the parts are all there is."""
    shape = b.args["x"].shape
    axis = b.args["axis"] % len(shape)
    return bool(sum(t.shape[axis] for t in b.outs) == shape[axis])


def _repeated(x: Place, b: Bound) -> Place:
    shape = b.outs[0].shape
    return replace(x, shape=shape, strides=spread(x, shape), border=Border())


NATIVE = (
    viewing(_turned, s.TRANSPOSE, constants=("perm",)),
    viewing(_strided, s.STRIDED_SLICE, constants=("begin", "end", "strides")),
    moving(_to_space, image.DEPTH_TO_SPACE),
    moving(_to_depth, image.SPACE_TO_DEPTH),
    moving(_from_batch, image.BATCH_TO_SPACE_ND, constants=("blocks",)),
    moving(_shuffled, s.CHANNEL_SHUFFLE),
    moving(_tiled, s.TILE, constants=("multiples",)),
    viewing(_reversed, s.REVERSE, constants=("axis",)),
    moving(_joined, s.PACK, ex.PACK_EX),
    moving(_taken_apart, ex.UNPACK_EX),
    viewing(_cut, cutting.CUT, constants=("axes", "begin", "end", "strides")),
    moving(lambda w, b: tuple(parted(w, b)), cutting.SPLIT_BY, cutting.CHUNK, can=_all_parted),
    viewing(_repeated, host.BROADCAST_TO),
)
