"""Loops: the rounds one after another where they are few, else a graph that is run again and again."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....errors import FormatError, Unsupported
from ....frozen import frozen
from ....graph import Build, Graph, Value
from ....ops import control, convert, elementwise as e
from ....ops.loop import LOOP
from ....symbols import same
from ....types import B8, I32, I64, LIST, TENSORS, UNKNOWN, Rim, Shape, Tensor, Undecided, known, product
from ..importer import Op, value_of
from ..lists import either, type_of_value, what
from ..registry import Given, Items
from ..scope import Body, Scope, open_
from .sequence import element, listed, number, optional, with_axis

#: Up to so many rounds stand one after another, if these are no more nodes.
MOST_ROUNDS, MOST_NODES = 32, 1024
#: How often the sizes of states may be found to change.
MOST_TRIES = 6
#: A count from here on is none.
ENDLESS = (1 << 31) - 1

#: Emits a round: of its number, the condition, the states and other values, the condition, the states, the parts.
Round = Callable[[Op, Value, Value, list[Given], list[Value]], list[Given]]


@frozen
class Loop:
    """A loop over `states`; `scope` is where the names of its body are looked up, `others` stay the same."""

    name: str
    scope: Scope
    trip: Value | None
    cond: Value | None
    states: tuple[Given, ...]
    others: tuple[Value, ...]
    body: Round

    def round(self, g: Op, i: Value, on: Value, states: list[Given], others: list[Value]) -> list[Given]:
        """A round emitted by `g`; raises `FormatError` where its body gives too few values."""
        found = self.body(g, i, on, states, others)
        if len(found) < 1 + len(states):
            raise FormatError(f"its body gives {len(found)} values, {1 + len(states)} at least")
        return found


def looped(g: Op, loop: Loop) -> list[Given]:
    """The states after the loop, then the parts of all rounds along a new first axis. Raises `FormatError`."""
    found = unrolled(g, loop)
    return repeated(g, loop) if found is None else found


def unrolled(g: Op, loop: Loop) -> list[Given] | None:
    """The rounds one after another; None where they are many, or how many is not known."""
    count, on = number(g, loop.trip), loop.cond is None or bool(certain(g, loop.cond))
    if count is None or not 0 < count <= MOST_ROUNDS or not on:
        return None
    build, at, states, rows = g.scope.build, g.scope.build.at, list(loop.states), list[list[Given]]()
    since = len(build.nodes)
    while on and len(rows) < count:
        try:
            found = loop.round(g, g.const(np.array(len(rows))), g.const(np.array(True)), states, list(loop.others))
            more = certain(g, found[0])
        except Undecided:
            more = None
        if more is None or len(build.nodes) - since > MOST_NODES:
            del build.nodes[since:]
            build.at = at
            return None
        on, states = more, found[1:1 + len(states)]
        rows.append(found[1 + len(states):])
    build.at = at
    return [*states, *(collected(g, parts) for parts in zip(*rows, strict=True))]


def certain(g: Op, cond: Given) -> bool | None:
    """A condition that is known."""
    found = g.known(cond) if isinstance(cond, Value) else None
    return None if found is None else bool(found.all())


def collected(g: Op, parts: Sequence[Given]) -> Value:
    """Values along a new first axis."""
    if not all(isinstance(p, Value) and p.type != LIST for p in parts):
        raise FormatError("collects what are no tensors")
    rows = [g.reshape(p, with_axis(g.shape(p), 0, 1)) for p in parts if isinstance(p, Value)]
    found: Value = rows[0] if len(rows) == 1 else g.call("Concat", *rows, axis=0)[0]
    return found


def repeated(g: Op, loop: Loop) -> list[Given]:
    """The loop as an operation: NNAPI's where states keep their sizes and nothing is collected, else the host's."""
    states = [value_of(g, s) for s in loop.states]
    body, takes = settled(g, loop, states)
    gives = body.graph.outputs
    values = (*states, *loop.others, *body.captured)
    trip, cond = one(g, loop.trip), one(g, loop.cond)
    if len(gives) == 1 + len(states) and all(map(agreeing, takes, states)) and all(v.type in TENSORS for v in values):
        made = as_while(g, loop, body, trip, cond, values)
    else:
        outs = [open_(v.tensor) for v in takes] + [rows(g, body, v, trip, cond) for v in gives[1 + len(states):]]
        made = list(g.add(LOOP, body=body.graph, trip=trip, cond=cond, states=len(states), values=values,
                          count=len(gives) - 1, outs=outs))
    last = [after(g, v, like) for v, like in zip(made, takes, strict=False)]
    return [*last, *(dropped(g, v, like) for v, like in zip(
        made[len(states):], gives[1 + len(states):], strict=True))]


def rows(g: Op, body: Body, part: Value, trip: Value | None, cond: Value | None) -> Tensor | None:
    """What is known of collected parts: their number where the condition stays as it is."""
    count, on = number(g, trip), cond is None or bool(certain(g, cond))
    if count is None or not on or body.graph.outputs[0] is not body.graph.inputs[1] or part.tensor.dims is None:
        return None
    return replace(open_(part.tensor), dims=(max(count, 0), *part.shape))


def agreeing(a: Value, b: Value) -> bool:
    """Whether two values have the same sizes, as far as these are known."""
    return a.tensor.dims is not None and b.tensor.dims is not None and len(a.shape) == len(b.shape) and all(
        m is n or same(m, n) for m, n in zip(a.shape, b.shape, strict=True))


def one(g: Op, x: Value | None) -> Value | None:
    """A count or a condition as [1]; raises `FormatError` where it is several."""
    if x is not None and x.tensor.dims is not None and known(size := product(x.shape)) and size != 1:
        raise FormatError(f"a count or a condition has the shape {list(x.shape)}")
    return x if x is None or g.rank(x) <= 1 else g.reshape(x, (1,))


def after(g: Op, v: Value, like: Value) -> Given:
    """A state after the loop."""
    if v.type == LIST:
        return listed(g, v, type_of_value(g.session, like))
    return g.scalar(v) if like in g.session.scalars else v


def dropped(g: Op, v: Value, like: Value) -> Value:
    """Collected parts; the axis that stands for the rank 0 of each goes."""
    return g.reshape(v, v.shape[:1]) if like in g.session.scalars else v


# Bodies.
def enclosed(g: Op, scope: Scope, name: str, args: Sequence[Value], emit: Callable[[Op, list[Value]], Sequence[Given]]
             ) -> Body:
    """A graph of inputs like these values."""
    nested = scope.nested(name)
    made = [fresh(g, v, f"{name}.{i}") for i, v in enumerate(args)]
    inside = replace(g, scope=nested)
    outputs = tuple(value_of(inside, v) for v in emit(inside, made))
    return Body(nested.build.finish((*made, *nested.captured.values()), outputs, Rim()), tuple(nested.captured))


def fresh(g: Op, v: Value, name: str) -> Value:
    """A value like another, whose elements are not known."""
    found = g.session.moved(v, Value(name, open_(v.tensor)))
    g.session.contents.pop(found, None)
    return found


def settled(g: Op, loop: Loop, states: Sequence[Value]) -> tuple[Body, list[Value]]:
    """The body, and states as it takes them: of sizes that change from round to round nothing is known."""
    takes = list(states)
    for _ in range(MOST_TRIES):
        body = enclosed(g, loop.scope, loop.name, [counter(g), condition(g), *takes, *loop.others],
                        lambda inside, made, takes=takes: rounds(inside, loop, made, takes))  # type: ignore[misc]
        wider = [widened(g, a, b) for a, b in zip(takes, body.graph.outputs[1:1 + len(takes)], strict=True)]
        if all(a is b for a, b in zip(takes, wider, strict=True)):
            return body, takes
        takes = wider
    raise Unsupported("the sizes of a loop's values change in a way that is not understood")


def counter(g: Op) -> Value:
    """A number of a round."""
    return g.scalar(Value("round", Tensor(I64, (1,))))


def condition(g: Op) -> Value:
    """A truth value."""
    return g.scalar(Value("on", Tensor(B8, (1,))))


def rounds(g: Op, loop: Loop, made: list[Value], takes: Sequence[Value]) -> list[Given]:
    """One round in a graph of its own."""
    i, on, *values = made
    found = loop.round(g, i, on, list(values[:len(takes)]), values[len(takes):])
    on, *rest = (value_of(g, found[0]), *found[1:])
    if on.type != B8:
        raise FormatError(f"the condition of a loop becomes {on.type.name}")
    states = [s if s is None or what(type_of_value(g.session, v)) != "optional" else optional(g, s)
              for s, v in zip(rest, takes, strict=False)]
    return [one(g, on), *states, *rest[len(takes):]]


def widened(g: Op, take: Value, give: Value) -> Value:
    """What holds of a state before and after a round: itself, where the round changes nothing of it."""
    if take.type != give.type:
        raise FormatError(f"a state of a loop is {take.type.name} and becomes {give.type.name}")
    if take.type == LIST:
        return alike(g, take, give)
    a, b = take.tensor.dims, give.tensor.dims
    scalar = take in g.session.scalars and give in g.session.scalars
    dims = None if a is None or b is None or len(a) != len(b) else tuple(
        m if same(m, n) else UNKNOWN for m, n in zip(a, b, strict=True))
    if unchanged(a, dims) and scalar == (take in g.session.scalars):
        return take
    found = Value(take.name, replace(open_(take.tensor), dims=dims))
    return g.scalar(found) if scalar else found


def unchanged(before: Shape | None, now: Shape | None) -> bool:
    """Whether as much is known of sizes as was."""
    if before is None or now is None:
        return before is now
    return all(m is n or same(m, n) for m, n in zip(before, now, strict=True))


def alike(g: Op, take: Value, give: Value) -> Value:
    """A list that is either."""
    own = type_of_value(g.session, take)
    found = either(own, type_of_value(g.session, give))
    return take if found == own else listed(g, Value(take.name, take.tensor), found)


# NNAPI's loop.
def as_while(g: Op, loop: Loop, body: Body, trip: Value | None, cond: Value | None, values: Sequence[Value]
             ) -> list[Value]:
    """WHILE over the states, the number of the round, the condition, and what stays: a limit comes last."""
    n, limit = len(loop.states), limit_of(g, trip)
    ends = (g.const(np.zeros(1, np.int32)), g.const(np.ones(1, bool)) if cond is None else cond)
    carried = (*values[:n], *ends, *values[n:], *([] if limit is None else [limit]))
    again = Build(f"{loop.name} body")
    inputs = tuple(Value(f"{loop.name}.{i}", open_(v.tensor)) for i, v in enumerate(carried))
    now = dict(zip(body.graph.inputs, (again(convert.CAST, inputs[n], to=I64), inputs[n + 1], *inputs[:n],
                                       *inputs[n + 2:]), strict=False))
    again.nodes += [node.mapped(lambda v: now.get(v, v)) for node in body.graph.nodes]
    on, *results = (now.get(v, v) for v in body.graph.outputs)
    after_it = again(e.ADD, inputs[n], again.const([1], I32), act=0)
    graph = again.finish(inputs, (*results, after_it, on), Rim())
    return list(g.add(control.WHILE, cond=going(loop, carried, n, limit is not None), body=graph, values=carried,
                      count=n, outs=[open_(v.tensor) for v in values[:n]]))


def going(loop: Loop, carried: Sequence[Value], n: int, limited: bool) -> Graph:
    """Whether there is another round."""
    build = Build(f"{loop.name} condition")
    inputs = tuple(Value(f"{loop.name}.{i}", open_(v.tensor)) for i, v in enumerate(carried))
    on = inputs[n + 1]
    if limited:
        on = build(e.LOGICAL_AND, on, build(e.LESS, inputs[n], inputs[-1]))
    return build.finish(inputs, (on,), Rim())


def limit_of(g: Op, trip: Value | None) -> Value | None:
    """A count of rounds as INT32; None where it is endless."""
    if trip is None:
        return None
    count = number(g, trip)
    if count is not None:
        return None if count >= ENDLESS else g.const(np.array([max(count, 0)], np.int32))
    return g.cast(g.elementwise(e.MINIMUM, trip, g.const(np.array(ENDLESS, trip.type.dtype), trip.type)), I32)


def held(g: Op, given: Given) -> Given:
    """What an optional value holds."""
    if not isinstance(given, Value):
        return given.values[0] if isinstance(given, Items) and given.values else given
    return element(g, given, g.const(np.array(0)))

