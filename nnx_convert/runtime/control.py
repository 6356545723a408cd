"""Branches and loops over graphs that can be called: nothing here asks for the table of operations or for a model."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..errors import LimitError
from ..resources import Limits, clock, hint, limited, limits, tick, timed
from ..types import Array
from .memory import ARENAS

if TYPE_CHECKING:
    from .codegen.ready import Ready
    from .codegen.rounds import Asking, Rounds
    from .kernel import Call, Compute, Run

Swift = TypeVar("Swift", bound="Rounds")


def branch(calls: Mapping[str, Call]) -> Compute:
    """An IF: of `then` and `orelse`, the one that its condition says."""
    def run(cond: Array, args: Sequence[Array | None]) -> list[Array]:
        return calls["then" if cond[0] else "orelse"](args)
    return run


def loop(calls: Mapping[str, Call]) -> Compute:
    """A WHILE: `body` as long as `cond` holds. Its limits are those it is made under."""
    kept, natively = limits(), Natively((calls["cond"], calls["body"]), asking)

    def run(values: Sequence[Array | None]) -> list[Array]:
        with limited(kept), timed("the run"):
            return looped(calls["cond"], calls["body"], values, natively)
    return run


def asking(programs: tuple[Ready, ...]) -> Asking:
    """What does the rounds of a WHILE natively."""
    from .codegen.rounds import Asking
    return Asking(programs)


class Natively(Generic[Swift]):
    """What does the rounds of a loop natively, as soon as its graphs have programs for such values: as `make` makes it
    of these, which raises `ValueError` where it cannot."""

    def __init__(self, calls: Sequence[Call], make: Callable[[tuple[Ready, ...]], Swift]) -> None:
        self._calls, self._make = calls, make
        # The programs that it is for, and those that it was last seen not to be for.
        self._programs: tuple[Ready, ...] = ()
        self._unfit: tuple[Ready, ...] = ()
        self._idle: deque[Swift] = deque(maxlen=ARENAS)

    def __call__(self, values: Sequence[Array | None]) -> Swift | None:
        """It for one run, then `back` has it again; None where NumPy does a part of a round."""
        found = [ready(values) for call in self._calls if (ready := getattr(call, "ready", None)) is not None]
        programs = tuple(program for program in found if program is not None)
        if len(programs) < len(self._calls) or programs == self._unfit:
            return None
        if self._programs != programs:
            self._idle, self._programs = deque(maxlen=ARENAS), programs
        with suppress(IndexError):
            idle = self._idle.pop()
            if idle.programs == programs:        # another thread may be at values of other sizes
                return idle
        try:
            return self._make(programs)
        except ValueError:
            self._unfit = programs
            return None

    def back(self, rounds: Swift) -> None:
        """It for another run, if its run went well."""
        if rounds.programs == self._programs:
            self._idle.append(rounds)


#: What makes a run, by the names of the graphs that it calls.
BY_GRAPHS: dict[tuple[str, ...], Callable[[Mapping[str, Call]], Compute]] = {
    ("then", "orelse"): branch, ("cond", "body"): loop}


def looped(cond: Call, body: Call, values: Sequence[Array | None],
           natively: Natively[Asking]) -> list[Array]:
    """The values after the loop: body's results come first, what it does not give stays as it was."""
    now, most, rounds, late = list(values), limits(), 0, clock("loop_seconds")
    while (swift := natively(now)) is None:
        if not cond(now)[0].any():
            return [np.asarray(v) for v in now]
        rounds += 1
        allowed(rounds, most, late())
        found = body(now)
        now[:len(found)] = found

    def left(done: int) -> int:
        allowed(rounds + done, most, late())
        return most.rounds - rounds - done + 1
    found = swift.run(now, left)
    natively.back(swift)
    return found


def allowed(rounds: int, most: Limits, late: bool) -> None:
    """Raise `LimitError` where a loop has had its rounds, or its time."""
    if rounds > most.rounds:
        raise LimitError(f"a loop has more than {most.rounds:,} rounds", hint=hint("rounds"))
    if late:
        raise LimitError(f"a loop runs longer than {most.loop_seconds:g} seconds", hint=hint("loop_seconds"))
    tick()


def fitted(compute: Compute, count: int) -> Run:
    """The run of a step with so many outputs of known sizes: they are copied to their places.

    More may be computed, as by a loop of what it carries over.
    """
    def run(*arrays: Any) -> None:
        for i, (out, found) in enumerate(zip(arrays[:count], compute(*arrays[count:]), strict=False)):
            if out.shape != found.shape:
                raise ValueError(f"output {i} has shape {list(found.shape)}, the model says {list(out.shape)}")
            np.copyto(out, found)
    return run
