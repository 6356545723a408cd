"""The outer shape of a .nnx file: preamble, header, data; sizes and checksums.

    offset  size
    0       8     magic
    8       4     version of the format
    12      4     CRC-32 of the preamble (this field as 0) and the header
    16      8     size of the header
    24      8     size of all that follows the header: zeros up to a multiple of 64 bytes, then the data
    32      4     CRC-32 of that

Integers are unsigned and little-endian. The checksums are against accidents; CRC-32 is the fastest that the
standard library has (2.6 GB/s), and it finds every single flipped bit.
"""
from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from .. import reading
from ..errors import ArtifactError
from ..resources import within

#: As with PNG, a byte above 127 and both line ends show a transfer that took the file for text.
MAGIC = b"\x89NNX\r\n\x1a\n"
VERSION = 1
#: Data start at multiples of this many bytes: a cache line, and the widest vector.
ALIGN = 64
PREAMBLE = struct.Struct("<8sIIQQI")

Buffer = bytes | bytearray | memoryview | mmap.mmap


def pack(header: dict[str, Any], blobs: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """The file as pieces to be written one after the other."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    tail: list[bytes | memoryview] = [padding(PREAMBLE.size + len(text))]
    for blob in blobs:
        tail += [blob, padding(len(blob))]
    check = 0
    for piece in tail:
        check = crc32(piece, check)
    fields = (len(text), sum(map(len, tail)), check)
    blank = PREAMBLE.pack(MAGIC, VERSION, 0, *fields)
    return [PREAMBLE.pack(MAGIC, VERSION, crc32(text, crc32(blank)), *fields), text, *tail]


def padding(size: int) -> bytes:
    """The zeros between something of this size and the next multiple of `ALIGN`."""
    return bytes(-size % ALIGN)


def unpack(data: Buffer) -> tuple[dict[str, Any], memoryview]:
    """The header, and the data; raises `ArtifactError` where the file is not whole."""
    view = memoryview(data).toreadonly().cast("B")
    if bytes(view[:len(MAGIC)]) != MAGIC:
        raise ArtifactError("is no .nnx file")
    if len(view) < PREAMBLE.size:
        raise ArtifactError("is cut short")
    _, version, head_check, head_size, tail_size, tail_check = PREAMBLE.unpack_from(view)
    if version != VERSION:
        raise ArtifactError(f"is of version {version} of the format, not {VERSION}", hint="convert the model again")
    if len(view) != PREAMBLE.size + head_size + tail_size:
        raise ArtifactError(f"is {len(view)} bytes long, its preamble says {PREAMBLE.size + head_size + tail_size}")
    within("text_bytes", head_size, "the bytes of its header are")
    end = PREAMBLE.size + head_size
    blank = PREAMBLE.pack(MAGIC, version, 0, head_size, tail_size, tail_check)
    if crc32(view[PREAMBLE.size:end], crc32(blank)) != head_check:
        raise ArtifactError("its header is altered: the checksum is wrong")
    if crc32(view[end:]) != tail_check:
        raise ArtifactError("its data are altered: the checksum is wrong")
    return parsed(bytes(view[PREAMBLE.size:end])), view[end + len(padding(end)):]


def parsed(text: bytes) -> dict[str, Any]:
    """The header as a JSON object."""
    try:
        header = reading.json(text, ArtifactError)
    except ArtifactError as error:
        raise ArtifactError(f"its header {error.text}") from error
    if not isinstance(header, dict):
        raise ArtifactError("its header is no JSON object")
    return header
