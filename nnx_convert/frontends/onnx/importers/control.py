"""Branches and loops: If, Loop and Scan."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....errors import FormatError, NnxError, Unsupported
from ....graph import Build, Value
from ....ops import control, elementwise as e, host, shape
from ....ops.host import host_twin
from ....ops.loop import EXPECT, REFUSE
from ....types import LIST, STR, Rim, known
from ..attributes import attributes_of
from ..importer import Op
from ..lists import either, type_of_value, what
from ..registry import Given, Items, imports
from ..scope import Body, Region, closed, open_
from .loops import Loop, certain, held, looped, one
from .sequence import SplitToSequence, listed, number, optional, place
from .shape import squeezed

#: Emits a step of a scan: of its number, the states, the slices and other values, the states and the parts.
Step = Callable[[Op, Value, list[Given], list[Given], list[Value]], list[Given]]


@imports()
def If(g: Op, cond: Value, *, then_branch: Region, else_branch: Region) -> list[Given]:
    """The branch alone where the condition is known. One that sizes do not fit while the other is in order fails."""
    on = certain(g, cond)
    if on is not None:
        return inlined(g, then_branch if on else else_branch, [])
    axes = squeezes(g, cond, then_branch, else_branch)
    if axes:
        g.session.undecided.append(g.outputs[0])
        if g.session.decided:
            return [expected(g, then_branch.scope.find(else_branch.proto.node[0].input[0]), axes)]
    found = [branch(g, region) for region in (then_branch, else_branch)]
    good = [b for b in found if isinstance(b, Body)]
    if not good:
        raise next(b for b in found if isinstance(b, NnxError))
    (then, orelse), captured = closed([b if isinstance(b, Body) else refused(g, b, good[0]) for b in found])
    pairs = list(zip(then.outputs, orelse.outputs, strict=False))
    alike = all(a.tensor.dims is not None and b.tensor.dims is not None and len(a.shape) == len(b.shape)
                for a, b in pairs)
    made = g.add(control.IF if alike else host_twin(control.IF), one(g, cond), then=then, orelse=orelse,
                 args=captured)
    return [chosen(g, v, *pair) for v, pair in zip(made, pairs, strict=True)]


def squeezes(g: Op, cond: Value, then: Region, orelse: Region) -> tuple[int, ...]:
    """The axes that are dropped where their size is 1, as exporters write a squeeze; none where that is not what is."""
    if not any(cond in n.outputs and n.op is e.EQUAL for n in g.scope.build.nodes):
        return ()
    kept, steps = orelse.proto.node, [n for n in then.proto.node if n.op_type != "Constant"]
    if [n.op_type for n in kept] != ["Identity"] or [n.op_type for n in steps] != ["Squeeze"]:
        return ()
    squeeze = steps[0]
    if kept[0].input[0] != squeeze.input[0] or then.proto.output[0].name != squeeze.output[0]:
        return ()
    given = attributes_of(then.scope, squeeze).get("axes", ())
    made = next((n for n in then.proto.node if n.output[:1] == squeeze.input[1:2]), None)
    if made is not None:
        given = np.ravel(attributes_of(then.scope, made).get("value", ())).tolist()
    return tuple(int(a) for a in given)


def expected(g: Op, x: Given, axes: Sequence[int]) -> Value:
    """x without axes, whose sizes a run finds to be 1."""
    if not isinstance(x, Value):
        raise FormatError("squeezes what is no tensor")
    for axis in axes:
        x = g(EXPECT, x, axis=place(axis, len(x.shape), len(x.shape)), size=1)
    return squeezed(g, x, axes)


def branch(g: Op, region: Region) -> Body | NnxError:
    """A branch, or what is wrong with it; raises `Unsupported` where another attempt is to come."""
    try:
        return g.body(region, ())
    except NnxError as error:
        if isinstance(error, Unsupported) and g.session.undecided and not g.session.decided:
            raise
        return error


def refused(g: Op, error: NnxError, like: Body) -> Body:
    """A branch that says in a run what is wrong with it, its results of the types of the other's."""
    build = Build("refused", g.scope.build.at)
    why = build.const(np.array([str(error).encode()], object), STR)
    outputs = tuple(build(REFUSE, why, to=v.type, out=open_(v.tensor)) for v in like.graph.outputs)
    return Body(build.finish((), outputs, Rim()), ())


