"""What a file holds: its operations, its tensors, what is sparse or quantised, and what a run needs of memory when.

A source file is shown as it is, before anything is lowered: an operation is called as the file calls it. A .nnx file is
shown as the model it is; its tensors have no names but those of its inputs and outputs.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from .convert import HERE, Data, Progress, Source, at_size_1, folder_of, import_graph, kind, lowered, read, sizes
from .emit.levels import every_model
from .emit.macs import macs_by_operation
from .errors import NnxError
from .frozen import frozen
from .graph import At, Graph, Node, Sparse, Value, placed
from .model import Lifetime, Model
from .ops.macs import multiplied
from .schema import OpError
from .runtime.footprint import Footprint
from .types import ChannelQuant, Quant, Shape, Tensor, Undecided, known

#: What a level of a sparse tensor is called: of TfLiteDimensionType, by number.
FORMATS = ("dense", "sparse")


@frozen
class OpRow:
    """An operation: `operation` is its name in the op table, `source` that in the file ("" where there is none).

    `macs` are the multiply-adds of all that it becomes, None where that is not known before a run; `weights` the bytes
    of the constants it reads.
    """

    subgraph: str
    origin: str
    source: str
    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int | None
    weights: int


@frozen
class LevelRow:
    """A level of a sparse tensor, in traversal order, in a format of `FORMATS`.

    It has `size` places below each that the level above keeps, and keeps the share `density` of them. A `block` level
    is one within blocks; `axis` counts on behind the tensor's axes there.
    """

    axis: int
    block: bool
    format: str
    size: int
    density: float


@frozen
class SparsityRow:
    """What of a constant is zero, and what a sparse one saves: `stored` bytes with its indices, `dense` without."""

    density: float
    stored: int
    dense: int
    levels: tuple[LevelRow, ...] = ()


@frozen
class TensorRow:
    """A tensor: `role` is input, output, constant or temporary, `dtype` NumPy's name of its elements.

    A size that is open is None in `shape`, which is None itself where the rank is. `bytes` is None where a size is
    open; `sparsity` is that of a constant.
    """

    subgraph: str
    name: str
    role: str
    type: str
    dtype: str
    shape: tuple[int | None, ...] | None
    bytes: int | None
    quant: Quant | ChannelQuant | None
    made_by: str
    readers: int
    sparsity: SparsityRow | None = None

    @property
    def sizes(self) -> str:
        """The shape as it is said: [1,?,3], or [...] where the rank is open."""
        return "[...]" if self.shape is None else f"[{','.join('?' if n is None else str(n) for n in self.shape)}]"


@frozen
class Inspection:
    """A file's contents. `at_1`: open sizes are taken as 1 for multiply-adds and the arena."""

    source: str
    format: str
    bytes: int
    operations: tuple[OpRow, ...]
    tensors: tuple[TensorRow, ...]
    at_1: bool
    converted: Callable[[], Model] = field(repr=False, compare=False)

    @property
    def constants(self) -> tuple[TensorRow, ...]:
        """The constant tensors."""
        return tuple(t for t in self.tensors if t.role == "constant")

    @property
    def names(self) -> tuple[str, ...]:
        """What the file calls its operations, in order: a .nnx file calls them as the op table does."""
        own = self.format == "nnx"
        return tuple(o.operation if own else o.source or o.operation for o in self.operations)

    @property
    def macs(self) -> int | None:
        """The multiply-adds of a run, those of a subgraph counted once."""
        each = [o.macs for o in self.operations]
        return None if None in each else sum(n for n in each if n is not None)

    @cached_property
    def memory(self) -> Footprint | None:
        """What a run needs beside the weights; planned when it is asked for, None where it depends on values."""
        from .runtime.compiled import CompiledModel
        try:
            return CompiledModel(self.converted()).footprint()
        except NnxError:
            return None


def inspect(source: Source, *, shapes: Mapping[str, Shape] | None = None, signature: str | None = None,
            folder: str | Path | None = None, progress: Progress | None = None) -> Inspection:
    """What a .tflite, .onnx or .nnx file (a path, a file object or bytes) holds; raises as `convert` does."""
    said = progress or (lambda stage: None)
    said("reading")
    data, name = read(source)
    try:
        if kind(data) == "nnx":
            from .artifact import from_bytes
            model = from_bytes(data)
            return of_model(model, name, len(data))
        beside, wanted = folder_of(source, folder), sizes(shapes)
        graph = import_graph(data, wanted, signature, beside)
        closed = at_size_1(graph.rim.inputs)
        measured = _measured(data, {**wanted, **closed}, signature, beside) if closed else graph
        return Inspection(name, kind(data), len(data), tuple(_nodes(graph, measured or graph)), tuple(_values(graph)),
                          bool(closed and measured), partial(lowered, measured or graph, HERE))
    except NnxError as error:
        raise error.at(name) from error


