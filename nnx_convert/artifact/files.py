"""Models on disk: read through a memory map, written beside their place and moved there when complete."""
from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import ArtifactError, NnxError, UsageError
from ..model import Model


def load(path: str | Path) -> Model:
    """Read a .nnx file, memory-mapped; raises `ArtifactError` where it is not whole, naming the file."""
    from .decode import decode
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot be read: {reason(error)}", name) from error
    try:
        return decode(data)
    except NnxError as error:
        raise error.at(name) from error


def save(model: Model, path: str | Path) -> None:
    """Write a model as a .nnx file, whole or not at all; raises `UsageError` where the place takes no file."""
    from .encode import encode
    write(path, encode(model))


def write(path: str | Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file so that its name shows the old content or all of the new.

    A name that is no plain file (a pipe, a terminal) is written to as it is. Raises `UsageError`.
    """
    place = Path(path)
    try:
        place = Path(os.path.realpath(path))
        if place.exists() and not place.is_file() and not place.is_dir():
            with place.open("wb") as file:
                file.writelines(pieces)
        else:
            _replace(place, pieces)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError) and not os.path.isdir(place.parent)
        hint = f"there is no folder {place.parent}" if missing else ""
        raise UsageError(f"cannot be written: {reason(error)}", os.fspath(path), hint) from error


def made(folder: str | Path) -> Path:
    """A folder that is there now; raises `UsageError` where it cannot be."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be a folder: {reason(error)}", os.fspath(folder)) from error
    return place


def _replace(place: Path, pieces: Iterable[bytes | memoryview]) -> None:
    beside = place.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with beside.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    with suppress(OSError):                        # some file systems have no folders to synchronise
        _sync_folder(place.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reason(error: Exception) -> str:
    """What the system says, without the number and the path."""
    return getattr(error, "strerror", None) or str(error)
