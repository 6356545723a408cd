"""Branches, loops and random draws."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..kinds import KEY, MATH, T2, Any1, Graph, Int, Ints, Ints1, OutCount, T
from ..schema import Rule, op
from ..types import B8, I32, UNKNOWN, Tensor, Type, same


def agree(inner: Sequence[Tensor], outer: Sequence[Tensor]) -> bool:
    """Whether tensors given fit tensors expected, one by one."""
    return len(inner) == len(outer) and all(a.agrees(b) for a, b in zip(inner, outer, strict=True))


def merged(a: Tensor, b: Tensor) -> Tensor:
    """What holds of a value that is either: dimensions both share."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Tensor(a.type, None, a.quant)
    return a.like(tuple(m if same(m, n) else UNKNOWN for m, n in zip(a.dims, b.dims, strict=True)))


@op({B8: 30}, Rule("cond is present and has shape [1]", lambda cond: cond.shape == (1,)),
    Rule("both graphs take the arguments", lambda then, orelse, args:
         agree(then.inputs, args) and agree(orelse.inputs, args)),
    Rule("both graphs give the same results", lambda then, orelse: len(then.outputs) == len(orelse.outputs)
         and all(a.type == b.type for a, b in zip(then.outputs, orelse.outputs, strict=True))),
    outs=("result",))
def IF(cond: T, then: Graph, orelse: Graph, *args: Any1) -> list[Any1]:
    """then(args) where cond, else orelse(args)."""
    return [merged(a, b) for a, b in zip(then.outputs, orelse.outputs, strict=True)]


@op({Type.MODEL: 30}, Rule("cond and body take the loop's values", lambda cond, body, values:
                               agree(cond.inputs, values) and agree(body.inputs, values)),
    Rule("cond gives one truth value", lambda cond: len(cond.outputs) == 1
         and cond.outputs[0].agrees(Tensor(B8, (1,)))),
    Rule("body gives the results, then the state it carries over", lambda body, count:
         count <= len(body.outputs) <= len(body.inputs)
         and agree(body.outputs, body.inputs[:len(body.outputs)])),
    outs=("result",))
def WHILE(cond: Annotated[Graph, KEY], body: Graph, *values: Any1, count: OutCount) -> list[Any1]:
    """While cond(values): the first values = body(values). Results come first, then state, then constants."""
    return list(body.outputs[:count])


@op(MATH, Rule("seeds are two", lambda seeds: seeds.shape == (2,)), pure=False)
def RANDOM_MULTINOMIAL(logits: T2, samples: Int, seeds: Ints1) -> Ints:
    """Class indices drawn with odds exp(logits), row by row; seeds of 0, 0 draw anew each time."""
    return Tensor(I32, (logits.shape[0], samples))
