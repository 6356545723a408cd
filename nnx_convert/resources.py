"""What a file may cost this machine: bytes, operators, depth, rounds of loops, seconds; `Limits` is the one table.

Limits hold for the work that is done within `limited`, by a thread or a command; a compiled model keeps those that it
was made under. Python's own bounds apply beside them.
"""
from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from .errors import LimitError, Oversized, UsageError, among
from .frozen import frozen

#: The variable that sets limits for a process: as --limit takes them, separated by commas.
VARIABLE = "NNX_LIMITS"
#: What a number may end with, in bytes or by itself.
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SPELT = re.compile(r"([0-9]{1,18})([KMGT]?)(?:i?B)?|([0-9]{1,9}\.[0-9]{1,9})")
#: Where Linux says what a group of processes may hold, in the two versions of such groups.
GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: The deepest that graphs may be asked to nest: each level is dozens of Python's own calls.
DEEPEST = 16


@cache
def memory() -> int:
    """The bytes of memory there are for this process: the machine's, its group's or its own limit, the least of them.

    `sys.maxsize` where the system tells none of these.
    """
    found = [sys.maxsize]
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for place in GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(Path(place).read_text(encoding="ascii")))
    with suppress(ImportError):
        import resource
        own = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        found += [n for n in own if n != resource.RLIM_INFINITY]
    return min(n for n in found if n > 0)


def _limit(default: float | None, text: str, most: float = 1 << 62) -> Any:
    """A row of the table: `default` (None: the memory there is), what it limits, and the most that it can be set to."""
    return field(default=default, metadata={"text": text, "most": most})


