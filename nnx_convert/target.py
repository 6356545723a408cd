"""What a device takes."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from .codes import LEVELS, FeatureLevel, level_of, levelled, spelt
from .errors import UsageError
from .frozen import frozen

if TYPE_CHECKING:
    from .device_limits import DeviceLimits
    from .schema import Checked, OpDef, OpError


@frozen
class Target:
    """A feature level, and what a device has beside it.

    `level`: 27 to 31, or an updatable level as 6, 7, 8 (also 1000006 and so on). `ex`: NNAPI-EX is there.
    `experimental`: DENSIFY is. `sparse`: keep sparse constants compressed where the target takes DENSIFY, or
    fold them to dense ones. `hybrid`: products of floats and int8 weights exactly as in TFLite, on
    the host, or as NNAPI's float operations on dequantised weights. `int64`: 64-bit integers are computed in 32 bits
    where that is proven to be the same, on the host elsewhere, or in 32 bits wherever there is an operation. `qdq`:
    what ONNX dequantises, computes and quantises is one operation on codes, whose rounding is NNAPI's, or floats
    between codes, rounded as ONNX says. `limits`: what the device takes of that, where it is less; see `from_toml`.
    Raises `UsageError` on a level that does not exist.
    """

    level: int = 30
    ex: bool = True
    experimental: bool = True
    sparse: Literal["keep", "fold"] = "keep"
    hybrid: Literal["exact", "float"] = "exact"
    int64: Literal["exact", "narrow"] = "exact"
    qdq: Literal["codes", "floats"] = "codes"
    limits: DeviceLimits | None = None
    #: Whether it is this machine, which does host operations as fast as others.
    here: ClassVar[bool] = False

    @classmethod
    def named(cls, name: str) -> Target:
        """A feature level as 30 or fl6, or a device's .toml file; raises `UsageError` where it is neither."""
        if name.endswith(".toml"):
            return cls.from_toml(name)
        try:
            return cls(level_of(name))
        except ValueError as error:
            raise UsageError(str(error), hint="it is a number as 30, fl6, or a .toml file") from error

    @classmethod
    def from_toml(cls, path: str | Path) -> Target:
        """A device described by a TOML file: its level, its operations, and rules on types, ranks, shapes and values.

        The format is told in docs/targets.md. Raises `UsageError`, naming the file, on what makes no sense.
        """
        from .device_limits import read
        ways, limits = read(path)
        try:
            return cls(**ways, limits=limits)
        except UsageError as error:
            raise error.at(str(path)) from error

    @property
    def whole(self) -> Target:
        """The same level and ways without a device's own limits."""
        return replace(self, limits=None)

    def __post_init__(self) -> None:
        level = levelled(int(self.level))
        if level not in LEVELS:
            raise UsageError(f"there is no feature level {self.level}: 27 to 31, or 6 to 8")
        if self.sparse not in ("keep", "fold"):
            raise UsageError(f"sparse is 'keep' or 'fold', not {self.sparse!r}")
        if self.hybrid not in ("exact", "float"):
            raise UsageError(f"hybrid is 'exact' or 'float', not {self.hybrid!r}")
        if self.int64 not in ("exact", "narrow"):
            raise UsageError(f"int64 is 'exact' or 'narrow', not {self.int64!r}")
        if self.qdq not in ("codes", "floats"):
            raise UsageError(f"qdq is 'codes' or 'floats', not {self.qdq!r}")
        object.__setattr__(self, "level", level)

    def has(self, op: OpDef) -> bool:
        """Whether there is such an operation at all."""
        return op.code is not None and (self.ex or not op.ex)

    def fault(self, op: OpDef, verdict: Checked | OpError) -> str:
        """Why the target does not take an operation, in the table's words; empty when it does."""
        if op.host:
            return ""
        if not self.has(op):
            return f"{op.name} is {'a composite' if op.code is None else 'of NNAPI-EX'}"
        if isinstance(verdict, Exception):
            return str(verdict)
        return self._of_level(op, verdict) or ("" if self.limits is None else self.limits.fault(op, verdict))

    def _of_level(self, op: OpDef, verdict: Checked) -> str:
        """Why the feature level does not take an operation that the table takes."""
        if verdict.level == FeatureLevel.EXPERIMENTAL:
            return "" if self.experimental else f"{op.name} is experimental"
        if verdict.level <= self.level:
            return ""
        from .since import reason
        return f"{op.name} {reason(op, verdict)}"

    def __str__(self) -> str:
        extras = [n for n, there in (("EX", self.ex), ("DENSIFY", self.experimental)) if there]
        level = " + ".join([f"level {level_name(self.level)}", *extras])
        return level if self.limits is None else f"{self.limits.name} ({level})"


class Here(Target):
    """This machine. What native code does faster, or rounds as the file's own runtime, stays whole for it: the rules of
    lowering that ask for `here` say what, and tests/lowering/test_here.py holds them to it."""

    here = True


def level_name(level: int) -> str:
    """A feature level as people say it: 30, 6, experimental."""
    if level == FeatureLevel.EXPERIMENTAL:
        return "experimental"
    return spelt(level).removeprefix("fl")
