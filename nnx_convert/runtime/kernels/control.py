"""Branches, loops and random draws."""
from __future__ import annotations

import numpy as np

from ...ops import control
from ...types import Array, Signature, Tensor
from ..control import branch, loop
from ..kernel import Compute, Inner, Run, Site, kernel, sized


@sized(control.IF, inner=Inner(("then", "orelse"), "args"))
def IF(site: Site, cond: Tensor, then: Signature, orelse: Signature, args: tuple[Tensor, ...]) -> Compute:
    return branch(site.calls)


@sized(control.WHILE, inner=Inner(("body",), "values", again=True))
def WHILE(site: Site, cond: Signature, body: Signature, values: tuple[Tensor, ...], count: int) -> Compute:
    run = loop(site.calls)
    return lambda values: run(values)[:count]


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
