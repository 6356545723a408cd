"""Files that are read: plain ones of a size that is allowed, and of those a model names, only what is in its folder.

A model comes from anywhere, and it names files: nothing outside the folder is opened, whatever a name, a link or a kind
of file would lead to, and nothing is read that is not there. Nobody is waited for.
"""
from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from .errors import FormatError, NnxError
from .resources import within

#: Of a model's other files, one up to this size is read instead of mapped: each map keeps a file open, and a model may
#: have thousands.
SMALL = 1 << 20
#: Opening waits for nobody.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: And follows no link that appeared after the path was resolved.
RESOLVED = FLAGS | getattr(os, "O_NOFOLLOW", 0)
#: Bytes of a TOML file, and dots in one of its lines.
LARGEST_TOML, DOTS = 1 << 22, 256
#: Characters of a path that a fault shows.
SHOWN = 100
#: The end of a ZIP archive, in its two versions: a mark, the size of the archive's directory.
ZIP_ENDS = {b"PK\5\6": struct.Struct("<4s8xI"), b"PK\6\6": struct.Struct("<4s36xQ")}
#: How far from the end of the file it is at most.
ZIP_REACH = 22 + (1 << 16) + 76
#: The largest directory of an archive in bytes; in memory it takes ten times as much.
DIRECTORY = 1 << 24


def reason(error: Exception) -> str:
    """What the system says, without the number and the path."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def opened(path: str | Path, kind: type[NnxError] = FormatError, limit: str = "file_bytes") -> Iterator[BinaryIO]:
    """A plain file to be read; raises `kind` where it is none or cannot be read, `Oversized` beyond a limit."""
    try:
        handle = os.open(path, FLAGS)
    except (OSError, ValueError) as error:
        raise kind(f"cannot be read: {reason(error)}", os.fspath(path)) from error
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise kind(f"cannot be read: it is {_what(found)}", os.fspath(path))
    with os.fdopen(handle, "rb") as file:
        within(limit, found.st_size, "its bytes are", os.fspath(path))
        yield file


def mapped(path: str | Path, kind: type[NnxError] = FormatError) -> bytes | mmap.mmap:
    """The bytes of a file, mapped into memory; raises as `opened` does."""
    with opened(path, kind) as file:
        return _mapped(file.fileno(), os.fspath(path), kind)


def text(path: str | Path, kind: type[NnxError] = FormatError) -> bytes:
    """The bytes of a text, which takes many times its size once it is understood; raises as `opened` does."""
    with opened(path, kind, "text_bytes") as file:
        try:
            return file.read()
        except OSError as error:
            raise kind(f"cannot be read: {reason(error)}", os.fspath(path)) from error


def toml(path: str | Path, kind: type[NnxError] = FormatError) -> dict[str, Any]:
    """The tables of a TOML file; raises `kind` where it is none, and as `text` does."""
    import tomllib
    found = text(path, kind)
    # The library takes time that grows with the square of a name's parts.
    if len(found) > LARGEST_TOML or any(line.count(b".") > DOTS for line in found.splitlines()):
        raise kind(f"is no TOML for this: it is longer than {LARGEST_TOML:,} bytes, or a line has more than {DOTS} "
                   "dots", os.fspath(path))
    try:
        return tomllib.loads(found.decode())
    except (ValueError, RecursionError) as error:
        raise kind(f"is no TOML: {error or 'nested too deep'}", os.fspath(path)) from error


def json(data: bytes, kind: type[NnxError] = FormatError) -> Any:
    """The value of a JSON text; raises `kind` where it is none."""
    from json import loads
    try:
        return loads(data.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise kind(f"is no JSON text: {error}") from error


def refuse_large_directory(archive: BinaryIO) -> None:
    """Raise `FormatError` on a ZIP archive whose directory, which `zipfile` reads as a whole, is too large."""
    archive.seek(max(0, archive.seek(0, os.SEEK_END) - ZIP_REACH))
    tail = archive.read(ZIP_REACH)
    for mark, end in ZIP_ENDS.items():
        at = tail.rfind(mark)
        size = end.unpack_from(tail, at)[1] if 0 <= at <= len(tail) - end.size else 0
        if size > DIRECTORY and size != (1 << 32) - 1:
            raise FormatError(f"its directory takes {size:,} bytes, {DIRECTORY:,} at most")
    archive.seek(0)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _mapped(handle: int, where: str, kind: type[NnxError]) -> bytes | mmap.mmap:
    try:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if os.fstat(handle).st_size else b""
    except (OSError, ValueError) as error:
        raise kind(f"cannot be read: {reason(error)}", where) from error


def beside(folder: Path, location: str, what: str, kind: type[NnxError] = FormatError) -> Any:
    """The bytes of a file below a model's folder; raises `kind` on a name, a link or a file that is not one.

    `what` begins the sentence that says so: "its external data are".
    """
    refuse(location, what, kind)
    said, base = f"{what} in {location!r:.{SHOWN}}", os.path.realpath(folder)
    try:
        place = os.path.realpath(os.path.join(base, location))
        if os.path.commonpath((base, place)) != base:
            raise kind(f"{said}, a link that leads out of the model's folder")
        handle = os.open(place, RESOLVED)
    except (OSError, ValueError) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else reason(error)
        raise kind(f"{said}, which cannot be read: {why}") from error
    try:
        return _content(handle, said, kind)
    finally:
        os.close(handle)


def refuse(location: str, what: str, kind: type[NnxError] = FormatError) -> None:
    """Raise `kind` on what is no relative path that stays in its folder, by the rules of any system."""
    if not location or "\0" in location:
        raise kind(f"{what} in no place: it has no name")
    said, windows = f"{what} in {location!r:.{SHOWN}}", PureWindowsPath(location)
    if location.startswith("/") or windows.drive or windows.root:
        raise kind(f"{said}: an absolute path is not allowed")
    if ".." in (*PurePosixPath(location).parts, *windows.parts):
        raise kind(f"{said}: '..' is not allowed")


def _content(handle: int, said: str, kind: type[NnxError]) -> Any:
    """What an open file holds; raises `kind` where it is none of one name, as ONNX's checker does."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise kind(f"{said}, which is {_what(found)}")
    if found.st_nlink > 1:
        raise kind(f"{said}, which has several hard links, so that it may be a file from elsewhere",
                   hint="put a copy of the file in its place")
    within("file_bytes", found.st_size, f"{said}, whose bytes are")
    if found.st_size > SMALL:
        return _mapped(handle, "", kind)
    try:
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read()
    except OSError as error:
        raise kind(f"{said}, which cannot be read: {reason(error)}") from error


def _what(found: os.stat_result) -> str:
    return "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
