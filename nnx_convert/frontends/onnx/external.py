"""Weights outside the model's message: files in the model's folder, mapped into memory once each.

A model comes from anywhere, and it names these files: nothing outside the folder is opened, whatever a name, a link
or a kind of file would lead to, and nothing is read that is not there.
"""
from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from ...errors import FormatError, Unsupported
from .weights import OWN

#: A file up to this size is read instead of mapped: each map keeps a file open, and a model may have thousands.
SMALL = 1 << 20
NUMBER = re.compile(r"[0-9]{1,18}")
#: Opening waits for nobody and follows no link that appeared after the path was resolved.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) \
    | getattr(os, "O_BINARY", 0)


@dataclass
class Folder:
    """Where a model's weights are: `own`, the bytes of the model's file, and the files beside it.

    `path` is None where the model came as bytes.
    """

    path: Path | None
    own: Any = b""
    opened: dict[str, Any] = field(default_factory=dict)

    def bytes(self, told: Mapping[str, str], size: int) -> np.ndarray:
        """The `size` bytes that a tensor's external data tell of, as a view. Raises `FormatError`, `Unsupported`.

        A length that is left out or 0 means as much as the tensor takes; `offset` is in bytes, 0 by default.
        """
        offset, length = number(told, "offset"), number(told, "length")
        if length not in (0, size):
            raise FormatError(f"its shape and type take {size} bytes, its external data have {length}")
        where = told.get("location", "")
        data = self.own if OWN in told else self.file(where)
        offset = number(told, OWN) if OWN in told else offset
        if offset + size > len(data):
            raise FormatError(f"its external data are bytes {offset} to {offset + size} of {where!r:.100}, "
                              f"which has {len(data)}")
        return np.frombuffer(data, np.uint8, size, offset) if size else np.empty(0, np.uint8)

    def file(self, location: str) -> Any:
        """The bytes of a file in the folder; raises `FormatError`, and `Unsupported` where there is no folder."""
        if self.path is None:
            raise Unsupported(f"its data are in the file {location!r:.100}, and a model given as bytes has no folder",
                              hint="give the path of the model")
        if location not in self.opened:
            self.opened[location] = opened(self.path, location)
        return self.opened[location]


def number(told: Mapping[str, str], key: str) -> int:
    """An entry that is a number, 0 where it is left out; raises `FormatError`."""
    found = told.get(key, "0")
    if not NUMBER.fullmatch(found):
        raise FormatError(f"the {key} of its external data is {found!r:.40}")
    return int(found)


def opened(folder: Path, location: str) -> Any:
    """The bytes of a file below a folder; raises `FormatError` on a name, a link or a file that is not one."""
    refuse(location)
    base = os.path.realpath(folder)
    place = os.path.realpath(os.path.join(base, location))
    if os.path.commonpath((base, place)) != base:
        raise FormatError(f"its external data are in {location!r:.100}, a link that leads out of the model's folder")
    try:
        handle = os.open(place, FLAGS)
    except (OSError, ValueError) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", error)
        raise FormatError(f"its external data are in {location!r:.100}, which cannot be read: {why}") from error
    try:
        return content(handle, location)
    except OSError as error:
        raise FormatError(f"its external data in {location!r:.100} cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)


def refuse(location: str) -> None:
    """Raise `FormatError` on what is no relative path that stays in its folder, by the rules of any system."""
    if not location or "\0" in location:
        raise FormatError("its external data have no location")
    windows = PureWindowsPath(location)
    if location.startswith("/") or windows.drive or windows.root:
        raise FormatError(f"its external data are in {location!r:.100}: an absolute path is not allowed")
    if ".." in (*PurePosixPath(location).parts, *windows.parts):
        raise FormatError(f"its external data are in {location!r:.100}: '..' is not allowed")


def content(handle: int, location: str) -> Any:
    """What an open file holds; raises `FormatError` where it is none of one name, as ONNX's checker does."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
        raise FormatError(f"its external data are in {location!r:.100}, which is {what}")
    if found.st_nlink > 1:
        raise FormatError(f"its external data are in {location!r:.100}, which has several hard links, so that it may "
                          "be a file from elsewhere", hint="put a copy of the file in its place")
    if found.st_size > SMALL:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()
