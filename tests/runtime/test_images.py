"""Image files: each kind written here by hand and read back, the standard's own JPEG, and broken ones."""
from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.case.node import _image_decoder_data as standard

from nnx_convert.errors import RunError
from nnx_convert.runtime.images import grey, packed, pixels

R = np.random.default_rng(12)
COLOURS = R.integers(0, 256, (7, 5, 3), dtype=np.uint8)
SHADES = R.integers(0, 256, (7, 5, 1), dtype=np.uint8)


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(rows: np.ndarray[Any, Any], width: int, kind: int, depth: int = 8, palette: bytes = b"",
        woven: int = 0) -> bytes:
    """A PNG of bytes in lines, each with the filter of its number."""
    step = max(1, {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind] * depth // 8)
    before, lines = np.zeros(rows.shape[1], np.int64), b""
    for i, row in enumerate(rows.astype(np.int64)):
        left, corner = (np.concatenate([np.zeros(step, np.int64), v[:-step]]) for v in (row, before))
        guess = left + before - corner
        away = [np.abs(guess - v) for v in (left, before, corner)]
        best = np.where((away[0] <= away[1]) & (away[0] <= away[2]), left, np.where(away[1] <= away[2], before, corner))
        made = row - [np.zeros_like(row), left, before, (left + before) // 2, best][i % 5]
        lines += bytes([i % 5]) + (made % 256).astype(np.uint8).tobytes()
        before = row
    head = struct.pack(">IIBBBBB", width, len(rows), depth, kind, 0, 0, woven)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", palette) * bool(palette) + chunk(
        b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def bmp(image: np.ndarray[Any, Any], bits: int, down: bool = False, palette: bytes = b"", packing: int = 0) -> bytes:
    """A BMP of colours, or of places in a palette."""
    height, width = image.shape[:2]
    rows = image if bits == 8 else np.concatenate([image[..., ::-1], image[..., :1]], 2)[..., :bits // 8]
    flat = np.pad(rows.reshape(height, -1), ((0, 0), (0, -(width * bits // 8) % 4)))[::1 if down else -1]
    start = 54 + len(palette)
    return struct.pack("<2sIIIIiiHHIIIIII", b"BM", start + flat.size, 0, start, 40, width, -height if down else height,
                       1, bits, packing, flat.size, 0, 0, 0, 0) + palette + flat.astype(np.uint8).tobytes()


def tiff(image: np.ndarray[Any, Any], order: str = "<", packing: int = 1, **more: int) -> bytes:
    """A TIFF in two strips."""
    height, width, channels = image.shape
    strips = [image[:4].tobytes(), image[4:].tobytes()]
    if packing == 8:
        strips = [zlib.compress(s) for s in strips]
    if packing == 32773:
        strips = [b"".join(bytes([0, b]) for b in s[:2]) + bytes([len(s) - 3]) + s[2:] for s in strips]
    tags = {256: [width], 257: [height], 258: [8], 259: [packing], 262: [2 if channels == 3 else 1],
            273: [8, 8 + len(strips[0])], 277: [channels], 279: [len(s) for s in strips], 284: [1]}
    tags |= {int(k[1:]): [v] for k, v in more.items()}
    at = 8 + sum(map(len, strips))
    rest, body = at + 2 + 12 * len(tags), b""
    later = b""
    for number, values in sorted(tags.items()):
        held = struct.pack(f"{order}{len(values)}I", *values)
        where = struct.pack(order + "I", rest + len(later)) if len(held) > 4 else held
        later += held if len(held) > 4 else b""
        body += struct.pack(order + "HHI", number, 4, len(values)) + where
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(order + "I", at) + b"".join(strips) + struct.pack(order + "H", len(tags)) + body + later


PALETTE = R.integers(0, 256, (16, 3), dtype=np.uint8)
NIBBLES = R.integers(0, 16, (7, 6), dtype=np.uint8)
IN_PAIRS = NIBBLES[:, ::2] * 16 + NIBBLES[:, 1::2]
OPAQUE = np.full((7, 5, 1), 9, np.uint8)
FOUR = np.concatenate([PALETTE[:, ::-1], np.zeros((16, 1), np.uint8)], 1).tobytes()
FILES: dict[str, tuple[bytes, np.ndarray[Any, Any]]] = {
    "png rgb": (png(COLOURS.reshape(7, -1), 5, 2), COLOURS), "png grey": (png(SHADES.reshape(7, -1), 5, 0), SHADES),
    "png rgba": (png(np.concatenate([COLOURS, OPAQUE], 2).reshape(7, -1), 5, 6), COLOURS),
    "png grey, alpha": (png(np.concatenate([SHADES, OPAQUE], 2).reshape(7, -1), 5, 4), SHADES),
    "png palette": (png(IN_PAIRS, 6, 3, 4, PALETTE.tobytes()), PALETTE[NIBBLES]),
    "png of 4 bits": (png(IN_PAIRS, 6, 0, 4), NIBBLES[..., None] * 17),
    "png of 1 bit": (png(np.array([[0b10110000], [0b01000000]]), 4, 0, 1), np.uint8([[[255], [0], [255], [255]], [
        [0], [255], [0], [0]]])),
    "bmp": (bmp(COLOURS, 24), COLOURS), "bmp of 32 bits": (bmp(COLOURS, 32), COLOURS),
    "bmp from above": (bmp(COLOURS, 24, True), COLOURS),
    "bmp palette": (bmp(NIBBLES, 8, palette=FOUR), PALETTE[NIBBLES]),
    "ppm": (b"P6 # colours\n5 7\n#\n255\n" + COLOURS.tobytes(), COLOURS),
    "pgm": (b"P5\n5 7 255 " + SHADES.tobytes(), SHADES),
    "ppm in words": (b"P3\n5 7\n255\n" + b" ".join(b"%d" % v for v in COLOURS.reshape(-1)), COLOURS),
    "pgm up to 3": (b"P2 2 1 3\n1 3\n", np.uint8([[[85], [255]]])),
    **{f"tiff {o} {p}": (tiff(COLOURS, o, p), COLOURS) for o in "<>" for p in (1, 8, 32773)},
    "tiff grey": (tiff(SHADES), SHADES), "tiff inverted": (tiff(SHADES, t262=0), 255 - SHADES),
    **{name: (given.data.tobytes(), given.output) for name, given in (
        ("jpeg", standard.image_decoder_decode_jpeg_rgb), ("jpeg 2000", standard.image_decoder_decode_jpeg2k_rgb))}}


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_is_read(name: str) -> None:
    data, want = FILES[name]
    found = pixels(data)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, want)


def test_shades_of_grey_are_weighed() -> None:
    found = grey(np.uint8([[[255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]]))
    assert found.reshape(-1).tolist() == [255, 76, 150, 29]
    assert grey(SHADES) is SHADES


def test_runs_and_repetitions() -> None:
    assert packed(bytes([2, 1, 2, 3, 254, 7, 128, 0, 5])) == bytes([1, 2, 3, 7, 7, 7, 5])


#: What is refused, and with which words.
REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no image file"), "a text": (b"Hello, world", "no image file"),
    "webp": (b"RIFF" + bytes(60), "a WebP"),
    "half a jpeg 2000": (b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(60), "is broken"),
    "a lossy jpeg 2000": (FILES["jpeg 2000"][0].replace(b"\4\4\0\1", b"\4\4\0\0"), "a JPEG 2000 with losses"),
    "a large jpeg 2000": (FILES["jpeg 2000"][0].replace(bytes([0, 0, 0, 32]) * 2, bytes([0, 1, 0, 0]) * 2), "at most"),
    "gif": (b"GIF89a" + bytes(60), "a GIF"),
    "interlaced": (png(COLOURS.reshape(7, -1), 5, 2, woven=1), "interlaced"),
    "packed bmp": (bmp(COLOURS, 24, packing=1), "compressed"), "wide pnm": (b"P6 1 1 65535 abcdef", "16 bits"),
    "lzw tiff": (tiff(COLOURS, packing=5), "a TIFF of"), "planar tiff": (tiff(COLOURS, t284=2), "a TIFF of"),
    "progressive": (FILES["jpeg"][0].replace(b"\xff\xc0", b"\xff\xc2"), "progressive"),
    "no pixels": (png(np.zeros((1, 1)), 0, 0), "0 by 1 pixels"), "far too many": (
        png(np.zeros((1, 1)), 1 << 30, 0), "1073741824 by 1 pixels"),
    "a jpeg of claims": (FILES["jpeg"][0].replace(b"\xff\xc0\0\x11\x08\0 \0 ", b"\xff\xc0\0\x11\x08\x40\0\x40\0"),
                         "cut short")}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    data, said = REFUSED[name]
    with pytest.raises(RunError) as found:
        pixels(data)
    assert said in str(found.value)


@pytest.mark.parametrize("name", FILES)
def test_broken_files_are_refused_or_read(name: str) -> None:
    """Whatever is changed or cut off, no other exception comes out."""
    whole, r = bytearray(FILES[name][0]), np.random.default_rng(len(name))
    for trial in range(60):
        data = bytearray(whole)
        for at in r.integers(0, min(len(data), 400), 1 + trial % 4):
            data[at] = r.integers(256)
        if trial % 5 == 0:
            del data[r.integers(len(data)):]
        try:
            assert pixels(bytes(data)).dtype == np.uint8
        except RunError as error:
            assert "image" in str(error)
