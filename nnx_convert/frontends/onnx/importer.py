"""From an ONNX file to a graph: tensors become values, each operator is one call of its importer."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ... import types as t
from ...errors import FormatError, NnxError, Unsupported
from ...graph import At, Build, Evaluate, Graph, Value, Values
from ...ops.elementwise import ADD, DIV, MAXIMUM, MINIMUM, MUL
from ...ops.host_arrays import SHAPE
from ...ops.shape import CONCATENATION, EXPAND_DIMS, RESHAPE, SLICE, SQUEEZE
from ...resources import tick
from ...schema import OpDef, OpError
from ...symbols import expressed, name_of, same
from ...types import Shape, Tensor, Type, Undecided, known
from ..sensible import sensible
from . import constraints, custom, functions, symbolic
from .attributes import attributes_of
from .checks import NEWEST, domain_of
from .constants import dense, typed
from .folding import folded
from .reader import read
from .registry import Given, Importer, Items, importer_of
from .rim import declared_input, inputs_of, merged, named_sizes, rim_of
from .scope import Body, Region, Scope, Session, open_

#: What arithmetic is done in, where NNAPI has no row for the elements: integers as INT32, floats as FLOAT32.
WIDER = dict.fromkeys((t.Q8, t.Q8S, t.Q16A, t.I16, t.I4, t.U4, t.I2, t.U2), t.I32) | dict.fromkeys(
    (t.BF16, t.F8E4M3FN, t.F8E4M3FNUZ, t.F8E5M2, t.F8E5M2FNUZ, t.F8E8M0, t.F4E2M1), t.F32)


@dataclass
class Op:
    """What an importer works with: it emits nodes where the operator stands. `outputs`: their names in the file."""

    scope: Scope
    domain: str
    name: str
    outputs: tuple[str, ...]
    opset: int

    @property
    def session(self) -> Session:
        """The file being imported."""
        return self.scope.session

    @property
    def count(self) -> int:
        """How many outputs the operator has, those left out included."""
        return len(self.outputs)

    def wanted(self, i: int) -> bool:
        """Whether the file names the output."""
        return i < len(self.outputs) and bool(self.outputs[i])

    # Emitting.
    def __call__(self, op: OpDef, *args: Any, out: Tensor | None = None, **named: Any) -> Value:
        """Emit an operation with one output that counts."""
        return self.scope.build(op, *args, out=out, **named)

    def add(self, op: OpDef, *args: Any, outs: Sequence[Tensor | None] = (), **named: Any) -> Values:
        """Emit an operation and give all its outputs."""
        return self.scope.build.add(op, *args, outs=outs, **named)

    def const(self, data: Any, type: Type | None = None) -> Value:
        """A constant of an array's own type, or another; a rank of 0 is remembered."""
        return dense(self.session, np.asarray(data), type)

    def elementwise(self, op: OpDef, *xs: Value, out: Tensor | None = None, **named: Any) -> Value:
        """An operation on values that broadcast, given one rank; a scalar where all are."""
        rank = max(map(self.rank, xs))
        ranked = [x if self.rank(x) == rank else self.reshape(x, (1,) * (rank - self.rank(x)) + self.shape(x))
                  for x in xs]
        found = self(op, *ranked, out=out, **named)
        return found if rank else self.scalar(found)

    def call(self, name: str, *inputs: Given, domain: str = "", outputs: int = 1, version: int = 0,
             **attributes: Any) -> list[Any]:
        """What another operator gives, in the version that this file means or another; a list of its outputs."""
        version = version or self.scope.versions.get(domain) or NEWEST.get(domain, 1)
        other = replace(self, domain=domain, name=name, outputs=tuple(f"{name}.{i}" for i in range(outputs)),
                        opset=version)
        return applied(other, list(inputs), attributes)

    # What is known.
    def rank(self, x: Value) -> int:
        """The rank in the file: a scalar is [1] here."""
        return 0 if x in self.session.scalars else len(x.shape)

    def shape(self, x: Value) -> Shape:
        """The sizes in the file."""
        return () if x in self.session.scalars else x.shape

    def scalar(self, x: Value) -> Value:
        """The value, of rank 0 in the file."""
        self.session.scalars.add(x)
        return x

    def known(self, x: Value | None) -> np.ndarray | None:
        """The elements of a constant, of the rank the file has; None of what is none."""
        if x is None or x.tensor.data is None:
            return None
        return x.tensor.data.reshape(self.shape(x))

    def constant(self, x: Value, name: str) -> np.ndarray:
        """The elements of a constant; raises `Unsupported` where it is computed."""
        found = self.known(x)
        if found is None:
            raise Unsupported(f"input {name} must be a constant")
        return found

    def ints(self, x: Value | None) -> tuple[int, ...] | None:
        """The elements of an integer tensor, numbers and open sizes, as far as they are known at all."""
        found = None if x is None else self.contents(x)
        return None if found is None else tuple(found.reshape(-1).tolist())

    def contents(self, x: Value) -> np.ndarray | None:
        """The elements of an integer tensor as objects, numbers and open sizes; None where they are not known."""
        data = self.known(x)
        if data is not None and data.dtype.kind in "iub" and data.size <= symbolic.LONGEST:
            return data.astype(object)
        return self.session.contents.get(x)

    # Between shapes and types.
    def reshape(self, x: Value, shape: Shape) -> Value:
        """The value with other sizes, of rank 0 for (); nothing where it has them. Raises `Unsupported` where more
        than one size is open that is not one of the value's."""
        if shape == () == self.shape(x) or len(shape) == self.rank(x) > 0 and all(map(same, shape, x.shape)):
            return x
        if x.tensor.data is not None and all(map(known, shape)):
            made = Value(x.name, replace(x.tensor, dims=shape or (1,), data=x.tensor.data.reshape(shape or (1,))))
        elif told(shape):
            made = self(RESHAPE, x, [n if known(n) else -1 for n in shape] or [1], out=Tensor(
                x.type, shape or (1,), x.tensor.quant))
        else:
            made = self._spread(x, shape)
        return made if shape else self.scalar(made)

    def _spread(self, x: Value, shape: Shape) -> Value:
        """With several open sizes: axes of size 1 go and come one by one; else a run finds the sizes of x.

        Sizes that are not even named are taken to be those of x, in their order.
        """
        own, wanted = ([n for n in sizes if not (known(n) and n == 1)] for sizes in (x.shape, shape))
        if len(own) != len(wanted) or not all(m is n or same(m, n) for m, n in zip(own, wanted, strict=True)):
            return self._sized(x, shape)
        if ones := [i for i, n in enumerate(x.shape) if known(n) and n == 1]:
            x = self(SQUEEZE, x, ones)
        for axis in (i for i, n in enumerate(shape) if known(n) and n == 1):
            x = self(EXPAND_DIMS, x, axis=axis)
        return x

    def _sized(self, x: Value, shape: Shape) -> Value:
        """RESHAPE to sizes of which all but one are known, or follow from those of x; raises `Unsupported`."""
        whole = self(SHAPE, x)
        found = [self._measured(whole, x.shape, n) for n in shape]
        if found.count(None) > (0 not in [n for n in shape if known(n)]):      # -1 beside 0 is any number
            self.unsupported("is a reshape with several open sizes", "give the input sizes")
        parts = tuple(self.const(np.array([-1], np.int32)) if v is None else v for v in found)
        return self(RESHAPE, x, self(CONCATENATION, xs=parts, axis=0), out=Tensor(x.type, shape, x.tensor.quant))

    def _measured(self, whole: Value, own: Shape, n: int) -> Value | None:
        """A size as a run computes it of the sizes of a value; None where it does not follow from these."""
        at = None if known(n) else next((i for i, m in enumerate(own) if same(m, n)), None)
        if at is not None:
            return self(SLICE, whole, [at], [1])
        names = {name_of(m): i for i, m in enumerate(own)}
        try:
            found: Value = expressed(n, lambda name: self(SLICE, whole, [names[name]], [1]),
                                     lambda k: self.const(np.array([k], np.int32)), {
                "+": partial(self, ADD, act=0), "*": partial(self, MUL, act=0), "//": partial(self, DIV, act=0),
                "min": partial(self, MINIMUM), "max": partial(self, MAXIMUM)})
            return found
        except (KeyError, Undecided):
            return None

    def cast(self, x: Value, to: Type) -> Value:
        """The value in another type, by ONNX's rules; itself where it has it."""
        from .importers.cast import cast
        return x if x.type == to else cast(self, x, to)

    def index(self, x: Value, size: int | None = None) -> Value:
        """Indices as INT32; with `size` given, negative ones count from the end."""
        from .importers.gather import index
        return index(self, x, size)

    def unsupported(self, why: str, hint: str = "") -> NoReturn:
        """Raise `Unsupported`; the place is added by who calls importers."""
        raise Unsupported(why, hint=hint)

    # Graphs within.
    def inline(self, region: Region, args: Sequence[Given]) -> list[Given]:
        """The nodes of a graph attribute emitted here; its outputs."""
        inner = replace(region.scope.nested(region.proto.name), build=self.scope.build)
        for port, value in zip(region.proto.input, args, strict=True):
            inner.define(port.name, value)
        return run(inner, region.proto)

    def body(self, region: Region, args: Sequence[Value]) -> Body:
        """A graph attribute as a graph, its inputs like these values; see `scope.closed` for several."""
        inner = region.scope.nested(region.proto.name)
        if len(args) != len(region.proto.input):
            raise FormatError(f"{region.proto.name} takes {len(region.proto.input)} inputs, not {len(args)}")
        made = [self.session.moved(v, Value(port.name, open_(v.tensor)))
                for port, v in zip(region.proto.input, args, strict=True)]
        for port, value in zip(region.proto.input, made, strict=True):
            self.session.contents.pop(value, None)
            inner.define(port.name, value)
        emitter = replace(self, scope=inner)
        outputs = tuple(value_of(emitter, v) for v in run(inner, region.proto))
        inputs = (*made, *inner.captured.values())
        return Body(inner.build.finish(inputs, outputs, t.Rim()), tuple(inner.captured))


