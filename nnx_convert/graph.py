"""The graph: values and nodes with arguments by name, in static single assignment.

A graph, a node and a value are never changed; a rewrite builds another graph through a `Build`, and
what it leaves alone is the same object before and after. A node may be one NNAPI would refuse (a
type it has no row for, a rule it breaks): `Node.verdict` says so, and lowering is what mends it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from .frozen import frozen
from .ops.host import host_twin
from .schema import Checked, OpDef, OpError, Placed, describe
from .signature import Args, Form, Param
from .types import Array, I32, Rim, Scalar, Shape, Signature, Tensor, Type, known, rebuilt, sharper

#: The largest constant a pass or an importer may make up (a missing bias, an index ramp).
LARGEST_MADE = 1 << 24


class GraphError(Exception):
    """A pass broke the graph, or gave a value another meaning: a fault of ours, not of the input."""


@frozen
class At:
    """Where a node comes from: the operator's place and name in the source file."""

    graph: str = ""
    index: int = -1
    op: str = ""

    def __str__(self) -> str:
        return f"{self.graph + ' ' if self.graph else ''}op {self.index} {self.op}"


@frozen(eq=False)
class Sparse:
    """A constant kept compressed, as DENSIFY takes it: levels in traversal order.

    `implicit` is the stored form (not the real value) of every element that is not there: 0 in a TFLite file.
    """

    data: np.ndarray
    order: tuple[int, ...]
    blocks: tuple[int, ...]
    formats: tuple[int, ...]
    sizes: tuple[int, ...]
    pairs: tuple[np.ndarray | None, ...]
    implicit: int = 0


@frozen(eq=False)
class Value:
    """Something computed once: an input, a constant (`tensor.data` or `sparse`), an output of one node.

    `order`: where `layout` has stored a computed value otherwise than the source, the source's axes in this order.
    """

    name: str
    tensor: Tensor
    sparse: Sparse | None = None
    order: tuple[int, ...] | None = None

    @property
    def type(self) -> Type:
        """The operand type."""
        return self.tensor.type

    @property
    def shape(self) -> Shape:
        """The dimensions; raises `Undecided` where the rank is not known."""
        return self.tensor.shape

    @property
    def constant(self) -> bool:
        """Whether its value is known before a run."""
        return self.tensor.data is not None or self.sparse is not None

    @property
    def array(self) -> np.ndarray:
        """The elements of a dense constant."""
        if self.tensor.data is None:
            raise OpError(self.name, "must be a constant")
        return self.tensor.data

    def __str__(self) -> str:
        return f"{self.name}: {describe(self.tensor)}"


Values = tuple[Value, ...]


