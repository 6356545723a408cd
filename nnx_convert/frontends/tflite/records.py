"""A file's tables as small frozen records, each read once and checked before anything uses it."""
from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import tflite
from flatbuffers.number_types import Int32Flags

from ...errors import FormatError, Unsupported
from ...frozen import frozen
from ...resources import within
from ...types import MOST_AXES
from .guard import OFFSET_COST, TABLE_COST, Checked, File

R = TypeVar("R")
MAGIC = b"TFL3"
SCHEMA = 3
#: The vtable entry of OperatorCode.builtin_code, its fourth field.
BUILTIN_CODE = 4 + 2 * 3
#: QuantizationDetails.BlockwiseQuantization, which the package has not, and the vtable entries of its fields.
BLOCKWISE, SCALES, ZERO_POINTS, BLOCK_SIZE = 2, 4, 6, 8
#: Up to this value a buffer's offset only says that there is none.
NO_OFFSET = 1
OPERATORS = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}
INDICES = {code: getattr(tflite, name) for name, code in vars(tflite.SparseIndexVector).items()
           if isinstance(code, int) and code}
UNIONS = {kind: {code: name for name, code in vars(kind).items() if isinstance(code, int) and code}
          for kind in (tflite.BuiltinOptions, tflite.BuiltinOptions2)}


@frozen(eq=False)
class Blocks:
    """A scale for every `size` elements of the last axis: the tensors of scales and zero points (-1: none)."""

    scales: int
    zeros: int
    size: int


@frozen(eq=False)
class Quantization:
    """Scales and zero points; several run along `axis`. `details`: another scheme, by its code in the schema.

    `low` and `high` are the real values to expect, none where the file does not say.
    """

    scale: np.ndarray
    zero: np.ndarray
    axis: int
    details: int
    low: np.ndarray
    high: np.ndarray
    blocks: Blocks | None = None


@frozen(eq=False)
class Level:
    """One level of a sparse tensor: dense, of a size, or compressed, with segments and indices."""

    format: int
    size: int
    segments: np.ndarray | None
    indices: np.ndarray | None


@frozen(eq=False)
class Sparsity:
    """How a tensor's stored elements are spread: axes and block axes in traversal order."""

    order: tuple[int, ...]
    blocks: tuple[int, ...]
    levels: tuple[Level, ...]


@frozen(eq=False)
class Tensor:
    """A tensor as declared. `shape` is empty for a scalar, `signature` has -1 where a size is open, or is empty."""

    name: str
    type: int
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    buffer: int
    variable: bool
    quant: Quantization | None
    sparsity: Sparsity | None


@frozen(eq=False)
class Operator:
    """An operator: its name, tensors by index (-1: left out), and options on a checked table (None: absent).

    `union` names the options' class as the file says it, `custom` holds the bytes of a custom operator's.
    `intermediates`: tensors that are nowhere computed, only their grids count.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    union: str
    options: Any
    custom: np.ndarray
    intermediates: tuple[int, ...] = ()


@frozen(eq=False)
class Subgraph:
    """Tensors, and operators in the order they run in. Tensor names are there and distinct."""

    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]

    def tensor(self, index: int) -> Tensor:
        """A tensor by its index; raises `FormatError` where there is none."""
        if not 0 <= index < len(self.tensors):
            raise FormatError(f"there is no tensor {index}")
        return self.tensors[index]


@frozen(eq=False)
class Entry:
    """A signature: its name, the subgraph, and for each input and output its name and its tensor's index."""

    name: str
    graph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


@frozen(eq=False)
class Model:
    """A whole file: subgraphs, the first being the main one, and the bytes of each buffer (empty: none).

    `metadata` are the indices of buffers by name.
    """

    graphs: tuple[Subgraph, ...]
    buffers: tuple[np.ndarray, ...]
    description: str = ""
    entries: tuple[Entry, ...] = ()
    metadata: tuple[tuple[str, int], ...] = ()

    def buffer(self, index: int) -> np.ndarray:
        """A buffer's bytes; raises `FormatError` where there is no such buffer."""
        if index >= len(self.buffers):
            raise FormatError(f"there is no buffer {index}")
        return self.buffers[index]


