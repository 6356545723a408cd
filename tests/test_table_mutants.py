"""How sharp the table is: every golden operation broken in one way; almost all of it must be refused."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from golden import FAMILIES, legal_models

from nnx_convert.model import Model, Operation
from nnx_convert.schema import OpError
from nnx_convert.types import B8, F16, F32, I32, Q8, Q8S, ZERO_POINTS, Arg, Quant, Scalar, Tensor, Type, known

TYPES = (F32, F16, I32, B8, Q8, Q8S)
Mutant = tuple[str, list[Arg], list[Tensor]]


def put(xs: list[Arg], i: int, x: Arg) -> list[Arg]:
    return [*xs[:i], x, *xs[i + 1:]]


def inputs_broken(args: list[Arg]) -> Iterator[tuple[str, list[Arg]]]:
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            for t in (t for t in TYPES if t != a.type):
                yield "input type", put(args, i, replace(a, type=t, quant=Quant(0.5) if t in ZERO_POINTS else None))
            if a.dims is not None:
                yield "input rank + 2", put(args, i, replace(a, dims=(1, 1, *a.dims), data=None))
            if isinstance(a.quant, Quant):
                yield "input scale", put(args, i, replace(a, quant=replace(a.quant, scale=a.quant.scale * 2)))
        if isinstance(a, Scalar):
            for t in (Type.INT32, Type.FLOAT32, Type.FLOAT16, Type.BOOL):
                if t != a.type:
                    yield "scalar type", put(args, i, Scalar(t, a.value))
            if a.type == Type.INT32:
                yield "scalar -99", put(args, i, Scalar(a.type, -99))
        if a is not None:
            yield "input left out", put(args, i, None)
    yield "one input more", [*args, Scalar(Type.INT32, 1)]
    yield "one input less", args[:-1]


def outputs_broken(outs: list[Tensor]) -> Iterator[tuple[str, list[Tensor]]]:
    def but(i: int, o: Tensor) -> list[Tensor]:
        return [*outs[:i], o, *outs[i + 1:]]
    for i, o in enumerate(outs):
        yield from (("output type", but(i, Tensor(t, o.dims))) for t in TYPES if t != o.type)
        if isinstance(o.quant, Quant):
            yield "output scale", but(i, replace(o, quant=replace(o.quant, scale=o.quant.scale * 2)))
        if o.dims and all(map(known, o.dims)):
            for k, n in enumerate(o.dims):
                yield "output size", but(i, replace(o, dims=(*o.dims[:k], n + 1, *o.dims[k + 1:])))
            yield "output rank", but(i, replace(o, dims=(1, *o.dims)))
    yield "one output more", [*outs, outs[0]]


def mutants(model: Model, o: Operation) -> Iterator[Mutant]:
    """The operation's operands, broken in one way at a time."""
    args = [replace(a, omittable=False) if isinstance(a, Tensor) else a
            for a in (model.operands[i].arg() for i in o.inputs)]
    outs = [model.operands[i].tensor() for i in o.outputs]
    yield from ((what, broken, outs) for what, broken in inputs_broken(args))
    yield from ((what, args, broken) for what, broken in outputs_broken(outs))


#: Kind of mutant -> how many of a thousand are refused at least. A scale is free in most operations, and an
#: operand less is another legal form in many.
REFUSED = {
    "input type": 991, "input rank + 2": 990, "input left out": 996, "input scale": 594, "scalar type": 1000,
    "scalar -99": 977, "one input more": 983, "one input less": 788, "output type": 992, "output size": 963,
    "output rank": 988, "output scale": 577, "one output more": 1000}


def accepted() -> tuple[Counter[str], Counter[str]]:
    """How many mutants there are of each kind, and how many of them the table accepts."""
    total, kept, seen = Counter[str](), Counter[str](), set[str]()
    for model in (m for family in FAMILIES for m in legal_models(family)):
        for o in model.operations:
            shown = repr((o.op.name, [model.operands[i].arg() for i in (*o.inputs, *o.outputs)]))
            if shown in seen:
                continue
            seen.add(shown)
            for what, args, outs in mutants(model, o):
                total[what] += 1
                try:
                    o.op.check(args, outs)
                    kept[what] += 1
                except OpError:
                    pass
    return total, kept


@pytest.mark.parametrize("families", [FAMILIES] * bool(FAMILIES), ids=["all families"])
def test_a_broken_operation_is_refused(families: list[str]) -> None:
    total, kept = accepted()
    share = {what: 1000 - 1000 * kept[what] / total[what] for what in total}
    assert share.keys() == REFUSED.keys()
    assert {what: s for what, s in share.items() if s < REFUSED[what]} == {}
