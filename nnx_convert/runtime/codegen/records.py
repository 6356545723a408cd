"""What is kept of a program, as bytes: JSON text, then the raw bytes that it refers to by their number.

    a record     an object of all its fields by name
    a tuple      an array; a mapping, an array of pairs; a member of an enumeration, its value
    bytes        the number of a piece
    an array     an object: `dtype` by name, `shape`, and `data`, the number of a piece

A reader holds every value to the type its field is declared with.
"""
from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from ...frozen import frozen
from ...codes import dtype_of
from ...model import Lifetime, Model, Operand
from ...types import Array, ChannelQuant, Entry, Port, Quant, Rim, Shape, Source, Tensor, Type
from ..steps import Slot
from .objects import apart, together
from .places import Border, Place
from .ready import Segment



@frozen
class Kept:
    """All of an entry but the weights: what `Outline` is made of, and how many bytes the weights are."""

    rim: Rim
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operands: dict[int, Operand]
    program: Stored
    packed: int


@frozen
class Stored:
    """A program for inputs of these shapes: what `Ready` is made of; its weights are `packed` bytes from `at` on."""

    shapes: tuple[Shape | None, ...]
    slots_in: tuple[Slot | None, ...]
    slots_out: tuple[Slot, ...]
    states: tuple[tuple[Slot, Slot], ...]
    tensors: dict[Slot, Tensor]
    constants: dict[Slot, Array]
    places: dict[Slot, Place]
    size: int
    threads: int
    checks: tuple[tuple[str, str], ...]
    parts: tuple[Segment | Graphs, ...]
    images: tuple[bytes, ...]
    at: int
    packed: int


@frozen
class Graphs:
    """A step that runs graphs (see `runtime.control`), by the names it calls them; None has no native program."""

    name: str
    origin: str
    outs: tuple[Slot, ...]
    args: tuple[Slot | tuple[Slot | None, ...], ...]
    graphs: tuple[tuple[str, Stored | None], ...]


#: The records that may occur, and the types of their fields. They are those of their declarations, which are texts
#: that take the interpreter a millisecond to understand.
RECORDS: dict[type, dict[str, Any]] = {
    Kept: {"rim": Rim, "inputs": Shape, "outputs": Shape, "operands": dict[int, Operand], "program": Stored,
           "packed": int},
    Stored: {"shapes": tuple[Shape | None, ...], "slots_in": tuple[int | None, ...], "slots_out": Shape,
            "states": tuple[tuple[int, int], ...], "tensors": dict[int, Tensor], "constants": dict[int, Array],
            "places": dict[int, Place], "size": int, "threads": int, "checks": tuple[tuple[str, str], ...],
            "parts": tuple[Segment | Graphs, ...], "images": tuple[bytes, ...], "at": int, "packed": int},
    Graphs: {"name": str, "origin": str, "outs": Shape, "args": tuple[int | tuple[int | None, ...], ...],
             "graphs": tuple[tuple[str, Stored | None], ...]},
    Rim: {"inputs": tuple[Port, ...], "outputs": tuple[Port, ...], "entries": tuple[Entry, ...],
          "source": Source | None},
    Port: {"name": str, "dtype": str, "shape": tuple[int | None, ...] | None, "quant": Quant | ChannelQuant | None,
           "state": bool, "initial": np.ndarray | None, "range": tuple[float, float] | None,
           "norm": tuple[tuple[float, ...], tuple[float, ...]] | None, "sizes": tuple[str, ...]},
    Entry: {"name": str, "inputs": tuple[tuple[str, str], ...], "outputs": tuple[tuple[str, str], ...]},
    Source: {"format": str, "version": str, "operators": int, "sparse": int, "description": str,
             "signatures": tuple[str, ...], "metadata": tuple[tuple[str, str], ...], "files": tuple[str, ...],
             "labels": tuple[str, ...]},
    Quant: {"scale": float, "zero": int},
    ChannelQuant: {"scales": tuple[float, ...], "axis": int},
    Operand: {"type": Type, "dims": Shape, "quant": Quant | ChannelQuant | None, "lifetime": Lifetime,
              "value": Array | Model | None},
    Tensor: {"type": Type, "dims": Shape | None, "quant": Quant | ChannelQuant | None, "data": np.ndarray | None,
             "omittable": bool},
    Place: {"base": str, "offset": int, "shape": Shape, "strides": Shape, "item": int, "border": Border},
    Border: {"top": int, "left": int, "bottom": int, "right": int, "fill": int},
    Segment: {"symbol": str, "waits": int},
}
PLAIN = (NoneType, bool, int, float, str)


