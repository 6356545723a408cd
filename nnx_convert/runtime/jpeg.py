"""Baseline JPEG as pixels, bit by bit as libjpeg decodes it.

Source: ITU-T T.81; the inverse transform is libjpeg's `jidctint`, colours its `jdcolor`, and chrominance of half the
size is spread as in `jdsample` (a triangle filter).
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import RunError
from ..types import Array

#: Where the n-th coefficient of a block stands in it, row by row.
ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
#: Frames that are not sequential Huffman ones, by their markers.
REFUSED = {0xC2: "progressive", 0xC3: "lossless", **dict.fromkeys(range(0xC9, 0xCC), "arithmetically coded"),
           **dict.fromkeys((0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical")}
#: More pixels than any image is taken for.
LARGEST = 1 << 28


@dataclass
class Component:
    """A colour: how often it is sampled, its quantisation table, and its blocks of coefficients [rows, columns, 64]."""

    name: int
    h: int
    v: int
    table: int
    blocks: Array = field(default_factory=lambda: np.zeros((0, 0, 64), np.int32))


@dataclass
class Frame:
    """What the markers of a file have said so far."""

    width: int = 0
    height: int = 0
    components: list[Component] = field(default_factory=list)
    tables: dict[int, Array] = field(default_factory=dict)                     # quantisation
    codes: dict[int, list[int]] = field(default_factory=dict)                  # Huffman, by class and number
    interval: int = 0
    transform: int = -1

    @property
    def most(self) -> tuple[int, int]:
        """How often the finest component is sampled, across and down."""
        return max(c.h for c in self.components), max(c.v for c in self.components)

    def size(self, c: Component) -> tuple[int, int]:
        """The rows and columns of a component."""
        h, v = self.most
        return -(-self.height * c.v // v), -(-self.width * c.h // h)


def sensible(width: int, height: int) -> None:
    """Raise `ValueError` where sizes are beyond sense."""
    if width < 1 or height < 1 or width * height > LARGEST:
        raise ValueError(f"{width} by {height} pixels")


def decoded(data: bytes) -> Array:
    """The pixels [height, width, 3], or [height, width, 1] of shades of grey; raises `RunError`, `ValueError`."""
    frame, at = Frame(), 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            raise ValueError(f"no marker at byte {at}")
        marker = data[at + 1]
        if marker == 0xD9:
            break
        if marker == 0xFF or marker in range(0xD0, 0xD8):
            at += 1 if marker == 0xFF else 2
            continue
        (size,) = struct.unpack_from(">H", data, at + 2)
        _segment(frame, marker, data[at + 4:at + 2 + size])
        at += 2 + size
        if sum(c.blocks[..., 0].size for c in frame.components) > 4 * len(data):     # a block has 2 bits at least
            raise ValueError("its data are cut short")
        if marker == 0xDA:
            at = _scan(frame, data, at - size + 2, at)
    if not frame.components:
        raise ValueError("no frame")
    return coloured(frame)


def _segment(frame: Frame, marker: int, body: bytes) -> None:
    """Take over what a marker says."""
    if marker in REFUSED:
        raise RunError(f"the image file is a JPEG that is {REFUSED[marker]}, which is not read")
    if marker == 0xDB:
        _quantisation(frame, body)
    elif marker == 0xC4:
        _huffman(frame, body)
    elif marker in (0xC0, 0xC1):
        _frame(frame, body)
    elif marker == 0xDD:
        (frame.interval,) = struct.unpack_from(">H", body)
    elif marker == 0xEE and body[:5] == b"Adobe":
        frame.transform = body[11]


def _quantisation(frame: Frame, body: bytes) -> None:
    while body:
        wide, number = body[0] >> 4, body[0] & 15
        kind, size = (">u2", 129) if wide else ("u1", 65)
        table = np.zeros(64, np.int32)
        table[ZIGZAG] = np.frombuffer(body, kind, 64, 1)
        frame.tables[number], body = table, body[size:]


def _huffman(frame: Frame, body: bytes) -> None:
    """Codes as a list that 16 bits look up: 256 times the length, and the symbol; 0 where there is none."""
    while body:
        counts = list(body[1:17])
        symbols, looked, code = body[17:17 + sum(counts)], [0] * 65536, 0
        if len(symbols) < sum(counts):
            raise ValueError("symbols are missing")
        taken = iter(symbols)
        for length, count in enumerate(counts, 1):
            for _ in range(count):
                first, span = code << (16 - length), 1 << (16 - length)
                if first + span > 65536:
                    raise ValueError("more codes than there are")
                looked[first:first + span] = [256 * length + next(taken)] * span
                code += 1
            code <<= 1
        frame.codes[body[0]], body = looked, body[17 + sum(counts):]


def _frame(frame: Frame, body: bytes) -> None:
    depth, frame.height, frame.width, count = struct.unpack_from(">BHHB", body)
    if depth != 8 or count not in (1, 3):
        raise RunError(f"the image file is a JPEG of {depth} bits and {count} colours, which is not read")
    sensible(frame.width, frame.height)
    frame.components = [Component(body[i], body[i + 1] >> 4, body[i + 1] & 15, body[i + 2])
                        for i in range(6, 6 + 3 * count, 3)]
    if not all(1 <= n <= 4 for c in frame.components for n in (c.h, c.v)):
        raise ValueError("a colour is sampled 0 times, or more than 4")
    h, v = frame.most
    across, down = -(-frame.width // (8 * h)), -(-frame.height // (8 * v))
    for c in frame.components:
        c.blocks = np.zeros((down * c.v, across * c.h, 64), np.int32)


class Bits:
    """The bits of coded data from a place on; zeros after its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.held, self.count = data, 0, 0, 0

    def fill(self) -> None:
        """Hold 32 bits at least."""
        chunk = self.data[self.at:self.at + 8]
        self.at += 8
        self.held = (self.held & ((1 << self.count) - 1)) << 64 | int.from_bytes(chunk, "big") << 8 * (8 - len(chunk))
        self.count += 64
        if self.at > len(self.data) + 64:
            raise ValueError("its data are cut short")

    def symbol(self, codes: list[int]) -> int:
        """The next symbol."""
        if self.count < 16:
            self.fill()
        found = codes[self.held >> (self.count - 16) & 0xFFFF]
        if not found:
            raise ValueError("a code that is none")
        self.count -= found >> 8
        return found & 255

    def number(self, size: int) -> int:
        """A number of so many bits, negative where the first is 0."""
        if not size:
            return 0
        if self.count < size:
            self.fill()
        self.count -= size
        found = self.held >> self.count & ((1 << size) - 1)
        return found if found >> (size - 1) else found - (1 << size) + 1


