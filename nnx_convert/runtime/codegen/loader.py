"""An object file (ELF, x86-64) in memory, ready to be called: what a dynamic linker does, for code that needs little.

LLVM's own linker would do, too; but it takes a sixth of a second to import, and it frees its code when the
interpreter ends, under the feet of threads that wait in it.
"""
from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

#: Section types and flags, symbol types, relocations: System V ABI, ELF-64 and its x86-64 supplement.
PROGRAM, SYMBOLS, RELOCATIONS, ZEROS, ALLOCATED = 1, 2, 4, 8, 2
ABSOLUTE, RELATIVE, CALL, SIGNED = 1, 2, 4, 11
#: `jmp [rip]`, and the address behind it: how a call reaches what is too far away.
JUMP, STUB = b"\xff\x25\0\0\0\0", 16
#: Sections stay this far apart, so that each keeps the alignment it asks for.
PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Section:
    """A section header; `at` is its place in memory where it has one."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class Loaded:
    """An object file's code and constants. They are freed with it."""

    def __init__(self, image: bytes) -> None:
        self._image = image
        self._sections = list(self._headers())
        table = next(s for s in self._sections if s.kind == SYMBOLS)
        names = self._sections[table.link]
        self._symbols = [struct.unpack_from("<IBBHQQ", image, table.offset + i)
                         for i in range(0, table.size, 24)]
        self._names = [image[names.offset + s[0]:image.index(b"\0", names.offset + s[0])].decode()
                       for s in self._symbols]
        self._places, size = self._laid_out()
        self._stubs: dict[str, int] = {}
        self._end = size
        outside = {n for n, s in zip(self._names, self._symbols, strict=True) if n and not s[3]}
        self._memory = mmap.mmap(-1, -(-(size + STUB * len(outside)) // PAGE) * PAGE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._filled()
        if _libc.mprotect(ctypes.c_void_p(self._base), ctypes.c_size_t(len(self._memory)), 5):    # read, execute
            raise OSError("memory cannot be made executable")

    def address(self, symbol: str) -> int:
        """Where a function begins; raises `KeyError` where there is none of that name."""
        if symbol not in self._names:
            raise KeyError(symbol)
        return self._value(self._names.index(symbol))

    def _headers(self) -> Iterator[Section]:
        if self._image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", self._image, 16) != (1, 62):
            raise ValueError("is no object file for x86-64")
        (start,), (size, count) = struct.unpack_from("<Q", self._image, 40), struct.unpack_from("<HH", self._image, 58)
        for n in range(count):
            _, kind, flags, _, offset, length, link, info, align, _ = struct.unpack_from(
                "<IIQQQQIIQQ", self._image, start + n * size)
            yield Section(kind, flags, offset, length, link, info, align)

    def _laid_out(self) -> tuple[dict[int, int], int]:
        """Section -> offset in memory, and how much that is."""
        places: dict[int, int] = {}
        at = 0
        for n, s in enumerate(self._sections):
            if s.flags & ALLOCATED and s.kind in (PROGRAM, ZEROS):
                at = -(-at // max(s.align, 16)) * max(s.align, 16)
                places[n], at = at, at + s.size
        return places, -(-at // 16) * 16

    def _filled(self) -> None:
        for n, at in self._places.items():
            s = self._sections[n]
            if s.kind == PROGRAM:
                self._memory[at:at + s.size] = self._image[s.offset:s.offset + s.size]
        for s in self._sections:
            if s.kind == RELOCATIONS and s.info in self._places:
                for at in range(s.offset, s.offset + s.size, 24):
                    self._relocate(self._places[s.info], *struct.unpack_from("<QQq", self._image, at))

    def _relocate(self, section: int, offset: int, info: int, addend: int) -> None:
        symbol, kind, at = info >> 32, info & 0xFFFFFFFF, section + offset
        if kind == ABSOLUTE:
            struct.pack_into("<Q", self._memory, at, self._value(symbol) + addend)
        elif kind in (RELATIVE, CALL):
            struct.pack_into("<i", self._memory, at, self._value(symbol) + addend - self._base - at)
        else:
            raise ValueError(f"has a relocation of kind {kind}")

    def _value(self, symbol: int) -> int:
        """The address of a symbol; one of the C library is reached by a jump."""
        section, value = int(self._symbols[symbol][3]), int(self._symbols[symbol][4])
        if section:
            return self._base + self._places[section] + value
        name = self._names[symbol]
        if name not in self._stubs:
            target = ctypes.cast(getattr(_libc, name), ctypes.c_void_p).value
            self._memory[self._end:self._end + 14] = JUMP + struct.pack("<Q", target)
            self._stubs[name], self._end = self._end, self._end + STUB
        return self._base + self._stubs[name]
