"""Image files as pixels: PNG, BMP, PNM and TIFF; JPEG and JPEG 2000 have modules of their own.

What a file may hold beyond 8 bits a channel in rows is refused by name. Transparency is left out.
"""
from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from ..errors import RunError
from ..types import Array
from .jpeg import decoded as decoded_jpeg
from .jpeg import sensible
from .jpeg2000 import decoded as decoded_jpeg2000

#: Formats by how their files begin that are known and not read.
OTHERS = {b"RIFF": "WebP", b"GIF8": "GIF"}
#: Channels of a PNG's colour types, and the bytes of a palette's entries.
PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def pixels(data: bytes) -> Array:
    """The pixels of a file, uint8 [height, width, 3], or [height, width, 1] of shades of grey.

    Raises `RunError` on a broken file, or one of a kind that is not read.
    """
    try:
        found = _pixels(data)
    except (struct.error, IndexError, KeyError, ValueError, zlib.error, OverflowError) as error:
        raise RunError(f"the image file is broken ({error})") from error
    return np.ascontiguousarray(found)


def _pixels(data: bytes) -> Array:
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return png(data)
    if data[:2] == b"\xff\xd8":
        return decoded_jpeg(data)
    if data[:2] == b"BM":
        return bmp(data)
    if data[:4] in (b"II*\x00", b"MM\x00*"):
        return tiff(data)
    if data[:1] == b"P" and data[1:2] in (b"2", b"3", b"5", b"6"):
        return pnm(data)
    if data.startswith((b"\x00\x00\x00\x0cjP  ", b"\xff\x4f\xff\x51")):
        return decoded_jpeg2000(data)
    other = next((name for head, name in OTHERS.items() if data.startswith(head)), "")
    raise RunError(f"the image file is a {other} file, which is not read" if other else "the bytes are no image file")