def _block(bits: Bits, to: list[int], dc: list[int], ac: list[int], before: int) -> int:
    """Read one block into 64 zeros; its first coefficient, of which only the difference is coded."""
    first = to[0] = before + bits.number(bits.symbol(dc))
    k = 1
    while k < 64:
        run, size = divmod(bits.symbol(ac), 16)
        if not size and run < 15:
            break
        k += run
        if size:
            to[ZIGZAG[k]] = bits.number(size)
        k += 1
    return first


def _scan(frame: Frame, data: bytes, head: int, at: int) -> int:
    """Read the blocks of a scan; where its data end."""
    count = data[head]
    named = {c.name: c for c in frame.components}
    chosen = [(named[data[i]], data[i + 1] >> 4, data[i + 1] & 15) for i in range(head + 1, head + 1 + 2 * count, 2)]
    end, parts = _coded(data, at)
    if count == 1:
        c = chosen[0][0]
        rows, columns = (-(-n // 8) for n in frame.size(c))
        places = [[(c, i // columns, i % columns)] for i in range(rows * columns)]
    else:
        down, across = (n // k for n, k in zip(frame.components[0].blocks.shape, (
            frame.components[0].v, frame.components[0].h), strict=False))
        places = [[(c, y * c.v + i, x * c.h + j) for c, _, _ in chosen for i in range(c.v) for j in range(c.h)]
                  for y in range(down) for x in range(across)]
    codes = {c.name: (frame.codes[dc], frame.codes[16 + ac]) for c, dc, ac in chosen}
    step = frame.interval or len(places)
    for start, part in zip(range(0, len(places), step), parts, strict=False):
        bits, before = Bits(part), {c.name: 0 for c, _, _ in chosen}
        for unit in places[start:start + step]:
            for c, y, x in unit:
                made = [0] * 64
                before[c.name] = _block(bits, made, *codes[c.name], before[c.name])
                c.blocks[y, x] = made
    return end


def _coded(data: bytes, at: int) -> tuple[int, list[bytes]]:
    """Where coded data end, and their parts between restarts, the bytes stuffed in taken out."""
    parts, start = list[bytes](), at
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            at = len(data)
            break
        if data[at + 1] == 0:
            at += 2
        elif 0xD0 <= data[at + 1] <= 0xD7:
            parts.append(data[start:at])
            at = start = at + 2
        else:
            break
    return at, [p.replace(b"\xff\x00", b"\xff") for p in (*parts, data[start:at])]


def _pass(x: Array, shift: int) -> Array:
    """One pass of the inverse transform, along the last axis but one."""
    i = [x[..., k, :] for k in range(8)]
    z1 = (i[2] + i[6]) * 4433
    low, high = z1 - i[6] * 15137, z1 + i[2] * 6270
    plus, minus = (i[0] + i[4]) << 13, (i[0] - i[4]) << 13
    even = [plus + high, minus + low, minus - low, plus - high]
    z5 = (i[7] + i[3] + i[5] + i[1]) * 9633
    a, b = (i[7] + i[1]) * -7373, (i[5] + i[3]) * -20995
    c, d = (i[7] + i[3]) * -16069 + z5, (i[5] + i[1]) * -3196 + z5
    odd = [i[1] * 12299 + a + d, i[3] * 25172 + b + c, i[5] * 16819 + b + d, i[7] * 2446 + a + c]
    made = [e + o for e, o in zip(even, odd, strict=True)] + [e - o for e, o in zip(even[::-1], odd[::-1], strict=True)]
    return np.asarray((np.stack(made, -2) + (1 << (shift - 1))) >> shift)


def plane(frame: Frame, c: Component) -> Array:
    """The samples of a component."""
    rows, columns = c.blocks.shape[:2]
    blocks = (c.blocks.astype(np.int64) * frame.tables[c.table]).reshape(rows, columns, 8, 8)
    samples = _pass(_pass(blocks, 11).swapaxes(-1, -2), 18).swapaxes(-1, -2)
    whole = np.clip(samples + 128, 0, 255).transpose(0, 2, 1, 3).reshape(rows * 8, columns * 8)
    height, width = frame.size(c)
    return np.asarray(whole[:height, :width])


def spread(x: Array, h: int, v: int) -> Array:
    """Samples made more, h times across and v times down."""
    if (h, v) in ((2, 1), (2, 2)) and x.shape[1] > 2:
        return _across(x, 2, 1, 2) if v == 1 else _across(_down(x), 4, 8, 7)
    if (h, v) == (1, 2):
        return np.stack([(t + (1, 2)[i]) >> 2 for i, t in enumerate(_near(x, 0))], 1).reshape(-1, x.shape[1])
    return x.repeat(v, 0).repeat(h, 1)


def _near(x: Array, axis: int) -> Sequence[Array]:
    """Three times the samples and those before, and after them; the ends stand beside themselves."""
    last = x.shape[axis] - 1
    return [3 * x + x.take(np.clip(np.arange(last + 1) + side, 0, last), axis) for side in (-1, 1)]


def _down(x: Array) -> Array:
    """Rows made twice as many, four times as large."""
    return np.stack(_near(x, 0), 1).reshape(-1, x.shape[1])


def _across(x: Array, shift: int, first: int, second: int) -> Array:
    """Columns made twice as many, their sums rounded by `first` and by `second` in turn."""
    before, after = _near(x, 1)
    return np.stack([(before + first) >> shift, (after + second) >> shift], 2).reshape(len(x), -1)


def coloured(frame: Frame) -> Array:
    """All components as pixels."""
    h, v = frame.most
    planes = []
    for c in frame.components:
        if h % c.h or v % c.v:
            raise RunError("the image file is a JPEG whose colours are sampled in odd ratios, which is not read")
        planes.append(spread(plane(frame, c), h // c.h, v // c.v)[:frame.height, :frame.width])
    if len(planes) == 1 or frame.transform == 0 or [c.name for c in frame.components] == [82, 71, 66]:
        return np.stack(planes, -1).astype(np.uint8)
    y, cb, cr = planes[0], planes[1] - 128, planes[2] - 128
    half = 1 << 15
    rgb = (y + ((91881 * cr + half) >> 16), y + ((-22554 * cb - 46802 * cr + half) >> 16),
           y + ((116130 * cb + half) >> 16))
    return np.asarray(np.clip(np.stack(rgb, -1), 0, 255), np.uint8)
