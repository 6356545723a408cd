"""The passes, in order."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import NnxError, Unsupported, UsageError, near
from ..graph import Evaluate, Build, Graph, GraphError, Value
from ..ops.elementwise import LOGICAL_AND, MAXIMUM
from ..ops.shape import CONCATENATION, RESHAPE, SLICE, TRANSPOSE
from ..schema import OPS, OpError
from ..target import Target
from ..types import B8, I32, known
from . import (  # noqa: F401  (they register their rules)
    compose, functions, gated, grids, indexing, qdq_groups, quantized, recurrent, sums)
from .affine import AFFINE
from .branches import BRANCHES
from .densify import densifying
from .expand import EXPAND
from .fold import folding
from .fuse import FUSE
from .host import HOST
from .hybrid import HYBRID
from .layout import layout
from .legalize import LEGALIZE, MASKS, PREFER_EX
from .narrow import inputs_of_few_axes, narrow
from .narrow64 import narrow64
from .patterns import patterns
from .qdq import fusing
from .retype import unsigning
from .rewrite import Event, Pass, Rules, prune, throughout
from .rows import ROWS
from .sharing import shared
from .spread import SPREAD


#: What gives a value of a type that NNAPI does not reshape again, beside itself.
ITSELF = {B8: LOGICAL_AND, I32: MAXIMUM}


def pipeline(target: Target, evaluate: Evaluate) -> list[Pass]:
    """What lowering does for a target: the whole of it."""
    fold = folding(evaluate)
    return [
        *[ROWS, BRANCHES] * target.here,     # results of a loop's rounds; small branches
        patterns,                            # what exporters spell out
        AFFINE,                              # factors per channel in the product before them
        prune,
        fusing(evaluate),                    # ONNX's codes
        narrow64,                            # INT64 as INT32, as far as that is the same
        SPREAD,                              # operands repeated for what repeats them itself
        unsigning(evaluate),                 # int8 as uint8 below level 30
        densifying(evaluate),                # sparse constants: DENSIFY, or dense
        fold,
        shared,                              # computed sizes once
        layout,                              # channels last
        HYBRID,                              # floats beside int8 weights
        narrow,                              # more axes than four
        EXPAND.using(evaluate),              # composites
        narrow,
        prune,
        *[PREFER_EX] * target.ex,
        LEGALIZE.using(evaluate),            # what the target has for what it has not
        *[PREFER_EX] * target.ex,            # also for what that brought in
        MASKS,                               # BOOL8 <-> QUANT8
        EXPAND.using(evaluate),              # composites the passes above made
        fold,
        FUSE,
        spelt_out,
        own_outputs,
        HOST,                                # the rest, with the reason
        prune,
    ]


def spelt_out(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """A constant of no elements is a slice of something: NNAPI reads a size of 0 as one that is not known."""
    build, became = Build(graph.name), dict[Value, Value]()

    def spelt(v: Any) -> Any:
        if not isinstance(v, Value) or v.tensor.data is None or v.tensor.data.size:
            return v
        if v not in became:
            try:
                seed = build.full(tuple(max(n, 1) for n in v.shape), 0, v.tensor)
            except OpError as error:
                raise Unsupported(f"value {v.name!r}, which has no element: {error.text}") from error
            became[v] = build(SLICE, seed, [0] * len(v.shape), list(v.shape), out=replace(v.tensor, data=None))
        return became[v]
    nodes = [n.mapped(spelt) for n in graph.nodes]
    outputs = tuple(map(spelt, graph.outputs))
    build.nodes += nodes
    return build.finish(graph.inputs, outputs, graph.rim) if became else graph


def own_outputs(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """NNAPI's outputs are written by operations, each once: an input, a constant or a repeat is copied."""
    build, outputs = Build(graph.name, nodes=list(graph.nodes)), list[Value]()
    for v in graph.outputs:
        copied = v.constant or v in graph.inputs or v in outputs
        outputs.append(copy(build, v, target) if copied else v)
    return build.finish(graph.inputs, tuple(outputs), graph.rim)


def copy(build: Build, v: Value, target: Target) -> Value:
    """The same again, by what changes nothing: a value beside itself, or in the shape or the order that it has."""
    if v.tensor.dims is None:
        return build(CONCATENATION, xs=(v,), axis=0, out=v.tensor)
    if v.type in ITSELF and target.level >= ITSELF[v.type].types[v.type]:
        return build(ITSELF[v.type], v, v)
    if all(map(known, v.shape)):
        return build(RESHAPE, v, v.shape, out=v.tensor)
    return build(TRANSPOSE, v, list(range(len(v.shape))), out=v.tensor)


#: The passes of this program's user, which every lowering begins with.
PASSES: list[Pass] = []


def register_pass(step: Pass) -> Pass:
    """Have every conversion of this process begin with a pass of one's own; also a decorator. Returns the pass.

    A pass is `(graph, target, trace) -> graph`, as `Rules` is: nodes, values and graphs are never changed, what comes
    back is another graph with the same inputs and outputs. It sees the operations that the source file was read as,
    composites among them, before anything is lowered; subgraphs come first, each by itself. `convert(passes=...)` is
    for one conversion. What a pass raises that is no `NnxError`, and a graph that is none, is a `UsageError`.
    """
    PASSES.append(step)
    return step


def guarded(step: Pass) -> Pass:
    """A user's pass, whose faults are told as such; raises `UsageError` where it has rules for what is no operation."""
    if isinstance(step, Rules) and (lost := sorted(step.by_op.keys() - {*OPS, "*"})):
        raise UsageError(f"the pass {named(step)} has a rule for {lost[0]!r}, and there is no such operation",
                         hint=near(lost[0], OPS, "`nnx-convert ops` lists them"))

    def guarded_step(graph: Graph, target: Target, trace: list[Event]) -> Graph:
        try:
            made = step(graph, target, trace)
            if not isinstance(made, Graph):
                raise GraphError(f"it gives {type(made).__name__}, not a graph")
            if made.inputs != graph.inputs or len(made.outputs) != len(graph.outputs) or not all(
                    a.tensor.agrees(b.tensor) for a, b in zip(made.outputs, graph.outputs, strict=True)):
                raise GraphError("it changes the graph's inputs or outputs")
            return made.verify()
        except NnxError:
            raise
        except Exception as error:                   # of the user's own function
            raise UsageError(f"the pass {named(step)} fails: {type(error).__name__}: {error}") from error
    guarded_step.__name__ = named(step)
    return guarded_step


def named(step: Pass) -> str:
    """What a pass is called."""
    return getattr(step, "name", "") or getattr(step, "__name__", type(step).__name__)


def lower(graph: Graph, target: Target, evaluate: Evaluate, passes: Sequence[Pass] = ()) -> tuple[Graph, list[Event]]:
    """The graph in operations the target takes and host operations, and what was done to get there.

    `passes` are a user's own; they come first, after those that are registered. Each pass verifies the graph it makes;
    a `GraphError` out of here is a fault of a rule of ours.
    """
    trace: list[Event] = []
    for step in (*map(guarded, (*PASSES, *passes)), inputs_of_few_axes, *pipeline(target, evaluate)):
        since = len(trace)
        graph = step(graph, target, trace) if step is inputs_of_few_axes else throughout(step, graph, target, trace)
        trace[since:] = [e if e.step else replace(e, step=named(step)) for e in trace[since:]]
    return graph, trace
