"""What must hold of an ONNX file before its operators are looked at: versions, names, order, functions."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import FormatError, NnxError, Oversized, Unsupported
from ...resources import deep, hint, limits, within
from ...types import LIST, MOST_AXES, UNKNOWN, Shape, Type, symbol
from . import custom
from .proto import text
from .tensors import LONGEST_AXIS, kind_of

#: The newest version of the format, and of each of ONNX's own operator sets.
NEWEST_IR = 14
NEWEST = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1, "ai.onnx.training": 1}
#: Operator sets by others whose operators are known here.
FOREIGN = ("com.microsoft",)
#: Since this version of the format a file says which operator sets it uses; before, it is the first.
SAID_SINCE = 3
#: Names of more are not shown in full.
SHOWN = 80

#: A function by domain, name and overload.
Key = tuple[str, str, str]


def ir_version(proto: Any) -> None:
    """The version of the format must be one that is known; raises `FormatError`, `Unsupported`."""
    found = proto.ir_version
    if not proto.HasField("ir_version") or found < 1:
        raise FormatError(f"has the IR version {found}" if proto.HasField("ir_version") else "has no IR version")
    if found > NEWEST_IR:
        raise Unsupported(f"has the IR version {found}; {NEWEST_IR} is the newest known here")
    if not proto.HasField("graph"):
        raise FormatError("has no graph")


def domain_of(name: str) -> str:
    """A domain as it is called here: the default one has two names."""
    return "" if name == "ai.onnx" else name


def versions(imports: Any, ir: int, where: str = "") -> dict[str, int]:
    """The operator sets of a file or a function by domain; raises `FormatError`, `Unsupported`."""
    found: dict[str, int] = {}
    for o in imports:
        domain, version = domain_of(text(o.domain)), o.version
        name = domain or "ai.onnx"
        if version < 1:
            raise FormatError(f"imports version {version} of the operator set {name!r:.{SHOWN}}", where)
        if version > NEWEST.get(domain, version):
            raise Unsupported(f"imports version {version} of the operator set {name!r}; {NEWEST[domain]} is the "
                              "newest known here", where)
        if found.setdefault(domain, version) != version:
            raise FormatError(f"imports the operator set {name!r:.{SHOWN}} in two versions", where)
    if not found and ir < SAID_SINCE:
        found[""] = 1
    return found


def functions_of(proto: Any) -> dict[Key, Any]:
    """The file's functions by domain, name and overload; raises `FormatError` where two have the same."""
    found: dict[Key, Any] = {}
    for f in proto.functions:
        key = (domain_of(text(f.domain)), text(f.name), text(f.overload))
        if not key[1]:
            raise FormatError("has a function without a name")
        if key in found:
            raise FormatError(f"has the function {spelt(key)} twice")
        found[key] = f
    return found


def spelt(key: Key) -> str:
    """A function as a fault names it."""
    domain, name, overload = key
    return repr(f"{domain}.{name}{f':{overload}' if overload else ''}"[:SHOWN])


def whole(graph: Any, imported: Mapping[str, int], functions: Mapping[Key, Any]) -> int:
    """Check the main graph and the functions; how many nodes the graph has, those of graphs within it included.

    Raises `FormatError`, `Unsupported` naming node and rule.
    """
    if not graph.output:
        raise Unsupported("the graph has no outputs")
    for port in graph.input:
        if port.type.WhichOneof("value") is None:
            raise FormatError(f"the input {port.name!r:.{SHOWN}} has no type")
    main = Checker(imported, functions)
    main.graph(graph, "", ())
    calls: dict[Any, Mapping[Any, int]] = {None: main.calls}
    for key, f in functions.items():
        calls[key] = function(key, f, imported, functions)
    expandable(calls)
    return sum(main.calls.values())