@frozen(eq=False)
class Node:
    """One operation: arguments by the names of the form it came in, a `Value` where that has a tensor."""

    op: OpDef
    form: Form
    args: Args
    outputs: Values
    at: At = At()

    @cached_property
    def operands(self) -> tuple[Value | Scalar | Graph | None, ...]:
        """The arguments in NNAPI's order."""
        return tuple(self.form.operands(self.args, self.op.types))

    @cached_property
    def inputs(self) -> Values:
        """The values it reads, in operand order, constants included."""
        return tuple(a for a in self.operands if isinstance(a, Value))

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs it calls, in operand order."""
        return tuple(a for a in self.operands if isinstance(a, Graph))

    @cached_property
    def verdict(self) -> Checked | OpError:
        """What the table says: accepted from a feature level on, or the rule broken."""
        try:
            return self.op.check_placed(placed(self.op, self.form, self.args), [v.tensor for v in self.outputs])
        except OpError as error:
            return error

    @property
    def impossible(self) -> OpError | None:
        """Why neither a device nor the host could run it, types of operands left aside; None where one could."""
        if not isinstance(self.verdict, OpError):
            return None
        twin = host_twin(self.op)
        form = twin.forms[self.op.forms.index(self.form)]
        try:
            twin.check_placed(placed(twin, form, self.args), [v.tensor for v in self.outputs])
        except OpError as error:
            return OpError(self.op.name, error.text, error.operand, error.hint)
        return None

    def mapped(self, change: Callable[[Any], Any]) -> Node:
        """The node with its values and graphs exchanged; itself when none is."""
        args = {name: remake(arg, change) for name, arg in self.args.items()}
        same = all(args[name] is arg for name, arg in self.args.items())
        return self if same else replace(self, args=args)

    def __str__(self) -> str:
        return f"{', '.join(v.name for v in self.outputs)} = {self.op.name}({', '.join(map(_brief, self.operands))})"


#: Computes a node whose operands are constants, given by position; None where there is no kernel, or no more time.
Evaluate = Callable[[Node, Sequence[Array | float | None]], Sequence[Array] | None]


@frozen(eq=False)
class Graph:
    """Nodes in an order they can run in; outputs may be any values. `rim`: how a user sees inputs and outputs."""

    name: str
    inputs: Values
    outputs: Values
    nodes: tuple[Node, ...]
    rim: Rim = field(default_factory=Rim)

    @cached_property
    def producer(self) -> Mapping[Value, Node]:
        """The node that writes each value that one writes."""
        return {v: n for n in self.nodes for v in n.outputs}

    @cached_property
    def uses(self) -> Mapping[Value, int]:
        """How often each value is read, by nodes and as an output."""
        count: dict[Value, int] = {}
        for v in (*self.outputs, *(v for n in self.nodes for v in n.inputs)):
            count[v] = count.get(v, 0) + 1
        return count

    @cached_property
    def signature(self) -> Signature:
        """What an IF or a WHILE is told of it."""
        return Signature(tuple(v.tensor for v in self.inputs), tuple(v.tensor for v in self.outputs))

    def every(self) -> Iterator[Graph]:
        """The graph and its subgraphs, each once."""
        todo, seen = [self], {self}
        for graph in todo:
            yield graph
            for n in graph.nodes:
                todo += [g for g in n.graphs if g not in seen]
                seen.update(n.graphs)

    def walk(self) -> Iterator[Node]:
        """Every node, those of the subgraphs included."""
        return (n for graph in self.every() for n in graph.nodes)

    def verify(self) -> Graph:
        """Every value is written once and before it is read; raises `GraphError`. Subgraphs are not looked into."""
        written = set(self.inputs)
        for n in self.nodes:
            for v in n.inputs:
                if not (v.constant or v in written):
                    raise GraphError(f"{n.at}: {n.op.name} reads {v.name}, which nothing wrote")
            if not written.isdisjoint(n.outputs) or len(set(n.outputs)) < len(n.outputs):
                raise GraphError(f"{n.at}: {n.op.name} writes a value for the second time")
            written.update(n.outputs)
        if lost := [v.name for v in self.outputs if not (v.constant or v in written)]:
            raise GraphError(f"the outputs {lost} are not written")
        return self


def remake(arg: Any, change: Callable[[Any], Any]) -> Any:
    """An argument with every value and graph in it exchanged; the same object when nothing is."""
    if isinstance(arg, Value | Graph):
        return change(arg)
    if isinstance(arg, tuple):
        items = [remake(a, change) for a in arg]
        if all(a is b for a, b in zip(items, arg, strict=True)):
            return arg
        return rebuilt(arg, items)
    return arg


def known_of(arg: Any) -> Any:
    """What the table is told of an argument: the tensor of a value, the signature of a graph."""
    if isinstance(arg, Value):
        return arg.tensor
    if isinstance(arg, Graph):
        return arg.signature
    if isinstance(arg, tuple):
        return rebuilt(arg, map(known_of, arg))
    return arg


def placed(op: OpDef, form: Form, args: Args) -> Placed:
    """Arguments by name as the table checks them."""
    own = {name: known_of(arg) for name, arg in args.items()}
    key = form.key(own)
    slots = {p.name: tuple(p.operand(v, key, op.types) for v in p.value(own)) if p.variadic
             else p.operand(p.value(own), key, op.types) for p in form.inputs}
    return Placed(form, slots, own)


@lru_cache(maxsize=4096)
def _form(forms: tuple[Form, ...], given: frozenset[str]) -> Form | None:
    """The form these arguments are those of."""
    for f in forms:
        needed = {p.record or p.name for p in f.params if p.default is p.required and not p.variadic}
        if needed <= given <= set(f.names):
            return f
    return None


@dataclass
class Build:
    """A graph in the making. Calling it adds a node: `y = g(ADD, x, y, act=0)`."""

    name: str = ""
    at: At = At()    # noqa: RUF009  (a value)
    nodes: list[Node] = field(default_factory=list)

    def __call__(self, op: OpDef, *args: Any, out: Tensor | None = None, **named: Any) -> Value:
        """Add an operation with one output that counts; see `add`."""
        return self.add(op, *args, outs=(out,) if out else (), **named)[0]

    def add(self, op: OpDef, *args: Any, outs: Sequence[Tensor | None] = (), **named: Any) -> Values:
        """Add an operation, its arguments by position or by name, and give its outputs.

        The form is the one with these names. Numbers, lists and arrays where an operand is a tensor
        become constants. `outs` says what the caller knows of the outputs: quantisation, sizes.
        """
        form, own = self._arguments(op, args, named)
        place = placed(op, form, own)
        inferred = op.infer(op.canonical(place), len(outs))
        stem, ruled = f"{self.at.op or op.name}.{len(self.nodes)}", form.key(place.own) in op.types
        made = [merge(op, t, outs[i] if i < len(outs) else None, ruled) for i, t in enumerate(inferred)]
        values = tuple(Value(f"{stem}.{i}" if i else stem, t) for i, t in enumerate(made))
        self.nodes.append(Node(op, form, own, values, self.at))
        return values

    def _arguments(self, op: OpDef, args: tuple[Any, ...], named: Args) -> tuple[Form, Args]:
        names = dict(zip(op.forms[0].names, args, strict=False)) | named
        form = _form(tuple(op.forms), frozenset(names))
        if form is None:
            raise GraphError(f"{op.name} has no form with the arguments {sorted(names)}")
        for p in form.params:
            if p.record:
                continue
            if p.name not in names:
                names[p.name] = () if p.variadic else p.default
            elif not p.variadic:
                names[p.name] = self._lift(p, names[p.name])
        return form, {n: names[n] for n in form.names}

    def _lift(self, p: Param, value: Any) -> Any:
        """A list, a tuple or an array where the operand is a tensor: a constant."""
        if isinstance(value, list | tuple | np.ndarray):
            return self.const(value, next(iter(p.kind.levels), I32))
        return value

    def const(self, data: Any, type: Type, like: Tensor | None = None, name: str = "") -> Value:
        """A constant; `like` gives its quantisation. A rank of 0 becomes [1], which NNAPI takes for it."""
        try:
            array = np.asarray(data, type.dtype)
        except OverflowError as error:
            raise OpError(self.at.op, f"a number is none of {type.name}: {error}") from error
        array = array.reshape(array.shape or (1,))
        return Value(name or f"{self.at.op}.const", Tensor(type, array.shape, like.quant if like else None, array))

    def full(self, shape: Shape, value: float, like: Tensor) -> Value:
        """A constant of one value, in units of `like`, of a size that must be known and sensible."""
        if not all(map(known, shape)) or np.prod(shape, dtype=float) > LARGEST_MADE:
            raise OpError(self.at.op, f"a constant of shape {list(shape)} cannot be made up")
        return self.const(np.full(shape, value, like.type.dtype), like.type, like)

    def ramp(self, n: int) -> Value:
        """0, 1, ... n - 1 as INT32."""
        if not known(n) or not 0 <= n <= LARGEST_MADE:
            raise OpError(self.at.op, f"a ramp of {n} cannot be made up")
        return self.const(np.arange(n), I32)

    def rename(self, since: int, names: Mapping[Value, tuple[str, Tensor]],
               orders: Mapping[Value, tuple[int, ...] | None] = MappingProxyType({})) -> dict[Value, Value]:
        """Give outputs of the nodes added since their final names, tensors and orders; where each went."""
        became = {v: Value(*names[v], order=orders.get(v)) for n in self.nodes[since:] for v in n.outputs
                  if v in names}
        if became:
            self.nodes[since:] = [replace(n, outputs=tuple(became.get(v, v) for v in n.outputs))
                                  .mapped(lambda v: became.get(v, v)) for n in self.nodes[since:]]
        return became

    def finish(self, inputs: Values, outputs: Values, rim: Rim) -> Graph:
        """The graph of these nodes, verified; `rim` is how a user sees inputs and outputs."""
        return Graph(self.name, inputs, outputs, tuple(self.nodes), rim).verify()


def merge(op: OpDef, inferred: Tensor, declared: Tensor | None, ruled: bool = True) -> Tensor:
    """What inference and the source together know of an output; `OpError` where they contradict.

    Where the operation has no row for the type (not `ruled`), a grid that the source declares is not contradicted.
    """
    if declared is None:
        return inferred
    if not ruled and declared.quant:
        inferred = replace(inferred, quant=None)
    if op.host and declared.type != inferred.type:         # the host takes any mixture of types
        inferred = Tensor(declared.type, inferred.dims, declared.quant)
    if not inferred.agrees(declared):
        raise OpError(op.name, f"gives {describe(inferred)}, the model says {describe(declared)}")
    return replace(inferred, dims=sharper(inferred.dims, declared.dims), quant=inferred.quant or declared.quant)


def _brief(a: Value | Scalar | Graph | None) -> str:
    return str(a.value) if isinstance(a, Scalar) else a.name if a is not None else "-"
