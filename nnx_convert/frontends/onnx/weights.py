"""A model's bytes without its large weights, which stay where they are.

Protobuf would copy them twice: into the message, and from there whenever they are looked at. So the raw data of
the main graph's initializers are cut out of the bytes that it is given, and each such tensor says in the way of
external data where in the file they are: `OWN` is the key, their first byte the value, in place of a location.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .proto import messages

#: The key of external data that are in the model's own file. A file may say it itself: it gets bytes of its own.
OWN = "own"
#: Raw data from this many bytes on stay in the file.
LARGE = 1 << 10
#: A tensor has fewer fields, unless its numbers are fields by themselves.
FEW = 64
#: Fields by their numbers: of the model, of a graph, of a tensor.
GRAPH, INITIALIZER, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 7, 5, 9, 13, 14
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

#: Number and wire type, where the field begins, its value, and where it ends.
Field = tuple[int, int, int, int, int]


class Odd(Exception):
    """Bytes that are no message, or not in the form writers choose: protobuf itself shall say."""


def slim(data: Any) -> bytes | memoryview:
    """A serialised model without its large weights; the bytes as they are where they are none to be seen."""
    view = memoryview(data)
    try:
        return b"".join(_model(view))
    except Odd:
        return view


def _model(data: memoryview) -> Iterator[bytes | memoryview]:
    done = 0
    for number, kind, start, at, end in _fields(data, 0, len(data)):
        if (number, kind) == (GRAPH, DELIMITED):
            yield data[done:start]
            yield from _wrapped(GRAPH, list(_graph(data, at, end)))
            done = end
    yield data[done:]


def _graph(data: memoryview, at: int, stop: int) -> Iterator[bytes | memoryview]:
    done = at
    for number, kind, start, first, end in _fields(data, at, stop):
        if (number, kind) != (INITIALIZER, DELIMITED) or end - first < LARGE:
            continue
        pieces = _tensor(data, first, end)
        if pieces:
            yield data[done:start]
            yield from _wrapped(INITIALIZER, pieces)
            done = end
    yield data[done:stop]


def _tensor(data: memoryview, at: int, stop: int) -> list[bytes | memoryview]:
    """The tensor with its raw data told of; nothing where they are small or something is unusual."""
    found: list[Field] = []
    for field in _fields(data, at, stop):
        found.append(field)
        if len(found) > FEW or field[0] in (EXTERNAL_DATA, DATA_LOCATION):
            return []
    raw = [f for f in found if f[0] == RAW_DATA]
    if len(raw) != 1 or raw[0][1] != DELIMITED or raw[0][4] - raw[0][3] < LARGE:
        return []
    (_, _, start, first, end), pb = raw[0], messages()
    told = {OWN: first, "length": end - first}
    entries = [pb.StringStringEntryProto(key=k, value=str(v)) for k, v in told.items()]
    said = pb.TensorProto(external_data=entries, data_location=pb.TensorProto.EXTERNAL).SerializeToString()
    return [data[at:start], data[end:stop], said]


def _wrapped(number: int, pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """A field that holds these bytes."""
    return [_spelt(number << 3 | DELIMITED) + _spelt(sum(map(len, pieces))), *pieces]


def _spelt(number: int) -> bytes:
    """A number as protobuf writes it."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _fields(data: memoryview, at: int, stop: int) -> Iterator[Field]:
    """The fields of a message; raises `Odd` where the bytes are none."""
    while at < stop:
        start = at
        key, at = _number(data, at, stop)
        kind, end = key & 7, at
        if kind == DELIMITED:
            size, at = _number(data, at, stop)
            end = at + size
        elif kind == VARINT:
            _, end = _number(data, at, stop)
        elif kind in (FIXED32, FIXED64):
            end = at + (4 if kind == FIXED32 else 8)
        else:
            raise Odd
        if end > stop:
            raise Odd
        yield key >> 3, kind, start, at, end
        at = end


def _number(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    """A number, and the position behind it."""
    found = 0
    for i in range(min(10, stop - at)):
        byte = data[at + i]
        found |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return found, at + i + 1
    raise Odd
