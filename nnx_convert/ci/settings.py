"""The TOML file of `nnx-convert ci`: entries, each a model with what is asked of it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from .. import comparison
from ..check import conditions
from ..codes import level_of
from ..errors import UsageError, among, near
from ..frozen import frozen
from ..reading import toml
from ..resources import Limits, limits
from ..runtime.backends import BACKENDS
from ..peers import PEERS
from ..target import Target
from ..types import Shape
from ..verify.asking import Comparison
from ..verify.references import ENGINES
from .tables import Table, amount, choice, flag, listed, number, seconds, sizes, text, texts, told, whole, wrong

#: What a file holds, an entry, and the tables of an entry.
FILE = ("defaults", "models")
ENTRY = ("path", "shapes", "target", "targets", "fail_on", "verify", "budgets", "diff", "timeout")
VERIFY = ("against", "inputs", "random", "runs", "feed", "per_op", "atol", "rtol", "steps", "backend", "threads")
SIZES = ("size", "weights", "arena", "macs")
LATENCY = ("median", "ratio", "vs", "runs", "threads", "backend", "inputs", "random")
TARGET = ("level", "ex", "experimental", "sparse", "hybrid", "int64", "qdq")
#: Seconds that an entry may take.
PATIENCE = 600.0


@frozen
class Latency:
    """What a run may take: a `median` in seconds, or a `ratio` to what the engine `vs` takes on the same inputs."""

    median: float | None = None
    ratio: float | None = None
    vs: str = ""
    runs: int = 30
    threads: int | None = None
    backend: str = "auto"
    inputs: str | None = None
    random: int = 0


@frozen
class Baseline:
    """A file that a model is compared with as `nnx-convert diff` does, and what must not change."""

    path: str
    fail_on: str


@frozen
class Entry:
    """A model and what is asked of it. `budgets` are the most of what `SIZES` names; `timeout` is in seconds."""

    name: str
    path: str
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    targets: tuple[Target, ...] = (Target(),)
    fail_on: str = ""
    verify: tuple[Comparison, ...] = ()
    budgets: Mapping[str, float] = field(default_factory=dict)
    latency: Latency | None = None
    diff: Baseline | None = None
    timeout: float = PATIENCE
    limits: Limits = field(default_factory=limits)         # those that hold where the file is read


def load(path: str) -> tuple[Entry, ...]:
    """The entries of a file, in its order; raises `FormatError` on what is no TOML, `UsageError` with the place."""
    place = Path(path)
    found = toml(path)
    whole_file = Table(found, place, "").only(FILE)
    usual = (whole_file.table("defaults") or Table({}, place, "defaults")).only(ENTRY[1:])
    models = found.get("models")
    if not isinstance(models, dict) or not models:
        raise whole_file.fault("models", "there is no table of a model", "a model is a table [models.NAME] with a path")
    for name, values in models.items():
        if not isinstance(values, dict):
            raise whole_file.fault(f"models.{name}", f"is a table, not {told(values)}")
    read_entry(Table({"path": "."}, place, "defaults", usual), "")          # its faults are told even where unused
    return tuple(read_entry(Table(v, place, f"models.{n}", usual), n) for n, v in models.items())


def read_entry(table: Table, name: str) -> Entry:
    """An entry; raises `UsageError`."""
    table.only(ENTRY)
    path = table.take("path", text, "")
    if not path:
        raise table.fault("path", "is missing", 'give the model\'s file: path = "model.tflite"')
    budgets = table.table("budgets")
    diff = table.table("diff")
    limits = {} if budgets is None else {
        key: budgets.take(key, amount, 0.0) for key in budgets.only((*SIZES, "latency")).values if key in SIZES}
    latency = None if budgets is None else budgets.table("latency")
    return Entry(name, beside(table, path), table.take("shapes", sizes, {}), read_targets(table),
                 table.take("fail_on", checked, ""), tuple(map(read_comparison, table.tables("verify"))), limits,
                 None if latency is None else read_latency(latency), None if diff is None else read_baseline(diff),
                 table.take("timeout", seconds, PATIENCE))


def beside(table: Table, path: str) -> str:
    """A path of the file, which is relative to its folder."""
    return str(table.file.parent / path)


def checked(value: Any) -> str:
    """Conditions of `check`; raises `UsageError`."""
    found = listed(value)
    conditions(found)
    return found


def unchanged(value: Any) -> str:
    """Conditions of `diff`; raises `UsageError`."""
    found = listed(value)
    comparison.conditions(found)
    return found


def read_targets(table: Table) -> tuple[Target, ...]:
    """The devices: `target` or `targets`; raises `UsageError`."""
    if "target" in table.values and "targets" in table.values:
        raise table.fault("target", "there is targets, too", "give one of them")
    own = Table(table.values, table.file, table.name) if {"target", "targets"} & set(table.values) else table

    def several(value: Any) -> tuple[Target, ...]:
        if not isinstance(value, list) or not value:
            raise wrong("a list of targets", value)
        return tuple(dict.fromkeys(read_target(own, v) for v in value))

    def single(value: Any) -> tuple[Target, ...]:
        return (read_target(own, value),)
    none: tuple[Target, ...] = ()
    return own.take("target", single, none) or own.take("targets", several, none) or (Target(),)


def read_target(table: Table, value: Any) -> Target:
    """A level as 29 or "fl7", a device's file, or a table with a level and what else the device has."""
    if isinstance(value, str) and value.endswith(".toml"):
        return Target.from_toml(beside(table, value))
    if isinstance(value, dict):
        inner = Table(value, table.file, table.under("target")).only(TARGET)
        read: dict[str, Any] = {"level": level, "ex": flag, "experimental": flag}
        given: dict[str, Any] = {k: inner.take(k, read.get(k, text), None) for k in value}
        return Target(**given)
    return Target(level(value))