@frozen
class Limits:
    """The limits by their names. Bytes of a tensor are those it has in memory, whatever a file packs it into."""

    file_bytes: int = _limit(16 << 30, "bytes of one file that is read: a model, weights beside it, inputs")
    text_bytes: int = _limit(256 << 20, "bytes of one text that is read: TOML, JSON, the header of a .nnx file")
    tensor_bytes: int | None = _limit(None, "bytes of one tensor, in a file or in a run")
    total_bytes: int | None = _limit(None, "bytes that a run holds at once beside the weights; arrays of one archive")
    operators: int = _limit(1 << 18, "operators of a file, those of its functions counted wherever they are called")
    subgraphs: int = _limit(1 << 12, "graphs of a file")
    depth: int = _limit(DEEPEST, "graphs within graphs, calls within calls of functions", DEEPEST)
    folding_bytes: int = _limit(4 << 30, "bytes of constants that a conversion computes; what is beyond, a run does")
    folding_macs: int = _limit(1 << 34, "multiply-adds that a conversion computes ahead; what is beyond, a run does")
    macs: int = _limit(1 << 44, "multiply-adds of one run, of a loop those of one round: time that nothing interrupts")
    rounds: int = _limit(1 << 24, "rounds of one loop")
    loop_seconds: float = _limit(15.0, "seconds of one loop that has no count, or one beyond a million")
    seconds: float = _limit(600.0, "seconds of one conversion, and of one run, looked at between operations")

    @property
    def tensor(self) -> int:
        """The bytes of one tensor."""
        return memory() if self.tensor_bytes is None else self.tensor_bytes

    @property
    def total(self) -> int:
        """The bytes of a run."""
        return memory() if self.total_bytes is None else self.total_bytes

    def with_(self, **values: Any) -> Limits:
        """Other limits in the place of some; raises `UsageError` on a name that there is not, or what is no number."""
        known = {f.name: f for f in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise UsageError(f"there is no limit {name!r:.40}", hint=among(name, known, "limits"))
            most, seconds = known[name].metadata["most"], isinstance(known[name].default, float)
            number = isinstance(value, int | float) if seconds else isinstance(value, int)
            if isinstance(value, bool) or not number or not 0 < value <= most:
                allowed = f"a number above 0, {most} at most" if seconds else f"a whole number from 1 to {most}"
                raise UsageError(f"{name} is {allowed}, not {value!r:.40}")
        return replace(self, **values)


def table() -> Iterator[tuple[str, str, str]]:
    """Each limit: its name, its default in words, what it limits."""
    for f in fields(Limits):
        default: Any = f.default
        yield f.name, "the memory there is" if default is None else told(default), f.metadata["text"]


def told(number: float) -> str:
    """A number as --limit takes it, in the largest unit that divides it."""
    unit = next(u for u, n in reversed(SUFFIXES.items()) if n == 1 or number >= n and number % n == 0)
    return f"{number / SUFFIXES[unit]:g}{unit}"


def spelt(text: str) -> dict[str, float]:
    """`NAME=VALUE`s separated by commas, as numbers by name; raises `UsageError` on what is none."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition("=")
        match = SPELT.fullmatch(value)
        if not match:
            raise UsageError(f"{part!r:.60} is not NAME=VALUE", hint="as in tensor_bytes=512M or seconds=2.5")
        found[name] = float(match[3]) if match[3] else int(match[1]) * SUFFIXES[match[2]]
    return found


@cache
def _of_process(text: str) -> Limits:
    """Those that the variable sets."""
    try:
        return Limits().with_(**spelt(text))
    except UsageError as error:
        raise error.at(f"${VARIABLE}") from error


_now: ContextVar[Limits | None] = ContextVar("limits", default=None)


@dataclass
class _Work:
    """What is done, the seconds it has, when it must have ended; what it has computed ahead: bytes, multiply-adds."""

    what: str
    seconds: float
    end: float
    folded: int = 0
    multiplied: int = 0


_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def limits() -> Limits:
    """Those that hold here and now."""
    return _now.get() or _of_process(os.environ.get(VARIABLE, ""))


@contextmanager
def limited(given: Limits | None = None, /, **values: float) -> Iterator[None]:
    """Within it other limits hold: `with limited(seconds=10, tensor_bytes=1 << 30): ...`.

    `given` are whole ones, None those that hold already. Raises `UsageError` on names and values that there are not.
    """
    token = _now.set((given or limits()).with_(**values) if values or not given else given)
    try:
        yield
    finally:
        _now.reset(token)


def clock(name: str) -> Callable[[], bool]:
    """Whether the seconds of a limit are over, from now on."""
    end = time.monotonic() + getattr(limits(), name)
    return lambda: time.monotonic() > end


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Work that may take `seconds`; within such work, it is a part of it."""
    if _work.get() is not None:
        yield
        return
    seconds = limits().seconds
    token = _work.set(_Work(what, seconds, time.monotonic() + seconds))
    try:
        yield
    finally:
        _work.reset(token)


def tick(where: str = "") -> None:
    """Raise `LimitError` where the work that is done has had its time; called between operations."""
    work = _work.get()
    if work is not None and time.monotonic() > work.end:
        raise LimitError(f"{work.what} takes longer than {work.seconds:g} seconds", where, hint("seconds"))


def folds(size: int, macs: int) -> bool:
    """Whether a constant of `size` bytes that takes so many multiply-adds is still computed ahead by this work."""
    work = _work.get()
    if work is None:
        return True
    work.folded += size
    work.multiplied += macs
    return work.folded <= limits().folding_bytes and work.multiplied <= limits().folding_macs


def hint(name: str) -> str:
    """What to do about a limit."""
    return f"--limit {name}=VALUE sets another limit"


def deep(levels: int, what: str, where: str = "") -> None:
    """Raise `Oversized` where something is nested deeper than the limit; `levels` are those around it."""
    if levels >= limits().depth:
        raise Oversized(f"{what} nested more than {limits().depth} deep", where,
                        hint("depth") if limits().depth < DEEPEST else "")


def within(name: str, value: float, what: str, where: str = "") -> None:
    """Raise `Oversized` where a file has, or takes, more of something than its limit."""
    most = getattr(limits(), name)
    most = memory() if most is None else most
    if value > most:
        raise Oversized(f"{what} {value:,}, {most:,} at most", where, hint(name))