def chosen(g: Op, v: Value, a: Value, b: Value) -> Value:
    """What is known of a result of two branches."""
    if v.type == LIST:
        return listed(g, v, either(type_of_value(g.session, a), type_of_value(g.session, b)))
    return g.scalar(v) if {a, b} <= g.session.scalars else v


def inlined(g: Op, region: Region, args: Sequence[Given]) -> list[Given]:
    """The nodes of a graph attribute emitted here; raises `FormatError` where it takes other inputs."""
    if len(args) != len(region.proto.input):
        raise FormatError(f"its body takes {len(region.proto.input)} inputs, not {len(args)}")
    at = g.scope.build.at
    found = g.inline(region, args)
    g.scope.build.at = at
    return found


def within(g: Op, region: Region) -> Region:
    """A graph attribute whose names are looked up from a graph that is being made around it."""
    return region if g.scope.build is region.scope.build else replace(region, scope=g.scope)


@imports("Loop")
def loop(g: Op, trip: Value | None = None, cond: Value | None = None, *states: Given, body: Region) -> list[Given]:
    """An optional state that the body gives in every round is a plain one after the loop."""
    def one_round(inside: Op, i: Value, on: Value, now: list[Given], _: list[Value]) -> list[Given]:
        return inlined(inside, within(inside, body), [i, on, *now])

    if any(s is None for s in states):
        raise FormatError("a state is left out")
    ports = body.proto.input[2:]
    starts = tuple(optional(g, s) if s is not None and what(p.type) == "optional" else s
                   for s, p in zip(states, ports, strict=False))
    found = looped(g, Loop(body.proto.name or "loop", body.scope, trip, cond, (*starts, *states[len(starts):]), (),
                           one_round))
    return [held(g, v) if is_optional(g, v) and what(p.type) in ("tensor", "sequence") else v
            for v, p in zip(found, body.proto.output[1:], strict=False)]


def is_optional(g: Op, v: Given) -> bool:
    """Whether a value is an optional one."""
    return v is not None and what(type_of_value(g.session, v)) == "optional"


# Scans.
@imports("Scan", since=9)
def scan(g: Op, *values: Value, body: Region, num_scan_inputs: int, scan_input_axes: tuple[int, ...] = (),
         scan_input_directions: tuple[int, ...] = (), scan_output_axes: tuple[int, ...] = (),
         scan_output_directions: tuple[int, ...] = ()) -> list[Given]:
    states, xs = parted(values, num_scan_inputs)
    axes = [place(a, g.rank(x), g.rank(x)) for a, x in zip(filled(scan_input_axes, len(xs)), xs, strict=True)]
    turned = [backwards(g, x, a) if back else x
              for x, a, back in zip(xs, axes, filled(scan_input_directions, len(xs)), strict=True)]

    def step(inside: Op, _: Value, now: list[Given], slices: list[Given], __: list[Value]) -> list[Given]:
        return inlined(inside, within(inside, body), [*now, *slices])

    found = scanned(g, body, states, turned, axes, step)
    last, parts = found[:len(states)], found[len(states):]
    places = zip(parts, filled(scan_output_axes, len(parts)), filled(scan_output_directions, len(parts)), strict=True)
    return [*last, *(moved(g, v, axis, bool(back)) for v, axis, back in places if isinstance(v, Value))]


@imports("Scan", until=8)
def scan_batched(g: Op, lengths: Value | None, *values: Value, body: Region, num_scan_inputs: int,
                 directions: tuple[int, ...] = ()) -> list[Given]:
    """A scan for each of a batch; beyond the end of a sequence states stay and parts are zero."""
    states, xs = parted(values, num_scan_inputs)
    turned = [backwards(g, x, 1) if back else x for x, back in zip(xs, filled(directions, len(xs)), strict=True)]
    bounds = [] if lengths is None or full(g, lengths, g.shape(xs[0])[1]) else [lengths]
    if bounds and any(directions):
        g.unsupported("is a scan from the end of sequences of several lengths")

    def step(inside: Op, i: Value, now: list[Given], slices: list[Given], bound: list[Value]) -> list[Given]:
        found = inlined(inside, within(inside, body), [*now, *slices])
        return bounded(inside, i, bound[0], now, found) if bound else found

    def each(inside: Op, _: Value, __: list[Given], rows: list[Given], ___: list[Value]) -> list[Given]:
        bound, own = [r for r in rows[:len(bounds)] if isinstance(r, Value)], rows[len(bounds):]
        many = [r for r in own[len(states):] if isinstance(r, Value)]
        return scanned(inside, within(inside, body), own[:len(states)], many, [0] * len(many), step, bound)

    batches = [*bounds, *states, *turned]
    return scanned(g, body, [], batches, [0] * len(batches), each)


