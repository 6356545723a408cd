"""Sparse initializers: ONNX lists the elements that are there by their positions.

What DENSIFY takes is kept compressed where that is smaller: all axes dense but the last. The rest is made dense.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FormatError
from ...graph import Sparse, Value
from ...resources import within
from ...ops.sparse import DENSE, DENSIFY, LARGEST, SPARSE_CSR
from ...types import Array, Shape, Tensor, Type, product
from .external import Folder
from .proto import text
from .tensors import array, dense, dense_constant, grid, kind_of, placed, shape

#: Bytes of a segment or an index of a compressed level.
INDEX = 4


def constant(proto: Any, folder: Folder) -> Value:
    """An initializer, sparse or not, as a constant; a rank of 0 becomes [1].

    Raises `FormatError`, `Unsupported` naming the tensor.
    """
    return sparse_constant(proto, folder) if proto.DESCRIPTOR.name == "SparseTensorProto" else \
        dense_constant(proto, folder)


def sparse_constant(proto: Any, folder: Folder) -> Value:
    """A SparseTensorProto as a constant; raises `FormatError`, `Unsupported` naming the tensor."""
    name = text(proto.values.name)
    values = array(proto.values, folder)
    at = placed(proto.values, lambda: positions(proto, values, folder))
    dims, kind = tuple(proto.dims), kind_of(proto.values.data_type).type
    if pays(kind, dims, values):
        return Value(name, Tensor(kind, dims, grid(kind)), compressed(values, at, dims))
    full = np.zeros(product(dims), kind.dtype)
    if kind.dtype == object:
        full[:] = b""
    full[at] = values
    return dense(name, kind, full.reshape(dims))


def positions(proto: Any, values: Array, folder: Folder) -> np.ndarray:
    """The places of the values in row-major order, ascending; raises `FormatError` where they are not that."""
    dims = shape(proto.dims)
    if not dims or product(dims) > LARGEST:
        raise FormatError(f"is sparse with the shape {list(dims)}")
    within("tensor_bytes", product(dims) * values.itemsize, "its bytes are")
    if values.ndim != 1:
        raise FormatError(f"is sparse, and its values have the shape {list(values.shape)}")
    at = array(proto.indices, folder)
    if at.dtype != np.int64 or at.shape not in ((values.size,), (values.size, len(dims))):
        raise FormatError(f"is sparse with {values.size} values, and its indices are {at.dtype}{list(at.shape)}")
    if at.ndim == 2:
        if ((at < 0) | (at >= np.array(dims))).any():
            raise FormatError(f"has an index outside its shape {list(dims)}")
        at = np.ravel_multi_index(tuple(at.T), dims) if at.size else np.empty(0, np.int64)
    if ((at < 0) | (at >= product(dims))).any():
        raise FormatError(f"has an index outside its shape {list(dims)}")
    if (np.diff(at) <= 0).any():
        raise FormatError("has indices that do not ascend, or one of them twice")
    return at


def pays(kind: Type, dims: Shape, values: Array) -> bool:
    """Whether a tensor is smaller compressed, and DENSIFY has a row for it."""
    if kind not in DENSIFY.types or not values.size or len(dims) < 2:
        return False
    stored = values.size * (values.itemsize + INDEX) + INDEX * (product(dims[:-1]) + 1)
    return stored < product(dims) * values.itemsize


def compressed(values: Array, at: np.ndarray, dims: Shape) -> Sparse:
    """The last axis compressed, the others dense."""
    rows, n = product(dims[:-1]), len(dims)
    segments = np.searchsorted(at, np.arange(rows + 1) * dims[-1]).astype(np.int32)
    pairs: tuple[np.ndarray | None, ...] = (None,) * (2 * n - 2) + (segments, (at % dims[-1]).astype(np.int32))
    return Sparse(values, tuple(range(n)), (), (DENSE,) * (n - 1) + (SPARSE_CSR,), dims, pairs)
