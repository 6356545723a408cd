"""Branches, loops and random draws."""
from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...ops import control
from ...types import Array, Signature, Tensor
from ..kernel import Call, Compute, Inner, Run, Site, kernel, sized

#: NNAPI's longest loop timeout (`ANeuralNetworks_getMaximumLoopTimeout`): a loop that runs longer fails.
LOOP_SECONDS = 15.0


@sized(control.IF, inner=Inner(("then", "orelse"), "args"))
def IF(site: Site, cond: Tensor, then: Signature, orelse: Signature, args: tuple[Tensor, ...]) -> Compute:
    calls = site.calls

    def run(cond: Array, args: Sequence[Array | None]) -> list[Array]:
        return calls["then" if cond[0] else "orelse"](args)
    return run


@sized(control.WHILE, inner=Inner(("body",), "values", again=True))
def WHILE(site: Site, cond: Signature, body: Signature, values: tuple[Tensor, ...], count: int) -> Compute:
    calls = site.calls

    def run(values: Sequence[Array | None]) -> list[Array]:
        return looped(calls["cond"], calls["body"], values)[:count]
    return run


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


@kernel(control.RANDOM_MULTINOMIAL)
def RANDOM_MULTINOMIAL(site: Site, logits: Tensor, samples: int, seeds: Tensor) -> Run:
    def run(out: Array, logits: Array, seeds: Array) -> None:
        # Two 32-bit seeds are Philox's key; NNAPI says how the classes are distributed, not which are drawn.
        key = seeds.astype(np.uint32).astype(np.uint64) if seeds.any() else None
        random = np.random.Generator(np.random.Philox(key=key))
        real = logits.astype(np.float64)
        odds = np.cumsum(np.exp(real - real.max(axis=1, keepdims=True)), axis=1)
        drawn = random.random(out.shape) * odds[:, -1:]
        for row, chances, points in zip(out, odds, drawn, strict=True):
            row[:] = np.minimum(np.searchsorted(chances, points, side="right"), len(chances) - 1)
    return run
