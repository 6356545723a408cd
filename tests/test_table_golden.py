"""The table against the golden cases: built, bound, checked, inferred; with knowledge hidden; with one thing broken.

None of it runs an operation: the numbers are the conformance tests' business.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from golden import FAMILIES, build, cases, legal_models

from nnx_convert.errors import ModelError
from nnx_convert.model import Model
from nnx_convert.schema import OpDef, Placed
from nnx_convert.types import UNKNOWN, Arg, Scalar, Tensor, known

#: Cases that must fail, of which the table cannot know: they fail by never ending.
ENDLESS = {f"V1_3/while_infinite_loop{v}" for v in ("", "_float16", "_quant8")}


def given(model: Model, index: int, value: np.ndarray[Any, Any]) -> Arg:
    """A model input as an example gives it; an empty one where none was declared empty is left out."""
    o = model.operands[index]
    if value.size == 0:
        return None
    if o.type.group != "tensor":
        return Scalar(o.type, value.item())
    return Tensor(o.type, value.shape, o.quant, value)


def inverse(op: OpDef, placed: Placed, outputs: list[Tensor]) -> None:
    """Listing the arguments again must place them the same."""
    again = op.place(placed.form.operands(placed.own, op.types), outputs)
    assert again.form is placed.form and repr(again.own) == repr(placed.own), op.name


def infer(model: Model, example: dict[str, Any]) -> tuple[dict[int, Arg], int]:
    """Forward inference on an example's shapes and values; the level these shapes take."""
    env: dict[int, Arg] = {i: given(model, i, example["inputs"][i]) for i in model.inputs}
    level = 28 if model.relaxed else 27
    for o in model.operations:
        args = [env[i] if i in env else model.operands[i].arg() for i in o.inputs]
        declared = [model.operands[i].tensor() for i in o.outputs]
        checked = o.op.check(args, declared)
        level = max(level, checked.level)
        inverse(o.op, checked.placed, declared)
        for i, want, found in zip(o.outputs, declared, checked.outputs, strict=False):
            env[i] = found if i in model.outputs else filled(found, want)
    return env, level


def filled(found: Tensor, declared: Tensor) -> Tensor:
    """The inferred output, its gaps filled from the operand."""
    dims = found.dims
    if dims is not None and declared.dims is not None:
        dims = tuple(a if known(a) else b for a, b in zip(dims, declared.dims, strict=True))
    return Tensor(found.type, declared.dims if dims is None else dims, found.quant or declared.quant)


def wrong(found: Arg, golden: np.ndarray[Any, Any]) -> bool:
    """Whether an inferred shape contradicts the golden output."""
    assert isinstance(found, Tensor)
    return found.dims is not None and (len(found.dims) != golden.ndim or any(
        known(a) and a != b for a, b in zip(found.dims, golden.shape, strict=True)))


@pytest.mark.parametrize("family", FAMILIES)
def test_inference_gives_the_golden_shapes_at_the_stated_level(family: str) -> None:
    for case in cases(family):
        if case["expect_failure"]:
            continue
        model = build(case)
        for example in case["examples"]:
            env, level = infer(model, example)
            outputs = {i: g for i, g in example["outputs"].items() if g.size or not case["operands"][i].get("ignored")}
            assert not [i for i, golden in outputs.items() if wrong(env[i], golden)], case["name"]
            stated = case["min_feature_level"] or case["feature_level"]
            assert stated is None or level <= stated, (case["name"], level, stated)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_must_fail_is_refused_with_the_rule(family: str) -> None:
    for case in cases(family):
        if case["expect_failure"] and case["name"] not in ENDLESS:
            with pytest.raises(ModelError) as error:
                build(case)
            assert error.value.operation is not None and error.value.text, case["name"]


HIDE: dict[str, Callable[[Arg], Arg]] = {
    "constants": lambda a: replace(a, data=None) if isinstance(a, Tensor) else a,
    "scalars": lambda a: replace(a, value=UNKNOWN) if isinstance(a, Scalar) else a,
    "dimensions": lambda a: replace(a, dims=(UNKNOWN,) * len(a.dims), data=None)
    if isinstance(a, Tensor) and a.dims else a,
    "ranks": lambda a: replace(a, dims=None, data=None) if isinstance(a, Tensor) else a}


@pytest.mark.parametrize("family", FAMILIES)
def test_less_knowledge_is_never_a_refusal(family: str) -> None:
    for model in legal_models(family):
        for o in model.operations:
            args = [model.operands[i].arg() for i in o.inputs]
            outs = [model.operands[i].tensor() for i in o.outputs]
            for hide in HIDE.values():
                o.op.check([hide(a) for a in args], outs)
