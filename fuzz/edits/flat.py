"""TFLite's FlatBuffer as a tree, and a tree as a FlatBuffer that says where everything in it is.

A table is a `Table`: its fields by their numbers. A field is an integer or a float (`SCALARS`), the bytes of a vector
of bytes or a text, a list of numbers, a table, or a list of tables. Options, whose tables are many, have fields as
raw bytes, but for those that are vectors.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

SCALARS = {"i8": "<b", "u8": "<B", "u16": "<H", "i32": "<i", "u32": "<I", "f32": "<f", "i64": "<q", "u64": "<Q"}
#: The fields of each table: a scalar, "[scalar]", "bytes", a table's name, or "[name]"; "" is what no reader looks at.
SCHEMA: dict[str, tuple[str, ...]] = {
    "Model": ("u32", "[OperatorCode]", "[SubGraph]", "bytes", "[Buffer]", "[i32]", "[Metadata]", "[SignatureDef]"),
    "OperatorCode": ("i8", "bytes", "i32", "i32"),
    "SubGraph": ("[Tensor]", "[i32]", "[i32]", "[Operator]", "bytes", "i32"),
    "Tensor": ("[i32]", "i8", "u32", "bytes", "Quantization", "u8", "Sparsity", "[i32]", "u8", ""),
    "Quantization": ("[f32]", "[f32]", "[f32]", "[i64]", "u8", "Options", "i32"),
    "Sparsity": ("[i32]", "[i32]", "[Level]"),
    "Level": ("i8", "i32", "u8", "Index", "u8", "Index"),
    "Operator": ("u32", "[i32]", "[i32]", "u8", "Options", "bytes", "i8", "bytes", "[i32]", "u64", "u64", "u8",
                 "Options", "i32"),
    "Buffer": ("bytes", "u64", "u64"),
    "Metadata": ("bytes", "u32"),
    "SignatureDef": ("[TensorMap]", "[TensorMap]", "bytes", "", "u32"),
    "TensorMap": ("bytes", "u32"),
    # The members of unions. Which one it is says a field beside them; these vectors are read by that.
    "Index": (), "Options": (),
    "Int32Vector": ("[i32]",), "Uint16Vector": ("[u16]",), "Uint8Vector": ("bytes",),
    "ReshapeOptions": ("[i32]",), "SqueezeOptions": ("[i32]",), "BucketizeOptions": ("[f32]",),
    "VarHandleOptions": ("bytes", "bytes"),
}
INDICES = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}
#: Codes in BuiltinOptions.
OPTIONS = {17: "ReshapeOptions", 30: "SqueezeOptions", 115: "BucketizeOptions", 111: "VarHandleOptions"}
#: Which field of a table says what the union in another one is.
SAID = {("Level", 3): (2, INDICES), ("Level", 5): (4, INDICES), ("Operator", 4): (3, OPTIONS)}
#: Tables that a tree may have: offsets may alias, and a tree has each alias apart.
MOST = 20_000


@dataclass
class Table:
    """A table: the name of its kind in `SCHEMA`, its fields by their numbers."""

    kind: str
    fields: dict[int, Any] = field(default_factory=dict[int, Any])


@dataclass
class Sites:
    """Where things are in a file: offsets, the counts of vectors, and the entries of vtables."""

    offsets: list[int] = field(default_factory=list[int])
    counts: list[int] = field(default_factory=list[int])
    entries: list[int] = field(default_factory=list[int])


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.left = data, MOST

    def number(self, kind: str, at: int) -> Any:
        if at < 0:
            raise ValueError("before the beginning")
        return struct.unpack_from(SCALARS[kind], self.data, at)[0]

    def follow(self, at: int) -> int:
        return int(at + self.number("u32", at))

    def table(self, kind: str, at: int) -> Table:
        self.left -= 1
        if self.left < 0:
            raise ValueError("too many tables")
        vtable = at - self.number("i32", at)
        size, inline = self.number("u16", vtable), self.number("u16", vtable + 2)
        places = {n: self.number("u16", vtable + 4 + 2 * n) for n in range((size - 4) // 2)}
        found, schema = Table(kind), SCHEMA[kind]
        ends = sorted({*places.values(), inline} - {0})
        for n, offset in places.items():
            if offset and n < len(schema):
                found.fields[n] = self.value(self.said(found, n, schema[n]), at + offset)
            elif offset and not schema and offset < inline:
                end = next((e for e in ends if e > offset), inline)
                width = 1 << min((end - offset).bit_length() - 1, 3)
                found.fields[n] = self.data[at + offset:at + offset + width]
        return found

    def said(self, table: Table, n: int, kind: str) -> str:
        if (table.kind, n) not in SAID:
            return kind
        where, names = SAID[table.kind, n]
        return names.get(table.fields.get(where) or 0, kind)

    def value(self, kind: str, at: int) -> Any:
        if kind in SCALARS:
            return self.number(kind, at)
        if not kind:
            return None
        start = self.follow(at)
        if kind in SCHEMA:
            return self.table(kind, start)
        count, start = self.number("u32", start), start + 4
        if kind == "bytes":
            return self.data[start:start + count]
        inner = kind[1:-1]
        if inner in SCALARS:
            letter = SCALARS[inner][1]
            return list(struct.unpack_from(f"<{count}{letter}", self.data, start))
        return [self.table(inner, self.follow(start + 4 * i)) for i in range(min(count, MOST))]


def tree(data: bytes) -> Table | None:
    """The file's tree; None where it is not sound."""
    try:
        reader = _Reader(data)
        return reader.table("Model", reader.follow(0))
    except (struct.error, ValueError, MemoryError, RecursionError):
        return None


