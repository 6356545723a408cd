"""Rows of the table, one by one: documentation, forms, levels, what is checked and what flows through."""
from __future__ import annotations

from typing import Any

import pytest

from nnx_convert import ops
from nnx_convert.codes import FeatureLevel
from nnx_convert.ops.host import host_twin, op_of
from nnx_convert.schema import OPS, OpDef, OpError
from nnx_convert.types import F16, F32, I32, Q8, QPC, UNKNOWN, Arg, ChannelQuant, Quant, Scalar, Tensor, Type


def i32(*values: int) -> list[Arg]:
    return [Scalar(Type.INT32, v) for v in values]


def flag(value: bool) -> Scalar:
    return Scalar(Type.BOOL, value)


def f32(*shape: int) -> Tensor:
    return Tensor(F32, shape)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_every_op_says_what_it_computes(op: OpDef) -> None:
    assert op.doc.endswith(".") and "\n" not in op.doc


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_every_signature_can_be_read(op: OpDef) -> None:
    """Nothing reads it before somebody asks."""
    assert len(op.returns) == len(op.outs) and all(form.params for form in op.forms)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_every_rule_is_a_sentence_about_arguments(op: OpDef) -> None:
    texts = [r.text for r in op.rules] + [m.text for f in op.forms for p in f.params for m in p.limits]
    assert all(t and t[0].islower() and not t.endswith(".") or t[0].isalpha() for t in texts)
    assert len({r.text for r in op.rules}) == len(op.rules)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_the_host_has_a_twin_of_every_op(op: OpDef) -> None:
    twin = host_twin(op)
    assert twin.host and twin.code is not None and op_of(twin.code) is twin
    assert [f.names for f in twin.forms] == [f.names for f in op.forms]
    assert set(twin.types) >= set(op.types)
    assert not [r.text for r in twin.rules if r.limit or r.until]


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_levels_are_feature_levels(op: OpDef) -> None:
    levels = {int(v) for v in FeatureLevel}
    used = {*op.types.values(), *(f.since for f in op.forms[1:]), *(p.since for f in op.forms for p in f.params)}
    used |= {r.until for r in op.rules if r.until} | {m.until for f in op.forms for p in f.params for m in p.limits
                                                        if m.until}
    assert used - {0} <= levels


#: The rules that are limits of NNAPI's and not of what an operation means: the host's twins have none of them.
LIMITS = {
    "act is 0 on TENSOR_INT32", "b has zero point 0 and scale x.scale * w.scale (0 where w is per-channel)",
    "the output scale exceeds x.scale * y.scale", "x has rank 1 to 4",
    "y has rank 1 to 4", "bi, bf, bc and bo have zero point 0 and scale x.scale * wi.scale",
    "the scale of c is a power of two (to 0.1 %), 2 ** -9 at most", "weight is there when dense only"}


def test_limits_are_known_by_name() -> None:
    assert {r.text for o in OPS.values() for r in o.rules if r.limit} == LIMITS


def test_no_code_is_declared_twice() -> None:
    codes = [o.code for o in (*OPS.values(), *map(host_twin, OPS.values())) if o.code is not None]
    assert len({*codes}) == len({id(op_of(c)) for c in codes})


def test_kinds_in_the_legend_have_names_of_their_own() -> None:
    kinds = {p.kind for o in OPS.values() for f in o.forms for p in f.params if p.kind.name}
    assert len({k.name for k in kinds}) == len(kinds)


CONV, RESHAPE, ADD = ops.conv.CONV_2D, ops.shape.RESHAPE, ops.elementwise.ADD
Q, W8 = Tensor(Q8, (1, 4, 4, 2), Quant(0.5, 3)), Tensor(Q8, (3, 1, 1, 2), Quant(0.5, 0))
BIAS = Tensor(I32, (3,), Quant(0.25))
VALID = i32(2, 1, 1, 0)
PER_CHANNEL = Tensor(QPC, (3, 1, 1, 2), ChannelQuant((0.1, 0.2, 0.3), 0))

