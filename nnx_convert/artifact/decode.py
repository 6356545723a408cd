"""The header and the data of a .nnx file as a model, built again through `ModelBuilder`.

Everything is tested before it is used: what the builder and the table test, they do; here are the types of the
JSON values, the references, the sizes. Raises `ArtifactError`.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..builder import ModelBuilder
from ..codes import OperandCode, dtype_of
from ..contents import DTYPES, contents
from ..errors import ArtifactError, ModelError
from ..model import Model, Operand
from ..ops.host import op_of
from ..resources import deep, tick, within
from ..schema import HOST_CODES, OpDef
from ..types import MOST_AXES, ChannelQuant, Entry, Port, Quant, Rim, Source, strings
from .container import ALIGN, Buffer, unpack
from .encode import EXTENSION

LARGEST = 1 << 63
#: What an int32 constant may be kept as.
STORED = {t.name: t for t in (np.dtype(np.uint8), np.dtype(np.uint16))}
#: Half of a pair in UTF-16, which is no character: JSON can say it, and nothing can be written of it.
LONE = re.compile("[\ud800-\udfff]")
#: The highest byte of types that do not use all of its bits.
HIGHEST = {"bool": 1, "int4": 15, "uint4": 15, "float4_e2m1fn": 15, "int2": 3, "uint2": 3}

Item = TypeVar("Item")
Fields = dict[str, Any]


def decode(data: Buffer) -> Model:
    """The main model; its constants are views of `data`."""
    return built(*unpack(data))


def built(header: Fields, tail: memoryview) -> Model:
    """The main model of a header; its constants are views of the data."""
    file = _File(header, tail)
    for entry in _list(header, "models", _fields):
        file.models.append(file.model(entry))
    _need(bool(file.models), "it has no model")
    return file.models[-1]


def _need(condition: bool, text: str) -> None:
    if not condition:
        raise ArtifactError(text)


def _fields(value: Any) -> Fields:
    _need(isinstance(value, dict), f"it has {value!r:.40} for an object")
    found: Fields = value
    return found


def _whole(value: Any, low: int = 0, high: int = LARGEST) -> int:
    _need(type(value) is int and low <= value < high, f"it has {value!r:.40} for a whole number")
    return int(value)


def _text(value: Any) -> str:
    _need(isinstance(value, str) and (value.isascii() or not LONE.search(value)), f"it has {value!r:.40} for a text")
    return str(value)


def _real(value: Any) -> float:
    _need(type(value) in (int, float) and abs(value) < 1e300, f"it has {value!r:.40} for a number")
    return float(value)


def _flag(value: Any) -> bool:
    _need(isinstance(value, bool), f"it has {value!r:.40} for a truth value")
    return bool(value)


def _items(value: Any, item: Callable[[Any], Item]) -> list[Item]:
    _need(isinstance(value, list), f"it has {value!r:.40} for a list")
    return [item(v) for v in value]


def _get(fields: Fields, key: str) -> Any:
    _need(key in fields, f"it lacks {key!r}")
    return fields[key]


def _list(fields: Fields, key: str, item: Callable[[Any], Item]) -> list[Item]:
    return _items(_get(fields, key), item)


@dataclass
class _File:
    """A checked container: its data, and the models made so far."""

    header: Fields
    tail: memoryview
    models: list[Model] = field(default_factory=list[Model])
    operations: int = 0

    def __post_init__(self) -> None:
        extension = _fields(_get(self.header, "extension"))
        _need(extension.get("name") == EXTENSION, f"it uses the extension {extension.get('name')!r:.60}")
        self.prefix = _whole(_get(extension, "prefix"), 1, 1 << 15)
        self.host_names = _fields(_get(extension, "operations"))
        self.places = [self.place(p) for p in _list(self.header, "blobs", lambda p: _items(p, _whole))]

    def place(self, place: list[int]) -> tuple[int, int]:
        """Offset and size of a blob inside the data."""
        _need(len(place) == 2, "a blob has an offset and a size")
        offset, size = place
        _need(offset % ALIGN == 0 and offset + size <= len(self.tail), f"a blob at {offset} lies outside the data")
        return offset, size

    def model(self, entry: Fields) -> Model:
        """One model, through the builder."""
        builder = ModelBuilder()
        tick()
        within("subgraphs", len(self.models) + 1, "its models are")
        self.operations += len(_list(entry, "operations", lambda v: v))
        within("operators", self.operations, "its operations are")
        try:
            for o in _list(entry, "operands", _fields):
                self.operand(builder, o)
            for operation in _list(entry, "operations", lambda v: _items(v, lambda x: x)):
                self.operation(builder, operation)
            builder.relax_computation_float32_to_float16(_flag(_get(entry, "relaxed")))
            builder.identify_inputs_and_outputs(_list(entry, "inputs", _whole), _list(entry, "outputs", _whole))
            made = builder.finish(self.rim(entry), tuple(_list(entry, "notes", _text)))
        except ModelError as error:
            raise ArtifactError(error.text, error.where) from error
        _fit(made)
        return made

    def operand(self, builder: ModelBuilder, fields: Fields) -> None:
        """Add an operand."""
        code = self.number(_get(fields, "type"))
        dims = _list(fields, "dims", _whole)
        _need(len(dims) <= MOST_AXES, "an operand has too many dimensions")
        quant = self.quant(fields)
        plain = quant if isinstance(quant, Quant) else Quant(0.0)
        index = builder.add_operand(code, dims, plain.scale, plain.zero)
        if isinstance(quant, ChannelQuant):
            builder.set_operand_symm_per_channel_quant_params(index, quant.axis, quant.scales)
        if "no_value" in fields:
            builder.set_operand_value(index, None)
        elif "model" in fields:
            inner = self.models[_whole(fields["model"], 0, len(self.models))]
            deep(inner.depth, "subgraphs are")
            builder.set_operand_value_from_model(index, inner)
        elif "hex" in fields or "blob" in fields:
            builder.set_operand_value(index, self.value(fields, OperandCode(code), dims))

    def value(self, fields: Fields, type_: OperandCode, dims: list[int]) -> np.ndarray[Any, Any]:
        """A constant of a type and a size."""
        _need(type_ not in (OperandCode.MODEL, OperandCode.TENSOR_LIST), f"a {type_.name} is no constant")
        data, dtype = self.data(fields), type_.dtype
        if type_ is OperandCode.TENSOR_STRING:
            return self.strings(data, dims)
        stored = STORED.get(_text(fields["stored"])) if "stored" in fields else dtype
        if stored is None or dtype not in (stored, np.int32):
            raise ArtifactError(f"a constant {type_.name} is stored as {fields['stored']!r:.40}")
        _need(math.prod(dims) * stored.itemsize == len(data), f"a constant {type_.name}{dims} has {len(data)} bytes")
        size = len(data) // stored.itemsize * dtype.itemsize
        within("tensor_bytes", size, f"the bytes of a constant {type_.name} are")
        raw = np.frombuffer(data, np.uint8)
        _bits(dtype, raw)
        return raw.view(stored.newbyteorder("<")).reshape(dims).astype(dtype, copy=False)

    def strings(self, data: bytes | memoryview, dims: list[int]) -> np.ndarray[Any, Any]:
        """A constant of texts."""
        try:
            return strings(np.frombuffer(data, np.uint8), tuple(dims))
        except ValueError as error:
            raise ArtifactError(f"a constant TENSOR_STRING{dims}: {error}") from error

    def data(self, fields: Fields) -> bytes | memoryview:
        """The bytes of a value, from the header or from the data."""
        if "blob" in fields:
            offset, size = self.places[_whole(fields["blob"], 0, len(self.places))]
            return self.tail[offset:offset + size]
        text = _text(_get(fields, "hex"))
        try:
            return bytes.fromhex(text)
        except ValueError as error:
            raise ArtifactError(f"it has {text!r:.40} for hexadecimal digits") from error

    def quant(self, fields: Fields) -> Quant | ChannelQuant | None:
        """The quantisation of an operand or a port."""
        if "scales" in fields:
            data = self.data(_fields(fields["scales"]))
            _need(len(data) % 8 == 0, "scales have 8 bytes each")
            scales = np.frombuffer(data, "<f8")
            return ChannelQuant(tuple(scales.tolist()), _whole(_get(fields, "axis"), 0, MOST_AXES))
        if "scale" in fields:
            return Quant(_real(fields["scale"]), _whole(_get(fields, "zero"), -LARGEST))
        return None

    def operation(self, builder: ModelBuilder, entry: list[Any]) -> None:
        """Add an operation."""
        _need(len(entry) == 4, "an operation has a code, inputs, outputs and an origin")
        code, inputs, outputs, origin = entry
        builder.add(self.op(code), _items(inputs, _whole), _items(outputs, _whole), origin=_text(origin))

    def op(self, value: Any) -> OpDef:
        """The operation of a code; a host operation must have the name it had when the file was written."""
        code = self.number(value)
        found = op_of(code)
        if found is None:
            raise ArtifactError(f"there is no operation {value}")
        if found.host:
            written = self.host_names.get(str(code & 0xFFFF))
            _need(written == found.name, f"host operation {code & 0xFFFF} was {written!r:.40}, it is {found.name}")
        return found

    def number(self, value: Any) -> int:
        """A code of this program: the file's prefix becomes the host extension's."""
        code = _whole(value, 0, 1 << 32)
        if code >> 16 == 0:
            return code
        _need(code >> 16 == self.prefix, f"code {code} is of no extension the file names")
        return HOST_CODES | code & 0xFFFF

    def rim(self, entry: Fields) -> Rim:
        """The model as its user sees it."""
        ports, source = _fields(_get(entry, "ports")), entry.get("source")
        ins, outs = (tuple(_list(ports, side, self.port)) for side in ("inputs", "outputs"))
        entries = tuple(_items(entry.get("signatures", []), _entry))
        for e in entries:
            for own, those in ((e.inputs, ins), (e.outputs, outs)):
                _need({p for _, p in own} <= {p.name for p in those}, f"signature {e.name!r:.60} has other ports")
        return Rim(ins, outs, entries, None if source is None else _source(_fields(source)))

    def port(self, value: Any) -> Port:
        """An input or output as its user sees it."""
        fields = _fields(value)
        dtype, shape = _text(_get(fields, "dtype")), _get(fields, "shape")
        _port_type(dtype)
        sizes = None if shape is None else tuple(_items(shape, lambda n: None if n is None else _whole(n)))
        state, quant = _flag(fields.get("state", False)), self.quant(fields)
        zero = quant.zero if isinstance(quant, Quant) else 0
        _need(not state or dtype != "int8" or -128 <= zero < 128, f"a state of int8 with the zero point {zero}")
        initial = self.initial(fields, dtype, sizes) if "initial" in fields else None
        span = _pair(fields["range"], _real) if "range" in fields else None
        norm = _pair(fields["norm"], lambda v: tuple(_items(v, _real))) if "norm" in fields else None
        names = tuple(_items(fields.get("sizes", []), _text))
        _need(not names or len(names) == len(sizes or ()), "as many names of sizes as there are")
        return Port(_text(_get(fields, "name")), dtype, sizes, quant, state, initial, span, norm, names)

    def initial(self, fields: Fields, dtype: str, sizes: tuple[int | None, ...] | None) -> np.ndarray[Any, Any]:
        """What a state starts with."""
        _need(dtype not in ("object", "str") and dtype in DTYPES, "texts and lists are no state")
        whole, data = dtype_of(dtype), self.data(_fields(fields["initial"]))
        shape = [_whole(n) for n in sizes or ()]
        _need(sizes is not None and math.prod(shape) * whole.itemsize == len(data),
              f"a state {dtype}{shape} starts with {len(data)} bytes")
        raw = np.frombuffer(data, np.uint8)
        _bits(whole, raw)
        return raw.view(whole.newbyteorder("<")).reshape(shape)


def _bits(dtype: np.dtype[Any], raw: np.ndarray[Any, Any]) -> None:
    """Raise `ArtifactError` where bytes have bits that their type has not."""
    most = HIGHEST.get(dtype.name, 255)
    _need(most == 255 or not bool((raw > most).any()),
          "a truth value is neither 0 nor 1" if dtype.kind == "b" else f"{dtype.name} has bits beyond its own")


def _port_type(dtype: str) -> None:
    """Raise `ArtifactError` where a text says no type of a port."""
    try:
        contents(dtype)
    except ValueError as error:
        raise ArtifactError(f"a port of type {dtype!r:.40}") from error


def _pair(value: Any, item: Callable[[Any], Item]) -> tuple[Item, Item]:
    """Two items."""
    found = _items(value, item)
    _need(len(found) == 2, f"it has {value!r:.40} for a pair")
    return found[0], found[1]


def _texts(fields: Fields, key: str) -> tuple[str, ...]:
    return tuple(_list(fields, key, _text))


def _entry(value: Any) -> Entry:
    """A signature."""
    fields = _fields(value)
    ins, outs = (tuple(_list(fields, side, lambda v: _pair(v, _text))) for side in ("inputs", "outputs"))
    return Entry(_text(_get(fields, "name")), ins, outs)


def _source(fields: Fields) -> Source:
    """The file a model was made from."""
    text = {k: _text(_get(fields, k)) for k in ("format", "version", "description")}
    counts = {k: _whole(_get(fields, k)) for k in ("operators", "sparse")}
    texts = {k: _texts(fields, k) for k in ("signatures", "files", "labels")}
    metadata = tuple(_list(fields, "metadata", lambda v: _pair(v, _text)))
    return Source(**text, **counts, **texts, metadata=metadata)  # type: ignore[arg-type]


def _fit(model: Model) -> None:
    """Raise `ArtifactError` where the ports are not those of the operands."""
    for ports, operands in ((model.rim.inputs, model.inputs), (model.rim.outputs, model.outputs)):
        _need(len(ports) == len(operands), "there is not a port for each input and output")
        for port, i in zip(ports, operands, strict=True):
            _need(_agree(port, model.operands[i]), f"the shape of port {port.name!r:.60} is not its operand's")
            listed = "(" in port.dtype, port.dtype in ("object", "str")
            own = tuple(model.operands[i].type is t for t in (OperandCode.TENSOR_LIST, OperandCode.TENSOR_STRING))
            _need(listed == own, f"port {port.name!r:.60} holds {port.dtype:.60}, its operand does not")


def _agree(port: Port, operand: Operand) -> bool:
    """Whether a port may show an operand: the same sizes where both are known; rank 0 shows one element.

    More axes than the operand's show the same number of elements.
    """
    if port.shape is None or not operand.dims:
        return True
    shape = port.shape or (1,)
    if len(shape) > len(operand.dims):
        return None not in shape and math.prod(n or 0 for n in shape) == math.prod(operand.dims) > 0
    return len(shape) == len(operand.dims) and all(
        m in (None, n) or n == 0 for m, n in zip(shape, operand.dims, strict=True))
