"""Weights outside the model's message: files in the model's folder, mapped into memory once each."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FormatError, Unsupported
from ...reading import beside
from .weights import OWN

NUMBER = re.compile(r"[0-9]{1,18}")


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
            self.opened[location] = beside(self.path, location, "its external data are")
        return self.opened[location]


def number(told: Mapping[str, str], key: str) -> int:
    """An entry that is a number, 0 where it is left out; raises `FormatError`."""
    found = told.get(key, "0")
    if not NUMBER.fullmatch(found):
        raise FormatError(f"the {key} of its external data is {found!r:.40}")
    return int(found)
