"""Programs as records, and records as programs: those of the graphs that a branch or a loop runs are kept with it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from ...model import Model
from ...types import Array
from ..control import BY_GRAPHS, fitted
from ..outline import Shapes, Sketch
from ..runner import Subgraph
from ..steps import Options, Program, Step
from .machine import host
from .ready import Layout, Ready
from .records import Graphs, Stored

#: Weights of a program begin at multiples of so many bytes.
ALIGN = 64


class Scattered(ValueError):
    """A program is not native as a whole, or none of the graphs that a step of it runs is."""


def stored(program: Ready, shapes: Shapes, weights: list[Array]) -> Stored:
    """A program as a record, its weights added to those of others; raises `Scattered`."""
    bound, places = program.program, program.layout.places
    steps = [part for part in program.segments if isinstance(part, Step)]
    touched = (*bound.inputs, *bound.outputs, *(s for step in steps for s in (*step.outs, *step.reads)))
    slots = {s for s in touched if s is not None}
    constant = slots & bound.constants.keys()
    if not slots - constant <= places.keys():
        raise Scattered("lies elsewhere")
    at = sum(map(_room, weights))
    weights.append(program.weights)
    parts = tuple(graphs(part, weights) if isinstance(part, Step) else part for part in program.segments)
    return Stored(shapes, bound.inputs, bound.outputs, bound.states, {s: bound.tensors[s] for s in slots - constant},
                  {s: bound.constants[s] for s in constant}, {s: places[s] for s in slots - constant},
                  program.layout.size, program.threads, program.checks, parts, tuple(program.images), at,
                  program.weights.nbytes)


def graphs(step: Step, weights: list[Array]) -> Graphs:
    """A step that runs graphs as a record; raises `Scattered` where it is another one."""
    if tuple(step.calls) not in BY_GRAPHS:
        raise Scattered(step.name)
    found = tuple((name, graph(call, weights)) for name, call in step.calls.items())
    if not any(program for _, program in found):
        raise Scattered(step.name)
    return Graphs(step.name, step.origin, step.outs, step.args, found)


def graph(call: object, weights: list[Array]) -> Stored | None:
    """The program of a graph; None where it never ran, or not natively as a whole."""
    shapes, program = (isinstance(call, Subgraph) and call.runner.first) or ((), None)
    before = len(weights)
    try:
        return None if program is None else stored(program, shapes, weights)
    except Scattered:
        del weights[before:]
        return None


def joined(weights: Sequence[Array]) -> bytes | memoryview:
    """The weights of all programs."""
    if len(weights) == 1:
        return weights[0].data
    return b"".join(part for w in weights for part in (w.data, bytes(_room(w) - w.nbytes)))


def _room(weights: Array) -> int:
    return -(-weights.nbytes // ALIGN) * ALIGN


def sound(found: Stored, size: int) -> bool:
    """Whether a program's weights are among so many bytes, and its graphs are those of a branch or a loop."""
    steps = [part for part in found.parts if isinstance(part, Graphs)]
    return 0 <= found.at <= found.at + found.packed <= size and all(
        tuple(name for name, _ in step.graphs) in BY_GRAPHS and all(p is None or sound(p, size) for _, p in step.graphs)
        for step in steps)


def restored(found: Stored, weights: Array, make: Callable[[], Model], options: Options) -> Ready:
    """The program; `make` gives the graph that it is of."""
    parts = [_step(part, weights, make, options) if isinstance(part, Graphs) else part for part in found.parts]
    return Ready(Program((), found.tensors, found.constants, found.slots_in, found.slots_out, found.states),
                 Layout([], found.places, {}, found.size), found.threads, weights[found.at:found.at + found.packed],
                 found.checks, parts, found.images, host())


def _step(found: Graphs, weights: Array, make: Callable[[], Model], options: Options) -> Step:
    call, inner = options.call, {}
    for n, (name, program) in enumerate(found.graphs):
        own = cache(partial(_inner, make, found.outs, n))
        sketch = Sketch(None, None, own) if program is None else Sketch(
            program.shapes, partial(restored, program, weights, own), own)
        if call is not None:
            inner[name] = call(sketch, options)
    run = fitted(BY_GRAPHS[tuple(inner)](inner), len(found.outs))
    return Step(found.name, found.origin, run, found.outs, found.args, (), calls=inner)


def _inner(make: Callable[[], Model], outs: tuple[int, ...], n: int) -> Model:
    """The graph of a number that the operation with these outputs runs."""
    model = make()
    of = next(o for o in model.operations if o.outputs == outs)
    return [m for i in of.inputs if isinstance(m := model.operands[i].value, Model)][n]
