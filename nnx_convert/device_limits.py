"""What a device takes of what its feature level has: a TOML file's list of operations and rules on their operands.

The format is told in docs/targets.md, with an example.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .codes import LEVELS, level_of
from .errors import UsageError, among
from .frozen import frozen
from .reading import toml

if TYPE_CHECKING:
    from .schema import Checked, OpDef
    from .types import Tensor

#: The keys of a file that are fields of a `Target`.
WAYS = ("level", "ex", "experimental", "sparse", "hybrid", "int64", "qdq")
KEYS = ("name", *WAYS, "operations", "without", "rule")
#: What a rule can ask.
QUESTIONS = ("types", "ranks", "shape", "values", "constant", "known")
RULE_KEYS = ("text", "operations", "operand", *QUESTIONS)
#: The operand that stands for what an operation gives.
OUT = "out"


@frozen
class Span:
    """Numbers from `low` to `high`, both included, None being no end, which `step` divides."""

    low: int | None = None
    high: int | None = None
    step: int = 1

    def has(self, n: float) -> bool:
        """Whether a number is one of them."""
        return (self.low is None or n >= self.low) and (self.high is None or n <= self.high) and n % self.step == 0


#: Alternatives; a number keeps them where it is in one.
Numbers = tuple[Span, ...]


@frozen
class DeviceRule:
    """One rule of a file. No `operations`: all of them. No `operand`: every tensor. What is None is not asked."""

    text: str
    operations: tuple[str, ...] = ()
    operand: str = ""
    types: tuple[str, ...] | None = None
    ranks: Numbers | None = None
    shape: tuple[Numbers, ...] | None = None
    values: Numbers | None = None
    constant: bool | None = None
    known: bool = False

    def holds(self, checked: Checked) -> bool:
        """Whether an operation keeps it, as far as that is known."""
        from .types import Scalar, Tensor
        for value in operands(checked, self.operand):
            if isinstance(value, Tensor):
                if not self._tensor(value):
                    return False
            elif self.values is not None and not self._number(value.value if isinstance(value, Scalar) else value):
                return False
        return True

    def _number(self, value: Any) -> bool:
        from .types import known
        return not isinstance(value, int | float) or not known(value) or _in(self.values or (), value)

    def _tensor(self, t: Tensor) -> bool:
        from .types import known
        if self.types is not None and t.type.name not in self.types:
            return False
        if self.constant is not None and (t.data is not None) != self.constant:
            return False
        if t.dims is None:
            return not self.known
        if self.ranks is not None and not _in(self.ranks, len(t.dims)) or self.known and not all(map(known, t.dims)):
            return False
        return self.shape is None or len(t.dims) == len(self.shape) and all(
            not known(n) or _in(numbers, n) for n, numbers in zip(t.dims, self.shape, strict=True))


@frozen
class DeviceLimits:
    """What a file says: the device's name, the operations it has (None: all of its level), the rules it keeps."""

    name: str
    operations: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    rules: tuple[DeviceRule, ...] = ()

    def fault(self, op: OpDef, checked: Checked) -> str:
        """Why the device does not take an operation of its level, in the file's words; empty when it does."""
        if op.name in self.without or self.operations is not None and op.name not in self.operations:
            return f"{op.name} is not among the operations of {self.name}"
        broken = (r.text for r in self.rules if (not r.operations or op.name in r.operations) and not r.holds(checked))
        return next((f"{op.name}: {text}" for text in broken), "")

    def has(self, text: str) -> bool:
        """Whether a refusal is by one of the rules."""
        return text.partition(": ")[2] in (texts := [r.text for r in self.rules]) or text in texts


def operands(checked: Checked, name: str) -> Iterator[Any]:
    """The operands of a name, as the table was told of them; without a name, every tensor."""
    slots = checked.placed.slots
    found = [*slots.values(), checked.outputs] if not name else [
        checked.outputs[:1] if name == OUT else slots.get(name, checked.args.get(name))]
    for slot in found:
        yield from (v for v in (slot if isinstance(slot, tuple) else (slot,)) if v is not None)


def _in(numbers: Numbers, n: float) -> bool:
    return any(span.has(n) for span in numbers)


def read(path: str | Path) -> tuple[dict[str, Any], DeviceLimits]:
    """A file's fields of a `Target`, and its limits; raises `UsageError` on what makes no sense, naming the file."""
    fields = toml(path, UsageError)
    try:
        return _read(fields, Path(path).stem)
    except UsageError as error:
        raise error.at(str(path)) from error


def _read(fields: Mapping[str, Any], stem: str) -> tuple[dict[str, Any], DeviceLimits]:
    _keys(fields, KEYS)
    ways = {k: fields[k] for k in WAYS if k in fields}
    for key in ("ex", "experimental"):
        if not isinstance(ways.get(key, True), bool):
            raise UsageError(f"{key} is true or false, not {ways[key]!r:.40}")
    if "level" in ways:
        ways["level"] = _level(ways["level"])
    rules = fields.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(r, dict) for r in rules):
        raise UsageError("its rules are tables: [[rule]]")
    only = _operations(fields["operations"]) if "operations" in fields else None
    return ways, DeviceLimits(_text(fields.get("name", stem), "name"), only, _operations(fields.get("without", [])),
                              tuple(_numbered(n, r) for n, r in enumerate(rules, 1)))


