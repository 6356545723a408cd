"""The attributes of a node as Python values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import FormatError, Unsupported
from .registry import Kind, Sparse
from .scope import Region, Scope
from .tensors import array


def attributes_of(scope: Scope, node: Any) -> dict[str, Any]:
    """A node's attributes by name; raises `FormatError`.

    Integers, floats and texts are themselves, lists are tuples, tensors are arrays, graphs are `Region`s; types and
    sparse tensors are a `Kind` and a `Sparse`. In a function, one that refers to an attribute of the call takes its
    value, or is left out.
    """
    found: dict[str, Any] = {}
    for a in node.attribute:
        if a.name in found:
            raise FormatError(f"has the attribute {a.name!r} twice")
        if a.ref_attr_name:
            if a.ref_attr_name in scope.attributes:
                found[a.name] = scope.attributes[a.ref_attr_name]
            continue
        found[a.name] = value_of(scope, a)
    return found


def value_of(scope: Scope, a: Any) -> Any:
    """One attribute; raises `FormatError` where it says none of the kinds there are."""
    read = KINDS.get(a.type)
    if read is None:
        raise FormatError(f"the attribute {a.name!r} has the kind {a.type}")
    return read(a, scope)


def text(raw: bytes) -> str:
    """A text of the file; raises `FormatError` where it is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"has a text that is no UTF-8 ({error.reason})") from error


def _tensor(proto: Any, scope: Scope) -> Any:
    return array(proto, scope.session.model.folder)


def _several(a: Any, scope: Scope) -> Any:
    raise Unsupported(f"the attribute {a.name!r} is a list of sparse tensors, graphs or types")


#: By AttributeProto.AttributeType.
KINDS: dict[int, Callable[[Any, Scope], Any]] = {
    1: lambda a, _: a.f,
    2: lambda a, _: a.i,
    3: lambda a, _: text(a.s),
    4: lambda a, scope: _tensor(a.t, scope),
    5: lambda a, scope: Region(a.g, scope),
    6: lambda a, _: tuple(a.floats),
    7: lambda a, _: tuple(a.ints),
    8: lambda a, _: tuple(map(text, a.strings)),
    9: lambda a, scope: tuple(_tensor(x, scope) for x in a.tensors),
    10: _several,
    11: lambda a, _: Sparse(a.sparse_tensor),
    12: _several,
    13: lambda a, _: Kind(a.tp),
    14: _several,
}