def grey(rgb: Array) -> Array:
    """Shades of grey [height, width, 1] as Pillow weighs colours (ITU-R 601-2 in 16 bits)."""
    if rgb.shape[2] == 1:
        return rgb
    weighed = rgb.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 0x8000
    return (weighed >> 16).astype(np.uint8)[..., None]


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG: names and contents."""
    at = 8
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += 12 + size


def png(data: bytes) -> Array:
    """A PNG, its lines one after the other."""
    found = list(chunks(data))
    width, height, depth, kind, _, _, woven = struct.unpack(">IIBBBBB", dict(found)[b"IHDR"])
    sensible(width, height)
    if woven or depth > 8:
        raise RunError("the image file is a PNG of 16 bits a channel, or one that is interlaced, which is not read")
    bits = depth * PNG_CHANNELS[kind]
    line, step = (width * bits + 7) // 8, max(bits // 8, 1)
    inflater = zlib.decompressobj()
    raw = inflater.decompress(b"".join(c for n, c in found if n == b"IDAT"), height * (line + 1))
    rows = unfiltered(np.frombuffer(raw, np.uint8).reshape(height, line + 1), step)
    if depth < 8:
        rows = np.unpackbits(rows, axis=1).reshape(height, -1, depth)
        rows = (rows @ (1 << np.arange(depth)[::-1])).astype(np.uint8)[:, :width]
    image = rows.reshape(height, width, -1)
    if kind == 3:
        palette = np.frombuffer(dict(found)[b"PLTE"], np.uint8).reshape(-1, 3)
        return np.asarray(palette[image[..., 0]])
    image = image if depth == 8 else image * np.uint8(255 // ((1 << depth) - 1))
    return image[..., :1] if image.shape[2] < 3 else image[..., :3]


def unfiltered(rows: Array, step: int) -> Array:
    """The lines of a PNG without their filters; `step` bytes are a pixel."""
    made = np.zeros((len(rows) + 1, rows.shape[1] - 1), np.uint8)
    for before, to, row in zip(made, made[1:], rows, strict=False):
        kind, line = int(row[0]), row[1:]
        if kind == 0:
            to[:] = line
        elif kind == 1:
            for i in range(step):
                np.cumsum(line[i::step], dtype=np.uint8, out=to[i::step])
        elif kind == 2:
            np.add(line, before, out=to)
        elif kind in (3, 4):
            _from_neighbours(to, line, before, step, kind == 4)
        else:
            raise ValueError(f"filter {kind}")
    return made[1:]


def _from_neighbours(to: Array, line: Array, before: Array, step: int, paeth: bool) -> None:
    """A line whose bytes follow from those on their left, one after the other."""
    above, given, found = before.tolist(), line.tolist(), [0] * (step + len(line))
    above = [0] * step + above
    for i, value in enumerate(given):
        left, up, corner = found[i], above[i + step], above[i]
        if paeth:
            a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if a <= b and a <= c else up if b <= c else corner
        else:
            guess = (left + up) // 2
        found[i + step] = (value + guess) & 255
    to[:] = found[step:]


def bmp(data: bytes) -> Array:
    """A BMP without compression, of 8 bits with a palette, 24 or 32 bits."""
    (start,), (size,) = struct.unpack_from("<I", data, 10), struct.unpack_from("<I", data, 14)
    width, height, _, bits, packing = struct.unpack_from("<iiHHI", data, 18)
    sensible(width, abs(height))
    if bits not in (8, 24, 32) or packing not in (0, 3) or packing == 3 and bits != 32:
        raise RunError("the image file is a BMP that is compressed, or of few bits, which is not read")
    line = (width * bits // 8 + 3) // 4 * 4
    rows = np.frombuffer(data, np.uint8, line * abs(height), start).reshape(abs(height), line)
    image = rows[::-1 if height > 0 else 1, :width * bits // 8].reshape(abs(height), width, -1)
    if bits == 8:
        colours = np.frombuffer(data, np.uint8, start - 14 - size, 14 + size).reshape(-1, 4)
        image = colours[image[..., 0]]
    return np.asarray(image[..., 2::-1])


def pnm(data: bytes) -> Array:
    """A PGM or PPM, in bytes or in words."""
    words, at = list[bytes](), 0
    while len(words) < 4:
        end = at
        while data[end:end + 1].strip() and data[end:end + 1] != b"#":
            end += 1
        if end > at:
            words.append(data[at:end])
        if end >= len(data):
            raise ValueError("its head is cut short")
        at = data.index(b"\n", end) + 1 if data[end:end + 1] == b"#" else end + 1
    width, height, most = (int(w) for w in words[1:])
    sensible(width, height)
    channels, plain = 3 if words[0] in (b"P3", b"P6") else 1, words[0] in (b"P2", b"P3")
    if not 0 < most < 256:
        raise RunError("the image file is a PNM of 16 bits a channel, which is not read")
    count = width * height * channels
    values = np.array(data[at:].split()[:count], np.int64) if plain else np.frombuffer(data, np.uint8, count, at)
    full = values if most == 255 else (values.astype(np.int64) * 255 + most // 2) // most
    return np.asarray(full).reshape(height, width, channels).astype(np.uint8)


def tiff(data: bytes) -> Array:
    """A TIFF of 8 bits a channel in strips, plain, packed or deflated, its channels together."""
    order = "<" if data[:2] == b"II" else ">"
    (at,) = struct.unpack_from(order + "I", data, 4)
    (count,) = struct.unpack_from(order + "H", data, at)
    tags = dict(_tag(data, at + 2 + 12 * i, order) for i in range(count))
    (width,), (height,) = tags[256], tags[257]
    sensible(width, height)
    channels, packing, planes = tags.get(277, [1])[0], tags.get(259, [1])[0], tags.get(284, [1])[0]
    plain = set(tags.get(258, [1])) == {8} and planes == 1 and channels in (1, 3, 4) and 322 not in tags
    if packing not in (1, 8, 32773, 32946) or not plain or tags.get(317, [1])[0] != 1:
        raise RunError("the image file is a TIFF of tiles, planes, few or many bits, or compressed, which is not read")
    strips = [data[start:start + size] for start, size in zip(tags[273], tags[279], strict=True)]
    size = width * height * channels
    if packing == 32773:
        strips = [packed(s) for s in strips]
    elif packing != 1:
        strips = [zlib.decompressobj().decompress(s, size) for s in strips]
    image = np.frombuffer(b"".join(strips), np.uint8, size).reshape(height, width, channels)
    image = 255 - image if tags.get(262, [1])[0] == 0 else image
    return np.asarray(image[..., :3])


def _tag(data: bytes, at: int, order: str) -> tuple[int, list[int]]:
    """A tag of a TIFF: its number and its values; none of a type that is no integer."""
    number, kind, count = struct.unpack_from(order + "HHI", data, at)
    letter = {1: "B", 3: "H", 4: "I"}.get(kind)
    if letter is None or count > len(data):
        return number, []
    size = struct.calcsize(letter) * count
    start = at + 8 if size <= 4 else struct.unpack_from(order + "I", data, at + 8)[0]
    return number, list(struct.unpack_from(f"{order}{count}{letter}", data, start))


def packed(data: bytes) -> bytes:
    """What PackBits says: runs and repetitions."""
    made, at = bytearray(), 0
    while at < len(data):
        n = data[at]
        if n < 128:
            made += data[at + 1:at + 2 + n]
            at += n + 2
        else:
            made += data[at + 1:at + 2] * (257 - n) if n > 128 else b""
            at += 2 if n > 128 else 1
    return bytes(made)
