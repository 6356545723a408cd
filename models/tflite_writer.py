"""Writes .tflite files through the generated builders of the `tflite` package, whose schema is the only one here."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import ml_dtypes
import numpy as np
import tflite

Array = np.ndarray[Any, np.dtype[Any]]
OptionValue = int | float | bool | str | Sequence[int] | Sequence[float]

# Kernels map weights where they lie in the file: the schema forces this alignment on Buffer.data.
BUFFER_ALIGNMENT = 16
_VECTOR_TYPES = {(1, "i"): np.uint8, (4, "i"): np.int32, (4, "f"): np.float32, (8, "i"): np.int64}
_NUMPY_TYPES = {"int4": ml_dtypes.int4, "int2": ml_dtypes.int2, "uint4": ml_dtypes.uint4,
                "bfloat16": ml_dtypes.bfloat16}
# Types of several elements a byte, and the bits of one.
_PACKED = {"int4": 4, "uint4": 4, "int2": 2}
# The schema has these, the package not yet.
_NEWER_TYPES = {"int2": 19, "uint4": 20}
_BLOCKWISE = 2


@dataclass(frozen=True)
class Level:
    """One level of a sparse tensor's storage: dense when `segments` is None, else compressed (SPARSE_CSR)."""

    size: int
    segments: tuple[int, ...] | None = None
    indices: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Sparsity:
    """TFLite's SparsityParameters: one level per entry of `traversal`.

    traversal: order of the n dimensions and the k block dimensions (n, n + 1, ...). block_map: the dimension each
    block dimension divides. index: the stored type of the indices, "int32", "uint16" or "uint8"; segments: that of
    the segments, None when it is the same.
    """

    traversal: tuple[int, ...]
    block_map: tuple[int, ...]
    levels: tuple[Level, ...]
    index: str = "int32"
    segments: str | None = None


def sparsify(dense: Array, traversal: Sequence[int], formats: str, *, blocks: Mapping[int, int] | None = None,
             index: str = "int32", segments: str | None = None) -> tuple[Sparsity, Array]:
    """The sparsity metadata of `dense` and the values it keeps, in storage order.

    formats: one letter per traversal entry, "d" dense or "s" compressed. blocks: dimension to block size, in
    block-map order; each size divides its dimension. Raises ValueError when the arguments do not fit.
    """
    expanded, block_map = _split_blocks(dense, dict(blocks or {}))
    if sorted(traversal) != list(range(expanded.ndim)) or len(formats) != expanded.ndim or set(formats) - set("ds"):
        raise ValueError(f"traversal {tuple(traversal)} and formats {formats!r} need one entry per dimension and block")
    ordered = expanded.transpose(tuple(traversal))
    rows, levels = np.zeros(1, np.int64), []
    for depth, letter in enumerate(formats):
        size = ordered.shape[depth]
        children = rows[:, None] * size + np.arange(size)
        level, kept = Level(size), children.ravel()
        if letter == "s":
            occupied = (ordered != 0).reshape(int(np.prod(ordered.shape[:depth + 1])), -1).any(axis=1)[children]
            ends = np.cumsum(occupied.sum(axis=1))
            level = Level(size, (0, *ends.tolist()), tuple(np.nonzero(occupied)[1].tolist()))
            kept = children[occupied]
        levels.append(level)
        rows = kept
    return Sparsity(tuple(traversal), block_map, tuple(levels), index, segments), ordered.ravel()[rows]


