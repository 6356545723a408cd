"""Polynomials in named sizes: they say what the numbers say, or nothing."""
from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nnx_convert.kinds import broadcast, broadcasts, window
from nnx_convert.ops.control import merged
from nnx_convert.symbols import (
    LARGEST, MOST_FACTORS, MOST_TERMS, _added, _number, at_least, expressed, larger, quotient, resolve, same, smaller,
    symbol)
from nnx_convert.types import F32, UNKNOWN, Tensor, Undecided, known, product, sharper

N, M, K = map(symbol, "nmk")
ARITHMETIC: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, smaller, larger]
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
SIZES = st.fixed_dictionaries({c: st.integers(1, 40) for c in "nmk"})
#: What a size is computed with, on numbers.
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "*": operator.mul, "//": operator.floordiv, "min": min, "max": max}
#: Expressions as trees: a number, a name, or an operation and its two operands.
TREES = st.recursive(st.integers(-5, 9) | st.sampled_from("nmk"),
                     lambda t: st.tuples(st.sampled_from(ARITHMETIC), t, t), max_leaves=8)


def value(tree: Any, leaves: Callable[[Any], int]) -> int:
    """An expression computed; an unknown result where it divides by zero."""
    if not isinstance(tree, tuple):
        return leaves(tree)
    op, a, b = tree
    return op(value(a, leaves), value(b, leaves))


def both(tree: Any, sizes: dict[str, int]) -> tuple[int, int] | None:
    """The expression of symbols, and of numbers; None where it divides by zero."""
    try:
        return (value(tree, lambda leaf: symbol(leaf) if isinstance(leaf, str) else leaf),
                value(tree, lambda leaf: sizes[leaf] if isinstance(leaf, str) else leaf))
    except ZeroDivisionError:
        return None


@given(TREES, SIZES)
def test_arithmetic_is_that_of_numbers(tree: Any, sizes: dict[str, int]) -> None:
    found = both(tree, sizes)
    if found is not None and found[0] is not UNKNOWN:
        assert resolve(found[0], sizes) == found[1]
        assert expressed(found[0], sizes.__getitem__, int, OPERATIONS) == found[1]
        least = at_least(found[0])
        assert least is None or least <= found[1]


@given(TREES, TREES, SIZES, st.sampled_from(COMPARISON))
def test_a_comparison_is_right_or_undecided(a: Any, b: Any, sizes: dict[str, int], op: Callable[..., Any]) -> None:
    left, right = both(a, sizes), both(b, sizes)
    if left is None or right is None:
        return
    answer = op(left[0], right[0])
    assert answer is UNKNOWN or answer is op(left[1], right[1])


@given(TREES, TREES, SIZES)
def test_a_quotient_is_exact(a: Any, b: Any, sizes: dict[str, int]) -> None:
    left, right = both(a, sizes), both(b, sizes)
    if left is None or right is None or right[0] is UNKNOWN or same(right[0], 0):
        return
    found = quotient(left[0], right[0])
    assert found is None or resolve(found, sizes) * right[1] == left[1]
    whole = quotient(left[0] * right[0], right[0])
    assert whole is None or same(whole, left[0])


@given(TREES, SIZES)
def test_equals_have_one_hash_and_survive_a_pickle(tree: Any, sizes: dict[str, int]) -> None:
    found = both(tree, sizes)
    if found is not None and found[0] is not UNKNOWN:
        again = pickle.loads(pickle.dumps(found[0]))
        assert same(again, found[0]) and again == found[0] and hash(again) == hash(found[0])
        assert str(again) == str(found[0])