def scanned(g: Op, body: Region, states: Sequence[Given], xs: Sequence[Value], axes: Sequence[int], step: Step,
            others: Sequence[Value] = ()) -> list[Given]:
    """The states after as many steps as the axes have places, then the parts along a new first axis."""
    sizes = [g.shape(x)[a] for x, a in zip(xs, axes, strict=True)]
    if len({n for n in sizes if known(n)}) > 1:
        raise FormatError(f"scans axes of the sizes {sizes}")
    apart: dict[int, tuple[Value, ...]] = {}

    def one_round(inside: Op, i: Value, on: Value, now: list[Given], rest: list[Value]) -> list[Given]:
        slices: list[Given] = []
        for k, a in enumerate(axes):
            if inside is g and k not in apart:
                apart[k] = in_slices(g, xs[k], a)
            at = number(inside, i) if inside is g and apart[k] else None
            slices.append(inside.call("Gather", rest[k], i, axis=a)[0] if at is None else apart[k][at])
        return [on, *step(inside, i, now, slices, rest[len(axes):])]

    trip = length(g, xs[0], axes[0], next(filter(known, sizes), sizes[0]))
    return looped(g, Loop(body.proto.name or "scan", body.scope, trip, None, tuple(states), (*xs, *others), one_round))


def in_slices(g: Op, x: Value, axis: int) -> tuple[Value, ...]:
    """The slices along an axis; none where they are many."""
    found = SplitToSequence(g, x, None, axis=axis, keepdims=0)
    return found.values if isinstance(found, Items) else ()


def length(g: Op, x: Value, axis: int, size: int) -> Value:
    """The size of an axis."""
    if known(size):
        return g.const(np.array(size, np.int64))
    sizes, = g.call("Shape", x)
    found: Value = g.call("Gather", sizes, g.const(np.array(axis, np.int64)), axis=0)[0]
    return found


def parted(values: Sequence[Value], count: int) -> tuple[list[Value], list[Value]]:
    """The states and what is scanned; raises `FormatError`."""
    if not 0 < count <= len(values) or any(v is None for v in values):
        raise FormatError(f"scans {count} of {len(values)} inputs")
    return list(values[:-count]), list(values[-count:])


def filled(given: Sequence[int], count: int) -> list[int]:
    """A number for each; zeros where none are given. Raises `FormatError` on another count of them."""
    if given and len(given) != count:
        raise FormatError(f"gives {len(given)} axes or directions for {count} values")
    return list(given) or [0] * count


def backwards(g: Op, x: Value, axis: int) -> Value:
    """x back to front."""
    return g(shape.REVERSE, x, [axis])


def moved(g: Op, v: Value, axis: int, back: bool) -> Value:
    """Collected parts, turned round, along another axis than the first."""
    v, rank = backwards(g, v, 0) if back else v, g.rank(v)
    at = place(axis, rank, rank)
    order = [*range(1, at + 1), 0, *range(at + 1, rank)]
    found: Value = v if at == 0 else g.call("Transpose", v, perm=tuple(order))[0]
    return found


def full(g: Op, lengths: Value, size: int) -> bool:
    """Whether all sequences are known to be as long as the axis."""
    found = g.known(lengths)
    return found is not None and known(size) and bool((found == size).all())


def bounded(g: Op, i: Value, bound: Value, before: Sequence[Given], now: Sequence[Given]) -> list[Given]:
    """The results of a step, or of none beyond a sequence's end."""
    on = g.elementwise(e.LESS, i, g.cast(bound, i.type))
    old = [*before, *(g.const(np.zeros((), v.type.dtype), v.type) for v in now[len(before):] if isinstance(v, Value))]
    return [g.elementwise(host.WHERE, on, new, kept) for new, kept in zip(now, old, strict=True)
            if isinstance(new, Value) and isinstance(kept, Value)]
