"""Targets: levels as people write them, what a target takes, in the table's words."""
from __future__ import annotations

import pytest

from nnx_convert import ops
from nnx_convert.errors import UsageError
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OpDef, OpError
from nnx_convert.target import Target, level_name
from nnx_convert.types import F32, I32, Scalar, Tensor, Type

LEVELS = [(27, 27), (30, 30), (31, 31), (6, 1000006), (8, 1000008), (1000007, 1000007)]


@pytest.mark.parametrize(("given", "level"), LEVELS)
def test_levels(given: int, level: int) -> None:
    assert Target(given).level == level and level_name(level) == str(given % 1_000_000)


@pytest.mark.parametrize("level", [0, 5, 9, 26, 32, 1000005, 2 ** 31 - 1])
def test_levels_that_are_none(level: int) -> None:
    with pytest.raises(UsageError, match="no feature level"):
        Target(level)


def test_sparse_is_keep_or_fold() -> None:
    assert Target().sparse == "keep" and Target(sparse="fold").sparse == "fold"
    with pytest.raises(UsageError, match="'keep' or 'fold'"):
        Target(sparse="drop")  # type: ignore[arg-type]


X, NOTHING = Tensor(F32, (2,)), OpError("ABS", "TENSOR_INT32 is not accepted")
#: Target, operation, its inputs (none: refused by the table), words of the fault.
FAULTS: list[tuple[Target, OpDef, list[Tensor | Scalar], str]] = [
    (Target(29), ops.elementwise.ABS, [X], ""), (Target(28), ops.elementwise.ABS, [X], "ABS is there from 29"),
    (Target(27), ops.ex.ABS_EX, [X], ""), (Target(31, ex=False), ops.ex.ABS_EX, [X], "ABS_EX is of NNAPI-EX"),
    (Target(7), ops.shape.REVERSE, [X, Tensor(I32, (1,))], ""),
    (Target(31), ops.shape.REVERSE, [X, Tensor(I32, (1,))], "REVERSE is there from 7"),
    (Target(), ops.host.SQUARE, [X], "SQUARE is a composite"), (Target(), ops.elementwise.ABS, [], "not accepted"),
    (Target(27, False, False), host_twin(ops.host.SQUARE), [X], ""),
    (Target(), ops.elementwise.ELU, [X, Scalar(Type.FLOAT32, 1.0)], "")]


@pytest.mark.parametrize(("target", "op", "inputs", "words"), FAULTS, ids=lambda v: str(getattr(v, "name", v))[:30])
def test_faults(target: Target, op: OpDef, inputs: list[Tensor | Scalar], words: str) -> None:
    fault = target.fault(op, op.check(inputs, []) if inputs else NOTHING)
    assert words in fault and bool(words) == bool(fault)


def test_it_says_what_it_is() -> None:
    assert str(Target()) == "level 30 + EX + DENSIFY" and str(Target(8, False, False)) == "level 8"
