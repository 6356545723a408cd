"""JPEG 2000 without loss, as pixels: one tile, the whole image a precinct, the 5/3 wavelet.

Source: ITU-T T.800: packets (annex B), the MQ decoder (C), bit planes (D), the inverse transforms (F, G).
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from ..errors import RunError
from ..frozen import frozen
from ..types import Array
from .mq import Decoder

#: More pixels than is worth waiting for: the decoder goes from bit to bit.
LARGEST = 1 << 22
#: The width and the height of code blocks.
BLOCK = 64


@dataclass
class Tree:
    """A tag tree: the least of what stands below each node, told step by step."""

    width: int
    height: int
    levels: list[tuple[int, int]] = field(default_factory=list)
    values: dict[tuple[int, int, int], int] = field(default_factory=dict)
    settled: set[tuple[int, int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        w, h = self.width, self.height
        self.levels = [(w, h)]
        while w > 1 or h > 1:
            w, h = -(-w // 2), -(-h // 2)
            self.levels.append((w, h))

    def below(self, bits: Bits, x: int, y: int, limit: int) -> bool:
        """Read until it is known whether the value of a leaf is below a limit."""
        low = 0
        for level in range(len(self.levels) - 1, -1, -1):
            node = (level, x >> level, y >> level)
            low = max(low, self.values.get(node, 0))
            while low < limit and node not in self.settled:
                if bits.one():
                    self.settled.add(node)
                else:
                    low += 1
            self.values[node] = low
        return low < limit


class Bits:
    """The bits of a packet's head; after a byte of ones the next has seven."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at, self.left, self.byte = data, at, 0, 0

    def one(self) -> int:
        """The next bit."""
        if not self.left:
            self.left, self.byte = 7 if self.byte == 0xFF else 8, self.data[self.at]
            self.at += 1
        self.left -= 1
        return self.byte >> self.left & 1

    def number(self, count: int) -> int:
        """A number of so many bits."""
        found = 0
        for _ in range(count):
            found = 2 * found + self.one()
        return found

    def end(self) -> int:
        """Where the bytes after the head begin."""
        return self.at + (self.byte == 0xFF)


@dataclass
class Piece:
    """A code block: its place in the band, its bytes, its passes, and how many bit planes are all zero."""

    x: int
    y: int
    width: int
    height: int
    data: bytes = b""
    passes: int = 0
    zero: int = 0
    bits: int = 3


