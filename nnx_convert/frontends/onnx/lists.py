"""The types of sequences, optional values and maps: ONNX's messages, and the words of a port."""
from __future__ import annotations

from typing import Any

from ...contents import DEEPEST, Contents
from ...errors import FormatError, Unsupported
from ...graph import Value
from ...types import LIST, UNKNOWN, Tensor
from .constants import dtype_of, element_of, type_of
from .proto import messages
from .registry import Items
from .scope import Session
from .tensors import grid


def tensor_type(element: int) -> Any:
    """The type of tensors of an element type, of any shape."""
    found = messages().TypeProto()
    found.tensor_type.elem_type = element
    return found


def sequence_type(of: Any) -> Any:
    """The type of sequences of a type."""
    found = messages().TypeProto()
    found.sequence_type.elem_type.CopyFrom(of)
    return found


def optional_type(of: Any) -> Any:
    """The type of optional values of a type."""
    found = messages().TypeProto()
    found.optional_type.elem_type.CopyFrom(of)
    return found


def map_type(key: int, element: int) -> Any:
    """The type of maps from keys of an element type to numbers of another."""
    found = messages().TypeProto()
    found.map_type.key_type = key
    found.map_type.value_type.CopyFrom(tensor_type(element))
    return found


def type_of_value(session: Session, given: Value | Items) -> Any:
    """The type of a value; its sizes are not said, since elements of one sequence differ."""
    if isinstance(given, Items):
        return given.kind
    if given.type == LIST:
        return session.kinds.get(given, messages().TypeProto())
    return tensor_type(element_of(given.type))


def either(a: Any, b: Any) -> Any:
    """The type of a value that is of one of two: of the sizes in them nothing is known where they differ."""
    if a == b:
        return a
    found = messages().TypeProto()
    found.CopyFrom(a)
    part = found
    while what(part) in ("sequence", "optional"):
        part = inner(part)
    if what(part) == "tensor":
        part.tensor_type.ClearField("shape")
    return found


def what(kind: Any) -> str:
    """`sequence`, `optional`, `map` or `tensor`; "" where a type is not said."""
    found: str = kind.WhichOneof("value") or ""
    return found.removesuffix("_type")


def inner(kind: Any) -> Any:
    """The type of a sequence's elements, or of what an optional value holds; raises `FormatError` where it is none."""
    of = what(kind)
    if of not in ("sequence", "optional"):
        raise FormatError(f"takes a sequence or an optional value, not a {of or 'value of a type that is not said'}")
    return getattr(kind, f"{of}_type").elem_type


def holds(kind: Any, depth: int = 0) -> Contents | str:
    """What a port holds, as its user is told; raises `FormatError`, `Unsupported`."""
    of = what(kind)
    if depth > DEEPEST:
        raise FormatError(f"has a type that is nested more than {DEEPEST} deep")
    if of == "tensor":
        return dtype_of(type_of(kind.tensor_type.elem_type))
    if of == "map":
        return Contents("map", (dtype_of(type_of(kind.map_type.key_type)), holds(kind.map_type.value_type, depth + 1)))
    if of not in ("sequence", "optional"):
        raise Unsupported(f"holds a {of or 'value of a type that is not said'}")
    return Contents(of, (holds(inner(kind), depth + 1),))


def described(kind: Any) -> tuple[Tensor, bool]:
    """What is known of a value of a type, and whether it has rank 0. Names of sizes say nothing of an element."""
    if what(kind) != "tensor":
        return Tensor(LIST, (UNKNOWN,)), False
    found = kind.tensor_type
    element = type_of(found.elem_type)
    if not found.HasField("shape"):
        return Tensor(element, None, grid(element)), False
    dims = tuple(int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else UNKNOWN
                 for d in found.shape.dim)
    return Tensor(element, dims or (1,), grid(element)), not dims
