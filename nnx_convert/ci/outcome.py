"""What came of an entry: a step for each thing that was asked, with what was found and what was allowed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..errors import ExitCode
from ..frozen import frozen

#: Which code a whole ends with where several entries fail: first what could not be judged, then what a device
#: does not take, then what differs.
GRAVEST = (ExitCode.FAILED, ExitCode.UNREADABLE, ExitCode.USAGE, ExitCode.UNSUPPORTED, ExitCode.DIFFERENT)


@frozen
class Step:
    """One thing that was asked of a model.

    `kind` is check, verify, diff, or what a budget is of (size, weights, arena, macs, median, ratio); `of` the target,
    what it was compared with or the engine. `found` and `limit` are in words, `why` says what a failure is about,
    `code` what it ends with; `figures` are the numbers.
    """

    kind: str
    of: str
    found: str
    limit: str = ""
    code: ExitCode = ExitCode.GOOD
    why: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether it is as it was asked for."""
        return self.code is ExitCode.GOOD

    @property
    def judged(self) -> bool:
        """Whether it could be found out at all."""
        return self.code in (ExitCode.GOOD, ExitCode.DIFFERENT, ExitCode.UNSUPPORTED)


@frozen
class Outcome:
    """What came of an entry, and how many seconds it took; `notes` are what a user should know beside it."""

    entry: str
    source: str
    steps: tuple[Step, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether all is as it was asked for."""
        return all(s.good for s in self.steps)


def code(outcomes: Sequence[Outcome]) -> ExitCode:
    """What the whole ends with."""
    found = {s.code for o in outcomes for s in o.steps}
    return next((c for c in GRAVEST if c in found), ExitCode.GOOD)
