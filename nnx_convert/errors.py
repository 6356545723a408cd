"""What a user can cause: every fault has a stable id, a place, the rule broken and the exit code it ends with."""
from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from enum import IntEnum
from typing import Self

from .codes import ResultCode

#: Names beyond these are counted, not told.
SHOWN = 12


class ExitCode(IntEnum):
    """What the command ends with."""

    GOOD = 0
    DIFFERENT = 1
    USAGE = 2
    UNREADABLE = 3
    UNSUPPORTED = 4
    FAILED = 5

    @property
    def meaning(self) -> str:
        """The code in words, for --help and the documentation."""
        return {ExitCode.GOOD: "all went well",
                ExitCode.DIFFERENT: "numbers differ, files do by what --fail-on names, or a budget of ci is exceeded",
                ExitCode.USAGE: "an option, an argument or an output path makes no sense",
                ExitCode.UNREADABLE: "the file is missing, broken, or holds what has no counterpart",
                ExitCode.UNSUPPORTED: "the target does not take an operation: --strict, check --fail-on, --emit",
                ExitCode.FAILED: "the run failed, or its inputs do not fit; also a fault of the program itself"}[self]


def near(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint at those of the known names that one may have meant; `otherwise` where none is like it."""
    from difflib import get_close_matches
    by_case = {k.lower(): k for k in known}
    wanted = name.lower()
    found = [k for k in by_case if len(wanted) > 2 and (wanted in k or len(k) > 2 and k in wanted)]
    found = found or get_close_matches(wanted, by_case, 5, 0.6)
    return f"did you mean {', '.join(by_case[k] for k in found[:5])}?" if found else otherwise


def among(lost: str, known: Collection[str], noun: str) -> str:
    """A hint where there is nothing of a name: what it may have meant, and what there is, the first few of many."""
    shown = ", ".join(list(known)[:SHOWN]) + (f" and {len(known) - SHOWN} more" if len(known) > SHOWN else "")
    return f"{near(lost, known)} the {noun} are {shown or 'none'}".strip()


def printable(text: str) -> str:
    """The text on one line: names in a file may hold anything, also what a terminal obeys."""
    return text if text.isprintable() else "".join(
        c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text)


class Notice(UserWarning):
    """What a user should know of work that is done all the same, only worse."""


class NnxError(Exception):
    """A fault in the input.

    `id` is for machines and never changes its meaning; `where` is the place (file, operator); `text` says
    what is wrong, `hint` what to do about it; `exit_code` is what the command ends with.
    """

    id = "NNX000"
    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, text: str, where: str = "", hint: str = "") -> None:
        super().__init__(text, where, hint)
        self.text, self.where, self.hint = text, where, hint

    def at(self, where: str) -> Self:
        """The same fault, placed: `where` goes before the place it has."""
        placed = copy(self)
        placed.where = ": ".join(filter(None, (where, self.where)))
        placed.args = (self.text, placed.where, self.hint)
        return placed

    @property
    def said(self) -> str:
        """The place, what is wrong and what to do about it, in one line."""
        return (f"{self.where}: " if self.where else "") + self.text + (f" ({self.hint})" if self.hint else "")

    def __str__(self) -> str:
        return f"{self.id} {self.said}"


class FormatError(NnxError):
    """The file is not what it claims to be."""

    id = "NNX101"
    exit_code = ExitCode.UNREADABLE


class Unsupported(NnxError):
    """The file is in order and says something this compiler does not take."""

    id = "NNX102"
    exit_code = ExitCode.UNREADABLE


class Oversized(Unsupported):
    """The file is larger, or has more operators, graphs or levels of them, than a limit allows (docs/limits.md)."""

    id = "NNX104"


class ArtifactError(FormatError):
    """A .nnx file is cut short, altered or of another version."""

    id = "NNX103"


class ModelError(NnxError):
    """A builder call that NNAPI would refuse.

    `result` is the code it would return; `operation` and `operand` are the indices concerned, where one is.
    """

    id = "NNX201"

    def __init__(self, text: str, where: str = "", hint: str = "", *, result: ResultCode = ResultCode.BAD_DATA,
                 operation: int | None = None, operand: int | None = None) -> None:
        super().__init__(text, where, hint)
        self.result, self.operation, self.operand = result, operation, operand

    def __str__(self) -> str:
        return f"{self.id} {self.result.name}: {self.said}"


class StrictError(NnxError):
    """Under `strict`, an operation the target does not take."""

    id = "NNX301"
    exit_code = ExitCode.UNSUPPORTED


class ExportError(NnxError):
    """The model cannot become code: it has operations or types that only this package runs."""

    id = "NNX302"
    exit_code = ExitCode.UNSUPPORTED


class InputError(NnxError):
    """Inputs of a run that do not fit the model: a name, a type, a shape, or one that is missing."""

    id = "NNX401"


class RunError(NnxError):
    """The model cannot be compiled for these shapes, or an operation failed at run time."""

    id = "NNX402"


class LimitError(RunError):
    """A conversion or a run needs more memory, time or rounds of a loop than a limit allows (docs/limits.md)."""

    id = "NNX403"


class UsageError(NnxError):
    """An option or an argument that makes no sense."""

    id = "NNX501"
    exit_code = ExitCode.USAGE
