"""A model as a JSON file, for programs that are not this one, and the way back.

Names where a .nnx file has codes; short constants as numbers, the others as places in a file of bytes beside it:
little-endian, row by row, in the operand's own type, texts as TFLite packs them. `json_schema` says what each field is;
what is read is built again call by call through `ModelBuilder`, as a .nnx file is.
"""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from .. import reading
from ..codes import OperandCode, dtype_of
from ..errors import ArtifactError, NnxError
from ..model import Lifetime, Model, Operand
from ..ops.host import op_of
from ..schema import HOST_CODES, OpDef
from ..types import ChannelQuant, Port, Quant
from .container import padding
from .decode import built
from .encode import EXTENSION, SHORT, Pool, stored, subgraphs_first
from .files import Pieces, write_all

FORMAT, VERSION = "nnx-model", 1
#: How deep the text has a line for each item.
LINES = 4
#: The keys of each kind of object; those of the second tuple may be left out.
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "file": (("format", "version", "weights", "models"), ()), "weights": (("file", "bytes", "crc32"), ()),
    "model": (("operands", "operations", "inputs", "outputs", "relaxed", "notes", "ports", "signatures", "source"), ()),
    "operand": (("type", "dims", "lifetime"), ("quant", "value", "data", "model")),
    "operation": (("name", "code", "inputs", "outputs", "origin"), ()), "data": (("offset", "bytes"), ()),
    "ports": (("inputs", "outputs"), ()),
    "port": (("name", "dtype", "shape"), ("quant", "state", "initial", "range", "norm", "sizes")),
    "grid": (("scale", "zero"), ()), "grids": (("scales", "axis"), ()), "initial": ((), ("value", "data"))}

Fields = dict[str, Any]
Array = np.ndarray[Any, Any]


def save_json(model: Model, path: str | Path) -> list[Path]:
    """Write a model as a JSON file and its longer constants beside it, as NAME.weights.bin; raises `UsageError`.

    Both are complete before either has its name; the JSON file has the checksum of the other. Gives the files.
    """
    pool, order = Pool(), subgraphs_first(model)
    number = {id(m): i for i, m in enumerate(order)}
    models = [_model(m, pool, number) for m in order]
    pieces = [p for blob in pool.blobs for p in (blob, padding(len(blob)))]
    weights: Fields | None = None
    if pieces:
        beside, check = weights_of(path), 0
        for piece in pieces:
            check = crc32(piece, check)
        weights = {"file": beside.name, "bytes": sum(map(len, pieces)), "crc32": check}
    whole = {"format": FORMAT, "version": VERSION, "weights": weights, "models": models}
    files: list[tuple[Path, Pieces]] = [(weights_of(path), pieces)] if pieces else []
    files.append((Path(path), [laid_out(whole, LINES).encode(), b"\n"]))
    write_all(files)
    return [place for place, _ in reversed(files)]


def weights_of(path: str | Path) -> Path:
    """Where the longer constants of a JSON file are."""
    return Path(path).with_suffix(".weights.bin")


