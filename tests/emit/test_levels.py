"""Why an operation takes its level: one case per kind of fact."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from sample_models import SAMPLES, constant, finished, scalar

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op, OperationCodeEx as Ex, Target
from nnx_convert.emit.levels import Level, Place, Reason, Refused, every_model, levels, needs, refused
from nnx_convert.ops.host import host_twin
from nnx_convert.ops.elementwise import SIN


def added() -> Model:
    """ELU: an operation of level 30."""
    b = ModelBuilder()
    x, alpha, y = b.add_operand(T.TENSOR_FLOAT32, (2,)), b.add_operand(T.FLOAT32), b.add_operand(T.TENSOR_FLOAT32, (2,))
    b.set_operand_value(alpha, 1.0)
    b.add_operation(Op.ELU, [x, alpha], [y])
    return finished(b, [x], [y])


def typed() -> Model:
    """RELU on float16."""
    b = ModelBuilder()
    x, y = (b.add_operand(T.TENSOR_FLOAT16, (2,)) for _ in range(2))
    b.add_operation(Op.RELU, [x], [y])
    return finished(b, [x], [y])


def output_typed() -> Model:
    """QUANTIZE to int8."""
    b = ModelBuilder()
    x, y = b.add_operand(T.TENSOR_FLOAT32, (2,)), b.add_operand(T.TENSOR_QUANT8_ASYMM_SIGNED, (2,), 1.0)
    b.add_operation(Op.QUANTIZE, [x], [y])
    return finished(b, [x], [y])


def dilated() -> Model:
    """CONV_2D with the operands of level 29, which says so of the first that is not as it is left out."""
    b = ModelBuilder()
    x, y = b.add_operand(T.TENSOR_FLOAT32, (1, 4, 4, 1)), b.add_operand(T.TENSOR_FLOAT32, (1, 4, 4, 1))
    w, bias = constant(b, T.TENSOR_FLOAT32, [0.0] * 9, (1, 3, 3, 1)), constant(b, T.TENSOR_FLOAT32, [0.0])
    nchw = b.add_operand(T.BOOL)
    b.set_operand_value(nchw, False)
    two = scalar(b, 2)
    b.add_operation(Op.CONV_2D, [x, w, bias, *(scalar(b, n) for n in (1, 1, 1, 0)), nchw, two, two], [y])
    return finished(b, [x], [y])


def unlimited() -> Model:
    """A convolution whose output scale is below the product of the others: free from level 29."""
    b = ModelBuilder()
    x, y = (b.add_operand(T.TENSOR_QUANT8_ASYMM, (1, 1, 1, 1), s) for s in (1.0, 0.5))
    w = constant(b, T.TENSOR_QUANT8_ASYMM, [1], (1, 1, 1, 1), 1.0)
    bias = constant(b, T.TENSOR_INT32, [0], scale=1.0)
    b.add_operation(Op.CONV_2D, [x, w, bias, *(scalar(b, n) for n in (1, 1, 1, 0))], [y])
    return finished(b, [x], [y])


def empty() -> Model:
    """RELU of nothing: the limit is on one operand."""
    b = ModelBuilder()
    x = b.add_operand(T.TENSOR_FLOAT32, (2, 2))
    begin, size = (constant(b, T.TENSOR_INT32, v) for v in ([0, 0], [0, 2]))
    y, z = b.add_operand(T.TENSOR_FLOAT32), b.add_operand(T.TENSOR_FLOAT32)
    b.add_operation(Op.SLICE, [x, begin, size], [y])
    b.add_operation(Op.RELU, [y], [z])
    return finished(b, [x], [z])


def relaxed() -> Model:
    """Nothing but relaxed arithmetic."""
    b = ModelBuilder()
    x, y = (b.add_operand(T.TENSOR_FLOAT32, (2,)) for _ in range(2))
    b.add_operation(Op.RELU, [x], [y])
    b.relax_computation_float32_to_float16(True)
    return finished(b, [x], [y])


CASES: dict[Callable[[], Model], tuple[int, tuple[Reason, ...]]] = {
    added: (30, (Reason("is there from 30", {"ELU": 1}),)),
    typed: (29, (Reason("takes TENSOR_FLOAT16 from 29", {"RELU": 1}),)),
    output_typed: (30, (Reason("takes TENSOR_QUANT8_ASYMM_SIGNED from 30", {"QUANTIZE": 1}),)),
    dilated: (29, (Reason("takes the operand dw from 29", {"CONV_2D": 1}),)),
    unlimited: (29, (Reason("is free of a limit from 29: the output scale exceeds x.scale * w.scale",
                            {"CONV_2D": 1}),)),
    empty: (29, (Reason("is there from 29", {"SLICE": 1}),)),
    relaxed: (28, (Reason("allows float32 to be computed as float16", {"the model": 1}),)),
    SAMPLES["dense"]: (27, ()),
    SAMPLES["branch"]: (30, (Reason("is there from 30", {"IF": 1}),)),
}


@pytest.mark.parametrize("make", CASES, ids=lambda f: f.__name__)
def test_the_reason(make: Callable[[], Model]) -> None:
    model = make()
    assert (model.level, needs(model)) == CASES[make]


def mixed() -> Model:
    """One operation of each kind: base, a later type, EX, experimental, host; and a loop around another."""
    b = ModelBuilder()
    x, half = b.add_operand(T.TENSOR_FLOAT32, (2,)), b.add_operand(T.TENSOR_FLOAT16, (2,))
    outs = [b.add_operand(T.TENSOR_FLOAT32, (2,)) for _ in range(4)]
    cond = b.add_operand(T.TENSOR_BOOL8, (1,))
    b.add_operation(Op.RELU, [x], [outs[0]])
    b.add_operation(Op.CAST, [x], [half])
    b.add_operation_ex(Ex.NEG_EX, [x], [outs[1]])
    b.add_operation(host_twin(SIN).code or 0, [x], [outs[2]])
    then, orelse = b.add_operand(T.MODEL), b.add_operand(T.MODEL)
    b.set_operand_value_from_model(then, added())
    b.set_operand_value_from_model(orelse, unary(Op.ABS))
    b.add_operation(Op.IF, [cond, then, orelse, x], [outs[3]])
    return finished(b, [x, cond], [half, *outs])


def unary(code: Op) -> Model:
    """One operation of one operand."""
    b = ModelBuilder()
    x, y = (b.add_operand(T.TENSOR_FLOAT32, (2,)) for _ in range(2))
    b.add_operation(code, [x], [y])
    return finished(b, [x], [y])


#: Of `mixed`: subgraph, operation, name, level, fact.
MIXED = [(0, 0, "RELU", 27, "is there from 27"), (0, 1, "CAST", 29, "is there from 29"),
         (0, 2, "NEG_EX", None, "is of NNAPI-EX"), (0, 3, "host.SIN", None, "is of the host"),
         (0, 4, "IF", 30, "is there from 30"), (1, 0, "ELU", 30, "is there from 30"),
         (2, 0, "ABS", 29, "is there from 29")]


def placed(found: tuple[Level, ...] | tuple[Refused, ...]) -> list[tuple[int, int, str, str]]:
    """Places and facts."""
    return [(f.place.subgraph, f.place.operation, f.place.name, f.fact) for f in found]


def test_every_operation_has_a_level_and_a_reason() -> None:
    model = mixed()
    assert levels(model) == tuple(Level(Place(s, n, name, ""), level, fact) for s, n, name, level, fact in MIXED)
    assert max(found.level or 0 for found in levels(model)) == model.level
    assert len(every_model(model)) == 3


#: Targets, and the names in `mixed` that they refuse; the host's always.
TARGETS = {Target(30): {"host.SIN"}, Target(31, ex=False): {"host.SIN", "NEG_EX"},
           Target(29): {"host.SIN", "IF", "ELU"}, Target(28): {"host.SIN", "IF", "ELU", "CAST", "ABS"},
           Target(27, ex=False): {"host.SIN", "IF", "ELU", "CAST", "ABS", "NEG_EX"}, Target(6): {"host.SIN"}}


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_what_a_target_refuses_and_why(target: Target) -> None:
    found = refused(mixed(), target)
    assert {r.place.name for r in found} == TARGETS[target]
    assert set(placed(found)) == {(s, n, name, fact) for s, n, name, _, fact in MIXED if name in TARGETS[target]}


@pytest.mark.parametrize("experimental", [True, False])
def test_a_target_without_the_experimental_level_refuses_densify(experimental: bool) -> None:
    found = refused(SAMPLES["sparse"](), Target(27, experimental=experimental))
    assert placed(found) == ([] if experimental else [(0, 0, "DENSIFY", "is there from experimental")])


@pytest.mark.parametrize("make", CASES, ids=lambda f: f.__name__)
def test_a_model_is_refused_just_below_its_level(make: Callable[[], Model]) -> None:
    model = make()
    assert not refused(model, Target(model.level))
    if needs(model) and make is not relaxed:
        below = refused(model, Target(model.level - 1))
        assert {r.fact for r in below} == {r.fact for r in needs(model)}
