"""Options of custom operators: a FlexBuffer map of numbers, read field by field, nothing trusted."""
from __future__ import annotations

import struct
from typing import Any

from flatbuffers import flexbuffers

from ...errors import FormatError

#: What the package raises on bytes that are no FlexBuffer.
BROKEN = (struct.error, ValueError, IndexError, TypeError, KeyError, AttributeError, OverflowError)
#: No list of options is longer.
LONGEST = 1 << 12


class Options:
    """The map in an operator's bytes; every read raises `FormatError` where the field is not what it should be."""

    def __init__(self, data: bytes) -> None:
        try:
            root = flexbuffers.GetRoot(data)
            self._map = root.AsMap
            self._keys = frozenset(key.AsString for key in self._map.Keys) if len(self._map) < LONGEST else frozenset()
        except BROKEN as error:
            raise FormatError("its options are no FlexBuffer map") from error

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def _field(self, key: str) -> Any:
        if key not in self._keys:
            raise FormatError(f"its options lack {key!r}")
        return self._map[key]

    def whole(self, key: str, default: int | None = None) -> int:
        """A number of 32 bits."""
        return int(self.real(key, default))

    def real(self, key: str, default: float | None = None) -> float:
        """A number, or a truth value."""
        if default is not None and key not in self._keys:
            return default
        try:
            found = self._field(key)
            number = found.AsFloat if found.IsFloat else found.AsInt
            if not (found.IsFloat or found.IsInt or found.IsBool) or not abs(number) < 1 << 31:
                raise ValueError(number)
        except BROKEN as error:
            raise FormatError(f"its option {key!r} is no number") from error
        return float(number)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """A truth value."""
        return bool(self.real(key, None if default is None else float(default)))

    def wholes(self, key: str) -> list[int]:
        """A short list of whole numbers."""
        try:
            found = self._field(key)
            items = found.AsTypedVector if found.IsTypedVector else found.AsVector
            if len(items) > LONGEST:
                raise ValueError(len(items))
            return [int(item.AsInt) for item in items]
        except BROKEN as error:
            raise FormatError(f"its option {key!r} is no list of whole numbers") from error