def read(file: File) -> Model:
    """The whole file. Raises `FormatError` on what is broken, `Unsupported` on another version of the schema."""
    root = file.root(tflite.Model, MAGIC)
    if root.Version() != SCHEMA:
        raise Unsupported(f"follows version {root.Version()} of the schema, not {SCHEMA}")
    reader = _Reader(file, {})
    within("subgraphs", root.SubgraphsLength(), "its subgraphs are")
    codes = reader.many(root, "OperatorCodes", reader.code)
    return Model(reader.many(root, "Subgraphs", lambda graph: reader.subgraph(graph, codes)),
                 reader.many(root, "Buffers", reader.buffer), text(root.Description()),
                 reader.many(root, "SignatureDefs", reader.entry),
                 reader.many(root, "Metadata", lambda m: (text(m.Name()), m.Buffer())))


@dataclass
class _Reader:
    """Tables by class and position: one that several offsets share is read once."""

    file: File
    done: dict[tuple[type, int], Any]
    operators: int = 0                             # of the subgraphs so far

    def one(self, child: Any, make: Callable[[Any], R]) -> R:
        """A child as its record."""
        key = (type(child), child._tab.Pos)
        if key not in self.done:
            self.done[key] = make(self.file.adopt(child))
        found: R = self.done[key]
        return found

    def many(self, parent: Any, field: str, make: Callable[[Any], R]) -> tuple[R, ...]:
        """A vector of children as their records."""
        count, child = getattr(parent, field + "Length")(), getattr(parent, field)
        self.file.spend(OFFSET_COST * count)
        return tuple(self.one(child(i), make) for i in range(count))

    def code(self, code: Any) -> str:
        """An operator's name; the code is in one byte in old files."""
        # The package's BuiltinCode() leaves its field unread below 127; LiteRT takes the larger of the two.
        number = max(code.DeprecatedBuiltinCode(), code._tab.GetSlot(BUILTIN_CODE, 0, Int32Flags))
        name = OPERATORS.get(number, f"operator code {number}")
        return f"CUSTOM {text(code.CustomCode())}" if name == "CUSTOM" else name

    def buffer(self, buffer: Any) -> np.ndarray:
        """A buffer's bytes, where they are in the file: in the table, or behind it all beyond 2 GB."""
        if buffer.Offset() > NO_OFFSET:
            return self.file.view(buffer.Offset(), buffer.Size())
        return array(buffer.DataAsNumpy())

    def entry(self, entry: Any) -> Entry:
        """A signature."""
        return Entry(text(entry.SignatureKey()), entry.SubgraphIndex(), self.many(entry, "Inputs", self.named),
                     self.many(entry, "Outputs", self.named))

    def named(self, place: Any) -> tuple[str, int]:
        """A tensor's index under the name a signature gives it."""
        return text(place.Name()), place.TensorIndex()

    def subgraph(self, graph: Any, codes: Sequence[str]) -> Subgraph:
        self.operators += graph.OperatorsLength()
        within("operators", self.operators, "its operators are")
        inputs, outputs = ints(graph.InputsAsNumpy()), ints(graph.OutputsAsNumpy())
        self.file.spend(TABLE_COST * graph.TensorsLength())      # shared tensors are named in each subgraph
        tensors = named(self.many(graph, "Tensors", self.tensor), (*inputs, *outputs))
        return Subgraph(tensors, inputs, outputs, self.many(graph, "Operators", lambda op: self.operator(op, codes)))

    def tensor(self, tensor: Any) -> Tensor:
        shape, signature = ints(tensor.ShapeAsNumpy()), ints(tensor.ShapeSignatureAsNumpy())
        name, quant, sparsity = text(tensor.Name()), tensor.Quantization(), tensor.Sparsity()
        if len(shape) > MOST_AXES:
            raise FormatError(f"tensor {name!r} has {len(shape)} dimensions")
        return Tensor(name, tensor.Type(), shape, signature if len(signature) == len(shape) else (), tensor.Buffer(),
                      tensor.IsVariable(), quant and self.one(quant, self.quantization),
                      sparsity and self.one(sparsity, self.sparsity))

    def quantization(self, quant: Any) -> Quantization:
        return Quantization(array(quant.ScaleAsNumpy(), np.float32), array(quant.ZeroPointAsNumpy(), np.int64),
                            quant.QuantizedDimension(), quant.DetailsType(),
                            array(quant.MinAsNumpy(), np.float32), array(quant.MaxAsNumpy(), np.float32),
                            self.blocks(quant.Details()) if quant.DetailsType() == BLOCKWISE else None)

    def blocks(self, union: Any) -> Blocks | None:
        """The details of a quantisation by blocks; None where the file leaves them out."""
        if union is None:
            return None
        fields = Checked(self.file, union.Pos)
        return Blocks(*(fields.GetSlot(slot, 0, Int32Flags) for slot in (SCALES, ZERO_POINTS, BLOCK_SIZE)))

    def sparsity(self, sparsity: Any) -> Sparsity:
        return Sparsity(ints(sparsity.TraversalOrderAsNumpy()), ints(sparsity.BlockMapAsNumpy()),
                        self.many(sparsity, "DimMetadata", self.level))

    def level(self, level: Any) -> Level:
        return Level(level.Format(), level.DenseSize(), self.indices(level.ArraySegmentsType(), level.ArraySegments()),
                     self.indices(level.ArrayIndicesType(), level.ArrayIndices()))

    def indices(self, kind: int, union: Any) -> np.ndarray | None:
        """An index vector in any of its three widths as INT32; None where there is none."""
        if union is None or kind not in INDICES:
            return None
        found = array(self.file.table(INDICES[kind], union.Pos).ValuesAsNumpy())
        self.file.spend(found.size)
        return found.astype(np.int32, copy=False)

    def operator(self, op: Any, codes: Sequence[str]) -> Operator:
        index = op.OpcodeIndex()
        if index >= len(codes):
            raise FormatError(f"there is no operator code {index}")
        union, options = self.options(op.BuiltinOptionsType(), op.BuiltinOptions(), tflite.BuiltinOptions)
        if options is None:
            union, options = self.options(op.BuiltinOptions2Type(), op.BuiltinOptions2(), tflite.BuiltinOptions2)
        return Operator(codes[index], ints(op.InputsAsNumpy()), ints(op.OutputsAsNumpy()), union, options,
                        array(op.CustomOptionsAsNumpy()), ints(op.IntermediatesAsNumpy()))

    def options(self, code: int, union: Any, of: Any) -> tuple[str, Any]:
        """The name of an options' class, and the table; None where the file has none or the package not the class."""
        name = UNIONS[of].get(code, "")
        kind = getattr(tflite, name, None) if name else None
        return name, None if union is None or kind is None else self.file.table(kind, union.Pos)


def array(found: Any, dtype: Any = np.uint8) -> np.ndarray:
    """A vector that an accessor gave; it gives 0 for one the file leaves out."""
    return found if isinstance(found, np.ndarray) else np.empty(0, dtype)


def ints(found: Any) -> tuple[int, ...]:
    """A short vector of integers."""
    return tuple(array(found).tolist())


def text(found: bytes | None) -> str:
    """A string; empty when absent."""
    return (found or b"").decode("utf-8", "replace")


def named(tensors: tuple[Tensor, ...], first: Sequence[int]) -> tuple[Tensor, ...]:
    """The tensors with names that are there and distinct; those in `first` choose before the others."""
    order = dict.fromkeys((*(i for i in first if 0 <= i < len(tensors)), *range(len(tensors))))
    owner: dict[str, int] = {}
    for i in order:
        owner[distinct(tensors[i].name or f"tensor_{i}", i, owner)] = i
    final = {i: name for name, i in owner.items()}
    return tuple(t if t.name == final[i] else replace(t, name=final[i]) for i, t in enumerate(tensors))


def distinct(name: str, index: int, taken: Container[str]) -> str:
    """The name, followed by the index where it is taken."""
    while name in taken:
        name = f"{name}_{index}"
    return name
