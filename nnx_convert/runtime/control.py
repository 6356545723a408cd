"""Branches and loops over graphs that can be called: nothing here asks for the table of operations or for a model."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RunError
from ..types import Array

if TYPE_CHECKING:
    from .kernel import Call, Compute, Run

#: NNAPI's longest loop timeout (`ANeuralNetworks_getMaximumLoopTimeout`): a loop that runs longer fails.
LOOP_SECONDS = 15.0


def branch(calls: Mapping[str, Call]) -> Compute:
    """An IF: of `then` and `orelse`, the one that its condition says."""
    def run(cond: Array, args: Sequence[Array | None]) -> list[Array]:
        return calls["then" if cond[0] else "orelse"](args)
    return run


def loop(calls: Mapping[str, Call]) -> Compute:
    """A WHILE: `body` as long as `cond` holds."""
    def run(values: Sequence[Array | None]) -> list[Array]:
        return looped(calls["cond"], calls["body"], values)
    return run


#: What makes a run, by the names of the graphs that it calls.
BY_GRAPHS: dict[tuple[str, ...], Callable[[Mapping[str, Call]], Compute]] = {
    ("then", "orelse"): branch, ("cond", "body"): loop}


def looped(cond: Call, body: Call, values: Sequence[Array | None]) -> list[Array]:
    """The values after the loop: body's results come first, what it does not give stays as it was."""
    end = time.monotonic() + LOOP_SECONDS
    now = list(values)
    while cond(now)[0].any():
        if time.monotonic() > end:
            raise RunError(f"a loop runs longer than {LOOP_SECONDS:g} seconds")
        found = body(now)
        now[:len(found)] = found
    return [np.asarray(v) for v in now]


def fitted(compute: Compute, count: int) -> Run:
    """The run of a step with so many outputs of known sizes: they are copied to their places."""
    def run(*arrays: Any) -> None:
        for i, (out, found) in enumerate(zip(arrays, compute(*arrays[count:]), strict=False)):
            if out.shape != found.shape:
                raise ValueError(f"output {i} has shape {list(found.shape)}, the model says {list(out.shape)}")
            np.copyto(out, found)
    return run