def told(shape: Shape) -> bool:
    """Whether -1 can stand for what is open in a shape: one size, beside none that is 0."""
    sizes = [n for n in shape if known(n)]
    return len(sizes) == len(shape) or len(sizes) == len(shape) - 1 and 0 not in sizes


def value_of(g: Op, given: Given) -> Value:
    """A value, a sequence known while importing among them; raises `FormatError` where there is none."""
    if isinstance(given, Items):
        from .importers.sequence import materialised
        return materialised(g, given)
    if given is None:
        raise FormatError("an output of a graph is left out")
    return given


def load(data: Any, shapes: Mapping[str, Shape], evaluate: Evaluate, folder: Path | None = None) -> Graph:
    """The file's graph; `shapes` gives input sizes by name, `folder` is where external data may lie.

    Raises `FormatError`, `Unsupported`, `UsageError`.
    """
    model = read(data, folder)
    session = Session(model, shapes, evaluate, sizes=named_sizes(model, shapes))
    try:
        return loaded(session)
    except Unsupported as error:
        if not session.undecided:                # no rank that follows from an open size
            raise
        try:
            return loaded(replace(session, decided=True, scalars=set(), contents={}, kinds={}))
        except NnxError:
            raise error from None


def loaded(session: Session) -> Graph:
    """The graph of a checked file."""
    model = session.model
    scope = Scope(session, Build(model.graph.name), model.versions)
    inputs = [(p, declared_input(session, p)) for p in inputs_of(model.graph)]
    for port, value in inputs:
        scope.define(port.name, value)
    found = [value_of(_rim_op(scope), v) for v in run(scope, model.graph)]
    rim = rim_of(session, model, [v for _, v in inputs], found)
    return scope.build.finish(tuple(v for _, v in inputs), tuple(found), rim)


