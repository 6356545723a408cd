"""The main graph as its user sees it: ports with the file's names, NumPy types and shapes; sizes a user asks for."""
from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from ...errors import FormatError, UsageError, among
from ...graph import Graph, Node, Value
from ...ops.convert import CAST
from ...types import I32, I64, Entry, Port, Rim, Shape, Source, Tensor, known
from . import records
from .guard import File
from .metadata import about
from .states import State
from .tensors import DTYPES, declared


def ports(record: records.Subgraph, inputs: Sequence[Value], outputs: Sequence[Value],
          states: Sequence[State], scalars: Container[Value]) -> Rim:
    """The ports of the main graph: the file's own, then the states, in and out."""
    kept = tuple(replace(port(s.tensor, declared(s.tensor).dims or (), {}), state=True, initial=s.initial)
                 for s in states)
    ins: dict[str, Port] = {}
    for i, v in zip(record.inputs, inputs, strict=True):
        s = record.tensor(i)
        given = port(s, v.tensor.dims if s.shape else (), ins)
        ins[given.name] = given
    outs: dict[str, Port] = {}
    for i, v in zip(record.outputs, outputs, strict=True):
        s, dims = record.tensor(i), v.tensor.dims
        given = port(s, () if v in scalars and scalar(s, dims) else dims, outs)
        outs[given.name] = given
    return Rim((*ins.values(), *kept), (*outs.values(), *kept))


def scalar(s: records.Tensor, dims: Shape | None) -> bool:
    """Whether a tensor of these dimensions here has rank 0 in the file."""
    return not s.shape and dims is not None and len(dims) == 1 and known(dims[0]) and dims[0] == 1


def port(s: records.Tensor, dims: Shape | None, taken: Mapping[str, Port]) -> Port:
    """One port; a tensor that is an output twice has two names."""
    shape, quant = None if dims is None else tuple(n if known(n) else None for n in dims), declared(s).quant
    return Port(records.distinct(s.name, len(taken), taken), DTYPES[s.type], shape, quant, range=expected(s.quant))


def expected(quant: records.Quantization | None) -> tuple[float, float] | None:
    """The least and the greatest real value a tensor is said to hold."""
    if quant is None or quant.low.size != 1 or quant.high.size != 1:
        return None
    low, high = float(quant.low[0]), float(quant.high[0])
    return (low, high) if np.isfinite((low, high)).all() else None


def entered(model: records.Model, signature: str | None) -> int:
    """The index of a signature's subgraph, the first without one; raises `UsageError` naming those there are."""
    if signature is None:
        return 0
    found = next((e.graph for e in model.entries if e.name == signature), None)
    if found is None:
        names = ", ".join(repr(e.name) for e in model.entries)
        raise UsageError(f"there is no signature {signature!r}", hint=f"the file has {names or 'none'}")
    if not 0 <= found < len(model.graphs):
        raise FormatError(f"signature {signature!r} leads to subgraph {found} of {len(model.graphs)}")
    return found


def entries(model: records.Model, index: int, ports: Rim) -> tuple[Entry, ...]:
    """The signatures that lead to a subgraph; raises `FormatError` where one names no input or output of it."""
    record = model.graphs[index]
    ins = dict(zip(record.inputs, (p.name for p in ports.inputs), strict=False))
    outs = {i: p.name for i, p in reversed(list(zip(record.outputs, ports.outputs, strict=False)))}
    for e in model.entries:
        for own, there in ((e.inputs, ins), (e.outputs, outs)):
            if lost := [n for n, i in own if i not in there] if e.graph == index else []:
                raise FormatError(f"signature {e.name!r} calls {lost[0]!r} what is no input or output")
    return tuple(Entry(e.name, tuple((n, ins[i]) for n, i in e.inputs), tuple((n, outs[i]) for n, i in e.outputs))
                 for e in model.entries if e.graph == index)


def told(ports: Rim, file: File, model: records.Model, index: int) -> Rim:
    """The ports of a subgraph with all that the file says of it and of itself."""
    found = about(file, model, index)
    source = Source("TFLite", f"v{records.SCHEMA}", sum(len(g.operators) for g in model.graphs),
                    sum(t.sparsity is not None for g in model.graphs for t in g.tensors),
                    found.text("description") or model.description, tuple(e.name for e in model.entries),
                    tuple(t for t in found.texts if t[0] != "description"), found.files, found.labels)
    ins, outs = (tuple(replace(p, norm=n) for p, n in zip_longest(side, norms[:len(side)]) if p) for side, norms in (
        (ports.inputs, found.inputs), (ports.outputs, found.outputs)))
    return Rim(ins, outs, entries(model, index, ports), source)


def wanted(record: records.Subgraph, shapes: Mapping[str, Sequence[int]]) -> Mapping[str, Shape]:
    """The sizes a caller asks for, checked; raises `UsageError` naming what does not fit."""
    inputs = {s.name: s for s in map(record.tensor, record.inputs)}
    for name, shape in shapes.items():
        if name not in inputs:
            raise UsageError(f"there is no input {name!r}", hint=among(name, inputs, "inputs"))
        if len(shape) != len(inputs[name].shape):
            raise UsageError(f"input {name!r} has {len(inputs[name].shape)} dimensions, not {len(shape)}: "
                             f"{list(inputs[name].signature or inputs[name].shape)}")
        if any(n < 0 for n in shape):
            raise UsageError(f"input {name!r} cannot have the shape {list(shape)}")
    return {name: tuple(int(n) for n in shape) for name, shape in shapes.items()}


def stale(record: records.Subgraph, shapes: Mapping[str, Shape]) -> bool:
    """Whether sizes asked for differ from the declared ones, so that those of the other tensors may, too."""
    return any(s.name in shapes and shapes[s.name] != s.shape for s in map(record.tensor, record.inputs))


def narrowed(graph: Graph) -> Graph:
    """The graph with INT32 at its rim where a cast from or to INT64 is all that stands between; the ports stay."""
    outputs = tuple(before(graph, v, I32, I64) for v in graph.outputs)
    wide: dict[Value, list[Node]] = {v: [] for v in graph.inputs if v.type == I64 and v not in outputs}
    for n in graph.nodes if wide else ():
        for v in n.inputs:
            if v in wide:
                wide[v].append(n)
    became: dict[Value, Value] = {}
    for v, readers in wide.items():
        if readers and all(casts(n, I64, I32) for n in readers):
            new = Value(v.name, Tensor(I32, v.tensor.dims))
            became |= {v: new} | {n.outputs[0]: new for n in readers}
    gone = {n for n in graph.nodes if any(v in became for v in n.outputs)}
    gone |= {graph.producer[v] for v, now in zip(graph.outputs, outputs, strict=True)
             if v is not now and graph.uses[v] == graph.outputs.count(v)}
    nodes = tuple(n.mapped(lambda v: became.get(v, v)) for n in graph.nodes if n not in gone)
    return Graph(graph.name, tuple(became.get(v, v) for v in graph.inputs),
                 tuple(became.get(v, v) for v in outputs), nodes, graph.rim).verify()


def casts(n: Node, source: int, to: int) -> bool:
    """Whether a node is the cast of one type to another."""
    return n.op is CAST and (n.args["x"].type, n.args["to"]) == (source, to)


def before(graph: Graph, v: Value, source: int, to: int) -> Value:
    """What a value was before a cast."""
    made = graph.producer.get(v)
    return made.args["x"] if made is not None and casts(made, source, to) else v