class _Writer:
    def __init__(self) -> None:
        self.out, self.sites = bytearray(b"\0\0\0\0TFL3"), Sites()

    def align(self, n: int, ahead: int = 0) -> None:
        self.out += bytes(-(len(self.out) + ahead) % n)

    def refer(self, at: int) -> None:
        self.sites.offsets.append(at)
        struct.pack_into("<I", self.out, at, len(self.out) - at)

    def whole(self, root: Table) -> None:
        """Every table behind the one that refers to it."""
        todo: list[tuple[int, Any, str]] = [(0, root, "Model")]
        for at, value, kind in todo:
            if isinstance(value, Table):
                todo += self.placed(at, value)
            elif kind == "bytes" or not value or not isinstance(value[0], Table):
                self.vector(at, value, kind)
            else:
                todo += self.tables(at, value, kind)

    def placed(self, at: int, t: Table) -> list[tuple[int, Any, str]]:
        """The vtable and the table; what it refers to is to be written."""
        kinds = {n: _kind(t, n) for n, v in t.fields.items() if v is not None}
        widths = {n: _width(kinds[n], t.fields[n]) for n in kinds}
        order, offsets, end = sorted(kinds, key=lambda n: (-widths[n], n)), {}, 4
        for n in order:
            end += -end % (widths[n] or 1)               # what was cut out whole has no bytes
            offsets[n] = end
            end += widths[n]
        count = max(kinds, default=-1) + 1
        vtable = [4 + 2 * count, end, *(offsets.get(n, 0) for n in range(count))]
        self.align(8, 2 * len(vtable))
        start = len(self.out)
        self.sites.entries += range(start, start + 2 * len(vtable), 2)
        self.out += struct.pack(f"<{len(vtable)}H", *(v & 0xFFFF for v in vtable))
        here = len(self.out)
        self.refer(at)
        self.out += struct.pack("<i", here - start) + bytes(end - 4)
        left = []
        for n, kind in kinds.items():
            if kind == "raw":
                self.out[here + offsets[n]:here + offsets[n] + widths[n]] = t.fields[n]
            elif kind in SCALARS:
                struct.pack_into(SCALARS[kind], self.out, here + offsets[n], t.fields[n])
            else:
                left.append((here + offsets[n], t.fields[n], kind))
        return left

    def vector(self, at: int, values: Any, kind: str) -> None:
        letter = "" if kind == "bytes" else SCALARS.get(kind[1:-1], "<I")[1]
        self.align(16 if kind == "bytes" else 8, 4)
        self.refer(at)
        self.sites.counts.append(len(self.out))
        self.out += struct.pack("<I", len(values))
        self.out += bytes(values) + b"\0" if kind == "bytes" else struct.pack(f"<{len(values)}{letter}", *values)

    def tables(self, at: int, values: list[Table], kind: str) -> list[tuple[int, Any, str]]:
        self.align(4)
        self.refer(at)
        self.sites.counts.append(len(self.out))
        self.out += struct.pack("<I", len(values))
        start = len(self.out)
        self.out += bytes(4 * len(values))
        return [(start + 4 * i, v, kind[1:-1]) for i, v in enumerate(values)]


def _kind(t: Table, n: int) -> str:
    schema = SCHEMA[t.kind]
    return schema[n] if n < len(schema) else "raw"


def _width(kind: str, value: Any) -> int:
    return len(value) if kind == "raw" else struct.calcsize(SCALARS[kind]) if kind in SCALARS else 4


def packed(root: Table) -> tuple[bytes, Sites]:
    """The file of a tree, and where what is in it."""
    writer = _Writer()
    writer.whole(root)
    return bytes(writer.out), writer.sites
