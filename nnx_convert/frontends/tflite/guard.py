"""FlatBuffers through the generated accessors, nothing trusted.

The classes of the `tflite` package are the schema. They reach the bytes through a `Table`, which checks
nothing: an offset past the end is a `struct.error` at best, and one before the beginning reads from the end.
`Checked` is a `Table` that checks every read. An accessor hands out children on plain tables, so each child
goes through `File.adopt` before it is used. Offsets may alias: `File.spend` bounds the work.
"""
from __future__ import annotations

from typing import Any, TypeVar

import flatbuffers.number_types as numbers
import numpy as np
from flatbuffers.table import Table

from ...errors import FormatError

T = TypeVar("T")
#: A FlatBuffer's own offsets reach no further; what lies beyond is reached by `Buffer.offset`.
REACH = 1 << 32
#: A vtable holds its own size and the table's, two bytes each, before the offsets of the fields.
VTABLE_HEAD = 4
#: What a table costs against the budget, beside the strings and numbers it is asked for, and an offset to one.
#: The least that a sound file spends on either is four bytes, of which each buys BUDGET.
TABLE_COST, OFFSET_COST, BUDGET = 16, 8, 4


class File:
    """A file's bytes, and how much of it may still be read.

    `data`: bytes, an mmap or any other buffer; nothing of it is copied.
    """

    def __init__(self, data: Any) -> None:
        self.bytes = memoryview(data).cast("B")
        self.size = len(self.bytes)
        self.end = min(self.size, REACH)
        self._left = BUDGET * self.size + 1024

    def spend(self, work: int) -> None:
        """Account for work that aliased offsets could multiply; raises `FormatError` beyond what the size allows."""
        self._left -= work
        if self._left < 0:
            raise FormatError("its tables refer to each other more often than a file of this size can mean")

    def within(self, pos: int, length: int) -> int:
        """The position, if `length` bytes follow it; raises `FormatError`."""
        if not 0 <= pos <= self.end - length:
            raise FormatError(f"an offset leads to byte {pos} of {self.size}")
        return pos

    def adopt(self, child: T) -> T:
        """The child that an accessor gave, on a checked table; raises `FormatError` on a broken vtable."""
        self.spend(TABLE_COST)
        child._tab = Checked(self, child._tab.Pos)  # type: ignore[attr-defined]
        return child

    def table(self, kind: type[T], pos: int) -> T:
        """The table of a generated class at a position; raises `FormatError` on a broken vtable."""
        self.spend(TABLE_COST)
        made = kind()
        made._tab = Checked(self, pos)  # type: ignore[attr-defined]
        return made

    def root(self, kind: type[T], magic: bytes) -> T:
        """The file's root table; raises `FormatError` where the file's identifier is another."""
        found = bytes(self.bytes[4:8])
        if found != magic:
            raise FormatError(f"is not a {magic.decode()} file: its identifier is {found!r}")
        return self.table(kind, int(numbers.UOffsetTFlags.packer_type.unpack_from(self.bytes, self.within(0, 4))[0]))

    def view(self, offset: int, size: int) -> np.ndarray:
        """Bytes anywhere in the file; raises `FormatError` beyond its end."""
        if offset + size > self.size:
            raise FormatError(f"{size} bytes at byte {offset} pass the end of the file, {self.size}")
        return np.frombuffer(self.bytes, np.uint8, size, offset)


class Checked(Table):  # type: ignore[misc]
    """A table whose every read is checked. Offsets that accessors pass are relative to what `Table` says."""

    def __init__(self, file: File, pos: int) -> None:
        self._file, self.Bytes, self.Pos = file, file.bytes, pos
        self._vtable = vtable = pos - self.Get(numbers.SOffsetTFlags, pos)
        self._vtable_size = size = self.Get(numbers.VOffsetTFlags, vtable)
        if size < VTABLE_HEAD or size % 2:
            raise FormatError(f"the table at byte {pos} has a vtable of {size} bytes")
        file.within(vtable, size)

    def Offset(self, vtableOffset: int) -> int:  # noqa: N803
        """Where a field is within the table, by its entry in the vtable; 0 where the file leaves it out."""
        if vtableOffset >= self._vtable_size:
            return 0
        return int(numbers.VOffsetTFlags.packer_type.unpack_from(self.Bytes, self._vtable + vtableOffset)[0])

    def Get(self, flags: Any, off: int) -> Any:
        """A number at a position."""
        return flags.packer_type.unpack_from(self.Bytes, self._file.within(off, flags.bytewidth))[0]

    def Indirect(self, off: int) -> int:
        """The position that an offset at a position leads to."""
        return self._file.within(off + int(self.Get(numbers.UOffsetTFlags, off)), 4)

    def String(self, off: int) -> bytes:
        """The bytes of a string, by the position of its offset."""
        start = self.Indirect(off)
        length = int(self.Get(numbers.UOffsetTFlags, start))
        self._file.spend(length)
        self._file.within(start + 4, length)
        return bytes(self.Bytes[start + 4:start + 4 + length])

    def Vector(self, off: int) -> int:
        """The position of a vector's first element, by its offset within the table."""
        return self.Indirect(off + self.Pos) + 4

    def VectorLen(self, off: int) -> int:
        """The number of a vector's elements, of at least a byte each."""
        start = self.Indirect(off + self.Pos)
        count = int(self.Get(numbers.UOffsetTFlags, start))
        self._file.within(start + 4, count)
        return count

    def Union(self, t2: Table, off: int) -> None:
        """Point a table at the member of a union."""
        t2.Pos, t2.Bytes = self.Indirect(off + self.Pos), self.Bytes

    def GetVectorAsNumpy(self, flags: Any, off: int) -> np.ndarray:
        """A vector of numbers, as a view."""
        count, start = self.VectorLen(off), self.Vector(off)
        self._file.within(start, count * flags.bytewidth)
        if flags.bytewidth > 1:                  # bytes are weights: nobody goes through them one by one
            self._file.spend(count)
        return np.frombuffer(self.Bytes, _DTYPES[flags], count, start)


_DTYPES = {flags: np.dtype(flags.name).newbyteorder("<") for flags in (
    numbers.Uint8Flags, numbers.Uint16Flags, numbers.Uint32Flags, numbers.Uint64Flags, numbers.Int8Flags,
    numbers.Int16Flags, numbers.Int32Flags, numbers.Int64Flags, numbers.Float32Flags, numbers.Float64Flags,
    numbers.BoolFlags)}


class Absent(Table):  # type: ignore[misc]
    """The table of which the file has none: every field reads as the schema's default."""

    def __init__(self) -> None:
        self.Bytes, self.Pos = b"", 0

    def Offset(self, vtableOffset: int) -> int:  # noqa: N803
        """No field is there."""
        return 0


def absent(kind: type[T]) -> T:
    """A table of a generated class as it reads where the file leaves it out."""
    made = kind()
    made._tab = Absent()  # type: ignore[attr-defined]
    return made
