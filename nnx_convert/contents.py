"""What a list holds, in words: `sequence(float32)`, `optional(sequence(int64))`, `map(object,float32)`."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .codes import NARROW_DTYPES
from .frozen import frozen

#: The NumPy types of arrays that users give and get; `object` is texts as `bytes` objects, `str` texts as strings.
DTYPES = NARROW_DTYPES | {
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "object", "str"}
#: The kinds of lists and how many parts each is made of: Python's list, None or a value, dict.
KINDS = {"sequence": 1, "optional": 1, "map": 2}
#: How deep lists may be nested.
DEEPEST = 16


@frozen
class Contents:
    """A list by its kind and its parts: names of NumPy types, or lists. A map's are the types of keys and values."""

    kind: str
    of: tuple[Contents | str, ...]

    def __str__(self) -> str:
        return f"{self.kind}({','.join(map(str, self.of))})"


@lru_cache(maxsize=256)
def contents(text: str) -> Contents | str:
    """What the text says: a list, or the name of a NumPy type. Raises `ValueError` on what is neither."""
    found = _part(_Rest(text), 0)
    if str(found) != text:
        raise ValueError(f"{text!r:.60} is no type")
    return found


@dataclass
class _Rest:
    text: str

    def word(self) -> str:
        """The letters and digits it begins with, taken off."""
        size = next((i for i, c in enumerate(self.text) if not (c.isalnum() or c == "_")), len(self.text))
        found, self.text = self.text[:size], self.text[size:]
        return found


def _part(rest: _Rest, depth: int) -> Contents | str:
    word = rest.word()
    if word in DTYPES:
        return word
    if word not in KINDS or depth > DEEPEST:
        raise ValueError(f"{word!r:.40} is no type")
    return Contents(word, tuple(_parts(rest, KINDS[word], depth + 1)))


def _parts(rest: _Rest, count: int, depth: int) -> Iterator[Contents | str]:
    for i in range(count):
        rest.text = rest.text.removeprefix("," if i else "(")
        yield _part(rest, depth)
    rest.text = rest.text.removeprefix(")")
