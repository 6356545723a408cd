"""A file's tensors as arrays and constants: every type, in each of the ways a message holds elements."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import types as t
from ...errors import FormatError, NnxError, Unsupported
from ...frozen import frozen
from ...graph import Value
from ...resources import within
from ...types import Array, Quant, Shape, Tensor, Type, product
from .external import Folder
from .proto import text

#: The grid of integers that stand for themselves, where NNAPI wants a scale.
PLAIN = Quant(1.0, 0)
#: The largest size an axis has here: NNAPI counts in 32 bits.
LONGEST_AXIS = (1 << 31) - 1
#: TensorProto.DataLocation.EXTERNAL.
EXTERNAL = 1


@frozen
class Kind:
    """An element type of ONNX: its name, operand type, bits an element, and the field that may hold its elements."""

    name: str
    type: Type
    bits: int
    field: str = "int32_data"


_ROWS: dict[int, tuple[Any, ...]] = {
    1: ("FLOAT", t.F32, 32, "float_data"), 2: ("UINT8", t.Q8, 8), 3: ("INT8", t.Q8S, 8), 4: ("UINT16", t.Q16A, 16),
    5: ("INT16", t.I16, 16), 6: ("INT32", t.I32, 32), 7: ("INT64", t.I64, 64, "int64_data"),
    8: ("STRING", t.STR, 0, "string_data"), 9: ("BOOL", t.B8, 8), 10: ("FLOAT16", t.F16, 16),
    11: ("DOUBLE", t.F64, 64, "double_data"), 12: ("UINT32", t.U32, 32, "uint64_data"),
    13: ("UINT64", t.U64, 64, "uint64_data"), 14: ("COMPLEX64", t.C64, 64, "float_data"),
    15: ("COMPLEX128", t.C128, 128, "double_data"), 16: ("BFLOAT16", t.BF16, 16), 17: ("FLOAT8E4M3FN", t.F8E4M3FN, 8),
    18: ("FLOAT8E4M3FNUZ", t.F8E4M3FNUZ, 8), 19: ("FLOAT8E5M2", t.F8E5M2, 8),
    20: ("FLOAT8E5M2FNUZ", t.F8E5M2FNUZ, 8), 21: ("UINT4", t.U4, 4), 22: ("INT4", t.I4, 4),
    23: ("FLOAT4E2M1", t.F4E2M1, 4), 24: ("FLOAT8E8M0", t.F8E8M0, 8), 25: ("UINT2", t.U2, 2),
    26: ("INT2", t.I2, 2)}
#: By TensorProto.DataType.
KINDS = {code: Kind(*row) for code, row in _ROWS.items()}
#: Those that are known and have no counterpart.
OTHERS = {27: "FLOAT6E2M3", 28: "FLOAT6E3M2"}
FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def kind_of(code: int) -> Kind:
    """An element type by its number; raises `FormatError`, `Unsupported` on FLOAT6."""
    if code in KINDS:
        return KINDS[code]
    if code in OTHERS:
        raise Unsupported(f"has the type {OTHERS[code]}, which has no counterpart")
    raise FormatError(f"has the type {code}, which there is not" if code else "has no type")


def dense_constant(proto: Any, folder: Folder) -> Value:
    """A TensorProto as a constant; a rank of 0 becomes [1].

    Raises `FormatError`, `Unsupported` naming the tensor.
    """
    data = array(proto, folder)
    return dense(text(proto.name), kind_of(proto.data_type).type, data)


def dense(name: str, kind: Type, data: Array) -> Value:
    """A constant of these elements; a rank of 0 becomes [1]."""
    data = data.reshape(data.shape or (1,))
    return Value(name, Tensor(kind, data.shape, grid(kind), data))


def grid(kind: Type) -> Quant | None:
    """The grid of a type's plain integers; None where it needs none."""
    return PLAIN if kind in t.ZERO_POINTS else None


def array(proto: Any, folder: Folder) -> Array:
    """The elements of a TensorProto in the NumPy type of its operand type, a view where that can be.

    Elements of 4 and 2 bits get a byte each. Raises `FormatError`, `Unsupported` naming the tensor.
    """
    return placed(proto, lambda: _array(proto, folder))


def placed(proto: Any, read: Callable[[], Array]) -> Array:
    """What `read` gives; its faults get the tensor's name."""
    try:
        return read()
    except NnxError as error:
        raise error.at(f"tensor {proto.name!r:.80}" if proto.name else "tensor") from error


def _array(proto: Any, folder: Folder) -> Array:
    kind, dims = kind_of(proto.data_type), shape(proto.dims)
    size = product(dims)
    if proto.HasField("segment"):
        raise Unsupported("is one segment of a tensor")
    given = [name for name in FIELDS if len(getattr(proto, name))]
    if proto.HasField("raw_data") and (proto.raw_data or not given):
        given.append("raw_data")
    if proto.data_location == EXTERNAL:
        given.append("external_data")
    elif proto.data_location:
        raise FormatError(f"says its data are at place {proto.data_location}, which there is not")
    if len(given) > 1:
        raise FormatError(f"has its data twice, as {given[0]} and as {given[1]}")
    if not given and size:
        raise FormatError(f"has the shape {list(dims)} and no data")
    within("tensor_bytes", size * kind.type.dtype.itemsize, "its bytes are")
    where = given[0] if given else kind.field
    if where == kind.field:
        return from_field(getattr(proto, where), kind, size).reshape(dims)
    if where not in ("raw_data", "external_data") or kind.type == t.STR:
        raise FormatError(f"is {kind.name} and has its data as {where}, not as {kind.field}")
    return from_bytes(_bytes(proto, folder, kind, size), kind, size).reshape(dims)


