"""A lowered model cut at the tensors of its source, so that each operation is run on inputs that are known to be right.

Lowering keeps the name of what it replaces. A value of the lowered graph that has the name of a tensor of the source
file is an anchor: it holds that tensor, perhaps in another order of axes or a narrower type. Between anchors lie
segments: what one or several operators of the source became. The cut graph has an input for each anchor that anything
reads and an output for each anchor, so that one run of it computes every segment from a reference's own values.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..convert import evaluate
from ..errors import NnxError, RunError
from ..frozen import frozen
from ..graph import At, Build, Graph, Node, Value
from ..lowering.flatten import flatten
from ..lowering.pipeline import lower
from ..lowering.rewrite import prune
from ..ops import convert, grids
from ..runtime.backends import backend_of
from ..runtime.bind import Options
from ..runtime.runner import Runner, call
from ..target import Target
from ..types import LIST, Array, Quant, Rim, Shape
from .metrics import dequantised, fits, quantised

#: Types that a value may have where the source's tensor has another: integers, bytes without a sign.
NARROWED = {("int64", "int32"), ("int8", "uint8"), ("uint32", "int32"), ("uint64", "int32"), ("int16", "int32"),
            ("uint16", "int32"), ("float64", "float32"), ("int8", "int32"), ("uint8", "int32")}


#: Operators that say what numbers stand for, in either format's spelling.
CARRIERS = ("quantizelinear", "dequantizelinear", "quantize", "dequantize", "cast", "identity", "reshape")


@frozen(eq=False)
class Anchor:
    """A value of the lowered graph that holds a tensor of the source.

    `covers` are the source's operators whose work its segment does, the last one the tensor's own; `heaviest` is the
    one of these with the most weights, else the last that does more than change codes to floats. `reads` are the
    tensors the segment is fed with, by name, `given` the inputs of the model that it reads; `random`: something in it
    draws. `dtype` is the type of the source's tensor, `dims` its shape, `grid` what codes of that type stand for, or
    the step that floats lie on.
    """

    name: str
    value: Value
    covers: tuple[At, ...]
    heaviest: At
    dtype: np.dtype[Any]
    dims: Shape | None
    reads: tuple[str, ...]
    given: tuple[str, ...]
    grid: Quant | None
    random: bool = False

    def inward(self, array: Array) -> Array:
        """A reference's array as the lowered graph stores it; raises `RunError` where it cannot be stored so.

        Real numbers for codes become the nearest.
        """
        if array.dtype.kind == "f" and self.dtype.kind in "iu" and self.grid is not None:
            array = quantised(array, self.grid, self.dtype)
        try:
            return self._stored(array)
        except (TypeError, ValueError) as error:
            raise RunError(f"{self.name!r} cannot be {array.dtype} {list(array.shape)}") from error

    def _stored(self, array: Array) -> Array:
        v, dims = self.value, self.value.tensor.dims
        if v.order is not None and array.ndim == len(v.order):
            array = array.transpose(v.order)
        if dims is not None and array.ndim != len(dims):
            array = array.reshape(dims if 0 < array.size == _size(dims) else array.shape or (1,))
        if dims is not None and not fits(array.shape, _sizes(dims)):
            raise ValueError
        want = v.type.dtype
        if (array.dtype.name, want.name) == ("int8", "uint8") and v.tensor.quant is not None:
            return array.view(np.uint8) ^ np.uint8(0x80)
        found = array if array.dtype == want else array.astype(want)
        if array.dtype.kind in "iu" and want.kind in "iu" and not np.array_equal(found, array):
            raise RunError(f"{self.name!r} has values that {want} cannot hold")
        return np.ascontiguousarray(found)

    def outward(self, array: Array, like: Array | None = None) -> Array:
        """What the lowered graph computed, in the source's order of axes; with a type like this one's.

        Also with its shape, where that is the source's, which lowering writes with other axes.
        """
        if self.value.order is not None and array.ndim == len(self.value.order):
            array = array.transpose(np.argsort(self.value.order))
        dtype = self.dtype if like is None else like.dtype
        if like is not None and array.size == like.size and self._alike(like):
            array = array.reshape(like.shape)
        if (array.dtype.name, self.dtype.name) == ("uint8", "int8"):
            array = (array ^ np.uint8(0x80)).view(np.int8)
        if array.dtype.kind in "iu" and dtype.kind == "f" and self.grid is not None:
            return dequantised(array, self.grid)
        return array.astype(dtype) if array.dtype.kind in "iub" and dtype.kind in "iub" else array

    def _alike(self, array: Array) -> bool:
        """Whether an array has the shape of the source's tensor, which writes a single number as a vector of one."""
        return self.dims is None or fits(array.shape or (1,), _sizes(self.dims))


def _sizes(dims: Shape) -> list[int | None]:
    """Sizes as `fits` takes them: None where one is open."""
    return [n if isinstance(n, int) else None for n in dims]