def _rim_op(scope: Scope) -> Op:
    return Op(scope, "", "output", ("output",), scope.versions.get("", 1))


def run(scope: Scope, graph: Any) -> list[Given]:
    """Import the nodes of a graph whose inputs are defined; its outputs."""
    for proto in (*graph.initializer, *graph.sparse_initializer):
        value = typed(scope.session, proto)
        scope.define(value.name, value)
    scope.declared = {p.name: p for p in (*graph.value_info, *graph.output)}
    walk(scope, graph.node, graph.name if scope.outer else "")
    return [_given(scope, p) for p in graph.output]


def _given(scope: Scope, port: Any) -> Given:
    """An output of a graph; one that is there where the graph says it is optional is an optional value."""
    found = scope.find(port.name)
    if found is None or port.type.WhichOneof("value") != "optional_type":
        return found
    from .importers.sequence import optional
    return optional(_rim_op(scope), found)


def walk(scope: Scope, nodes: Sequence[Any], graph: str = "") -> None:
    """Import nodes in order; a fault gets its node's place."""
    for i, node in enumerate(nodes):
        scope.build.at = at = At(graph, i, node.op_type)
        tick(str(at))
        try:
            _node(scope, node)
        except NnxError as error:
            raise error.at(f"{at}{f' {node.name!r}' if node.name else ''}") from error