@pytest.mark.parametrize("op", [*ARITHMETIC[:5], operator.truediv, *COMPARISON], ids=lambda o: o.__name__)
def test_an_anonymous_size_absorbs_a_named_one(op: Callable[[Any, Any], Any]) -> None:
    assert op(UNKNOWN, N) is UNKNOWN and op(N, UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN


@pytest.mark.parametrize("ask", [int, float, range, lambda u: min(u, 3), lambda u: u in [1], lambda u: bool(u == 2)],
                         ids=["int", "float", "range", "min", "in", "equal"])
def test_a_question_about_a_named_size_is_undecided(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(Undecided):
        ask(N)


#: What is certain for every size.
CERTAIN: list[tuple[Any, Any]] = [
    (N == 0, False), (N >= 1, True), (N != -1, True), (N + 2 > 2, True), (2 * N == 3, False), (N * M >= N, True),
    (operator.eq(N, N), True), (operator.lt(N, N), False), (bool(N), True), (-(-N // 2) >= 1, True),
    (0 in (N, M + 1), False), (abs(N) == N, True), (abs(-N) == N, True), (2 * N / 2 == N, True), (known(N), False),
    (known(N - N + 1), True)]


@pytest.mark.parametrize(("found", "want"), CERTAIN)
def test_what_is_certain_is_said(found: Any, want: bool) -> None:
    assert found is want


#: Ways of saying the same, and how it is written.
WRITTEN: list[tuple[int, int, str]] = [
    (-(-N // 2), (N + 1) // 2, "(n+1)//2"), ((N - 1) // 2 + 1, (N + 1) // 2, "(n+1)//2"),
    (((N + 1) // 2 + 1) // 2, (N + 3) // 4, "(n+3)//4"), (N * M * 6 // (M * 2), 3 * N, "3*n"),
    (smaller(N, 5), smaller(5, N), "min(5, n)"), (larger(N + 5, 3), N + 5, "n+5"),
    (window(N, 3, 2, 1, (1, 1)), (N + 1) // 2, "(n+1)//2"), (N // M * 2, 2 * (N // M), "2*(n//m)"),
    (symbol("a b") + 0, symbol("a b"), "'a b'"), (product((N, 3, M)), 3 * M * N, "3*m*n"),
    ((N + 1) * (M + 2) // (M + 2), N + 1, "n+1"), (N * 2.0, 2 * N, "2*n"), (np.int64(3) * N, 3 * N, "3*n"),
    (2 * N * M // 3, 4 * M * N // 6, "(2*m*n)//3"), (3 // (2 * N * M), 3 // (M * 2 * N), "3//(2*m*n)")]


@pytest.mark.parametrize(("a", "b", "text"), WRITTEN, ids=[w[2] for w in WRITTEN])
def test_equal_sizes_are_written_alike(a: int, b: int, text: str) -> None:
    assert same(a, b) and str(a) == str(b) == text


@pytest.mark.parametrize("make", [
    lambda: LARGEST * N, lambda: product((N,) * (MOST_FACTORS + 1)), lambda: product((N + M + 1,) * MOST_TERMS),
    lambda: product(tuple(symbol("s" * 80 + str(i)) // 7 + 1 for i in range(4))) // 3], ids=range(4))
def test_growth_ends_in_an_unknown_size(make: Callable[[], int]) -> None:
    assert make() is UNKNOWN


def test_sizes_are_put_in_one_by_one() -> None:
    half = (N + M) // 2
    assert same(resolve(half, {"m": 3}), (N + 3) // 2) and resolve(half, {"m": 3, "n": 4}) == 3
    assert resolve(7, {}) == 7 and resolve(UNKNOWN, {"n": 1}) is UNKNOWN
    assert same(resolve(symbol("a b") * N, {"a b": M}), M * N)


def test_division_by_zero_is_one() -> None:
    for divide in (operator.floordiv, operator.mod, quotient):
        with pytest.raises(ZeroDivisionError):
            divide(N, 0)


#: Two shapes, and what both together say, whether both may describe one value, and their broadcast.
PAIRS: list[tuple[Any, Any, str, bool, str]] = [
    ((N, 3), (UNKNOWN, UNKNOWN), "(n, 3)", True, "(?, 3)"), ((N, 3), (2, 3), "(2, 3)", True, "(2, 3)"),
    ((N,), (N + 1,), "(n,)", False, "(n+1,)"), ((N,), (M,), "(n,)", True, "(?,)"), ((N,), (N,), "(n,)", True, "(n,)"),
    ((N,), (1,), "(1,)", True, "(n,)"), ((N + 1,), (UNKNOWN,), "(n+1,)", True, "(n+1,)"),
    ((N + 1,), (1,), "(1,)", False, "(n+1,)"), ((2 * N,), (5,), "(5,)", False, "(5,)")]


@pytest.mark.parametrize(("a", "b", "both_say", "agree", "wide"), PAIRS)
def test_shapes_of_two_tensors(a: Any, b: Any, both_say: str, agree: bool, wide: str) -> None:
    assert str(sharper(a, b)) == both_say and sharper(a, a) == a
    assert Tensor(F32, a).agrees(Tensor(F32, b)) is agree and Tensor(F32, b).agrees(Tensor(F32, a)) is agree
    assert str(broadcast(a, b)) == wide == str(broadcast(b, a))


def test_shapes_that_cannot_broadcast() -> None:
    assert not broadcasts((N + 2,), (2,)) and broadcasts((N,), (2,)) and broadcasts((N + 1,), (M,))
    assert not broadcasts((2 * N,), (2 * N + 1,)) and broadcasts((N,), (N + 1,))


def test_either_of_two_values() -> None:
    assert str(merged(Tensor(F32, (N, 2, UNKNOWN)), Tensor(F32, (N, 3, UNKNOWN))).dims) == "(n, ?, ?)"


@given(TREES, st.integers(-9, 9) | st.sampled_from([LARGEST - 1, -LARGEST, LARGEST]))
def test_a_number_is_added_as_a_polynomial_is(tree: Any, number: int) -> None:
    """The short way is that of any two polynomials, which a number of NumPy's takes where it can hold it."""
    try:
        size = value(tree, lambda x: symbol(x) if isinstance(x, str) else x)
    except ZeroDivisionError:
        return
    if known(size) or not hasattr(size, "terms"):
        return
    plain = _number(_added(dict(size.terms), {(): number} if number else {}))
    for found in (size + number, number + size, size - -number):
        assert (found is UNKNOWN) == (plain is UNKNOWN) and (found is UNKNOWN or found.terms == plain.terms)
    assert same(size, size + 0) and size - size == 0 and same(-size, 0 - size)
