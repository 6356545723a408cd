"""Edits of .nnx files and of their JSON form: any value, and what a model is made of; the checksums are right again."""
from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from nnx_convert.artifact.container import PREAMBLE, padding
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OPS
from nnx_convert.types import HOST_TYPES, TENSORS

from . import numbers

TEXTS = ("", "float32", "int8", "object", "sequence(float32)", "map(int64,float32)", "optional(int8)", "uint4", "bool",
         "str", "\x00", "\u202e", "x" * 300, "00", "zz", "sequence(sequence(sequence(int8)))", "../x")
#: Codes of operand types and operations are small numbers, and the ones of extensions are beside each other.
CODES = (*range(48), 0x7000_0000, 0xFFFF, 1 << 31, (1 << 32) - 1)


def edited(data: bytes, r: random.Random) -> bytes | None:
    """The file with one thing changed; None where it is no sound file."""
    if data[:1] == b"{":
        found = _json(data)
        return None if found is None else json.dumps(changed(found, r)).encode()
    if len(data) < PREAMBLE.size:
        return None
    magic, version, _, head, _, _ = PREAMBLE.unpack_from(data)
    end = PREAMBLE.size + head
    header, tail = _json(data[PREAMBLE.size:end]), data[end + len(padding(end)):]
    if header is None:
        return None
    if r.random() < 0.15 and tail:
        at = r.randrange(len(tail))
        tail = r.choice((tail[:at], tail + bytes(64), tail[:at] + r.randbytes(1) + tail[at + 1:]))
    else:
        header = changed(header, r) if r.random() < 0.75 or not _soundly(header, r) else header
    return packed(magic, version, json.dumps(header, separators=(",", ":")).encode(), tail)


def _soundly(header: Any, r: random.Random) -> bool:
    """Whether types could be changed; a header in which something else was changed may lack anything."""
    try:
        return retyped(header, r)
    except (LookupError, TypeError, AttributeError, ValueError):
        return False


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def packed(magic: bytes, version: int, header: bytes, tail: bytes) -> bytes:
    """A file whose sizes and checksums fit what is in it, which may be what `container.pack` would not write."""
    tail = padding(PREAMBLE.size + len(header)) + tail
    fields = len(header), len(tail), crc32(tail)
    check = crc32(header, crc32(PREAMBLE.pack(magic, version, 0, *fields)))
    return PREAMBLE.pack(magic, version, check, *fields) + header + tail


def retyped(header: Any, r: random.Random) -> bool:
    """All operands of a type that hold no value become operands of another one, and their ports, too; some operation
    becomes the host's, which takes any type."""
    model = r.choice(header["models"])
    operands = model["operands"]
    free = sorted({o["type"] for o in operands if not {"hex", "blob", "model", "no_value"} & o.keys()})
    new, prefix = r.choice((*TENSORS, *HOST_TYPES)), header["extension"]["prefix"]
    if not free or not model["operations"]:
        return False
    old, code = r.choice(free), new if new >> 16 == 0 else prefix << 16 | new & 0xFFFF
    for i, o in enumerate(operands):
        if o["type"] == old and not {"hex", "blob"} & o.keys():
            o["type"] = code
            for side in ("inputs", "outputs"):
                for port, index in zip(model["ports"][side], model[side], strict=False):
                    if index == i:
                        port["dtype"] = new.dtype.name
    for operation in model["operations"]:
        _hosted(operation, header["extension"], r)
    return True


def _hosted(operation: Any, extension: Any, r: random.Random) -> None:
    """The host's version of one of NNAPI's operations."""
    found = next((o for o in OPS.values() if o.code == operation[0] and not o.host), None)
    if found is not None and r.random() < 0.8:
        twin = host_twin(found)
        if twin.code is not None:
            operation[0] = extension["prefix"] << 16 | twin.code & 0xFFFF
            extension["operations"][str(twin.code & 0xFFFF)] = twin.name


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value within a JSON value: what holds it, and its key or index there."""
    todo = [value]
    for held in todo:
        for key, inner in (held.items() if isinstance(held, dict) else enumerate(held)):
            yield held, key
            if isinstance(inner, dict | list) and inner:
                todo.append(inner)


def changed(value: Any, r: random.Random) -> Any:
    """The value with something in it changed; keys say what it may become."""
    every = list(places(value))
    if not every:
        return value
    held, key = r.choice(every)
    old, way = held[key], r.random()
    if way < 0.1:
        like = [h[k] for h, k in every if k == key and type(h) is type(held)] or [old]
        held[key] = json.loads(json.dumps(r.choice(like)))
    elif way < 0.18:
        del held[key]
    elif way < 0.22:
        held[key] = r.choice((None, True, -1, 0.5, 1e308, "", [], {}, [[]], 1 << 80))
    else:
        held[key] = another(old, r)
    return value


def another(old: Any, r: random.Random) -> Any:
    """Another value of the same kind; of what is empty, something else."""
    if isinstance(old, list):
        return numbers.changed(old, r, lambda r, v: v if isinstance(v, dict | list) else another(v, r))
    if isinstance(old, dict) and old:
        return {k: old[k] for k in r.sample(list(old), len(old) - 1)}
    return _scalar(old, r)


def _scalar(old: Any, r: random.Random) -> Any:
    """Another truth value, number or text."""
    match old:
        case bool():
            new: Any = not old
        case int():
            new = r.choice(CODES) if r.random() < 0.3 else numbers.whole(r, old, -1 << 80, 1 << 80)
        case float():
            new = r.choice((0.0, -1.0, 1e-320, 1e300, old * 2, -old))
        case str():
            new = _text(old, r)
        case _:
            new = r.choice((0, "", [], {}))
    return new


def _text(old: str, r: random.Random) -> str:
    """Another text; digits of bytes stay digits most of the time."""
    if len(old) >= 2 and r.random() < 0.6:
        at = r.randrange(len(old))
        return r.choice((old[:at] + r.choice("0123456789abcdef") + old[at + 1:], old[:-2], old + old[:2]))
    return r.choice(TEXTS)
