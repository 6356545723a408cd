"""Unknown numbers, and what is known of tensors."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnx_convert.types import (
    F32, I32, Q8, UNKNOWN, Quant, Tensor, Undecided, given, known, maybe, product)

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod]
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISON, ids=lambda o: o.__name__)
def test_an_unknown_number_absorbs(op: Callable[[Any, Any], Any]) -> None:
    assert op(UNKNOWN, 3) is UNKNOWN and op(3, UNKNOWN) is UNKNOWN


@pytest.mark.parametrize("ask", [bool, int, float, hash, range, lambda u: min(u, 3), lambda u: {u}, lambda u: u in [1]],
                         ids=["bool", "int", "float", "hash", "range", "min", "set", "in"])
def test_a_question_about_it_is_undecided(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(Undecided):
        ask(UNKNOWN)


def test_maybe_gives_unknown_for_undecided_only() -> None:
    assert maybe(lambda: max(UNKNOWN, 1)) is UNKNOWN and maybe(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        maybe(lambda: 1 // 0)


#: Two tensors, and whether both can describe one value.
AGREE = [
    (Tensor(F32, (1, 2)), Tensor(F32, (1, 2)), True), (Tensor(F32, (1, 2)), Tensor(F32, (1, 3)), False),
    (Tensor(F32, (1, 2)), Tensor(F32, (2,)), False), (Tensor(F32, (1, UNKNOWN)), Tensor(F32, (1, 3)), True),
    (Tensor(F32, None), Tensor(F32, (1, 3)), True), (Tensor(F32, (2,)), Tensor(I32, (2,)), False),
    (Tensor(Q8, (2,), Quant(0.5)), Tensor(Q8, (2,)), True),
    (Tensor(Q8, (2,), Quant(0.5)), Tensor(Q8, (2,), Quant(1)), False)]


@pytest.mark.parametrize(("a", "b", "agrees"), AGREE)
def test_agrees(a: Tensor, b: Tensor, agrees: bool) -> None:
    assert a.agrees(b) is agrees and b.agrees(a) is agrees


def test_elements_of_an_index_tensor() -> None:
    assert Tensor(I32, (1, 2), data=np.int32([[3, 4]])).ints() == (3, 4)
    assert all(v is UNKNOWN for v in Tensor(I32, (3,)).ints()) and len(Tensor(I32, (3,)).ints()) == 3
    for dims in (None, (UNKNOWN,)):
        with pytest.raises(Undecided):
            Tensor(I32, dims).ints()


def test_given_is_undecided_while_a_caller_may_leave_it_out() -> None:
    assert given(Tensor(F32, (1,))) and not given(None)
    with pytest.raises(Undecided):
        given(Tensor(F32, (1,), omittable=True))


def test_sizes() -> None:
    x = Tensor(F32, (2, 3, 4))
    assert (x.rank, x.size, x.scale, product(())) == (3, 24, 0.0, 1) and known(x.size)
    assert x.like((5,)).dims == (5,) and not known(Tensor(F32, (2, UNKNOWN)).size)