def _node(scope: Scope, node: Any) -> None:
    domain = domain_of(node.domain)
    g = Op(scope, domain, node.op_type, tuple(node.output), scope.versions.get(domain, 0))
    given = [scope.find(n) for n in node.input]
    own = functions.local(g, node) is not None
    if not own:
        constraints.agree(domain, g.name, g.opset, given)
    since = len(scope.build.nodes)
    found = applied(g, given, attributes_of(scope, node), node)
    if not own:
        constraints.given(domain, g.name, g.opset, found)
    named = _named(g, since, found)
    try:
        sensible(scope.build.nodes[since:])
    except OpError as error:
        raise FormatError(str(error).removeprefix("host.")) from error
    for name, value in zip(node.output, named, strict=False):
        if name and value is None:
            raise FormatError(f"{name!r}, an output of {node.op_type}, is not given by it")
        if name:
            scope.define(name, value)


def applied(g: Op, given: list[Given], attributes: Mapping[str, Any], node: Any = None) -> list[Any]:
    """The outputs of an operator: its importer's, or those of its function body."""
    try:
        if node is not None and custom.registered(g.domain, g.name):
            return list(custom.emitted(g, given, node))
        importer = importer_of(g.domain, g.name, g.opset)
        local = functions.local(g, node)
        if local is not None:
            return functions.inlined(g, local, given, attributes)
        found: Any = NotImplemented
        if importer is not None:
            found = _imported(g, importer, given, attributes)
        return functions.expanded(g, given, attributes, node) if found is NotImplemented else found
    except OpError as error:
        raise FormatError(str(error).removeprefix("host.")) from error
    except Undecided:
        raise Unsupported("needs sizes that are open", hint="give the input sizes") from None
    except (LookupError, ValueError, ArithmeticError) as error:
        raise FormatError(f"its inputs and attributes do not fit each other ({error})") from error
    except MemoryError as error:
        raise Unsupported("asks for more memory than there is") from error


def _imported(g: Op, importer: Importer, given: list[Given], attributes: Mapping[str, Any]) -> Any:
    since = len(g.scope.build.nodes)
    inputs = importer.positional(given)
    wide = {WIDER[v.type] for v in inputs if isinstance(v, Value) and v.type in WIDER} if importer.arithmetic else ()
    narrow = {WIDER[v.type]: v.type for v in reversed(inputs) if wide and isinstance(v, Value) and v.type in WIDER}
    if wide:
        inputs = [g.cast(v, WIDER[v.type]) if isinstance(v, Value) and v.type in WIDER else v for v in inputs]
    found = importer.fn(g, *inputs, **importer.named(attributes))
    if found is NotImplemented:
        return found
    results = list(found) if isinstance(found, list | tuple) else [found]
    results = [g.cast(v, narrow[v.type]) if isinstance(v, Value) and v.type in narrow else v for v in results]
    results = _sized(g, given, attributes, results)
    return folded(g, since, results) if importer.folds else results


def _sized(g: Op, given: Sequence[Given], attributes: Mapping[str, Any], results: list[Any]) -> list[Any]:
    """The results, with what arithmetic on sizes says of their elements."""
    outs = [v for v in results if isinstance(v, Value) and v.type in (t.I32, t.I64, t.B8) and not v.constant]
    if g.domain or not outs or len(outs) < len(results):
        return results
    if any(isinstance(v, Value) and v.tensor.dims is None for v in (*outs, *given)):
        return results
    if g.name in symbolic.OF_SIZES:
        arrays = [symbolic.objects(g.shape(v)) if isinstance(v, Value) else None for v in given]
    else:
        arrays = [g.contents(v) if isinstance(v, Value) else None for v in given]
        if any(a is None and v is not None for a, v in zip(arrays, given, strict=True)):
            return results
    parts = symbolic.evaluated(g.name, arrays, dict(attributes), len(outs))
    if parts is None or [p.shape for p in parts] != [g.shape(v) for v in outs]:
        return results
    for i, (v, found) in enumerate(zip(outs, parts, strict=True)):
        if symbolic.certain(found):
            results[i] = g.const(found.astype(v.type.dtype), v.type)
        else:
            g.session.contents[v] = found
    return results


def _named(g: Op, since: int, found: Sequence[Any]) -> list[Any]:
    """The outputs under the file's names, with what it declares of them."""
    build, session = g.scope.build, g.session
    made = {v for n in build.nodes[since:] for v in n.outputs}
    names = {v: (name, merged(session, v, g.scope.declared.get(name)))
             for name, v in zip(g.outputs, found, strict=False) if name and isinstance(v, Value) and v in made}
    became = build.rename(since, names)
    for old, new in became.items():
        session.moved(old, new)
    return [became.get(v, v) if isinstance(v, Value) else v for v in found]


__all__ = ["Items", "Op", "Region", "load"]
