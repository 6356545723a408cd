"""The main graph as its user sees it: ports with the file's names, NumPy types and shapes; sizes a user asks for."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import UsageError
from ...graph import Graph, Node, Value
from ...ops.convert import CAST
from ...types import I32, I64, Port, Rim, Shape, Tensor, known
from . import records
from .tensors import DTYPES, declared


def ports(record: records.Subgraph, inputs: Sequence[Value], outputs: Sequence[Value],
          states: Sequence[records.Tensor]) -> Rim:
    """The ports of the main graph: the file's own, then the states, in and out."""
    kept = tuple(replace(port(s, declared(s).dims or (), {}), state=True) for s in states)
    ins: dict[str, Port] = {}
    for i, v in zip(record.inputs, inputs, strict=True):
        s = record.tensor(i)
        given = port(s, v.tensor.dims if s.shape else (), ins)
        ins[given.name] = given
    outs: dict[str, Port] = {}
    for i, v in zip(record.outputs, outputs, strict=True):
        s, dims = record.tensor(i), v.tensor.dims
        given = port(s, () if scalar(s, dims) else dims, outs)
        outs[given.name] = given
    return Rim((*ins.values(), *kept), (*outs.values(), *kept))


def scalar(s: records.Tensor, dims: Shape | None) -> bool:
    """Whether a tensor of these dimensions here has rank 0 in the file."""
    return not s.shape and dims is not None and len(dims) == 1 and known(dims[0]) and dims[0] == 1


def port(s: records.Tensor, dims: Shape | None, taken: Mapping[str, Port]) -> Port:
    """One port; a tensor that is an output twice has two names."""
    shape = None if dims is None else tuple(n if known(n) else None for n in dims)
    return Port(records.distinct(s.name, len(taken), taken), DTYPES[s.type], shape, declared(s).quant)


def wanted(record: records.Subgraph, shapes: Mapping[str, Sequence[int]]) -> Mapping[str, Shape]:
    """The sizes a caller asks for, checked; raises `UsageError` naming what does not fit."""
    inputs = {s.name: s for s in map(record.tensor, record.inputs)}
    for name, shape in shapes.items():
        if name not in inputs:
            raise UsageError(f"there is no input {name!r}", hint=f"the inputs are {', '.join(inputs)}")
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
