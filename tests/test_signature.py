"""Signatures as operand lists: what annotations say, how many operands a form takes, how it spells itself."""
from __future__ import annotations

from typing import Annotated, NamedTuple

import pytest

from nnx_convert.kinds import Bool, Fx, Int, Ints1, T, T2
from nnx_convert.signature import Form, Joined, Misfit, Param, Since
from nnx_convert.types import F16, F32, I32, Q8, Arg, Scalar, Tensor, Type

TABLE = {F32: 27, F16: 29}
LateInt = Annotated[Int, Since(29)]
PairInt = Annotated[LateInt, Joined()]
X, Y, IDS = Tensor(F32, (2,)), Tensor(F32, (3,)), Tensor(I32, (2,))
ONE, TWO, YES = Scalar(Type.INT32, 1), Scalar(Type.INT32, 2), Scalar(Type.BOOL, True)


class Pair(NamedTuple):
    """Two weights."""

    a: T2
    b: T2 | None


def tail(x: T, n: Int, late: LateInt = 1, too: PairInt = 1) -> T:
    return x


def many(*xs: T, axis: Int) -> T:
    return xs[0]


def middle(axis: Int, *xs: T, flag: Bool) -> T:
    return xs[0]


def record(x: T, pair: Pair, ids: Ints1 | None, alpha: Fx) -> T:
    return x


#: Function, operands, their arguments by name (None where the form does not take them: then words of the misfit).
PLACED: list[tuple[Form, list[Arg], dict[str, object] | str, int | None]] = [
    (Form.of(tail), [X, ONE], {"x": X, "n": ONE}, None),
    (Form.of(tail), [X, ONE, TWO, TWO], {"x": X, "n": ONE, "late": TWO, "too": TWO}, None),
    (Form.of(tail), [X, ONE, TWO], "tail takes 2 or 4 inputs, not 3", None),
    (Form.of(tail), [X], "tail takes 2 or 4 inputs, not 1", None),
    (Form.of(tail), [None, ONE], "x is required and holds NO_VALUE", 0),
    (Form.of(tail), [X, YES], "n takes int, not bool BOOL", 1),
    (Form.of(many), [X, Y, X, ONE], {"xs": (X, Y, X), "axis": ONE}, None),
    (Form.of(many), [ONE], {"xs": (), "axis": ONE}, None),
    (Form.of(many), [], "many takes 1 or more inputs, not 0", None),
    (Form.of(many), [X, None, ONE], "xs is required and holds NO_VALUE", 1),
    (Form.of(middle), [ONE, X, Y, YES], {"axis": ONE, "xs": (X, Y), "flag": YES}, None),
    (Form.of(record), [X, X, None, None, Scalar(Type.FLOAT32, 1.0)],
     {"x": X, "pair_a": X, "pair_b": None, "ids": None, "alpha": Scalar(Type.FLOAT32, 1.0)}, None)]


@pytest.mark.parametrize(("form", "operands", "want", "operand"), PLACED)
def test_place(form: Form, operands: list[Arg], want: dict[str, object] | str, operand: int | None) -> None:
    found = form.place(operands, TABLE)
    if isinstance(want, str):
        assert found == Misfit(want, operand)
    else:
        assert found == want


SPELT = {tail: "tail(x, n, late=, too=)", many: "many(*xs, axis)", record: "record(x, pair_a, pair_b, ids, alpha)"}


@pytest.mark.parametrize("fn", SPELT, ids=lambda f: f.__name__)
def test_a_form_spells_its_order(fn: object) -> None:
    assert Form.of(fn).spelt == SPELT[fn]  # type: ignore[arg-type, index]


def test_defaults_are_left_off_the_end_but_not_one_of_a_pair() -> None:
    form = Form.of(tail)
    assert form.operands({"x": X, "n": 1, "late": 1, "too": 1}, TABLE) == [X, ONE]
    assert form.operands({"x": X, "n": 1, "late": 2, "too": 1}, TABLE) == [X, ONE, TWO, ONE]


def test_a_number_becomes_the_scalar_beside_the_key() -> None:
    half = Tensor(F16, (2,))
    args = {"x": half, "pair": Pair(half, None), "ids": None, "alpha": 0.5}
    assert Form.of(record).operands(args, TABLE)[-1] == Scalar(Type.FLOAT16, 0.5)
    assert Form.of(record).key(args) is F16 and Form.of(record).operands(args, TABLE)[2] is None


def test_records_are_put_together() -> None:
    found = Form.of(record).gather({"x": X, "pair_a": X, "pair_b": Y, "ids": IDS, "alpha": 1.0})
    assert found["pair"] == Pair(X, Y) and list(found) == ["x", "ids", "alpha", "pair"]


def test_variadic_arguments_are_spread() -> None:
    seen: list[object] = []
    form = Form("f", lambda axis, *xs, flag: seen.extend([axis, xs, flag]), override=Form.of(middle).params)
    form.call({"axis": 1, "xs": (X, Y), "flag": True})
    assert seen == [1, (X, Y), True]


def test_a_parameter_without_a_kind_is_a_fault_of_the_declaration() -> None:
    with pytest.raises(TypeError, match="parameter n has no operand kind"):
        Param.of("n", int, Param.required)


def test_levels_of_a_type_that_has_no_row() -> None:
    key = Form.of(tail).params[0].kind
    assert key.allowed(F16, TABLE) == {F16: 29} and key.allowed(Q8, TABLE) == TABLE == key.allowed(None, TABLE)