def of_model(model: Model, source: str, bytes: int) -> Inspection:
    """The same of a converted model that a file of so many bytes holds."""
    return Inspection(source, "nnx", bytes, tuple(_operations_of(model)), tuple(_tensors_of(model)), False,
                      lambda: model)


def _measured(data: Data, shapes: Mapping[str, Shape], signature: str | None, folder: Path | None) -> Graph | None:
    """The graph with open sizes 1; None where the model takes none of these."""
    try:
        return import_graph(data, shapes, signature, folder)
    except NnxError:
        return None


def _nodes(graph: Graph, measured: Graph) -> Iterator[OpRow]:
    """The operators of a source file; `measured` is the same graph with every size known."""
    count = _macs(measured)
    for g in graph.every():
        visible = _visible(g)
        for at, nodes in _operators(g).items():
            own = {v for n in nodes for v in n.outputs}
            reads = dict.fromkeys(v for n in nodes for v in n.inputs if v not in own and not _made_up(v, n))
            makes = [v.name for n in nodes for v in n.outputs if v in visible]
            yield OpRow("" if g is graph else g.name, str(at), at.op, " + ".join(dict.fromkeys(
                n.op.name for n in nodes if not all(v.constant for v in n.inputs) or len(nodes) == 1)),
                tuple(v.name for v in reads), tuple(makes), count.get(str(at), 0),
                sum(_bytes(v) or 0 for v in reads if v.constant))


def _operators(g: Graph) -> dict[At, list[Node]]:
    """The nodes of a graph by the operator of the file that they were read from."""
    found: dict[At, list[Node]] = {}
    for n in g.nodes:
        found.setdefault(n.at, []).append(n)
    return found


def _macs(graph: Graph) -> dict[str, int | None]:
    """Multiply-adds by place in the source file; None where a size is open."""
    found: dict[str, int | None] = {}
    for n in graph.walk():
        try:
            args = n.op.canonical(placed(n.op, n.form, n.args))
            macs = multiplied(n.op, args, [v.tensor for v in n.outputs])
        except (Undecided, OpError):
            found[str(n.at)] = None
            continue
        before = found.get(str(n.at), 0)
        found[str(n.at)] = None if before is None else before + macs
    return found


def _made_up(v: Value, reader: Node) -> bool:
    """Whether a constant is none of the file's, but spells out an option of the operator that reads it."""
    return v.constant and v.name == f"{reader.at.op}.const"


def _visible(g: Graph) -> set[Value]:
    """The values that another operator than their own reads, or the graph's user."""
    makers = {v: n.at for n in g.nodes for v in n.outputs}
    return {v for n in g.nodes for v in n.inputs if makers.get(v, n.at) != n.at} | (set(g.outputs) & set(makers))


def _values(graph: Graph) -> Iterator[TensorRow]:
    """The tensors of a source file, in the order they are met."""
    for g in graph.every():
        makers = {v: n for n in g.nodes for v in n.outputs}
        seen = _visible(g)
        read = {v for n in g.nodes for v in n.inputs if v not in makers and not _made_up(v, n)}
        rim = {*g.inputs, *g.outputs}
        met = dict.fromkeys((*g.inputs, *(v for n in g.nodes for v in (*n.inputs, *n.outputs)), *g.outputs))
        for v in met:
            if v in seen or v in read or v in rim:
                yield TensorRow("" if g is graph else g.name, v.name, _role(v, g), v.type.name, v.type.dtype.name,
                                _shape(v.tensor), _bytes(v), _grid(v.tensor), str(makers[v].at) if v in makers else "",
                                g.uses.get(v, 0), _sparsity(v))


def _role(v: Value, g: Graph) -> str:
    return "constant" if v.constant else "input" if v in g.inputs else "output" if v in g.outputs else "temporary"


def _grid(t: Tensor) -> Quant | ChannelQuant | None:
    """Its quantisation; None where every number is itself."""
    return None if t.quant == Quant(0.0) else t.quant


