"""A model as the header and the data of a .nnx file.

The header: `models` in an order in which each stands after the subgraphs it holds, the main one last; `blobs`,
offset and size of each constant in the data; `extension`, the name and the prefix of the host's operation and
operand codes (prefix << 16 | number), and the name of each host operation by its number.

A model: `operands`, `operations` as [code, inputs, outputs, origin], `inputs`, `outputs`, `relaxed`, `ports`
(the rim) and `notes`. An operand: `type` and `dims`; `scale` and `zero`, or `scales` and `axis`; and its value:
`hex` where it is short, else `blob`, an index; `no_value`; `model`, an index. What is not there is not written.
A port of a state has what it starts with as `initial`. `signatures` and `source` tell of the file it was made from.
`stored`: the type of a value kept in fewer bytes than its operand's, uint8 or uint16 for int32; the indices of
sparse constants are such, and are most of what these take.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from ..codes import OperandCode
from ..errors import Unsupported
from ..model import Lifetime, Model, Operand
from ..schema import HOST_CODES
from ..types import Array, ChannelQuant, Port, Quant, Rim, packed_strings
from .container import ALIGN, pack

#: The vendor extension that host operations and their operand types belong to.
EXTENSION = "org.nnx_convert.host"
#: Values up to this many bytes stand in the header.
SHORT = 32

Fields = dict[str, Any]


def encode(model: Model) -> list[bytes | memoryview]:
    """The pieces of the file."""
    pool, order = Pool(), subgraphs_first(model)
    number = {id(m): i for i, m in enumerate(order)}
    models = [model_fields(m, pool, number) for m in order]
    host = {str(o.op.code & 0xFFFF): o.op.name for m in order for o in m.operations if o.op.host and o.op.code}
    return pack({"models": models, "blobs": pool.places,
                 "extension": {"name": EXTENSION, "prefix": HOST_CODES >> 16, "operations": host}}, pool.blobs)


def subgraphs_first(model: Model) -> list[Model]:
    """The models in it, each once, after those that it holds."""
    found: dict[int, Model] = {}

    def visit(m: Model) -> None:
        for inner in m.subgraphs:
            if id(inner) not in found:
                visit(inner)
        found[id(m)] = m
    visit(model)
    return list(found.values())


@dataclass
class Pool:
    """The data: equal bytes once."""

    blobs: list[bytes | memoryview] = field(default_factory=list[bytes | memoryview])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    index: dict[bytes, int] = field(default_factory=dict[bytes, int])
    end: int = 0

    def value(self, array: np.ndarray[Any, Any], exact: bool = False) -> Fields:
        """How a header refers to an array; `exact`: whose elements are stored in their own type."""
        own, array = array.dtype, array if exact else narrowest(array)
        stored = {} if array.dtype == own else {"stored": array.dtype.name}
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if array.nbytes <= SHORT:
            return {"hex": array.tobytes().hex(), **stored}
        return {"blob": self.kept(array), **stored}

    def kept(self, array: np.ndarray[Any, Any]) -> int:
        """The number of the blob that holds the bytes of a contiguous array."""
        data = array.reshape(-1).view(np.uint8).data
        key = blake2b(data).digest()
        if key not in self.index:
            self.index[key] = len(self.blobs)
            self.blobs.append(data)
            self.places.append((self.end, len(data)))
            self.end += -(-len(data) // ALIGN) * ALIGN
        return self.index[key]


def narrowest(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array as a file keeps it: int32 in 8 or 16 bits where all values fit and it is not short."""
    if array.dtype != np.int32 or array.nbytes <= SHORT:
        return array
    low, high = int(array.min()), int(array.max())
    fits = (t for t in (np.uint8, np.uint16) if low >= 0 and high <= np.iinfo(t).max)
    return array.astype(next(fits, np.int32), copy=False)


def model_fields(m: Model, pool: Pool, number: dict[int, int]) -> Fields:
    """A model in the words of the header."""
    origins = m.origin or ("",) * len(m.operations)
    return {"operands": [operand_fields(o, pool, number) for o in m.operands],
            "operations": [[o.op.code, o.inputs, o.outputs, at] for o, at in zip(m.operations, origins, strict=True)],
            "inputs": m.inputs, "outputs": m.outputs, "relaxed": m.relaxed, "notes": m.notes,
            "ports": {"inputs": [port_fields(p, pool) for p in m.rim.inputs],
                      "outputs": [port_fields(p, pool) for p in m.rim.outputs]}, **rim_fields(m.rim)}


def rim_fields(rim: Rim) -> Fields:
    """The signatures and the source of a model, where there are any."""
    entries = {"signatures": [asdict(e) for e in rim.entries]} if rim.entries else {}
    return entries | ({} if rim.source is None else {"source": asdict(rim.source)})


def operand_fields(o: Operand, pool: Pool, number: dict[int, int]) -> Fields:
    """An operand in the words of the header."""
    fields = {"type": int(o.type), "dims": o.dims, **quant_fields(o.quant, pool)}
    if o.lifetime is Lifetime.NO_VALUE:
        fields["no_value"] = True
    elif isinstance(o.value, Model):
        fields["model"] = number[id(o.value)]
    elif o.value is not None:
        fields |= pool.value(stored(o.type, o.value))
    return fields


def stored(kind: OperandCode, value: Array) -> Array:
    """A constant's elements as a file has them; raises `Unsupported` where texts are more than that can be."""
    try:
        return packed_strings(value) if kind is OperandCode.TENSOR_STRING else value
    except OverflowError as error:
        raise Unsupported(str(error)) from error


def port_fields(p: Port, pool: Pool) -> Fields:
    """An input or output as its user sees it."""
    more: Fields = {"state": True} if p.state else {}
    if p.initial is not None:
        more["initial"] = pool.value(p.initial, exact=True)
    more |= {k: v for k, v in (("range", p.range), ("norm", p.norm), ("sizes", p.sizes or None))
             if v is not None}
    return {"name": p.name, "dtype": p.dtype, "shape": p.shape, **quant_fields(p.quant, pool), **more}


def quant_fields(quant: Quant | ChannelQuant | None, pool: Pool) -> Fields:
    """A quantisation, exactly: JSON writes a float so that it reads back the same."""
    if quant is None:
        return {}
    if isinstance(quant, Quant):
        return {"scale": quant.scale, "zero": quant.zero}
    return {"scales": pool.value(np.array(quant.scales, np.float64)), "axis": quant.axis}
