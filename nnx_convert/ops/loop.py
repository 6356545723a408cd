"""A loop that counts and collects what its rounds give; a branch that cannot be taken, a size that was taken to be."""
from __future__ import annotations

from typing import Annotated

from ..kinds import AXIS, KEY, Graph, Int, Natural, OutCount, T, To, put
from ..schema import Rule, host
from ..signature import Kind
from ..types import B8, STR, UNKNOWN, Tensor, Type
from .control import agree, merged
from .host import ALL
from .sequence import Every, ToEvery, Whole


@host(60401, {Type.MODEL: 27},
      Rule("body takes the round, the condition and the values", lambda body, values: agree(body.inputs[2:], values)),
      Rule("body gives the condition, the states, then what is collected", lambda body, states, count:
           len(body.outputs) == 1 + count and states <= count
           and agree(body.outputs[1:1 + states], body.inputs[2:2 + states])),
      Rule("trip is one number", lambda trip: trip is None or trip.size == 1),
      Rule("cond is one truth value", lambda cond: cond is None or cond.size == 1), outs=("result",))
def LOOP(body: Annotated[Graph, KEY], trip: Whole | None, cond: Annotated[Tensor, Kind({B8: 27})] | None,
         states: Natural, *values: Every, count: OutCount) -> list[Every]:
    """cond, states, parts = body(i, cond, *values), i < trip, while cond: the states, and the parts of all rounds."""
    last = [merged(a, b) for a, b in zip(values[:states], body.outputs[1:1 + states], strict=True)]
    return last + [Tensor(t.type, None if t.dims is None else (UNKNOWN, *t.dims), t.quant)
                   for t in body.outputs[1 + states:]]


@host(60402, {STR: 27}, pure=False)
def REFUSE(why: T, to: ToEvery) -> To:
    """Nothing: the run ends with the text why. It stands for a branch that its inputs do not fit."""
    return Tensor(to, None)


@host(60403, ALL, AXIS, Rule("x has that size along axis", lambda x, axis, size: x.shape[axis] == size))
def EXPECT(x: T, axis: Int, size: Int) -> T:
    """x, whose size along axis is size."""
    return x.like(put(x.shape, axis, size))