def _shape(t: Tensor) -> tuple[int | None, ...] | None:
    return None if t.dims is None else tuple(n if known(n) else None for n in t.dims)


def _bytes(v: Value) -> int | None:
    """What it takes: of a sparse constant as it is stored."""
    if v.sparse is not None:
        return _stored(v.sparse)
    return _size(v.tensor)


def _size(t: Tensor) -> int | None:
    shape = _shape(t)
    if shape is None or None in shape:
        return None
    return math.prod(n or 0 for n in shape) * t.type.dtype.itemsize


def _stored(s: Sparse) -> int:
    return s.data.nbytes + sum(a.nbytes for a in s.pairs if a is not None)


def _sparsity(v: Value) -> SparsityRow | None:
    """Of a constant of numbers: how much of it is not zero."""
    dense = _size(v.tensor) or 0
    if v.sparse is not None:
        s, count = v.sparse, dense // max(v.tensor.type.dtype.itemsize, 1)
        return SparsityRow(int(np.count_nonzero(s.data)) / max(count, 1), _stored(s), dense, tuple(_levels(s)))
    return None if v.tensor.data is None else _zeros(v.tensor.data, _grid(v.tensor))


def _zeros(data: np.ndarray[Any, Any], quant: Quant | ChannelQuant | None) -> SparsityRow | None:
    """Of a dense constant; the zero of a grid is its zero point."""
    if data.dtype.kind not in "biuf" or not data.size:
        return None
    zero = quant.zero if isinstance(quant, Quant) else 0
    return SparsityRow(float(np.count_nonzero(data != zero)) / data.size, data.nbytes, data.nbytes)


def _levels(s: Sparse) -> Iterator[LevelRow]:
    """The levels in traversal order: of what lies below each kept place of the level above, how much is kept."""
    rank, above = len(s.order) - len(s.blocks), 1
    for n, (axis, form, size) in enumerate(zip(s.order, s.formats, s.sizes, strict=True)):
        indices = s.pairs[2 * n + 1] if 2 * n + 1 < len(s.pairs) else None
        kept = above * size if form == 0 or indices is None else int(indices.size)
        yield LevelRow(axis, axis >= rank, FORMATS[form != 0], size, kept / max(above * size, 1))
        above = kept


def _names(model: Model) -> dict[int, str]:
    """The names of a converted model's operands: those of its ports, numbers for others."""
    found = dict(zip(model.inputs, (p.name for p in model.rim.inputs), strict=False))
    found |= dict(zip(model.outputs, (p.name for p in model.rim.outputs), strict=False))
    return found


def _operations_of(model: Model) -> Iterator[OpRow]:
    """The operations of a converted model and its subgraphs."""
    for k, m in enumerate(every_model(model)):
        names = _names(m) if k == 0 else {}
        for n, (o, macs) in enumerate(zip(m.operations, macs_by_operation(m), strict=True)):
            tensors = [i for i in o.inputs if m.operands[i].type.group == "tensor"]
            weights = sum(v.nbytes for i in tensors if isinstance(v := m.operands[i].value, np.ndarray))
            origin = m.origin[n] if m.origin else ""
            yield OpRow(f"subgraph {k}" if k else "", origin, origin.rpartition(" ")[2], o.op.name,
                        tuple(names.get(i, f"%{i}") for i in tensors),
                        tuple(names.get(i, f"%{i}") for i in o.outputs), macs, weights)


def _tensors_of(model: Model) -> Iterator[TensorRow]:
    """The tensors of a converted model and its subgraphs."""
    for k, m in enumerate(every_model(model)):
        names = _names(m) if k == 0 else {}
        makers = {i: m.origin[n] if m.origin else "" for n, o in enumerate(m.operations) for i in o.outputs}
        reads = Counter(i for o in m.operations for i in o.inputs)
        for i, o in enumerate(m.operands):
            if o.type.group != "tensor" or o.lifetime is Lifetime.NO_VALUE:
                continue
            t = o.tensor()
            data = o.value if isinstance(o.value, np.ndarray) else None
            yield TensorRow(f"subgraph {k}" if k else "", names.get(i, f"%{i}"), o.lifetime.value, t.type.name,
                            t.type.dtype.name, _shape(t), _size(t), _grid(t), makers.get(i, ""), reads[i],
                            None if data is None else _zeros(data, _grid(t)))