def written(kept: Kept) -> bytes:
    """It as bytes; raises `ValueError` where something in it has no way to be written."""
    pieces: list[bytes] = []
    text = json.dumps(_value(kept, pieces), separators=(",", ":"))
    return together((text.encode(), *pieces))


def _value(value: Any, pieces: list[bytes]) -> Any:
    if isinstance(value, Mapping):
        value = tuple(value.items())
    elif isinstance(value, Enum):
        value = value.value
    if type(value) in PLAIN:
        return value
    if isinstance(value, tuple):
        return [_value(v, pieces) for v in value]
    if type(value) in RECORDS:
        return {name: _value(getattr(value, name), pieces) for name in RECORDS[type(value)]}
    if isinstance(value, bytes):
        pieces.append(value)
        return len(pieces) - 1
    if isinstance(value, np.ndarray) and value.dtype != np.dtype(object):
        return {"dtype": value.dtype.name, "shape": value.shape, "data": _value(value.tobytes(), pieces)}
    raise ValueError(f"there is no way to write {type(value).__name__}")


def read(data: bytes) -> Kept:
    """What `written` made these bytes of; raises `ValueError` where they are no such."""
    text, *pieces = apart(data) or (b"",)
    try:
        found: Kept = _Reader(pieces).record(Kept, json.loads(text))
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    return found


class _Reader:
    """What was read of JSON as values of declared types; everything raises `ValueError` where it is none."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.ways: dict[Any, Callable[[tuple[Any, ...], Any], Any]] = {
            Union: self.either, UnionType: self.either, tuple: self.several, dict: self.mapping,
            bytes: lambda _, value: self.piece(value), np.ndarray: lambda _, value: self.array(value)}

    def record(self, kind: type, value: Any) -> Any:
        """All fields of a record."""
        declared = RECORDS[kind]
        _need(isinstance(value, dict) and value.keys() == declared.keys())
        return kind(**{name: self.value(declared[name], v) for name, v in value.items()})

    def value(self, kind: Any, value: Any) -> Any:
        """A value of a field's type."""
        whole = get_origin(kind) or kind
        if whole in PLAIN:
            _need(type(value) is whole)
            return value
        if whole in RECORDS:
            return self.record(whole, value)
        if whole in self.ways:
            return self.ways[whole](get_args(kind), value)
        _need(isinstance(whole, type) and issubclass(whole, Enum))
        return whole(value)

    def either(self, kinds: tuple[Any, ...], value: Any) -> Any:
        """A value of the first of some types that it fits."""
        for kind in kinds:
            try:
                return self.value(kind, value)
            except ValueError:
                continue
        raise ValueError("is of none of its types")

    def several(self, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """A tuple."""
        _need(isinstance(value, list))
        if kinds[0] in PLAIN and kinds[-1] is Ellipsis:       # of a thousand labels, at once
            _need(set(map(type, value)) <= {kinds[0]})
            return tuple(value)
        each = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
        return tuple([self.value(kind, v) for kind, v in zip(each, value, strict=True)])

    def mapping(self, kinds: tuple[Any, ...], value: Any) -> dict[Any, Any]:
        """A mapping."""
        _need(isinstance(value, list) and all(isinstance(pair, list) for pair in value))
        return dict(self.several(kinds, pair) for pair in value)

    def piece(self, value: Any) -> bytes:
        """Bytes by their number."""
        _need(type(value) is int and 0 <= value < len(self.pieces))
        found: bytes = self.pieces[value]
        return found

    def array(self, value: Any) -> Array:
        """An array, which cannot be written to."""
        _need(isinstance(value, dict) and value.keys() == {"dtype", "shape", "data"})
        try:
            dtype = dtype_of(value["dtype"])
        except (TypeError, AttributeError) as error:
            raise ValueError("is no type of an array") from error
        shape, data = self.value(tuple[int, ...], value["shape"]), self.piece(value["data"])
        _need(dtype != np.dtype(object) and min(shape, default=0) >= 0
              and math.prod(shape) * dtype.itemsize == len(data))
        return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)


def _need(condition: bool) -> None:
    if not condition:
        raise ValueError("is not what its field is declared to hold")
