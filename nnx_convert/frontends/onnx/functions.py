"""Functions: those of the file, and the bodies that operators of the standard have."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...errors import FormatError, Unsupported
from ...graph import Value
from ...resources import deep
from .attributes import value_of
from .checks import domain_of
from .constants import element_of
from .registry import Given, Items
from .scope import Scope

if TYPE_CHECKING:
    from .importer import Op


def local(g: Op, node: Any) -> Any:
    """The file's own function that a node calls; None where it calls none."""
    return g.session.model.functions.get((g.domain, g.name, getattr(node, "overload", "")))


def inlined(g: Op, function: Any, given: Sequence[Given], attributes: Mapping[str, Any]) -> list[Given]:
    """The nodes of a function emitted where it is called; its outputs. Raises `FormatError`."""
    from .importer import walk
    deep(g.scope.depth, "functions are")
    if len(given) > len(function.input):
        raise FormatError(f"has {len(given)} inputs, {len(function.input)} at most")
    own = {domain_of(o.domain): o.version for o in function.opset_import}
    versions = own or g.session.model.versions
    inner = Scope(g.session, g.scope.build, versions, g.scope, attributes=_called(g, function, attributes))
    for name, value in zip(function.input, [*given, *[None] * len(function.input)], strict=False):
        inner.define(name, value)
    at = g.scope.build.at
    walk(inner, function.node, function.name or g.name)
    g.scope.build.at = at
    return [inner.find(name) if g.wanted(i) else inner.names.get(name) for i, name in enumerate(function.output)]


def _called(g: Op, function: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a call with the function's defaults."""
    defaults = {a.name: value_of(g.scope, a) for a in function.attribute_proto}
    return defaults | dict(attributes)


def expanded(g: Op, given: Sequence[Given], attributes: Mapping[str, Any], node: Any) -> list[Given]:
    """The body that the standard gives an operator, emitted here; raises `Unsupported` where it has none."""
    if not g.opset:
        raise Unsupported(f"{g.name} is of the domain {g.domain!r}, which the file does not import")
    schema = schema_of(g.name, g.opset, g.domain)
    if schema is None:
        raise Unsupported(f"there is no operator {g.name} in version {g.opset} of {g.domain or 'ai.onnx'}")
    body = None if node is None else _body(g, schema, given, node)
    if body is None:
        raise Unsupported(f"{g.name} has no counterpart in NNAPI and none on the host")
    defaults = [a.default_value for a in schema.attributes.values() if a.default_value.name]
    return inlined(g, body, given, {a.name: value_of(g.scope, a) for a in defaults} | dict(attributes))


def _body(g: Op, schema: Any, given: Sequence[Given], node: Any) -> Any:
    """The function body of an operator for these inputs, as the schema builds it."""
    from onnx import FunctionProto
    function = FunctionProto()
    if schema.has_context_dependent_function:
        version = _fitting(schema.context_dependent_function_opset_versions, g.opset)
        types = [_type(g, v) for v in given]
        found = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    elif schema.has_function:
        found = schema.get_function_with_opset_version(_fitting(schema.function_opset_versions, g.opset))
    else:
        return None
    if not found:
        return None
    function.ParseFromString(found)
    return function


def _fitting(versions: Sequence[int], opset: int) -> int:
    """The newest version of a body that is not above the file's."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type(g: Op, given: Given) -> bytes:
    """A value's type as the schema's builders want it."""
    from onnx import TypeProto
    proto = TypeProto()
    if isinstance(given, Value) and given in g.session.kinds:
        proto = g.session.kinds[given]
    elif isinstance(given, Items):
        proto = given.kind or proto
    elif given is not None:
        proto.tensor_type.elem_type = element_of(given.type)
        for n in g.shape(given):
            d = proto.tensor_type.shape.dim.add()
            if isinstance(n, int):
                d.dim_value = n
    serialized: bytes = proto.SerializeToString()
    return serialized


@cache
def schema_of(name: str, version: int, domain: str) -> Any:
    """The standard's schema of an operator; None where it has none."""
    from onnx import defs
    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None
