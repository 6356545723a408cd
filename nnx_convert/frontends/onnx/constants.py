"""Constants of a file as values of the graph."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ... import types as t
from ...graph import Value
from ...types import Tensor, Type
from .scope import Session
from .sparse import constant
from .tensors import KINDS, grid, kind_of

#: ONNX's number of an operand type.
ELEMENTS = {kind.type: element for element, kind in KINDS.items()}


def element_of(kind: Type) -> int:
    """ONNX's number of an element type."""
    return ELEMENTS[kind]


def type_of(element: int) -> Type:
    """The operand type of ONNX's element type; raises `FormatError`, `Unsupported` where there is none."""
    return kind_of(element).type


def dtype_of(kind: Type) -> str:
    """The NumPy type a user meets, by name."""
    return "str" if kind in t.OBJECTS else kind.dtype.name


def dense(session: Session, data: np.ndarray, kind: Type | None = None) -> Value:
    """A constant of an array's own type, or of another."""
    found = kind or _by_dtype(data.dtype)
    shaped = data.astype(found.dtype, copy=False).reshape(data.shape or (1,))
    value = Value("const", Tensor(found, shaped.shape, grid(found), shaped))
    if not data.shape:
        session.scalars.add(value)
    return value


def typed(session: Session, proto: Any) -> Value:
    """An initializer as a value."""
    value = constant(proto, session.model.folder)
    if not proto.dims:
        session.scalars.add(value)
    return value


def _by_dtype(dtype: np.dtype[Any]) -> Type:
    """The operand type of a NumPy type."""
    return t.STR if dtype.kind in "OSU" else _types()[dtype]


@cache
def _types() -> dict[np.dtype[Any], Type]:
    return {kind.type.dtype: kind.type for kind in KINDS.values() if kind.type not in t.OBJECTS}