def _keys(fields: Collection[str], known: Sequence[str]) -> None:
    if unknown := [k for k in fields if k not in known]:
        raise UsageError(f"there is no key {unknown[0]!r:.40}", hint=among(unknown[0], known, "keys"))


def _level(value: Any) -> int:
    """A level as --target takes it."""
    try:
        level = level_of(str(value)) if isinstance(value, int | str) and not isinstance(value, bool) else 0
    except ValueError:
        level = 0
    if level not in LEVELS:
        raise UsageError(f"there is no feature level {value!r:.40}: 27 to 31, or 6 to 8")
    return level


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{key} is a text, not {value!r:.40}")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{key} is a list of names, not {value!r:.40}")
    return tuple(_text(v, f"each of {key}") for v in value)


def _operations(value: Any) -> tuple[str, ...]:
    """Names of operations that a device can have."""
    table, names = _table(), _texts(value, "operations")
    if lost := [n for n in names if n not in table]:
        raise UsageError(f"there is no operation {lost[0]!r:.40}", hint=among(lost[0], table, "operations"))
    return names


def _table() -> dict[str, OpDef]:
    from . import ops  # noqa: F401  (fills the table)
    from .schema import OPS
    return {n: o for n, o in OPS.items() if o.code is not None and not o.host}


def _numbered(number: int, fields: Mapping[str, Any]) -> DeviceRule:
    """A rule; what is wrong with it is said of its number."""
    try:
        return _rule(fields)
    except UsageError as error:
        raise error.at(f"rule {number}") from error


def _rule(fields: Mapping[str, Any]) -> DeviceRule:
    _keys(fields, RULE_KEYS)
    if not any(q in fields for q in QUESTIONS):
        raise UsageError("it asks nothing", hint=f"it has one or several of {', '.join(QUESTIONS)}")
    if "values" in fields and "operand" not in fields:
        raise UsageError("values are those of an operand", hint="name it with operand = ...")
    own = _operations(fields.get("operations", []))
    found: dict[str, Any] = {k: read_(fields[k]) for k, read_ in READ.items() if k in fields}
    return DeviceRule(_text(fields.get("text"), "text"), own, _operand(fields, own), **found)


def _operand(fields: Mapping[str, Any], own: Sequence[str]) -> str:
    """An operand that every operation concerned has; where none is named, at least one."""
    if "operand" not in fields:
        return ""
    name, table = _text(fields["operand"], "operand"), _table()
    having = {o: {OUT, *(p.name for f in table[o].forms for p in f.params)} for o in own or table}
    if own and (lacking := [o for o in own if name not in having[o]]):
        raise UsageError(f"{lacking[0]} has no operand {name!r:.40}", hint=among(name, having[lacking[0]], "operands"))
    if not any(name in there for there in having.values()):
        raise UsageError(f"no operation has an operand {name!r:.40}", hint="see `nnx-convert ops NAME`")
    return name


def _types(value: Any) -> tuple[str, ...]:
    from .types import Type
    names = _texts(value, "types")
    if lost := [n for n in names if n not in Type.__members__]:
        raise UsageError(f"there is no type {lost[0]!r:.40}", hint=among(lost[0], Type.__members__, "types"))
    return names


def _numbers(value: Any) -> Numbers:
    """Alternatives as a file spells them."""
    return tuple(map(_span, value)) if isinstance(value, list) else (_span(value),)


def _span(value: Any) -> Span:
    if isinstance(value, int) and not isinstance(value, bool):
        return Span(value, value)
    if isinstance(value, str):
        text = value.replace(" ", "")
        low, dots, high = text.partition("..")
        ends = (low, high) if dots else ()
        if text == "*":
            return Span()
        if text[:1] == "*" and _whole(text[1:]) and int(text[1:]):
            return Span(step=int(text[1:]))
        if any(ends) and all(not e or _whole(e.removeprefix("-")) for e in ends):
            return Span(int(low) if low else None, int(high) if high else None)
        if _whole(text):
            return Span(int(text), int(text))
    raise UsageError(f"{value!r:.40} is neither a number nor as '1..7', '4..', '..7', '*16' or '*'")


def _whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _shape(value: Any) -> tuple[Numbers, ...]:
    if not isinstance(value, list):
        raise UsageError(f"shape is a list with a size for each axis, not {value!r:.40}")
    return tuple(map(_numbers, value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"constant and known are true or false, not {value!r:.40}")
    return value


#: How each question of a rule is read.
READ: dict[str, Callable[[Any], Any]] = {
    "types": _types, "ranks": _numbers, "shape": _shape, "values": _numbers, "constant": _flag, "known": _flag}