def _split_blocks(dense: Array, blocks: dict[int, int]) -> tuple[Array, tuple[int, ...]]:
    """`dense` with each blocked dimension divided; the block dimensions stand last."""
    if any(dense.shape[axis] % size for axis, size in blocks.items()):
        raise ValueError(f"blocks {blocks} do not divide the shape {dense.shape}")
    shape: list[int] = []
    outer, inner = [], {}
    for axis, extent in enumerate(dense.shape):
        outer.append(len(shape))
        shape.append(extent // blocks.get(axis, 1))
        if axis in blocks:
            inner[axis] = len(shape)
            shape.append(blocks[axis])
    return dense.reshape(shape).transpose(*outer, *(inner[axis] for axis in blocks)), tuple(blocks)


@dataclass(frozen=True)
class _Quantization:
    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int
    blocks: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class _Tensor:
    name: str | None
    type: int
    shape: tuple[int, ...] | None
    buffer: int
    quantization: _Quantization | None
    sparsity: Sparsity | None
    variable: bool
    signature: tuple[int, ...] | None


@dataclass(frozen=True)
class _Operator:
    opcode: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str | None
    values: dict[str, OptionValue]
    custom: bytes | None
    intermediates: tuple[int, ...] = ()


@dataclass
class _Subgraph:
    name: str | None
    tensors: list[_Tensor] = field(default_factory=list)
    operators: list[_Operator] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


class TFLiteWriter:
    """Collects tensors and operators in file order; `finish` gives the bytes, the same for the same calls.

    The first subgraph is the model's; `subgraph` begins the next one (a branch or a body) and `ends` states its
    inputs and outputs. Tensor indices count from 0 in every subgraph.
    """

    def __init__(self, description: str = "") -> None:
        self._description = description
        self._buffers: list[bytes | None] = [None]
        self._opcodes: dict[tuple[int, str | None, int], int] = {}
        self._subgraphs = [_Subgraph("main")]
        self._entries: list[tuple[str, dict[str, int], dict[str, int], int]] = []
        self._metadata: list[tuple[str, int]] = []

    def tensor(self, name: str | None, dtype: str, shape: Sequence[int] | None, data: Array | bytes | None = None, *,
               scale: float | Sequence[float] | None = None, zero: int | Sequence[int] | None = None, axis: int = 0,
               sparsity: Sparsity | None = None, variable: bool = False, signature: Sequence[int] | None = None,
               blocks: tuple[int, int, int] | None = None) -> int:
        """Adds a tensor to the current subgraph and returns its index.

        dtype: a TensorType in lower case ("float32", "int4", ...). shape: None leaves the field out. data: a constant's
        values, or its bytes as they are; an array is converted to dtype, integers keep their values. scale, zero: one
        number, or one per slice of `axis`. blocks: the tensors with a scale and a zero point (-1: none) for each block
        of the last axis, and its size. Raises ValueError when the data do not fit.
        """
        quantization = None
        if scale is not None:
            scales = tuple(float(s) for s in np.atleast_1d(np.asarray(scale, np.float64)))
            zeros = tuple(int(z) for z in np.atleast_1d(np.asarray(0 if zero is None else zero, np.int64)))
            quantization = _Quantization(scales, zeros * (len(scales) // len(zeros)), axis)
        elif zero is not None:
            raise ValueError("a zero point needs a scale")
        elif blocks is not None:
            quantization = _Quantization((), (), 0, blocks)
        buffer = 0
        if data is not None:
            expected = None if sparsity is not None or shape is None else int(np.prod(shape, dtype=np.int64))
            buffer = len(self._buffers)
            self._buffers.append(data if isinstance(data, bytes) else _constant_bytes(dtype, data, expected))
        tensors = self._subgraphs[-1].tensors
        tensors.append(_Tensor(name, _type(dtype), _ints(shape), buffer, quantization,
                               sparsity, variable, _ints(signature)))
        return len(tensors) - 1

    def op(self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: str | None = None,
           values: Mapping[str, OptionValue] | None = None, version: int = 1,
           intermediates: Sequence[int] = ()) -> None:
        """Adds a built-in operator ("CONV_2D"); -1 omits an input. intermediates: tensors that only give grids.

        options: the options table ("Conv2DOptions"), values: its fields as the schema's builder names them
        ("StrideW"). Raises AttributeError on an unknown operator, table or field.
        """
        code = int(getattr(tflite.BuiltinOperator, name))
        for key in values or {}:
            getattr(tflite, f"{options}Add{key}")
        self._append(_Operator(self._opcode(code, None, version), tuple(inputs), tuple(outputs), options,
                               dict(values or {}), None, tuple(intermediates)))

    def custom(self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: bytes = b"",
               version: int = 1) -> None:
        """Adds a custom operator with its options as raw bytes."""
        code = int(tflite.BuiltinOperator.CUSTOM)
        self._append(_Operator(self._opcode(code, name, version), tuple(inputs), tuple(outputs), None, {}, options))

    def subgraph(self, name: str | None = None) -> int:
        """Begins another subgraph and returns its index."""
        self._subgraphs.append(_Subgraph(name))
        return len(self._subgraphs) - 1

    def ends(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """States the inputs and outputs of the current subgraph."""
        self._subgraphs[-1].inputs, self._subgraphs[-1].outputs = tuple(inputs), tuple(outputs)

    def entry(self, name: str, inputs: dict[str, int], outputs: dict[str, int], subgraph: int = 0) -> None:
        """Adds a signature: names for tensors of a subgraph."""
        self._entries.append((name, inputs, outputs, subgraph))

    def metadata(self, name: str, data: bytes) -> None:
        """Adds a buffer that describes the file."""
        self._buffers.append(data)
        self._metadata.append((name, len(self._buffers) - 1))

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The file, with the inputs and outputs of the first subgraph."""
        self._subgraphs[0].inputs, self._subgraphs[0].outputs = tuple(inputs), tuple(outputs)
        builder = flatbuffers.Builder(1024 + sum(len(b) + 64 for b in self._buffers if b is not None))
        buffers = [_write_buffer(builder, data) for data in self._buffers]
        subgraphs = [_write_subgraph(builder, graph) for graph in self._subgraphs]
        fields = {"Version": 3, "OperatorCodes": _offsets(builder, [_write_opcode(builder, k) for k in self._opcodes]),
                  "Subgraphs": _offsets(builder, subgraphs), "Description": builder.CreateString(self._description),
                  "Buffers": _offsets(builder, buffers)}
        if self._entries:
            fields["SignatureDefs"] = _offsets(builder, [_write_entry(builder, *e) for e in self._entries])
        if self._metadata:
            fields["Metadata"] = _offsets(builder, [_table(builder, "Metadata", {
                "Name": builder.CreateString(name), "Buffer": buffer}) for name, buffer in self._metadata])
        builder.Finish(_table(builder, "Model", fields), b"TFL3")
        return bytes(builder.Output())

    def _opcode(self, code: int, custom: str | None, version: int) -> int:
        return self._opcodes.setdefault((code, custom, version), len(self._opcodes))

    def _append(self, operator: _Operator) -> None:
        self._subgraphs[-1].operators.append(operator)


def _ints(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(int(v) for v in values)


def _constant_bytes(dtype: str, data: Array, expected: int | None) -> bytes:
    """The values in the file's order; narrow ones are packed, the first in the lowest bits of a byte."""
    array = np.asarray(data).astype(_NUMPY_TYPES.get(dtype, dtype))
    if "float" not in dtype and not np.array_equal(array.astype(data.dtype), data):
        raise ValueError(f"constant does not fit {dtype}")
    if expected is not None and array.size != expected:
        raise ValueError(f"constant has {array.size} elements, its shape says {expected}")
    bits = _PACKED.get(dtype)
    if bits is None:
        return np.ascontiguousarray(array).tobytes()
    parts = np.zeros((-(-array.size * bits // 8), 8 // bits), np.uint8)
    parts.ravel()[:array.size] = array.astype(np.int8).ravel().view(np.uint8) & (1 << bits) - 1
    packed: Array = np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), axis=1)
    return packed.tobytes()


def _type(dtype: str) -> int:
    """The schema's number of a type."""
    return int(_NEWER_TYPES[dtype] if dtype in _NEWER_TYPES else getattr(tflite.TensorType, dtype.upper()))


def _table(builder: Any, table: str, fields: Mapping[str, Any]) -> int:
    """Writes one table from its fields by name; offsets among them are written already. None leaves a field out."""
    getattr(tflite, f"{table}Start")(builder)
    for name, value in fields.items():
        if value is not None:
            getattr(tflite, f"{table}Add{name}")(builder, value)
    return int(getattr(tflite, f"{table}End")(builder))


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _vector(builder: Any, values: Sequence[float] | None, dtype: Any = np.int32) -> int | None:
    return None if values is None else int(builder.CreateNumpyVector(np.array(values, dtype)))


def _write_buffer(builder: Any, data: bytes | None) -> int:
    if data is None:
        return _table(builder, "Buffer", {})
    builder.StartVector(1, len(data), BUFFER_ALIGNMENT)
    builder.head = builder.Head() - len(data)
    builder.Bytes[builder.Head():builder.Head() + len(data)] = data
    return _table(builder, "Buffer", {"Data": builder.EndVector()})


def _write_entry(builder: Any, name: str, inputs: dict[str, int], outputs: dict[str, int], subgraph: int) -> int:
    named = [_offsets(builder, [_table(builder, "TensorMap", {"Name": builder.CreateString(n), "TensorIndex": i})
                                for n, i in side.items()]) for side in (inputs, outputs)]
    return _table(builder, "SignatureDef", {"Inputs": named[0], "Outputs": named[1], "SubgraphIndex": subgraph,
                                            "SignatureKey": builder.CreateString(name)})


def _write_opcode(builder: Any, key: tuple[int, str | None, int]) -> int:
    code, custom, version = key
    # Readers older than the 32-bit field see 127 (PLACEHOLDER_FOR_GREATER_OP_CODES) beyond a byte's range.
    return _table(builder, "OperatorCode", {
        "DeprecatedBuiltinCode": min(code, 127), "BuiltinCode": code, "Version": version,
        "CustomCode": None if custom is None else builder.CreateString(custom)})


def _write_subgraph(builder: Any, graph: _Subgraph) -> int:
    return _table(builder, "SubGraph", {
        "Tensors": _offsets(builder, [_write_tensor(builder, tensor) for tensor in graph.tensors]),
        "Operators": _offsets(builder, [_write_operator(builder, operator) for operator in graph.operators]),
        "Inputs": _vector(builder, graph.inputs), "Outputs": _vector(builder, graph.outputs),
        "Name": None if graph.name is None else builder.CreateString(graph.name)})


def _write_tensor(builder: Any, tensor: _Tensor) -> int:
    return _table(builder, "Tensor", {
        "Shape": _vector(builder, tensor.shape), "Type": tensor.type, "Buffer": tensor.buffer,
        "Name": None if tensor.name is None else builder.CreateString(tensor.name),
        "Quantization": _write_quantization(builder, tensor.quantization), "IsVariable": tensor.variable,
        "Sparsity": _write_sparsity(builder, tensor.sparsity), "ShapeSignature": _vector(builder, tensor.signature),
        "HasRank": True if tensor.shape is not None else None})


def _write_quantization(builder: Any, quantization: _Quantization | None) -> int | None:
    if quantization is None:
        return None
    if quantization.blocks is not None:
        return _table(builder, "QuantizationParameters", {
            "DetailsType": _BLOCKWISE, "Details": _write_blocks(builder, quantization.blocks)})
    return _table(builder, "QuantizationParameters", {
        "Scale": _vector(builder, quantization.scale, np.float32),
        "ZeroPoint": _vector(builder, quantization.zero, np.int64), "QuantizedDimension": quantization.axis})


def _write_blocks(builder: Any, blocks: tuple[int, int, int]) -> int:
    """The table BlockwiseQuantization, field by field: the package has no builder for it."""
    builder.StartObject(len(blocks))
    for slot, value in enumerate(blocks):
        builder.PrependInt32Slot(slot, value, 0)
    return int(builder.EndObject())


def _write_sparsity(builder: Any, sparsity: Sparsity | None) -> int | None:
    if sparsity is None:
        return None
    levels = [_write_level(builder, level, sparsity) for level in sparsity.levels]
    return _table(builder, "SparsityParameters", {
        "TraversalOrder": _vector(builder, sparsity.traversal), "DimMetadata": _offsets(builder, levels),
        "BlockMap": _vector(builder, sparsity.block_map or None)})


def _write_level(builder: Any, level: Level, sparsity: Sparsity) -> int:
    if level.segments is None:
        return _table(builder, "DimensionMetadata", {"Format": int(tflite.DimensionType.DENSE),
                                                     "DenseSize": level.size})
    segments, segments_type = _write_index(builder, level.segments, sparsity.segments or sparsity.index)
    indices, indices_type = _write_index(builder, level.indices, sparsity.index)
    return _table(builder, "DimensionMetadata", {
        "Format": int(tflite.DimensionType.SPARSE_CSR), "ArraySegmentsType": segments_type, "ArraySegments": segments,
        "ArrayIndicesType": indices_type, "ArrayIndices": indices})


def _write_index(builder: Any, values: Sequence[int] | None, dtype: str) -> tuple[int, int]:
    """An index vector's table and its type in the union."""
    table = f"{dtype.capitalize()}Vector"
    return (_table(builder, table, {"Values": _vector(builder, values, dtype)}),
            int(getattr(tflite.SparseIndexVector, table)))


class _ElementSize:
    """Stands for a builder to ask a generated StartVector function how wide its elements are."""

    def StartVector(self, size: int, _count: int, _alignment: int) -> int:
        return size


def _option(builder: Any, table: str, name: str, value: OptionValue) -> Any:
    if isinstance(value, str):
        return builder.CreateString(value)
    start = getattr(tflite, f"{table}Start{name}Vector", None)
    if start is None:
        return value
    array = np.asarray(value)
    dtype = _VECTOR_TYPES[start(_ElementSize(), 0), "f" if array.dtype.kind == "f" else "i"]
    return _vector(builder, array.tolist(), dtype)


def _write_options(builder: Any, operator: _Operator) -> dict[str, Any]:
    if operator.custom is not None:
        return {"CustomOptions": builder.CreateByteVector(operator.custom)}
    if operator.options is None:
        return {}
    values = {name: _option(builder, operator.options, name, value) for name, value in operator.values.items()}
    suffix = "" if hasattr(tflite.BuiltinOptions, operator.options) else "2"
    kind = getattr(tflite.BuiltinOptions2 if suffix else tflite.BuiltinOptions, operator.options)
    return {f"BuiltinOptions{suffix}Type": int(kind),
            f"BuiltinOptions{suffix}": _table(builder, operator.options, values)}


def _write_operator(builder: Any, operator: _Operator) -> int:
    return _table(builder, "Operator", {
        "OpcodeIndex": operator.opcode, "Inputs": _vector(builder, operator.inputs),
        "Outputs": _vector(builder, operator.outputs),
        "Intermediates": _vector(builder, operator.intermediates or None), **_write_options(builder, operator)})
