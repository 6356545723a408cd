"""Variables: what a model keeps from run to run, and what it starts with."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import tflite

from ...errors import FormatError, Unsupported
from ...frozen import frozen
from ...graph import LARGEST_MADE, Evaluate, Build, Graph, Node, Value
from ...schema import describe
from ...types import Rim, Tensor, Undecided
from . import records
from .registry import Handle
from .tensors import declared


@dataclass
class State:
    """A variable between runs: its tensor, the input it comes in by, and what it is by now.

    `initial`: its elements before the first run; None is real zero.
    """

    tensor: records.Tensor
    start: Value
    now: Value
    initial: np.ndarray | None = None


@frozen
class Body:
    """A subgraph that others call. The resource variables it touches are no inputs and outputs of it yet.

    `results`: its own outputs. `needs`: by what value each variable comes in that it reads; `left`: what it leaves in
    each that it assigns; `tensors`: what the file says of each.
    """

    build: Build
    inputs: tuple[Value, ...]
    results: tuple[Value | Handle, ...]
    needs: Mapping[Handle, Value]
    left: Mapping[Handle, Value]
    tensors: Mapping[Handle, records.Tensor]

    @cached_property
    def plain(self) -> Graph:
        """The graph without variables."""
        return self._graph({}, ())

    def closed(self, takes: Mapping[Handle, Value], gives: Sequence[Handle] = ()) -> Graph:
        """The graph that also takes variables, after its inputs, and gives them, after its outputs.

        `takes` says what each is outside. A variable that it does not assign goes out as it came in.
        """
        return self._graph(takes, gives) if takes or gives else self.plain

    def _graph(self, takes: Mapping[Handle, Value], gives: Sequence[Handle]) -> Graph:
        ins = {h: self.needs.get(h) or Value(h.name, replace(v.tensor, data=None)) for h, v in takes.items()}
        own = [v for v in self.results if isinstance(v, Value)]
        outputs = (*own, *(self.left.get(h) or ins[h] for h in gives))
        if not outputs:
            raise Unsupported("the graph has no outputs", self.build.name)
        return self.build.finish((*self.inputs, *ins.values()), outputs, Rim())


def touched(bodies: Sequence[Body]) -> tuple[list[Handle], list[Handle]]:
    """The variables that graphs of which one runs take, and those they give."""
    gives = list(dict.fromkeys(h for b in bodies for h in b.left))
    passed = [h for h in gives if not all(h in b.left for b in bodies)]
    return list(dict.fromkeys([*(h for b in bodies for h in b.needs), *passed])), gives


def started(tensor: records.Tensor, initial: np.ndarray) -> records.Tensor:
    """The variable in the shape of what it starts with; raises `FormatError` where it is declared otherwise."""
    kind = declared(tensor)
    if initial.dtype != kind.type.dtype or not kind.agrees(Tensor(kind.type, initial.shape, kind.quant)):
        raise FormatError(f"the variable {tensor.name!r} is {describe(kind)} and starts with "
                          f"{initial.dtype}{list(initial.shape)}")
    scalar = not tensor.shape and initial.shape == (1,)
    return replace(tensor, shape=() if scalar else initial.shape, signature=())


def never(node: Node, values: Sequence[Any]) -> None:
    """The evaluator of a caller that has none."""


def settled(nodes: Sequence[Node], values: Mapping[str, Value], evaluate: Evaluate) -> dict[str, np.ndarray]:
    """The values that nodes without inputs compute; raises `Unsupported` where one cannot be computed here."""
    done: dict[Any, Any] = {}

    def done_of(v: Any) -> Any:
        return done.get(v, v)
    for n in nodes:
        now = n.mapped(done_of)
        found = None if now.graphs or not small(now) else evaluate(
            now, [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None) for a in now.operands])
        if found is None:
            raise Unsupported(f"a variable starts with what {n.at.op} computes", str(n.at))
        done |= {v: Value(v.name, replace(v.tensor, dims=a.shape, data=a))
                 for v, a in zip(n.outputs, found, strict=True)}
    return {name: done.get(v, v).array for name, v in values.items()}


def small(node: Node) -> bool:
    """Whether its outputs have sizes that are known and sensible."""
    try:
        return sum(v.tensor.size for v in node.outputs) <= LARGEST_MADE
    except Undecided:
        return False


def changing(model: records.Model) -> frozenset[str] | None:
    """The resource variables that something beside an initialisation assigns; None where that cannot be told."""
    first = set(initialisations(model))
    found: set[str] = set()
    for i, graph in enumerate(model.graphs):
        handles = {t: name_of(op.options) for op in graph.operators
                   if op.name == "VAR_HANDLE" and isinstance(op.options, tflite.VarHandleOptions) for t in op.outputs}
        for op in graph.operators if i not in first else ():
            if op.name == "ASSIGN_VARIABLE":
                if not op.inputs or op.inputs[0] not in handles:
                    return None
                found.add(handles[op.inputs[0]])
    return frozenset(found)


def initialisations(model: records.Model) -> Iterator[int]:
    """The subgraphs that CALL_ONCE runs."""
    for op in (o for g in model.graphs for o in g.operators if o.name == "CALL_ONCE"):
        if isinstance(op.options, tflite.CallOnceOptions):
            yield op.options.InitSubgraphIndex()


def name_of(o: tflite.VarHandleOptions) -> str:
    """A resource variable's name; a container goes before it."""
    container, name = records.text(o.Container()), records.text(o.SharedName())
    return f"{container}/{name}" if container else name