def laid_out(value: Any, levels: int, indent: str = "") -> str:
    """JSON with a line for each item down to some levels, what is below in the line."""
    if not levels or not value or not isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    inner = indent + " "
    items = [f"{json.dumps(k)}: {laid_out(v, levels - 1, inner)}" for k, v in value.items()] if isinstance(
        value, dict) else [laid_out(v, levels - 1, inner) for v in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{last}"


def _model(m: Model, pool: Pool, number: dict[int, int]) -> Fields:
    origins = m.origin or ("",) * len(m.operations)
    ports = {side: [_port(p, pool) for p in those] for side, those in (("inputs", m.rim.inputs),
                                                                       ("outputs", m.rim.outputs))}
    return {"inputs": list(m.inputs), "outputs": list(m.outputs), "relaxed": m.relaxed, "notes": list(m.notes),
            "ports": ports, "signatures": [asdict(e) for e in m.rim.entries],
            "source": None if m.rim.source is None else asdict(m.rim.source),
            "operands": [_operand(o, pool, number) for o in m.operands],
            "operations": [{"name": o.op.name, "code": o.op.code, "inputs": o.inputs, "outputs": o.outputs,
                            "origin": at} for o, at in zip(m.operations, origins, strict=True)]}


def _operand(o: Operand, pool: Pool, number: dict[int, int]) -> Fields:
    fields = {"type": o.type.name, "dims": o.dims, "lifetime": o.lifetime.value, **_quant(o.quant)}
    if isinstance(o.value, Model):
        fields["model"] = number[id(o.value)]
    elif o.value is not None:
        fields |= _value(stored(o.type, o.value), pool)
    return fields


def _value(array: Array, pool: Pool) -> Fields:
    """A constant as numbers where it is short and JSON has such, else as a place in the file of bytes."""
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    if array.nbytes <= SHORT and array.dtype.kind in "biuf" and bool(np.isfinite(array).all()):
        return {"value": array.reshape(-1).tolist()}
    offset, size = pool.places[pool.kept(array)]
    return {"data": {"offset": offset, "bytes": size}}


def _quant(quant: Quant | ChannelQuant | None) -> Fields:
    return {} if quant is None else {"quant": asdict(quant)}


def _port(p: Port, pool: Pool) -> Fields:
    more: Fields = {"range": p.range, "norm": p.norm, "sizes": p.sizes or None, "state": p.state or None,
                    "initial": None if p.initial is None else _value(p.initial, pool)}
    return {"name": p.name, "dtype": p.dtype, "shape": p.shape, **_quant(p.quant),
            **{k: v for k, v in more.items() if v is not None}}


def from_json(path: str | Path) -> Model:
    """The model in a JSON file; raises `ArtifactError` where the file, or that of its constants, is not whole."""
    text = reading.text(path, ArtifactError)
    try:
        return parsed(text, Path(path).parent)
    except NnxError as error:
        raise error.at(str(path)) from error


def parsed(text: bytes, folder: Path | None) -> Model:
    """The model in a JSON text; its constants are in a file in the folder, where there is one."""
    fields = reading.json(text, ArtifactError)
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise ArtifactError("is no model", hint=f"the format of a model in JSON is {FORMAT!r}")
    if fields.get("version") != VERSION:
        raise ArtifactError(f"is of version {fields.get('version')!r:.40} of the format, not {VERSION}")
    _keys(fields, "file")
    return _Read(_bytes(fields["weights"], folder)).model(fields["models"])


def _bytes(weights: Any, folder: Path | None) -> memoryview:
    """The longer constants."""
    if weights is None:
        return memoryview(b"")
    name = _keys(weights, "weights")["file"]
    if not isinstance(name, str) or Path(name).name != name:
        raise ArtifactError(f"its constants are in {name!r:.60}, which is no name of a file beside it")
    if folder is None:
        raise ArtifactError(f"its constants are in {name!r:.60}", hint="give the model's path, or the folder")
    data = reading.beside(folder, name, "its constants are", ArtifactError)
    if (len(data), crc32(data)) != (weights["bytes"], weights["crc32"]):
        raise ArtifactError("are other constants than the model's: size or checksum differ", name)
    return memoryview(data)


def _keys(fields: Any, kind: str) -> Fields:
    """An object that has the keys of its kind and no others; raises `ArtifactError`."""
    if not isinstance(fields, dict):
        raise ArtifactError(f"it has {fields!r:.40} for an object: {kind}")
    needed, free = KEYS[kind]
    wrong = [*(k for k in needed if k not in fields), *(k for k in fields if k not in (*needed, *free))]
    if wrong:
        raise ArtifactError(f"of {kind} there {'is no' if wrong[0] in fields else 'must be a'} key {wrong[0]!r:.40}")
    return dict(fields)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ArtifactError(f"it has {value!r:.40} for a list")
    return value


def _lifetime(index: int, made: Fields, inputs: Sequence[Any], outputs: Sequence[Any]) -> Lifetime:
    """Where an operand's value comes from."""
    own = {"no_value": Lifetime.NO_VALUE, "model": Lifetime.SUBGRAPH, "hex": Lifetime.CONSTANT,
           "blob": Lifetime.CONSTANT}
    found = next((lifetime for key, lifetime in own.items() if key in made), None)
    return found or (Lifetime.INPUT if index in inputs else Lifetime.OUTPUT if index in outputs else Lifetime.TEMPORARY)


class _Read:
    """A JSON file in the words of a .nnx file's header, which `decode` makes a model of."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.blobs: list[list[Any]] = []
        self.host: dict[str, str] = {}

    def model(self, models: Any) -> Model:
        """The main model, the last one."""
        found = [self.fields(m) for m in _items(models)]
        extension = {"name": EXTENSION, "prefix": HOST_CODES >> 16, "operations": self.host}
        return built({"models": found, "blobs": self.blobs, "extension": extension}, self.data)

    def fields(self, model: Any) -> Fields:
        """A model."""
        m = _keys(model, "model")
        ports = _keys(m["ports"], "ports")
        sides = {side: [self.port(p) for p in _items(those)] for side, those in ports.items()}
        source = {} if m["source"] is None else {"source": m["source"]}
        rest = {k: m[k] for k in ("inputs", "outputs", "relaxed", "notes", "signatures")}
        operands = [self.operand(o) for o in _items(m["operands"])]
        for i, (o, made) in enumerate(zip(m["operands"], operands, strict=True)):
            true = _lifetime(i, made, _items(m["inputs"]), _items(m["outputs"])).value
            if o["lifetime"] != true:
                raise ArtifactError(f"operand {i} is of lifetime {true!r}, not {o['lifetime']!r:.40}")
        return {**rest, **source, "ports": sides, "operands": operands,
                "operations": [self.operation(o) for o in _items(m["operations"])]}

    def operand(self, value: Any) -> Fields:
        """An operand."""
        fields = _keys(value, "operand")
        code = OperandCode.__members__.get(fields["type"]) if isinstance(fields["type"], str) else None
        if code is None:
            raise ArtifactError(f"there is no operand type {fields['type']!r:.40}")
        left_out = {"no_value": True} if fields["lifetime"] == Lifetime.NO_VALUE.value else {}
        model = {"model": fields["model"]} if "model" in fields else {}
        held = {} if "value" not in fields and "data" not in fields else self.value(fields, code.dtype)
        return {"type": int(code), "dims": fields["dims"], **self.quant(fields), **left_out, **model, **held}

    def operation(self, value: Any) -> list[Any]:
        """An operation; its name and its code must be of the same one."""
        o = _keys(value, "operation")
        found: OpDef | None = op_of(o["code"]) if type(o["code"]) is int else None
        if found is None or found.name != o["name"]:
            raise ArtifactError(f"operation {o['name']!r:.40} has the code {o['code']!r:.40}, which is "
                                f"{'none' if found is None else found.name}")
        if found.host:
            self.host[str(o["code"] & 0xFFFF)] = found.name
        return [o["code"], o["inputs"], o["outputs"], o["origin"]]

    def value(self, fields: Fields, dtype: np.dtype[Any]) -> Fields:
        """Numbers, or a place in the file of bytes."""
        if "data" in fields:
            place = _keys(fields["data"], "data")
            self.blobs.append([place["offset"], place["bytes"]])
            return {"blob": len(self.blobs) - 1}
        numbers = _items(fields["value"])
        wanted = (bool,) if dtype.kind == "b" else (int,) if dtype.kind in "iu" else (int, float)
        if dtype.kind not in "biuf" or any(type(n) not in wanted for n in numbers):
            raise ArtifactError(f"it has {numbers!r:.40} for numbers of {dtype}")
        try:
            with np.errstate(over="ignore"):         # what is too large is infinite
                return {"hex": np.array(numbers, dtype.newbyteorder("<")).tobytes().hex()}
        except OverflowError as error:
            raise ArtifactError(f"it has {numbers!r:.40} for numbers of {dtype}") from error

    def port(self, value: Any) -> Fields:
        """An input or output as its user sees it."""
        fields = _keys(value, "port")
        if "initial" in fields:
            try:
                fields["initial"] = self.value(_keys(fields["initial"], "initial"), dtype_of(str(fields["dtype"])))
            except (TypeError, ValueError, SyntaxError) as error:
                raise ArtifactError(f"a state of type {fields['dtype']!r:.40}") from error
        return {**{k: v for k, v in fields.items() if k != "quant"}, **self.quant(fields)}

    @staticmethod
    def quant(fields: Fields) -> Fields:
        """A quantisation."""
        grid = fields.get("quant")
        if grid is None:
            return {}
        if isinstance(grid, dict) and "scale" in grid:
            return _keys(grid, "grid")
        scales = _items(_keys(grid, "grids")["scales"])
        if any(type(s) not in (int, float) for s in scales):
            raise ArtifactError(f"it has {scales!r:.40} for scales")
        try:
            return {"scales": {"hex": np.array(scales, "<f8").tobytes().hex()}, "axis": grid["axis"]}
        except OverflowError as error:
            raise ArtifactError(f"it has {scales!r:.40} for scales") from error
