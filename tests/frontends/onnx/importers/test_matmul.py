"""Matrix products against ONNX's reference and NumPy."""
from __future__ import annotations

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from one_node import converted
from three_ways import WAYS, Node, built, check, n

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def f(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def whole(*shape: int, kind: Any = np.int32) -> Array:
    return RNG.integers(0 if np.dtype(kind).kind == "u" else -9, 9, shape).astype(kind)


A, B, C = f(3, 4), f(4, 5), f(5)
CASES: list[Node] = [
    n("MatMul", A, B), n("MatMul", f(2, 3, 4), B), n("MatMul", f(2, 3, 4), f(2, 4, 5)), n("MatMul", A, f(2, 4, 5)),
    n("MatMul", f(2, 1, 3, 4), f(3, 4, 5)), n("MatMul", f(4), B), n("MatMul", A, f(4)), n("MatMul", f(4), f(4)),
    n("MatMul", f(4), f(2, 4, 5)), n("MatMul", f(2, 3, 4), f(4)),
    n("MatMul", A.astype(np.float64), B.astype(np.float64)),
    *(n("MatMul", whole(3, 4, kind=k), whole(4, 5, kind=k)) for k in (np.int32, np.int64, np.uint32, np.uint64)),
    n("MatMul", A.astype(np.float16), B.astype(np.float16)), n("MatMul", f(1, 4), f(4, 1)), n("MatMul", f(2, 0, 4), B),
    n("Gemm", A, B), n("Gemm", A, B, C), n("Gemm", A, B, C[:1]), n("Gemm", A, B, f(3, 5)), n("Gemm", A, B, f(3, 1)),
    n("Gemm", A, B, np.array(2, np.float32)), n("Gemm", A.T.copy(), B, C, transA=1),
    n("Gemm", A, B.T.copy(), C, transB=1),
    n("Gemm", A.T.copy(), B.T.copy(), f(1, 5), transA=1, transB=1, alpha=0.5, beta=2.0),
    n("Gemm", A, B, C, alpha=0.25, beta=0.0), n("Gemm", A, B, C, opset=6, broadcast=1, want=[A @ B + C]),
    n("Gemm", A, B, f(3, 5), fixed=(1,)), n("Gemm", A.astype(np.float64), B.astype(np.float64), C.astype(np.float64)),
    n("Gemm", whole(3, 4), whole(4, 5), whole(5)), n("Det", f(3, 3)), n("Det", f(2, 3, 3)),
    *(n("Einsum", *xs, equation=e) for e, xs in {
        "ij->ji": [A], "ij->i": [A], "ij->": [A], "i,i->": [f(4), f(4)], "bij,bjk->bik": [f(2, 3, 4), f(2, 4, 5)],
        "...ii->...i": [f(2, 3, 3)], "ij,jk": [A, B], "bhid, bhjd -> bhij": [f(2, 3, 4, 5), f(2, 3, 6, 5)],
        "bij,jkl->bikl": [f(2, 3, 4), f(4, 5, 2)], "ab,bc,cd->da": [f(2, 3), f(3, 4), f(4, 2)], "i,j->ij": [f(2), f(3)],
        "...ij,...jk->...ik": [f(2, 3, 4), f(4, 5)], "bc,bc->b": [A, A], "ij,ij->ij": [A, A],
        "bn,bnh->bh": [A, f(3, 4, 2)],
        "bldc,bmdc->bdlm": [f(2, 3, 4, 5), f(2, 6, 4, 5)], "ij,kj->": [A, f(2, 4)], "...->...": [f(3)],
        "ba": [A], "aij,ajk->aik": [f(2, 3, 4), f(1, 4, 5)], "ji,ji->ji": [A, f(1, 4)]}.items()),
    n("Einsum", whole(2, 3, kind=np.int64), whole(3, 2, kind=np.int64), equation="ij,jk->ik"),
    n("Einsum", A.astype(np.float64), equation="ij->j")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("node", CASES, ids=str)
def test_as_the_reference(node: Node, way: str) -> None:
    check(node, way, 5e-3 if node.inputs[0] is not None and node.inputs[0].dtype == np.float16 else 1e-5)


@st.composite
def equations(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """Terms over a few labels, each label of one size, and a result of labels that the terms have."""
    sizes = {c: draw(st.integers(1, 3)) for c in string.ascii_lowercase[:5]}
    terms = draw(st.lists(st.lists(st.sampled_from(sorted(sizes)), min_size=1, max_size=4, unique=True), min_size=1,
                          max_size=3))
    there = sorted({c for t in terms for c in t})
    after = draw(st.lists(st.sampled_from(there), max_size=4, unique=True))
    return f"{','.join(''.join(t) for t in terms)}->{''.join(after)}", [tuple(sizes[c] for c in t) for t in terms]


@settings(max_examples=60)
@given(equations(), st.sampled_from(WAYS[:2]))
def test_equations(drawn: tuple[str, list[tuple[int, ...]]], way: str) -> None:
    equation, shapes = drawn
    xs = [f(*s) for s in shapes]
    check(n("Einsum", *xs, equation=equation, want=[np.einsum(equation, *xs)]), way, 1e-4)


def test_a_constant_matrix_is_a_layer() -> None:
    made = converted(built(n("Gemm", A, B, C), "open")[0])
    assert [c.placed.form.name for c in made.checked] == ["FULLY_CONNECTED"]
