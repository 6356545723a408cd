"""Object files (ELF, x86-64 or aarch64) in memory, ready to be called: what a linker does, for code that needs little.

LLVM's own linker would do, too; but it takes a sixth of a second to import, and it frees its code when the
interpreter ends, under the feet of threads that wait in it.
"""
from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...frozen import frozen

#: Section types and flags, symbol types: System V ABI, ELF-64.
PROGRAM, SYMBOLS, RELOCATIONS, ZEROS, ALLOCATED = 1, 2, 4, 8, 2
#: A symbol that only its own file knows.
LOCAL = 0
X86, AARCH64 = 62, 183
#: Relocations by machine: addresses, and distances of 32 bits. Those that only aarch64 has: branches, the page of an
#: address, and the place in it, by what an instruction counts it in (ELF for the Arm 64-bit Architecture).
ABSOLUTE, RELATIVE = {X86: 1, AARCH64: 257}, {X86: (2, 4), AARCH64: (261,)}
BRANCHES, PAGES, PLACES = (282, 283), 275, {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
#: How a call reaches what is too far away: `jmp [rip]` or `ldr x16, .+8; br x16`, and the address behind it.
JUMP, STUB = {X86: b"\xff\x25\0\0\0\0", AARCH64: b"\x50\0\0\x58\0\x02\x1f\xd6"}, 16
#: The bytes that addresses' pages have for aarch64's instructions, whatever the system's pages are.
GRAIN = 4096
#: Sections stay this far apart, so that each keeps the alignment it asks for.
PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None)


@frozen
class Section:
    """A section header."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass
class Image:
    """An object file: its sections, and each symbol as (name, whether others see it, section, value in it).

    `places` are where sections with code or constants are in memory. Raises `ValueError` where it is none.
    """

    data: bytes
    sections: list[Section] = field(default_factory=list)
    symbols: list[tuple[str, bool, int, int]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    machine: int = 0

    def __post_init__(self) -> None:
        self.sections = list(self._headers())
        table = next(s for s in self.sections if s.kind == SYMBOLS)
        names = self.sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
            text = self.data[names + name:self.data.index(b"\0", names + name)].decode()
            self.symbols.append((text, info >> 4 != LOCAL, section, value))

    def _headers(self) -> Iterator[Section]:
        kind, self.machine = struct.unpack_from("<HH", self.data, 16)
        if self.data[:6] != b"\x7fELF\x02\x01" or kind != 1 or self.machine not in (X86, AARCH64):
            raise ValueError("is no object file for x86-64 or aarch64")
        (start,), (size, count) = struct.unpack_from("<Q", self.data, 40), struct.unpack_from("<HH", self.data, 58)
        for n in range(count):
            _, kind, flags, _, offset, length, link, info, align, _ = struct.unpack_from(
                "<IIQQQQIIQQ", self.data, start + n * size)
            yield Section(kind, flags, offset, length, link, info, align)

    def lay_out(self, at: int) -> int:
        """Give the sections places from there on; where the next image may begin."""
        for n, s in enumerate(self.sections):
            if s.flags & ALLOCATED and s.kind in (PROGRAM, ZEROS):
                at = -(-at // max(s.align, 16)) * max(s.align, 16)
                self.places[n], at = at, at + s.size
        return at


class Loaded:
    """The code and constants of object files that may call each other. They are freed with it."""

    def __init__(self, images: Sequence[bytes]) -> None:
        found = [Image(data) for data in images]
        end = 0
        for image in found:
            end = image.lay_out(end)
        self._end = -(-end // 16) * 16
        self._names = {name: image.places[section] + value for image in found
                       for name, shared, section, value in image.symbols if shared and section in image.places}
        self._stubs: dict[str, int] = {}
        outside = {name for image in found for name, _, section, _ in image.symbols
                   if name and not section and name not in self._names}
        self._memory = mmap.mmap(-1, max(-(-(self._end + STUB * len(outside)) // PAGE), 1) * PAGE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for image in found:
            self._fill(image)
        if _libc.mprotect(ctypes.c_void_p(self._base), ctypes.c_size_t(len(self._memory)), 5):    # read, execute
            raise OSError("memory cannot be made executable")

    def address(self, symbol: str) -> int:
        """Where a function begins; raises `KeyError` where there is none of that name."""
        return self._base + self._names[symbol]

    def _fill(self, image: Image) -> None:
        for n, at in image.places.items():
            s = image.sections[n]
            if s.kind == PROGRAM:
                self._memory[at:at + s.size] = image.data[s.offset:s.offset + s.size]
        for s in image.sections:
            if s.kind == RELOCATIONS and s.info in image.places:
                for offset, info, addend in struct.iter_unpack("<QQq", image.data[s.offset:s.offset + s.size]):
                    self._relocate(image, image.places[s.info] + offset, info, addend)

    def _relocate(self, image: Image, at: int, info: int, addend: int) -> None:
        symbol, kind = info >> 32, info & 0xFFFFFFFF
        to = self._place(image, symbol) + addend
        if kind == ABSOLUTE[image.machine]:
            struct.pack_into("<Q", self._memory, at, self._base + to)
        elif kind in RELATIVE[image.machine]:
            struct.pack_into("<i", self._memory, at, to - at)
        elif image.machine == AARCH64:
            code, = struct.unpack_from("<I", self._memory, at)
            struct.pack_into("<I", self._memory, at, code | field_of(kind, at, to))
        else:
            raise ValueError(f"has a relocation of kind {kind}")

    def _place(self, image: Image, symbol: int) -> int:
        """Where a symbol is in memory: in its image, in another one, or a jump into the C library."""
        name, _, section, value = image.symbols[symbol]
        if section:
            return image.places[section] + value
        return self._names[name] if name in self._names else self._stub(name, JUMP[image.machine])

    def _stub(self, name: str, jump: bytes) -> int:
        if name not in self._stubs:
            target = ctypes.cast(getattr(_libc, name), ctypes.c_void_p).value
            self._memory[self._end:self._end + len(jump) + 8] = jump + struct.pack("<Q", target)
            self._stubs[name], self._end = self._end, self._end + STUB
        return self._stubs[name]


def field_of(kind: int, at: int, to: int) -> int:
    """The bits that a relocation puts into an instruction of aarch64; raises `ValueError` where it is of no such."""
    if kind in BRANCHES:
        return (to - at) >> 2 & (1 << 26) - 1
    if kind == PAGES:
        pages = to // GRAIN - at // GRAIN
        return (pages & 3) << 29 | (pages >> 2 & (1 << 19) - 1) << 5
    if kind in PLACES:
        return to % GRAIN >> PLACES[kind] << 10
    raise ValueError(f"has a relocation of kind {kind}")