def function(key: Key, f: Any, imported: Mapping[str, int], functions: Mapping[Key, Any]) -> dict[Key, int]:
    """Check a function; which it calls how often, its own nodes counting as calls of None."""
    where = f"function {spelt(key)}"
    checker = Checker(versions(f.opset_import, SAID_SINCE, where) or imported, functions, True)
    names = set(named(f.input, "input", where))
    checker.nodes(f.node, where, (), names)
    for name in named(f.output, "output", where):
        if name not in names:
            raise FormatError(f"the output {name!r:.{SHOWN}} is computed nowhere", where)
    attributes = [*f.attribute, *(a.name for a in f.attribute_proto)]
    named(attributes, "attribute", where)
    return checker.calls


def named(names: Iterable[Any], what: str, where: str) -> list[str]:
    """The names, in their order; raises `FormatError` on one that is empty or there twice."""
    seen: dict[str, None] = {}
    for name in map(text, names):
        if not name or name in seen:
            raise FormatError(f"has the {what} {name!r:.{SHOWN}} twice" if name else f"has an {what} without a name",
                              where)
        seen[name] = None
    return list(seen)


@dataclass
class Checker:
    """The check of a graph with those in it: what its names stand for, and what it calls. `inside`: of a function."""

    imported: Mapping[str, int]
    functions: Mapping[Key, Any]
    inside: bool = False
    calls: dict[Any, int] = field(default_factory=dict)
    graphs: int = 0

    def graph(self, graph: Any, where: str, outer: tuple[set[str], ...]) -> None:
        """A graph within others, whose names are `outer`; raises `FormatError`, `Unsupported`."""
        deep(len(outer), "graphs are", where)
        self.graphs += 1
        within("subgraphs", self.graphs, "its graphs are", where)
        for said in (graph, *graph.value_info):
            text(said.name)
        names = set(named((p.name for p in graph.input), "input", where))
        initializers = (*(i.name for i in graph.initializer), *(s.values.name for s in graph.sparse_initializer))
        names |= set(named(initializers, "initializer", where))
        self.nodes(graph.node, where, outer, names)
        for name in (text(p.name) for p in graph.output):
            if not any(name in scope for scope in (names, *outer)):
                raise FormatError(f"the output {name!r:.{SHOWN}} is computed nowhere", where)

    def nodes(self, nodes: Any, where: str, outer: tuple[set[str], ...], names: set[str]) -> None:
        """Nodes in order; `names`, which are defined before them, receive what they define."""
        for i, node in enumerate(nodes):
            try:
                self._node(nodes, i, node, (*outer, names))
            except NnxError as error:
                raise error.at(": ".join(filter(None, (where, place(i, node))))) from error

    def _node(self, nodes: Any, index: int, node: Any, scopes: tuple[set[str], ...]) -> None:
        self._operator(node)
        for name in map(text, node.input):
            if name and not any(name in scope for scope in scopes):
                raise FormatError(undefined(name, nodes, index))
        for a in node.attribute:
            self._attribute(a, scopes)
        for name in map(text, node.output):
            if name in scopes[-1]:
                raise FormatError(f"defines {name!r:.{SHOWN}}, which is defined before: every name has one definition")
            if name:
                scopes[-1].add(name)

    def _operator(self, node: Any) -> None:
        domain, name = domain_of(text(node.domain)), text(node.op_type)
        text(node.name)
        if not name:
            raise FormatError("is no operator: it has no type")
        key = (domain, name, text(node.overload))
        called = key if key in self.functions else None
        self.calls[called] = self.calls.get(called, 0) + 1
        if called is None and domain not in self.imported:
            said = f"the domain {domain or 'ai.onnx'!r:.{SHOWN}}"
            if domain in (*NEWEST, *FOREIGN):
                raise FormatError(f"is of {said}, of which the file imports no version")
            raise Unsupported(f"is of {said}, which is not known here")
        if called is None and domain not in (*NEWEST, *FOREIGN) and not custom.registered(domain, name):
            own = custom.called(domain, name)
            raise Unsupported(f"is of the domain {domain!r:.{SHOWN}}, which is not known here",
                              hint=f"nnx_convert.register_custom_op({own!r:.{SHOWN}}, ...) makes it so")

    def _attribute(self, a: Any, scopes: tuple[set[str], ...]) -> None:
        if not text(a.name):
            raise FormatError("has an attribute without a name")
        if text(a.ref_attr_name) and not self.inside:
            raise FormatError(f"its attribute {a.name!r:.{SHOWN}} refers to one of a function, and it is in none")
        for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            self.graph(graph, f"in its {a.name!r:.{SHOWN}}", scopes)


