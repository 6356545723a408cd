"""A loop that counts and collects what its rounds give; a branch that cannot be taken, a size that was taken to be."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...ops import loop
from ...resources import clock, limited, limits, timed
from ...types import Array, Signature, Tensor, Type, known
from ..control import allowed
from ..kernel import Call, Compute, Run, Site, kernel, sized
from ..memory import affordable
from .shape import same_bytes

#: A loop of more rounds than this counts as one that is not counted.
COUNTED = 1 << 20


@sized(loop.LOOP)
def LOOP(site: Site, body: Signature, trip: Tensor | None, cond: Tensor | None, states: int,
         values: tuple[Tensor, ...], count: int) -> Compute:
    parts, call, own = body.outputs[1 + states:], site.calls["body"], limits()

    def run(trip: Array | None, cond: Array | None, values: Sequence[Array | None]) -> list[Array]:
        rounds = math.inf if trip is None else int(trip.item())
        with limited(own), timed("the run"):
            last, kept = looped(call, rounds, cond is None or bool(cond.item()), values, states)
        return last + [collected([r[k] for r in kept], t) for k, t in enumerate(parts)]
    return run


def looped(call: Call, rounds: float, on: bool, values: Sequence[Array | None], states: int
           ) -> tuple[list[Array], list[list[Array]]]:
    """The states after the loop, and what each round gave beside. A count limits its time as well as a clock does."""
    now, kept, held = list(values), list[list[Array]](), 0
    most, late = limits(), clock("loop_seconds")
    while on and len(kept) < rounds:
        allowed(len(kept) + 1, most, rounds > COUNTED and late())
        found = call([np.array([len(kept)], np.int64), np.array([on]), *now])
        on, now[:states] = bool(found[0].all()), found[1:1 + states]
        kept.append(found[1 + states:])
        held += sum(a.nbytes for a in kept[-1])
        affordable(held, "what the rounds of a loop give")
    return [np.asarray(v) for v in now[:states]], kept


def collected(parts: Sequence[Array], like: Tensor) -> Array:
    """What the rounds gave along a new first axis; of no rounds, nothing of the sizes that are known."""
    if parts:
        return np.stack(parts)
    return np.empty((0, *(n if known(n) else 0 for n in like.dims or ())), like.type.dtype)


@sized(loop.REFUSE)
def REFUSE(site: Site, why: Tensor, to: Type) -> Compute:
    def run(why: Array) -> list[Array]:
        raise RunError(b" ".join(why.reshape(-1).tolist()).decode("utf-8", "replace"))
    return run


@kernel(loop.EXPECT, view="x")
def EXPECT(site: Site, x: Tensor, axis: int, size: int) -> Run:
    return same_bytes(site, x)