def _size(dims: Sequence[Any]) -> int:
    """The product of sizes; -1 where one is open."""
    return math.prod(n if isinstance(n, int) else -1 for n in dims) if all(
        isinstance(n, int) for n in dims) else -1


@frozen
class Cut:
    """A lowered model, whole, and its anchors in the order they are computed in."""

    legal: Graph
    anchors: tuple[Anchor, ...]

    @property
    def names(self) -> frozenset[str]:
        """The tensors that a reference is asked for."""
        return frozenset(a.name for a in self.anchors)


def cut(source: Graph, target: Target, known: Callable[[str], bool]) -> Cut:
    """Lower a graph and find its anchors among the tensors that a reference knows.

    Names of several tensors are nobody's. Outputs have the names of their ports.
    """
    source, tensors = numbered(source)
    legal, _ = lower(source, target, evaluate)
    twice = Counter(v.name for n in legal.nodes for v in n.outputs)
    ours = {v.name: v for n in source.nodes for v in n.outputs}
    found = {v: ours[v.name] for n in legal.nodes for v in n.outputs
             if twice[v.name] == 1 and v.name in ours and known(tensors.get(v.name, "")) and alike(ours[v.name], v)}
    names = {v: tensors[v.name] for v in found}
    return Cut(legal, tuple(_anchors(source, legal, found, names)))