#: What is accepted: operation, inputs, outputs, the first level that takes it, the inferred outputs.
ACCEPTED: dict[str, tuple[OpDef, list[Arg], list[Tensor], int, list[Tensor]]] = {
    "conv by scheme": (CONV, [f32(1, 5, 5, 2), f32(3, 3, 3, 2), f32(3), *i32(1, 2, 2, 0)], [], 27, [f32(1, 3, 3, 3)]),
    "conv, explicit": (CONV, [f32(1, 5, 5, 2), f32(3, 3, 3, 2), f32(3), *i32(1, 1, 1, 1, 2, 2, 0)], [], 27,
                       [f32(1, 3, 3, 3)]),
    "conv, dilated": (CONV, [f32(1, 5, 5, 2), f32(3, 3, 3, 2), f32(3), *i32(1, 1, 1, 0), flag(False), *i32(2, 2)],
                      [], 29, [f32(1, 5, 5, 3)]),
    "conv, quantised": (CONV, [Q, W8, BIAS, *VALID], [Tensor(Q8, (1, 4, 4, 3), Quant(1.0))], 27,
                        [Tensor(Q8, (1, 4, 4, 3))]),
    "conv, finer output": (CONV, [Q, W8, BIAS, *VALID], [Tensor(Q8, (1, 4, 4, 3), Quant(0.1))], 29,
                           [Tensor(Q8, (1, 4, 4, 3))]),
    "conv, per channel": (CONV, [Q, PER_CHANNEL, Tensor(I32, (3,)), *VALID], [], 29, [Tensor(Q8, (1, 4, 4, 3))]),
    "a default said aloud": (ops.image.DEPTH_TO_SPACE, [f32(1, 2, 2, 4), *i32(2), flag(False)], [], 27,
                             [f32(1, 4, 4, 1)]),
    "no default": (ops.image.DEPTH_TO_SPACE, [f32(1, 4, 2, 2), *i32(2), flag(True)], [], 29, [f32(1, 1, 4, 4)]),
    "scalars follow the tensor": (ops.elementwise.ELU, [Tensor(F16, (2,)), Scalar(Type.FLOAT16, 1.0)], [], 30,
                                  [Tensor(F16, (2,))]),
    "variadic in the middle": (ops.ex.PACK_EX, [f32(2, 3), f32(2, 3), *i32(2, 1)], [], 27, [f32(2, 2, 3)]),
    "an empty tensor": (ADD, [f32(0, 3), f32(3), *i32(0)], [], 29, [f32(0, 3)]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_from_a_level_on(name: str) -> None:
    op, inputs, outputs, level, inferred = ACCEPTED[name]
    found = op.check(inputs, outputs)
    assert found.level == level and list(found.outputs) == inferred
    listed = found.placed.form.operands(found.placed.own, op.types)
    assert repr(op.place(listed, outputs).own) == repr(found.placed.own)


#: What is refused, with which words, about which input.
REFUSED: dict[str, tuple[OpDef, list[Arg], list[Tensor], str, int | None]] = {
    "bias on another grid": (CONV, [Q, W8, Tensor(I32, (3,), Quant(0.2)), *VALID], [], "b has zero point 0 and sc", 2),
    "bias with a scale, w per channel": (CONV, [Q, PER_CHANNEL, BIAS, *VALID], [], "b has zero point 0 and sc", 2),
    "scales along the wrong axis": (CONV, [Q, Tensor(QPC, (3, 1, 1, 2), ChannelQuant((0.1, 0.2), 3)),
                                           Tensor(I32, (3,)), *VALID], [], "along dimension 0", 1),
    "one dilation": (CONV, [f32(1, 5, 5, 2), f32(3, 3, 3, 2), f32(3), *i32(1, 1, 1, 0), flag(False), *i32(2)], [],
                     "no operand order fits", None),
    "too few": (CONV, [f32(1, 5, 5, 2)], [], "no operand order fits", None),
    "another scalar type": (ops.elementwise.ELU, [Tensor(F16, (2,)), Scalar(Type.FLOAT32, 1.0)], [],
                            "alpha is FLOAT32, not FLOAT16", 1),
    "a type without a row": (ops.elementwise.SIN, [Tensor(I32, (2,))], [], "TENSOR_INT32 is not accepted", 0),
    "mixed types": (ADD, [f32(2), Tensor(I32, (2,)), *i32(0)], [], "y is TENSOR_INT32, not TENSOR_FLOAT32", 1),
    "no broadcast": (ADD, [f32(2), f32(3), *i32(0)], [], "the shapes of x and y broadcast", 1),
    "rank 5": (ADD, [f32(1, 1, 1, 1, 2), f32(2), *i32(0)], [], "x has rank 1 to 4", 0),
    "an activation that is none": (ADD, [f32(2), f32(2), *i32(4)], [], "act is 0 none", 2),
    "left out": (ADD, [f32(2), None, *i32(0)], [], "y is required and holds NO_VALUE", 1),
    "another output": (ADD, [f32(2), f32(2), *i32(0)], [f32(3)], "output 0 is", 3),
    "an output too many": (ADD, [f32(2), f32(2), *i32(0)], [f32(2), f32(2)], "has [1] outputs, not 2", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_rules_own_words(name: str) -> None:
    op, inputs, outputs, text, operand = REFUSED[name]
    with pytest.raises(OpError) as error:
        op.check(inputs, outputs)
    assert text in error.value.text and error.value.operand == operand


def test_forms_give_the_same_canonical_arguments() -> None:
    scheme, amounts = (ACCEPTED[n] for n in ("conv by scheme", "conv, explicit"))
    assert CONV.check(scheme[1], []).args == CONV.check(amounts[1], []).args


#: What is not known flows through: operation, inputs, the output as shown, how many rules wait for a run.
OPEN: dict[str, tuple[OpDef, list[Any], str, int]] = {
    "a batch": (ADD, [f32(UNKNOWN, 1, 3), f32(4, 3), *i32(0)], "(?, 4, 3)", 1),
    "a rank": (RESHAPE, [f32(2, 3), Tensor(I32, (UNKNOWN,))], "None", 1),
    "values": (RESHAPE, [f32(2, 3), Tensor(I32, (2,))], "(?, ?)", 1),
    "sizes of a window": (CONV, [f32(UNKNOWN, UNKNOWN, 5, 2), f32(3, 3, 3, 2), f32(3), *i32(1, 2, 2, 0)],
                          "(?, ?, 3, 3)", 2),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_known_flows_through(name: str) -> None:
    op, inputs, shown, waiting = OPEN[name]
    found = op.check(inputs, [])
    assert repr(found.outputs[0].dims) == shown and len(found.deferred) == waiting
