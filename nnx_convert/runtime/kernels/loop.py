"""A loop that counts and collects what its rounds give; a branch that cannot be taken, a size that was taken to be."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...errors import RunError
from ...ops import loop
from ...resources import clock, limited, limits, timed
from ...types import Array, Signature, Tensor, Type, known
from ..control import Natively, allowed
from ..kernel import Call, Compute, Run, Site, kernel, sized
from ..memory import affordable
from .shape import same_bytes

if TYPE_CHECKING:
    from ..codegen.ready import Ready
    from ..codegen.rounds import Counting

#: A loop of more rounds than this counts as one that is not counted.
COUNTED = 1 << 20


@sized(loop.LOOP)
def LOOP(site: Site, body: Signature, trip: Tensor | None, cond: Tensor | None, states: int,
         values: tuple[Tensor, ...], count: int) -> Compute:
    parts, call, own = body.outputs[1 + states:], site.calls["body"], limits()
    natively = Natively((call,), partial(counting, 1 + states))

    def run(trip: Array | None, cond: Array | None, values: Sequence[Array | None]) -> list[Array]:
        rounds = math.inf if trip is None else int(trip.item())
        with limited(own), timed("the run"):
            last, kept = looped(call, rounds, cond is None or bool(cond.item()), values, states, natively)
        return last + [collected([r[k] for r in kept], t) for k, t in enumerate(parts)]
    return run


def counting(parts: int, programs: tuple[Ready, ...]) -> Counting:
    """What does the rounds of a LOOP natively."""
    from ..codegen.rounds import Counting
    return Counting(programs, parts)


def looped(call: Call, rounds: float, on: bool, values: Sequence[Array | None], states: int,
           natively: Natively[Counting]) -> tuple[list[Array], list[list[Array]]]:
    """The states after the loop, and what some rounds at a time gave beside, along a new first axis. A count limits its
    time as well as a clock does."""
    now, kept, held, n = list(values), list[list[Array]](), 0, 0
    most, late = limits(), clock("loop_seconds")

    def left(done: int, wanted: int) -> int:
        """How many rounds there may be after so many, of as many as are wanted."""
        if n + done >= rounds:
            return 0
        allowed(n + done + 1, most, rounds > COUNTED and late())
        some = int(min(wanted, rounds - n - done, most.rounds - n - done))
        affordable(held + (done + some) * (swift.size if swift else 0), "what the rounds of a loop give")
        return some
    swift = None
    while on and left(0, 1):
        given = [np.array([n], np.int64), np.array([on]), *now]
        if (swift := natively(given)) is not None:
            now[:states], more = swift.run(given, left)
            natively.back(swift)
            return [np.asarray(v) for v in now[:states]], kept + more
        found = call(given)
        on, now[:states] = bool(found[0].all()), found[1:1 + states]
        kept.append([a[None] for a in found[1 + states:]])
        held, n = held + sum(a.nbytes for a in kept[-1]), n + 1
        affordable(held, "what the rounds of a loop give")
    return [np.asarray(v) for v in now[:states]], kept


def collected(parts: Sequence[Array], like: Tensor) -> Array:
    """What the rounds gave, together; of no rounds, nothing of the sizes that are known."""
    if parts:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.empty((0, *(n if known(n) else 0 for n in like.dims or ())), like.type.dtype)


@sized(loop.REFUSE)
def REFUSE(site: Site, why: Tensor, to: Type) -> Compute:
    def run(why: Array) -> list[Array]:
        raise RunError(b" ".join(why.reshape(-1).tolist()).decode("utf-8", "replace"))
    return run


@kernel(loop.EXPECT, view="x")
def EXPECT(site: Site, x: Tensor, axis: int, size: int) -> Run:
    return same_bytes(site, x)
