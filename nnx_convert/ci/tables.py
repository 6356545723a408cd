"""Reading a table of a TOML file: a key nobody knows or a value that makes no sense is told with its place."""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..errors import UsageError, among, near
from ..frozen import frozen

Value = TypeVar("Value")
#: Makes a value of what TOML has; raises `ValueError` with what it should be.
Reader = Callable[[Any], Value]
AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?((?:[kKMGT]i?)?)(?:B|MACs?)?")
TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(us|ms|s)")
#: The largest float: a whole number of TOML may be larger.
LARGEST = sys.float_info.max
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@frozen
class Table:
    """A table called `name` of a file; what it lacks is taken from `usual`."""

    values: Mapping[str, Any]
    file: Path
    name: str
    usual: Table | None = None

    def fault(self, key: str, text: str, hint: str = "") -> UsageError:
        """What is wrong at a key, with its place."""
        table = f"[{self.name}] " if self.name else ""
        return UsageError(text, f"{self.file.name}: {table}{key}", hint)

    def only(self, known: Collection[str]) -> Table:
        """Itself; raises `UsageError` on a key that is not known."""
        for key in self.values:
            if key not in known:
                raise self.fault(key, "there is no such key", among(key, known, "keys"))
        return self

    def take(self, key: str, read: Reader[Value], default: Value) -> Value:
        """A key's value as it is read, `default` where there is none; raises `UsageError`."""
        if key not in self.values:
            return default if self.usual is None else self.usual.take(key, read, default)
        try:
            return read(self.values[key])
        except UsageError as error:
            if error.where.startswith(self.file.name):
                raise
            raise self.fault(key, f"{error.where}: {error.text}".removeprefix(": "), error.hint) from error
        except ValueError as error:
            raise self.fault(key, str(error)) from error

    def table(self, key: str) -> Table | None:
        """The table under a key; None where there is no such key."""
        if key in self.values and not isinstance(self.values[key], dict):
            raise self.fault(key, f"is a table, not {told(self.values[key])}")
        return next(iter(self.tables(key)), None)

    def tables(self, key: str) -> tuple[Table, ...]:
        """The tables under a key: one, or several of an array of tables; none where there is no such key."""
        if key not in self.values:
            return () if self.usual is None else self.usual.tables(key)
        found = self.values[key]
        several = found if isinstance(found, list) else [found]
        if not all(isinstance(v, dict) for v in several):
            raise self.fault(key, f"is a table, not {told(found)}")
        return tuple(Table(v, self.file, self.under(key)) for v in several)

    def under(self, key: str) -> str:
        """The name of the table under a key."""
        return f"{self.name}.{key}" if self.name else key


def told(value: Any) -> str:
    """A value in a message, as TOML would have it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)[:80]


def wrong(what: str, value: Any) -> ValueError:
    """The fault of a value that is not `what`."""
    return ValueError(f"is {what}, not {told(value)}")


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong("a text", value)
    return value


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def whole(least: int) -> Reader[int]:
    """A whole number, `least` or more."""
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise wrong(f"a whole number, {least} or more", value)
        return value
    return read


def number(value: Any) -> float:
    """A number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        raise wrong("a number, 0 or more", value)
    return float(value)


def choice(*known: str) -> Reader[str]:
    """One of some texts."""
    def read(value: Any) -> str:
        if value not in known:
            raise UsageError(f"is {', '.join(known)}, not {told(value)}", hint=near(str(value), known))
        return str(value)
    return read


def sizes(value: Any) -> dict[str, tuple[int, ...]]:
    """Shapes by the names of inputs."""
    if not isinstance(value, dict):
        raise wrong("a table as {image = [1, 224, 224, 3]}", value)
    for name, shape in value.items():
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape):
            raise ValueError(f"{name} is a list of sizes, not {told(shape)}")
    return {name: tuple(shape) for name, shape in value.items()}


def texts(value: Any) -> dict[str, str]:
    """Texts by names."""
    if not isinstance(value, dict) or not all(isinstance(v, str) and v for v in value.values()):
        raise wrong("a table of texts", value)
    return dict(value)


def listed(value: Any) -> str:
    """Conditions, as a list of texts or in one text with commas."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(p, str) for p in parts):
        raise wrong("a list of texts", value)
    return ",".join(parts)


def amount(value: Any) -> float:
    """A count, or a text with a multiple: 20000, "20 kB", "1.5 MiB", "3 M"."""
    if isinstance(value, str) and (found := AMOUNT.fullmatch(value)):
        unit = found[2]
        power = " KMGT".index(unit[:1].upper() or " ")
        return float(found[1]) * float((1024 if unit.endswith("i") else 1000) ** power)
    if isinstance(value, str):
        raise wrong('a number or a text as "20 kB", "1.5 MiB", "3 M"', value)
    return number(value)


def seconds(value: Any) -> float:
    """Seconds, or a text with a unit: 0.5, "500 ms"."""
    if isinstance(value, str):
        found = TIME.fullmatch(value)
        if found is None:
            raise wrong('a number of seconds or a text as "3 ms"', value)
        return float(found[1]) * SECONDS[found[2]]
    return number(value)