def level(value: Any) -> int:
    """A feature level; raises `UsageError` where there is none."""
    try:
        return Target(level_of(str(value))).level
    except ValueError as error:
        raise wrong('a feature level as 29 or "fl7", or a .toml file', value) from error


def read_comparison(table: Table) -> Comparison:
    """What to compare with; raises `UsageError`."""
    table.only(VERIFY)
    against, inputs = table.take("against", text, ""), table.take("inputs", text, "")
    if against and against not in ENGINES:
        path = Path(beside(table, against))
        if not path.exists():
            raise table.fault("against", f"there is neither a file nor an engine {against!r}",
                              near(against, ENGINES, f"engines are {', '.join(ENGINES)}"))
        against = str(path)
    return Comparison(
        against, beside(table, inputs) if inputs else None, table.take("random", whole(0), None),
        table.take("runs", whole(1), None), table.take("feed", texts, {}), table.take("per_op", flag, False),
        table.take("atol", number, None), table.take("rtol", number, None), table.take("steps", whole(0), None),
        table.take("backend", choice(*BACKENDS), "auto"), table.take("threads", whole(1), 1))


def read_latency(table: Table) -> Latency:
    """What a run may take; raises `UsageError`."""
    table.only(LATENCY)
    inputs = table.take("inputs", text, "")
    found = Latency(
        table.take("median", seconds, None), table.take("ratio", number, None), table.take("vs", choice(*PEERS), ""),
        table.take("runs", whole(1), 30), table.take("threads", whole(1), None),
        table.take("backend", choice(*BACKENDS), "auto"), beside(table, inputs) if inputs else None,
        table.take("random", whole(0), 0))
    if found.median is None and found.ratio is None:
        raise table.fault("median", "neither median nor ratio is given", 'as median = "3 ms", or ratio = 1.2 and vs')
    if (found.ratio is None) != (not found.vs):
        raise table.fault("ratio", "ratio and vs go together", 'as ratio = 1.2 and vs = "litert"')
    return found


def read_baseline(table: Table) -> Baseline:
    """What to compare with; raises `UsageError`."""
    table.only(("baseline", "fail_on"))
    path = table.take("baseline", text, "")
    if not path:
        raise table.fault("baseline", "is missing", "give the file to compare with")
    return Baseline(beside(table, path), table.take("fail_on", unchanged, ""))


def chosen(entries: tuple[Entry, ...], names: tuple[str, ...]) -> tuple[Entry, ...]:
    """The entries that patterns name (`digits*`), all without any; raises `UsageError` on one that names none."""
    from fnmatch import fnmatchcase
    known = [e.name for e in entries]
    for pattern in names:
        if not any(fnmatchcase(n, pattern) for n in known):
            raise UsageError(f"there is no entry {pattern!r}", hint=among(pattern, known, "entries"))
    return tuple(e for e in entries if not names or any(fnmatchcase(e.name, p) for p in names))
