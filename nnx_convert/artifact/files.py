"""Models on disk: read through a memory map, written beside their place and moved there when complete."""
from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ArtifactError, NnxError, UsageError
from ..model import Model
from ..reading import mapped, reason

#: What a file holds, one after the other.
Pieces = Iterable[bytes | memoryview]
#: What a file is called until it is complete, beside its place.
UNFINISHED = re.compile(r"\.nnx-[0-9a-f]{16}\.tmp")
#: Seconds after which one that is still called so is of a process that was killed.
ABANDONED = 3600
#: Those of this process.
_unfinished: set[Path] = set()


def load(path: str | Path) -> Model:
    """Read a .nnx file, memory-mapped; raises `ArtifactError` where it is not whole, naming the file."""
    from .decode import decode
    data = mapped(path, ArtifactError)
    try:
        return decode(data)
    except NnxError as error:
        raise error.at(os.fspath(path)) from error


def save(model: Model, path: str | Path) -> None:
    """Write a model as a .nnx file, whole or not at all; raises `UsageError` where the place takes no file."""
    from .encode import encode
    write(path, encode(model))


def write(path: str | Path, pieces: Pieces) -> None:
    """Write a file so that its name shows the old content or all of the new.

    A name that is no plain file (a pipe, a terminal) is written to as it is. Raises `UsageError`.
    """
    write_all([(path, pieces)])


def write_all(files: Iterable[tuple[str | Path, Pieces]]) -> None:
    """Write files that belong together: all are complete before the first has its name. Raises `UsageError`.

    What fails, or ends the process, before all are complete leaves every old file.
    """
    complete: list[tuple[Path, Path, str | Path]] = []
    try:
        for path, pieces in files:
            with _told(path):
                place = Path(os.path.realpath(path))
                if place.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                if place.exists() and not place.is_file():
                    with place.open("wb") as file:
                        file.writelines(pieces)
                else:
                    complete.append((_beside(place, pieces), place, path))
        for beside, place, path in complete:
            with _told(path):
                beside.replace(place)
                _unfinished.discard(beside)
    except BaseException:
        _remove(beside for beside, *_ in complete)
        raise
    for folder in {place.parent for _, place, _ in complete}:
        with suppress(OSError):                    # some file systems have no folders to synchronise
            _sync_folder(folder)
            _tidy(folder)


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """What the system says of a path as a `UsageError`."""
    try:
        yield
    except (OSError, ValueError) as error:
        folder = os.path.dirname(os.path.abspath(path)) if isinstance(error, FileNotFoundError) else ""
        hint = f"there is no folder {folder}" if folder and not os.path.isdir(folder) else ""
        raise UsageError(f"cannot be written: {reason(error)}", os.fspath(path), hint) from error


def made(folder: str | Path) -> Path:
    """A folder that is there now; raises `UsageError` where it cannot be."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be a folder: {reason(error)}", os.fspath(folder)) from error
    return place


def abandon() -> None:
    """Remove all that is half-written: this process ends now."""
    _remove(tuple(_unfinished))


def _remove(files: Iterable[Path]) -> None:
    for beside in files:
        with suppress(OSError):
            beside.unlink()
        _unfinished.discard(beside)


def _beside(place: Path, pieces: Pieces) -> Path:
    """A complete file beside a place."""
    beside = place.with_name(f".nnx-{os.urandom(8).hex()}.tmp")
    _unfinished.add(beside)
    try:
        with beside.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        _remove([beside])
        raise
    return beside


def _tidy(folder: Path) -> None:
    """Remove what processes that were killed left half-written."""
    with os.scandir(folder) as found:
        for entry in found:
            if UNFINISHED.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < (
                    time.time() - ABANDONED):
                os.unlink(entry.path)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
