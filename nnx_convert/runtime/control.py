"""Branches and loops over graphs that can be called: nothing here asks for the table of operations or for a model."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LimitError
from ..resources import Limits, clock, hint, limited, limits, tick, timed
from ..types import Array

if TYPE_CHECKING:
    from .kernel import Call, Compute, Run

def branch(calls: Mapping[str, Call]) -> Compute:
    """An IF: of `then` and `orelse`, the one that its condition says."""
    def run(cond: Array, args: Sequence[Array | None]) -> list[Array]:
        return calls["then" if cond[0] else "orelse"](args)
    return run


def loop(calls: Mapping[str, Call]) -> Compute:
    """A WHILE: `body` as long as `cond` holds. Its limits are those it is made under."""
    kept = limits()

    def run(values: Sequence[Array | None]) -> list[Array]:
        with limited(kept), timed("the run"):
            return looped(calls["cond"], calls["body"], values)
    return run


#: What makes a run, by the names of the graphs that it calls.
BY_GRAPHS: dict[tuple[str, ...], Callable[[Mapping[str, Call]], Compute]] = {
    ("then", "orelse"): branch, ("cond", "body"): loop}


def looped(cond: Call, body: Call, values: Sequence[Array | None]) -> list[Array]:
    """The values after the loop: body's results come first, what it does not give stays as it was."""
    now, most, rounds, late = list(values), limits(), 0, clock("loop_seconds")
    while cond(now)[0].any():
        rounds += 1
        allowed(rounds, most, late())
        found = body(now)
        now[:len(found)] = found
    return [np.asarray(v) for v in now]


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
