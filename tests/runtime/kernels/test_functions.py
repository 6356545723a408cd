"""Functions of elements and matrices, by hand and by Python's own."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.errors import RunError
from nnx_convert.ops import functions as f
from nnx_convert.schema import OpDef, OpError
from nnx_convert.types import F16, F32, F64, I16, I32, I64, Q8, U32, U64, Quant, Tensor, Type

nan, inf = math.nan, math.inf
SOME = [-2.5, -1.0, -0.3, -1e-6, 0.0, 1e-6, 0.5, 1.0, 3.0]
INSIDE = [-1.0, -0.3, 0.0, 1e-6, 0.9]
ABOVE = [1.0, 1.5, 7.0]
MATRICES = [[[2.0, 1.0], [4.0, 3.0]], [[1.0, 2.0], [2.0, 4.0]]]
#: Operation, its function in Python, where it is tried.
REAL: list[tuple[OpDef, Any, list[float]]] = [
    (f.ERF, math.erf, SOME), (f.SOFTPLUS, lambda v: math.log1p(math.exp(v)), SOME),
    (f.MISH, lambda v: v * math.tanh(math.log1p(math.exp(v))), SOME), (f.ASIN, math.asin, INSIDE),
    (f.ACOS, math.acos, INSIDE), (f.ATAN, math.atan, SOME), (f.ASINH, math.asinh, SOME), (f.ACOSH, math.acosh, ABOVE),
    (f.ATANH, math.atanh, INSIDE[1:]), (f.SINH, math.sinh, SOME), (f.COSH, math.cosh, SOME), (f.TAN, math.tan, SOME)]


@pytest.mark.parametrize(("kind", "rtol"), [(F64, 1e-12), (F32, 3e-7), (F16, 2e-3)], ids=str)
@pytest.mark.parametrize(("op", "function", "at"), REAL, ids=[r[0].name for r in REAL])
def test_real_functions(op: OpDef, function: Any, at: list[float], kind: Type, rtol: float) -> None:
    given = np.asarray(at, kind.dtype)
    got = run_op(op, {"x": tensor(at, kind)})[0]
    assert got.dtype == kind.dtype
    np.testing.assert_allclose(got, [function(v) for v in given.astype(float)], rtol=rtol, atol=1e-7 * (kind == F16))


def test_far_from_zero_functions_are_what_they_approach() -> None:
    far = [-1e30, -1e3, 1e3, 1e30]
    for op, want in ((f.ERF, [-1, -1, 1, 1]), (f.SOFTPLUS, [0, 0, 1e3, 1e30]), (f.MISH, [0, 0, 1e3, 1e30])):
        np.testing.assert_allclose(run_op(op, {"x": tensor(far, F32)})[0], want, atol=1e-30)


# operation, x of a type, the other arguments, the output
CASES: list[tuple[OpDef, tuple[Any, Type], dict[str, Any], Any]] = [
    (f.TRUNC_MOD, ([-7, 7, -7, 7], I64), {"y": ([3, -3, -3, 3], I64)}, [-1, 1, -1, 1]),
    (f.TRUNC_MOD, ([-4.3, 7.2, 5.0], F32), {"y": ([2.1, -3.4, 8.0], F32)}, [-0.1, 0.4, 5.0]),
    (f.BITWISE_AND, ([0b1100, -1], I32), {"y": ([0b1010, 6], I32)}, [0b1000, 6]),
    (f.BITWISE_OR, ([[0b1100], [1]], U64), {"y": ([0b1010], U64)}, [[0b1110], [0b1011]]),
    (f.BITWISE_NOT, ([0, -1, 5], I64), {}, [-1, 0, -6]), (f.BITWISE_NOT, ([0, 255], Q8), {}, [255, 0]),
    (f.SHIFT, ([1, 5, 3], U32), {"y": ([31, 1, 0], U32), "left": True}, [2**31, 10, 3]),
    (f.SHIFT, ([2**63, 16, 4], U64), {"y": ([63, 2, 64], U64), "left": False}, [1, 4, 0]),
    (f.SHIFT, ([-16, 17], I16), {"y": ([2, 16], I16), "left": False}, [-4, 0]),
    (f.INTEGER_POWER, ([2, -2, 0, -1, 3, 1, 0], I64), {"y": ([10, 3, 0, -3, -1, -5, -1], I64)},
     [1024, -8, 1, -1, 0, 1, 0]),
    (f.INTEGER_POWER, ([[2], [3]], U32), {"y": ([31, 2], U32)}, [[2**31, 4], [3**31 % 2**32, 9]]),
    (f.MATRIX_INVERSE, (MATRICES[:1], F32), {}, [[[1.5, -0.5], [-2, 1]]]),
    (f.MATRIX_INVERSE, (MATRICES[0], F16), {}, [[1.5, -0.5], [-2, 1]]),
    (f.DETERMINANT, (MATRICES, F32), {}, [2, 0]), (f.DETERMINANT, (MATRICES[0], F64), {}, [2]),
    (f.DETERMINANT, (MATRICES[0], F16), {}, [2])]


def operand(value: Any) -> Any:
    """A tensor where a case gives values and a type."""
    return tensor(*value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("op", "x", "rest", "want"), CASES, ids=[f"{c[0].name} {i}" for i, c in enumerate(CASES)])
def test_case(op: OpDef, x: Any, rest: dict[str, Any], want: Any) -> None:
    outs = [Tensor(x[1], None, Quant(1.0, 0))] if x[1] == Q8 else []
    first = tensor(*x, Quant(1.0, 0)) if x[1] == Q8 else tensor(*x)
    got = run_op(op, {"x": first} | {n: operand(v) for n, v in rest.items()}, *outs)[0]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_matrix_without_an_inverse() -> None:
    with pytest.raises(RunError, match="no inverse"):
        run_op(f.MATRIX_INVERSE, {"x": tensor([[1.0, 2.0], [2.0, 4.0]], F64)})


#: An equation and the shapes of its operands.
EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij->ji", [(2, 3)]), ("ij->i", [(2, 3)]), (".ii->.i", [(3, 4, 4)]), ("i,i->", [(5,), (5,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), (".ij,.jk->.ik", [(2, 1, 3, 4), (5, 4, 2)]), ("ij,j->ij", [(2, 3), (1,)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]), ("i,j->ij", [(2,), (3,)])]


@pytest.mark.parametrize("kind", [F32, F64, F16, I64], ids=str)
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[e for e, _ in EQUATIONS])
def test_einsum(equation: str, shapes: list[tuple[int, ...]], kind: Type) -> None:
    rng = np.random.default_rng(0)
    xs = [rng.integers(-3, 4, s).astype(kind.dtype) for s in shapes]
    codes = tensor([ord(c) for c in equation.replace("->", ">")], I32)
    want = np.einsum(equation.replace(".", "..."), *xs)
    got = run_op(f.EINSUM, {"xs": tuple(tensor(x, kind) for x in xs), "equation": codes})[0]
    assert got.dtype == kind.dtype
    np.testing.assert_array_equal(got, want.reshape(want.shape or (1,)))


@pytest.mark.parametrize(("equation", "shapes"), [("ij,jk", [(2, 3), (3, 4)]), ("ij->i", [(2, 3, 4)]),
                                                  ("ij->k", [(2, 3)]), ("i,i->", [(2,)])], ids=str)
def test_equations_that_fit_no_operands(equation: str, shapes: list[tuple[int, ...]]) -> None:
    codes = tensor([ord(c) for c in equation.replace("->", ">")], I32)
    with pytest.raises((OpError, ValueError)):
        run_op(f.EINSUM, {"xs": tuple(tensor(np.zeros(s), F32) for s in shapes), "equation": codes})