def shape(dims: Any) -> Shape:
    """The sizes that a message gives; raises `FormatError` on what are none."""
    if len(dims) > t.MOST_AXES:
        raise FormatError(f"has {len(dims)} dimensions")
    if any(not 0 <= n <= LONGEST_AXIS for n in dims):
        raise FormatError(f"has the shape {list(dims)}")
    return tuple(dims)


def _bytes(proto: Any, folder: Folder, kind: Kind, size: int) -> np.ndarray:
    """The elements as they are stored; raises `FormatError` where they are more or fewer bytes."""
    want = -(-size * kind.bits // 8)
    if proto.data_location == EXTERNAL:
        return folder.bytes({text(e.key): text(e.value) for e in proto.external_data}, want)
    raw = np.frombuffer(proto.raw_data, np.uint8)
    if raw.size != want:
        raise FormatError(f"is {kind.name}{list(proto.dims)}, which takes {want} bytes, and has {raw.size}")
    return raw


def from_bytes(raw: np.ndarray, kind: Kind, size: int) -> Array:
    """Elements out of little-endian bytes; a copy where they do not lie as the machine wants them."""
    dtype = kind.type.dtype
    if kind.bits < 8:
        return narrow(unpacked(raw, size, kind.bits), kind)
    if kind.type == t.B8:
        return raw.view(np.bool_) if not size or int(raw.max()) <= 1 else raw != 0
    if raw.ctypes.data % dtype.itemsize:
        raw = raw.copy()
    if dtype.kind == "V":                              # of ml_dtypes, whose types have the machine's byte order
        return raw.view(f"<u{dtype.itemsize}").astype(f"u{dtype.itemsize}", copy=False).view(dtype)
    return raw.view(dtype.newbyteorder("<"))


def from_field(found: Any, kind: Kind, size: int) -> Array:
    """Elements out of a repeated field; raises `FormatError` where there are more or fewer, or one is out of range."""
    dtype = kind.type.dtype
    if kind.type == t.STR:
        return texts(found, size)
    per = 8 // kind.bits if kind.bits < 8 else 1
    want = 2 * size if dtype.kind == "c" else -(-size // per)
    if len(found) != want:
        raise FormatError(f"is {kind.name} with {size} elements, for which {kind.field} has {want}, not {len(found)}")
    if dtype.kind == "c":
        return np.fromiter(found, f"f{dtype.itemsize // 2}", want).view(dtype)
    if kind.field == "int32_data" and kind.type != t.I32:
        codes = np.fromiter(found, np.int32, want)
        return narrow(unpacked(bits_of(codes, 8), size, kind.bits), kind) if kind.bits < 8 else patterns(codes, kind)
    codes = np.fromiter(found, f"{dtype.kind}{8 if dtype.kind == 'u' else dtype.itemsize}", want)
    if kind.type == t.U32 and size and codes.max() >> 32:
        raise FormatError(f"is UINT32 and holds {codes.max()}")
    return np.asarray(codes, dtype)


def patterns(codes: np.ndarray, kind: Kind) -> Array:
    """The elements of these bit patterns, each in a number of 32 bits."""
    if kind.type == t.B8:
        return codes.astype(np.bool_)
    found: Array = bits_of(codes, kind.bits).view(kind.type.dtype)
    return found


def bits_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Numbers as unsigned ones of fewer bits, whether they were written with a sign or without."""
    if codes.size and not -1 << bits - 1 <= int(codes.min()) <= int(codes.max()) < 1 << bits:
        raise FormatError(f"holds {codes.min()} to {codes.max()} in {bits} bits")
    return codes.astype(f"u{bits // 8}")


def texts(found: Any, size: int) -> Array:
    """Texts as an array of `bytes` objects."""
    if len(found) != size:
        raise FormatError(f"is STRING with {size} elements and has {len(found)}")
    made = np.empty(size, object)
    made[:] = list(found)
    return made


def unpacked(raw: np.ndarray, size: int, bits: int) -> np.ndarray:
    """Several elements a byte, the lowest bits first, as unsigned codes of a byte each."""
    return np.stack([raw >> at & (1 << bits) - 1 for at in range(0, 8, bits)], axis=-1).reshape(-1)[:size]


def narrow(codes: np.ndarray, kind: Kind) -> Array:
    """Unsigned codes of less than a byte as elements of the type."""
    dtype = kind.type.dtype
    if kind.type in (t.I4, t.I2):
        return ((codes << 8 - kind.bits).view(np.int8) >> 8 - kind.bits).astype(dtype)
    return codes.astype(dtype) if kind.type in (t.U4, t.U2) else codes.view(dtype)
