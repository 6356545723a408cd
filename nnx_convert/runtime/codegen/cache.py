"""Object code kept in the user's cache directory, so that a model is compiled once.

What is read here is executed. So the folder and its files are the user's own and nobody else's to write, and each
entry carries the checksum of what was written. Entries are written beside their place and renamed, so that processes
do not meet half of one; the ones not used for longest go when there are too many bytes. Nothing here raises: where
there can be no cache, there is none.
"""
from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b, sha256
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from typing import Any

from ...frozen import frozen

#: The variable that names another folder; "0" or nothing is no cache.
VARIABLE = "NNX_CACHE"
#: How an entry begins; then the checksum of all that follows, which most processors have instructions for.
MAGIC, DIGEST = b"nnx-object-2\n", sha256().digest_size
#: Bytes kept in all, and the part of them that is left when there are too many.
LIMIT, LEFT = 256 << 20, 0.75
#: Seconds after which a file that was never renamed is of a process that has died.
ABANDONED = 3600
#: A mode that lets others write.
OTHERS = stat.S_IWGRP | stat.S_IWOTH


@frozen
class Cache:
    """Entries in a folder, which is made when it is first written to; at most `limit` bytes."""

    folder: Path
    limit: int = LIMIT

    def find(self, key: str) -> bytes | None:
        """What was kept under a key; None where there is nothing, or where it is not what was written."""
        found = self.into(key, bytearray)
        return None if found is None else bytes(found)

    def into(self, key: str, room: Callable[[int], Any]) -> Any | None:
        """What was kept under a key, read into an array of bytes that `room` gives; None as of `find`."""
        try:
            if not self._private():
                return None
            with _opened(self.folder / key) as file:
                head = file.read(len(MAGIC) + DIGEST)
                found = room(os.fstat(file.fileno()).st_size - len(head))
                if file.readinto(found) != len(found):
                    return None
        except (OSError, ValueError, MemoryError):
            return None
        return found if head == MAGIC + sha256(found).digest() else None

    def keep(self, key: str, data: bytes | memoryview) -> None:
        """Keep bytes under a key (a file's name); another process that keeps the same at once does no harm."""
        with suppress(OSError, ValueError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._private():
                return
            beside = self.folder / f".{os.urandom(8).hex()}.tmp"
            try:
                with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.writelines((MAGIC, sha256(data).digest(), data))
                beside.replace(self.folder / key)
            except BaseException:
                with suppress(OSError):
                    beside.unlink()
                raise
            self._pruned()

    def _private(self) -> bool:
        """Whether the folder is one, not a link to one, and only its owner, who is this user, may write there."""
        return stat.S_ISDIR((found := self.folder.lstat()).st_mode) and _own(found)

    def _pruned(self) -> None:
        """Remove what was not used for longest until there is room, and what was never finished."""
        there = sorted(self._entries(), key=lambda e: e[0])
        total, most = sum(size for _, size, _ in there), self.limit
        if total > most:
            most = int(most * LEFT)
        for used, size, path in there:
            unfinished = path.name.startswith(".")
            if total > most or unfinished and used < time.time() - ABANDONED:
                with suppress(OSError):
                    path.unlink()
                total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was last used, its size and its path."""
        with os.scandir(self.folder) as found:
            for entry in found:
                with suppress(OSError):
                    known = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(known.st_mode):
                        yield known.st_mtime, known.st_size, Path(entry.path)


def _own(found: os.stat_result) -> bool:
    """Whether a file or folder is this user's and nobody else may write it; elsewhere than on POSIX, yes."""
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & OTHERS)


def _opened(path: Path) -> BufferedReader:
    """A file of this user's, marked as used now; raises `OSError` where it is no plain file or somebody else's."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
                     | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(handle, "rb")
    known = os.fstat(handle)
    if not stat.S_ISREG(known.st_mode) or not _own(known):
        file.close()
        raise PermissionError(path)
    with suppress(OSError):
        os.utime(path)
    return file


def user_cache() -> Cache | None:
    """The cache of this user; None where it is switched off or there is no place for it."""
    place = os.environ.get(VARIABLE)
    if place is None:
        root = _caches()
        return None if root is None else Cache(root / "nnx_convert" / "objects")
    return Cache(Path(place).absolute() / "objects") if place not in ("", "0") else None


def _caches() -> Path | None:
    """Where this system keeps what can be made again (XDG Base Directory Specification: a relative path is none)."""
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA", "")
            return Path(local) if os.path.isabs(local) else None
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches"
        given = os.environ.get("XDG_CACHE_HOME", "")
        return Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:                         # no home
        return None


def key(parts: Iterable[str]) -> str | None:
    """The name of an entry by all that makes its code: these texts, this package, and LLVM; None where those cannot
    be told.
    """
    maker = _maker()
    if maker is None:
        return None
    found = blake2b(maker, digest_size=24)
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


@cache
def _maker() -> bytes | None:
    """A hash of what `sources` tells, and of the system; None where there are no sources, or no LLVM."""
    known = None if find_spec("llvmlite") is None else sources()
    return None if known is None else blake2b(known, key=sys.platform.encode()).digest()


@cache
def sources() -> bytes | None:
    """This package's files and the compiler's by name, size and time of change, as the interpreter tells its own
    compiled files; None where the package is installed without them, or in an archive."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = find_spec("llvmlite")
    try:
        own = sorted(told(root))
        others = sorted(line for place in (found and found.submodule_search_locations) or () for line in told(place))
    except OSError:
        return None
    return "\n".join((*own, *others)).encode() if own else None


def told(folder: str) -> Iterator[str]:
    """A line for each source file in a folder and those in it."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from told(entry.path)
            elif entry.name.endswith(".py"):
                known = entry.stat()
                yield f"{entry.path} {known.st_size} {known.st_mtime_ns}"
