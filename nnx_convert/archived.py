"""Files of arrays, nothing trusted: what a header says is compared with the file and the limits before it is read.

NumPy reads the header of an array, `zipfile` the directory of an archive. Neither is asked for more: an array is as
many bytes as its header says, and its file has them; no object is unpickled.
"""
from __future__ import annotations

import lzma
import math
import os
import struct
import zipfile
import zlib
from tokenize import TokenError
from typing import IO, Any, BinaryIO

import numpy as np

from .errors import FormatError, Oversized
from .reading import opened, reason, refuse_large_directory
from .resources import hint, limits
from .types import Array

#: What NumPy raises on a header that is none.
NO_HEADER = (ValueError, TypeError, LookupError, SyntaxError, ArithmeticError, RecursionError, MemoryError, TokenError)
#: What `zipfile` and its ways to decompress raise; RuntimeError is for what is encrypted or unknown to it.
NO_ARCHIVE = (OSError, ValueError, EOFError, LookupError, RuntimeError, AssertionError, struct.error, zlib.error,
              lzma.LZMAError, zipfile.BadZipFile)
#: How a file of one array begins, and one of several.
MAGIC = {".npy": b"\x93NUMPY", ".npz": b"PK"}
#: What is wrong with one in the place of the other, and what to do about it.
MISTAKEN = {".npy": ("holds several arrays, not one", "a .npz goes to --inputs"),
            ".npz": ("holds one array, not an archive of them", "a .npy goes to --input NAME=x.npy")}
#: The readers of a header by the version that the file says; the third is for names of fields, which no array here has.
HEADERS: dict[tuple[int, int], Any] = {(1, 0): np.lib.format.read_array_header_1_0,
                                       (2, 0): np.lib.format.read_array_header_2_0}
#: The longest header, in bytes.
HEADER = 10_000
#: Bytes that are read at once.
PIECE = 1 << 24


def read_array(path: str) -> Array:
    """A .npy file. Raises `FormatError`, `Oversized`."""
    with opened(path) as file:
        begins_as(".npy", file, path)
        try:
            return _array(file, os.fstat(file.fileno()).st_size, limits().tensor)
        except (FormatError, Oversized) as error:
            raise error.at(path) from error
        except OSError as error:
            raise FormatError(f"cannot be read: {reason(error)}", path) from error


def read_archive(path: str) -> dict[str, Array]:
    """The arrays of a .npz file by their names; members that are called otherwise are none. Raises as `read_array`."""
    with opened(path) as file:
        begins_as(".npz", file, path)
        try:
            refuse_large_directory(file)
            with zipfile.ZipFile(file) as archive:
                return _members(archive)
        except (FormatError, Oversized) as error:
            raise error.at(path) from error
        except NO_ARCHIVE as error:
            raise FormatError(f"cannot be read as an archive of arrays: {reason(error)}", path) from error


def _members(archive: zipfile.ZipFile) -> dict[str, Array]:
    found: dict[str, Array] = {}
    left = limits().total
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            continue
        if name in found:
            raise FormatError(f"has the array {name!r:.60} twice")
        try:
            with archive.open(info) as member:
                found[name] = _array(member, info.file_size, left, "total_bytes")
        except (FormatError, Oversized) as error:
            raise error.at(f"array {name!r:.60}") from error
        left -= found[name].nbytes
    return found


def _array(file: IO[bytes], size: int, most: int, limit: str = "tensor_bytes") -> Array:
    """The array of a stream of `size` bytes that takes no more than `most`."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"a header of version {'.'.join(map(str, version))}")
        shape, by_columns, dtype = HEADERS[version](file, max_header_size=HEADER)
        need = math.prod(shape) * dtype.itemsize
    except NO_HEADER as error:
        raise FormatError(f"is no array: {str(error).splitlines()[0]:.160}" if str(error) else "is no array") from error
    if dtype.hasobject or dtype.names:
        raise FormatError(f"is an array of {'objects' if dtype.hasobject else 'records'}, not of numbers or texts")
    if any(type(n) is not int or n < 0 for n in shape):
        raise FormatError(f"has the shape {list(shape)!s:.60}")
    if need > size - file.tell():
        raise FormatError(f"is cut short: its array takes {need:,} bytes, {size - file.tell():,} are there")
    if need > most:
        raise Oversized(f"its array takes {need:,} bytes, {most:,} at most", hint=hint(limit))
    try:
        raw = np.empty(need, np.uint8)
        for at in range(0, need, PIECE):
            piece = file.read(min(PIECE, need - at))
            raw[at:at + len(piece)] = np.frombuffer(piece, np.uint8)
            if len(piece) < min(PIECE, need - at):
                raise FormatError(f"is cut short: its array takes {need:,} bytes, {at + len(piece):,} are there")
        return np.ndarray(shape, dtype, raw, order="F" if by_columns else "C")
    except (ValueError, MemoryError) as error:
        raise FormatError(f"is no array: {error}") from error


def begins_as(kind: str, file: BinaryIO, path: str) -> None:
    """Raise `FormatError` where a file's first bytes are not those of its kind."""
    head = file.read(max(map(len, MAGIC.values())))
    file.seek(0)
    if head.startswith(MAGIC[kind]):
        return
    if head.startswith(tuple(MAGIC.values())):
        text, remedy = MISTAKEN[kind]
        raise FormatError(text, path, remedy)
    raise FormatError(f"cannot be read: it is no {kind} file", path)