def numbered(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The graph with a name of its own for each value that is computed, and the source's tensor of each such name.

    A pass names what it makes after operators; nothing it makes has such a name. Tensors of one name are left out.
    """
    outputs = {v: p.name for v, p in zip(graph.outputs, graph.rim.outputs, strict=True) if not p.state}
    became, names, nodes = dict[Any, Value](), dict[str, str](), list[Node]()
    for n in graph.nodes:
        for v in n.outputs:
            became[v] = Value(f"\0{len(became)}", v.tensor, v.sparse)
            names[became[v].name] = outputs.get(v, v.name)
        moved = n.mapped(lambda v: became.get(v, v))
        nodes.append(replace(moved, outputs=tuple(became[v] for v in n.outputs)))
    often = Counter(names.values())
    made = Build(graph.name, nodes=nodes).finish(graph.inputs, tuple(became.get(v, v) for v in graph.outputs),
                                                 graph.rim)
    return made, {mark: name for mark, name in names.items() if often[name] == 1}


def alike(source: Value, legal: Value) -> bool:
    """Whether a value can hold what the tensor of its name does."""
    if LIST in (source.type, legal.type):
        return False
    pair = source.type.dtype.name, legal.type.dtype.name
    return source.type == legal.type or pair[0] == pair[1] or pair in NARROWED


def _anchors(source: Graph, legal: Graph, found: Mapping[Value, Value], names: Mapping[Value, str]
             ) -> Iterator[Anchor]:
    """The anchors in order, each with what lies between it and those before it."""
    ends, ports = set(found.values()), dict(zip(legal.inputs, (p.name for p in legal.rim.inputs), strict=True))
    known = {*found, *ports}
    for node in legal.nodes:
        for v in (v for v in node.outputs if v in found):
            reads, made = behind(legal, v, known)
            covers, passed = covered(source, found[v], ends)
            yield Anchor(names[v], v, covers, heaviest(passed, covers), found[v].type.dtype, found[v].tensor.dims,
                         tuple(names[r] for r in reads if r in names), tuple(ports[r] for r in reads if r in ports),
                         grid_of(source, found[v], v), not all(n.op.pure for n in (*made, *passed)))



def behind(graph: Graph, v: Value, ends: Collection[Value]) -> tuple[list[Value], list[Node]]:
    """The ends that a value is computed from, and the nodes between."""
    todo, reads, nodes = [graph.producer[v]] if v in graph.producer else [], dict[Value, None](), dict[Node, None]()
    while todo:
        node = todo.pop()
        if node in nodes:
            continue
        nodes[node] = None
        for x in node.inputs:
            if x in ends:
                reads[x] = None
            elif x in graph.producer:
                todo.append(graph.producer[x])
    return list(reads), list(nodes)


def covered(source: Graph, v: Value, ends: Collection[Value]) -> tuple[tuple[At, ...], list[Node]]:
    """The source's operators between a tensor and the anchors before it, in the source's order; its own is last."""
    own = source.producer[v]
    _, nodes = behind(source, v, ends)
    places = sorted({n.at for n in nodes if n.at != own.at}, key=lambda at: at.index)
    return (*places, own.at), nodes


def heaviest(nodes: Sequence[Node], covers: Sequence[At]) -> At:
    """The operator that a segment is named after."""
    weights = Counter[At]()
    for n in nodes:
        weights[n.at] += sum(elements(v) for v in n.inputs)
    own = [at for at in covers if at.op.lower() not in CARRIERS] or covers
    return max(reversed(own), key=lambda at: weights[at])


def elements(v: Value) -> int:
    """How many numbers of a constant are kept; 0 of what is computed."""
    stored = v.tensor.data if v.sparse is None else v.sparse.data
    return 0 if stored is None else int(stored.size)


def grid_of(source: Graph, v: Value, legal: Value) -> Quant | None:
    """The grid of a tensor's codes; of floats, the step of the codes they were made from."""
    if isinstance(found := legal.tensor.quant, Quant) and found.scale:
        moved = (v.type.dtype.name, legal.type.dtype.name) == ("int8", "uint8")
        return replace(found, zero=found.zero - 128) if moved else found
    if isinstance(v.tensor.quant, Quant):
        return v.tensor.quant
    return step_of(source, v)


def step_of(source: Graph, v: Value) -> Quant | None:
    """The step that a float lies on: that of the codes it is dequantised from."""
    node = source.producer.get(v)
    while node is not None and node.op.name in ("RESHAPE", "TRANSPOSE", "SQUEEZE", "EXPAND_DIMS"):
        node = source.producer.get(node.args["x"])
    if node is None:
        return None
    if node.op is convert.DEQUANTIZE:
        quant = node.args["x"].tensor.quant
        return Quant(quant.scale) if isinstance(quant, Quant) else None
    scale = node.args["scale"].tensor.data if node.op is grids.DEQUANTIZE_LINEAR else None
    return Quant(float(scale.item())) if scale is not None and scale.size == 1 and scale.item() > 0 else None


class Segments:
    """The segments of a cut as programs: all in one, or where that fails, each in its own."""

    def __init__(self, whole: Cut, backend: str = "auto", threads: int = 0) -> None:
        self.cut, self.options = whole, (backend, threads)
        self._all: Program | None = None
        self._each: dict[str, Program] = {}

    def run(self, inputs: Mapping[Value, Array | None], tensors: Mapping[str, Array]
            ) -> dict[str, Array | NnxError]:
        """What each anchor's segment gives for a run's inputs and the reference's tensors, or why it gives nothing."""
        able = [a for a in self.cut.anchors if a.name in tensors and all(r in tensors for r in a.reads)]
        if self._all is None or self._all.anchors != tuple(able):
            self._all = None
        try:
            self._all = self._all or Program(self.cut, able, *self.options)
            return dict(self._all.run(inputs, tensors))
        except NnxError:
            return {a.name: self._alone(a, inputs, tensors) for a in able}

    def _alone(self, anchor: Anchor, inputs: Mapping[Value, Array | None], tensors: Mapping[str, Array]
               ) -> Array | NnxError:
        try:
            if anchor.name not in self._each:
                self._each[anchor.name] = Program(self.cut, [anchor], "numpy", self.options[1])
            return self._each[anchor.name].run(inputs, tensors)[anchor.name]
        except NnxError as error:
            return error


class Program:
    """Some anchors' segments, compiled."""

    def __init__(self, whole: Cut, anchors: Sequence[Anchor], backend: str, threads: int, fed: bool = True) -> None:
        """`fed`: with a reference's values; else each anchor is computed from the model's inputs."""
        self.anchors = tuple(anchors)
        by_value = {a.value: a for a in whole.anchors} if fed else {}
        self._fed = dict[Anchor, Value]()
        graph = self._graph(whole.legal, by_value)
        self._inputs = graph.inputs
        chosen = backend_of(backend)
        options = Options(threads, call, elsewhere=chosen.takes, sets=chosen.sets, fast=chosen.fast)
        self._runner = Runner(flatten(graph), options)

    def _graph(self, legal: Graph, anchors: Mapping[Value, Anchor]) -> Graph:
        """The graph whose inputs are the model's, then the anchors that anything reads."""
        wanted = {a.value for a in self.anchors}
        needed, nodes = set(wanted), list[Node]()
        for n in reversed(legal.nodes):
            if not needed.isdisjoint(n.outputs):
                nodes.append(n)
                needed.update(x for x in n.inputs if x not in anchors)
        made = tuple(n.mapped(lambda v: self._placeholder(v, anchors)) for n in reversed(nodes))
        inputs = (*(v for v in legal.inputs if v in needed), *self._fed.values())
        graph = Graph(legal.name, inputs, tuple(a.value for a in self.anchors), made, Rim()).verify()
        return prune(graph, Target(), [])

    def _placeholder(self, v: Any, anchors: Mapping[Value, Anchor]) -> Any:
        if not isinstance(v, Value) or v not in anchors:
            return v
        return self._fed.setdefault(anchors[v], Value(v.name, v.tensor))

    def run(self, inputs: Mapping[Value, Array | None], tensors: Mapping[str, Array]) -> dict[str, Array]:
        """The anchors' values by name, as the reference has them; raises `NnxError`."""
        fed: dict[Value, Array | None] = {v: a.inward(tensors[a.name]) for a, v in self._fed.items()}
        found = self._runner.run([(fed | dict(inputs))[v] for v in self._inputs])
        return {a.name: a.outward(array, tensors.get(a.name)) for a, array in zip(self.anchors, found, strict=True)}