def place(index: int, node: Any) -> str:
    """A node as a fault names it."""
    name = f" {node.name!r:.{SHOWN}}" if node.name else ""
    return f"op {index} {str(node.op_type)[:SHOWN]}{name}"


def undefined(name: str, nodes: Any, index: int) -> str:
    """Why a name that the node of an index reads has no value yet."""
    maker = {out: i for i, n in enumerate(nodes) for out in n.output if out}
    if name not in maker:
        return f"reads {name!r:.{SHOWN}}, which nothing defines"
    later = place(maker[name], nodes[maker[name]])
    todo, seen = [maker[name]], {maker[name]}
    for i in todo:
        if i == index:
            return f"reads {name!r:.{SHOWN}}, which {later} computes from the result: a cycle"
        before = {maker[n] for n in nodes[i].input if n in maker} - seen
        todo += before
        seen |= before
    return f"reads {name!r:.{SHOWN}}, which only {later} defines: nodes must stand in the order they run in"


def expandable(calls: Mapping[Any, Mapping[Any, int]]) -> None:
    """Raise `FormatError` where functions call each other in a circle, or so often that nobody could run the result.

    `calls`: of the main graph (None) and of each function, how often it calls which; None: a node that is no call.
    """
    sizes: dict[Any, int] = {}
    open_: list[Any] = []
    todo: list[Any] = [None, *reversed(list(calls))]
    while todo:
        key = todo[-1]
        left = [k for k in calls[key] if k is not None and k not in sizes]
        if key in sizes or not left:
            sizes.setdefault(key, sum(n * (sizes[k] if k is not None else 1) for k, n in calls[key].items()))
            todo.pop()
            if open_ and open_[-1] == key:
                open_.pop()
            if sizes[key] > limits().operators:
                raise Oversized(f"has more than {limits().operators} nodes, those of functions counted at every call",
                                hint=hint("operators"))
            continue
        if key in open_:
            raise FormatError(f"the function {spelt(key)} calls itself")
        open_.append(key)
        todo += left


def declared(port: Any) -> tuple[Type | None, Shape | None]:
    """What the file says of a value: its type and sizes, each None where it does not.

    A named size is a symbol, one without name and number UNKNOWN. Sequences, optional values and maps are a LIST.
    Raises `FormatError`, and `Unsupported` on a type without a counterpart.
    """
    what = port.type.WhichOneof("value")
    if what is None:
        return None, None
    if what in ("sequence_type", "optional_type", "map_type"):
        return LIST, None
    try:
        if what != "tensor_type":
            raise Unsupported(f"is a {what.removesuffix('_type')}, which has no counterpart")
        found = port.type.tensor_type
        kind = kind_of(found.elem_type).type if found.elem_type else None
        if len(found.shape.dim) > MOST_AXES:
            raise FormatError(f"has {len(found.shape.dim)} dimensions")
        return kind, tuple(map(size, found.shape.dim)) if found.HasField("shape") else None
    except NnxError as error:
        raise error.at(f"value {port.name!r:.{SHOWN}}") from error


def size(dim: Any) -> int:
    """One dimension: a number, a symbol, or UNKNOWN; "?" and the like are written for any size, equal or not."""
    if dim.dim_value > LONGEST_AXIS:
        raise FormatError(f"has a size of {dim.dim_value}")
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else UNKNOWN
    name = text(dim.dim_param)
    return symbol(name) if any(map(str.isalpha, name)) and name != "None" else UNKNOWN