@dataclass
class Band:
    """A sub-band: "LL", "HL", "LH" or "HH", its sizes, its bit planes, and its code blocks in a grid."""

    kind: str
    width: int
    height: int
    planes: int
    columns: int = field(init=False)
    pieces: list[Piece] = field(init=False)
    included: Tree = field(init=False)
    zeros: Tree = field(init=False)

    def __post_init__(self) -> None:
        self.columns, rows = -(-self.width // BLOCK), -(-self.height // BLOCK)
        self.pieces = [Piece(x, y, min(BLOCK, self.width - x), min(BLOCK, self.height - y))
                       for y in range(0, self.height, BLOCK) for x in range(0, self.width, BLOCK)]
        self.included, self.zeros = Tree(self.columns, rows), Tree(self.columns, rows)


@frozen
class Header:
    """What the main header says."""

    width: int
    height: int
    components: int
    order: int
    layers: int
    mixed: bool
    depth: int
    guard: int
    exponents: tuple[int, ...]


def decoded(data: bytes) -> Array:
    """The pixels [height, width, 1 or 3] of a file or a code stream; raises `RunError`, `ValueError`."""
    start = data.index(b"\xff\x4f\xff\x51")
    header, at = _header(data, start + 2)
    resolutions = [[_bands(header, r) for r in range(header.depth + 1)] for _ in range(header.components)]
    turns = product(range(header.layers), range(header.depth + 1))
    for layer, r in turns if header.order == 0 else sorted(turns, key=lambda turn: turn[::-1]):
        for component in resolutions:
            at = _packet(data, at, component[r], layer)
    planes = [_plane(header, bands) for bands in resolutions]
    if header.mixed:
        green = planes[0] - ((planes[1] + planes[2]) >> 2)
        planes = [planes[2] + green, green, planes[1] + green]
    return np.asarray(np.clip(np.stack(planes, -1) + 128, 0, 255), np.uint8)


def _header(data: bytes, at: int) -> tuple[Header, int]:
    """The header, and where the packets begin."""
    found: dict[int, bytes] = {}
    while data[at:at + 2] != b"\xff\x93":
        marker, size = struct.unpack_from(">HH", data, at)
        found.setdefault(marker, data[at + 4:at + 2 + size])
        at += 2 + size
    _, width, height, x0, y0, tw, th, _, _, count = struct.unpack_from(">H8IH", found[0xFF51])
    kinds = {found[0xFF51][36 + 3 * i:39 + 3 * i] for i in range(count)}
    if not 0 < width * height <= LARGEST:
        raise RunError(f"the image file is a JPEG 2000 of {width} by {height} pixels, {LARGEST} are read at most")
    style, order, layers, mixed, depth, bw, bh, how, wavelet = struct.unpack_from(">BBHBBBBBB", found[0xFF52])
    plain = (style, bw, bh, how, wavelet) == (0, 4, 4, 0, 1) and order < 2 and found[0xFF5C][0] & 31 == 0
    if not plain or (x0, y0) != (0, 0) or tw < width or th < height or kinds != {b"\7\1\1"} or count not in (1, 3) \
            or depth > 32 or mixed and count != 3:
        raise RunError("the image file is a JPEG 2000 with losses, tiles or other ways of coding, which is not read")
    quantised = found[0xFF5C]
    exponents = tuple(b >> 3 for b in quantised[1:3 * depth + 2])
    return Header(width, height, count, order, layers, bool(mixed), depth, quantised[0] >> 5, exponents), at + 2


def _sizes(header: Header, level: int, right: bool, below: bool) -> tuple[int, int]:
    """The width and the height of what is left of an image after so many halvings."""
    def size(n: int, high: bool) -> int:
        half = 1 << (level - 1) if high else 0
        return max(0, -(-(n - half) // (1 << level)))
    return size(header.width, right), size(header.height, below)


def _bands(header: Header, r: int) -> list[Band]:
    """The sub-bands of a resolution."""
    if r == 0:
        return [Band("LL", *_sizes(header, header.depth, False, False), header.guard + header.exponents[0] - 1)]
    level = header.depth - r + 1
    return [Band(kind, *_sizes(header, level, kind[0] == "H", kind[1] == "H"),
                 header.guard + header.exponents[3 * r - 2 + i] - 1) for i, kind in enumerate(("HL", "LH", "HH"))]


def _packet(data: bytes, at: int, bands: list[Band], layer: int) -> int:
    """Read a packet; where the next one begins."""
    bits, taken = Bits(data, at), list[tuple[Piece, int]]()
    if bits.one():
        for band in bands:
            for i, piece in enumerate(band.pieces):
                taken += _told(bits, band, piece, i % band.columns, i // band.columns, layer)
    at = bits.end()
    for piece, size in taken:
        if at + size > len(data):
            raise ValueError("its data are cut short")
        piece.data += data[at:at + size]
        at += size
    return at


def _told(bits: Bits, band: Band, piece: Piece, x: int, y: int, layer: int) -> Iterator[tuple[Piece, int]]:
    """What a head says of a code block: how many bytes follow, if any."""
    if piece.passes:
        if not bits.one():
            return
    else:
        if not band.included.below(bits, x, y, layer + 1):
            return
        while not band.zeros.below(bits, x, y, piece.zero + 1):
            piece.zero += 1
            if piece.zero > band.planes:
                raise ValueError("more bit planes than there are")
    passes = _passes(bits)
    while bits.one():
        piece.bits += 1
    piece.passes += passes
    yield piece, bits.number(piece.bits + passes.bit_length() - 1)


def _passes(bits: Bits) -> int:
    """A number of passes."""
    if not bits.one():
        return 1
    if not bits.one():
        return 2
    for count, base, size in ((3, 3, 2), (31, 6, 5)):
        found = bits.number(size)
        if found < count:
            return base + found
    return 37 + bits.number(7)


def _plane(header: Header, resolutions: list[list[Band]]) -> Array:
    """The samples of a component."""
    image = _coefficients(resolutions[0][0])
    for bands in resolutions[1:]:
        right, below, both = map(_coefficients, bands)
        image = _joined(_joined(image, right, 1), _joined(below, both, 1), 0)
    return image


def _coefficients(band: Band) -> Array:
    """The coefficients of a sub-band."""
    found = np.zeros((band.height, band.width), np.int64)
    for p in band.pieces:
        if p.passes:
            found[p.y:p.y + p.height, p.x:p.x + p.width] = Decoder(p.data).block(
                p.width, p.height, band.kind, band.planes - p.zero, p.passes)
    return found


def _joined(low: Array, high: Array, axis: int) -> Array:
    """The inverse 5/3 transform along an axis of its low and its high half."""
    low, high = np.moveaxis(low, axis, 0), np.moveaxis(high, axis, 0)
    count = len(low) + len(high)
    made = np.zeros((count, *low.shape[1:]), np.int64)
    if not len(high):
        made[:] = low
        return np.moveaxis(made, 0, axis)
    before = high[np.clip(np.arange(len(low)) - 1, 0, len(high) - 1)]
    after = high[np.clip(np.arange(len(low)), 0, len(high) - 1)]
    made[0::2] = low - ((before + after + 2) >> 2)
    even = made[0::2]
    made[1::2] = high + ((even[:len(high)] + even[np.clip(np.arange(len(high)) + 1, 0, len(even) - 1)]) >> 1)
    return np.moveaxis(made, 0, axis)
