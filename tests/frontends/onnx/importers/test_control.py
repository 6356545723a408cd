"""If, Loop and Scan: models in ONNX's text form, run beside what they compute in NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.parser
import pytest
from one_node import run

import nnx_convert
from nnx_convert.errors import FormatError, LimitError, NnxError, RunError
from nnx_convert.resources import limited

Array = np.ndarray[Any, Any]
F = np.float32
X = np.array([1, -2, 3], F)


def model(text: str, opset: int = 21) -> onnx.ModelProto:
    made: onnx.ModelProto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    return made


def names(text: str) -> list[str]:
    """The operations a model becomes."""
    return [o.op.name for o in nnx_convert.convert(model(text).SerializeToString()).operations]


IF = """g (bool c, float[3] x) => (float[N] y, int64 n) {
  k = Constant <value = float[1] {10}> ()
  y, n = If (c) <then_branch = a () => (float[3] p, int64 i) {
    p = Add (x, k)
    i = Constant <value = int64 {7}> ()
  }, else_branch = b () => (float[6] q, int64 j) {
    q = Concat <axis = 0> (x, x)
    s = Shape (q)
    z = Constant <value = int64 {0}> ()
    j = Gather (s, z)
  }>
}"""
NESTED_IF = """g (bool c, bool d, float[3] x) => (float[3] y) {
  w = Neg (x)
  y = If (c) <then_branch = a () => (float[3] p) {
    v = Mul (x, w)
    p = If (d) <then_branch = aa () => (float[3] pp) { pp = Add (v, w) },
                else_branch = ab () => (float[3] pq) { pq = Sub (v, x) }>
  }, else_branch = b () => (float[3] q) { q = Identity (w) }>
}"""
COUNT = """g (int64 m, float[2] x) => (float[2] y, float[M, 2] rows, int64[M] numbers) {
  one = Constant <value = float[2] {1, 2}> ()
  t = Constant <value = bool {1}> ()
  y, rows, numbers = Loop (m, t, x) <
  body = b (int64 i, bool on, float[2] a) => (bool go, float[2] s, float[2] r, int64 k) {
    go = Identity (on)
    s = Add (a, one)
    r = Mul (s, x)
    k = Add (i, i)
  }>
}"""
WHILE = """g (float x, float limit) => (float y, int64 n) {
  t = Constant <value = bool {1}> ()
  zero = Constant <value = int64 {0}> ()
  y, n = Loop ("", t, x, zero) <body = b (int64 i, bool on, float a, int64 k) => (bool go, float s, int64 j) {
    s = Add (a, a)
    go = Less (s, limit)
    one = Constant <value = int64 {1}> ()
    j = Add (k, one)
  }>
}"""
FLOAT_WHILE = """g (float[3] x, float limit) => (float[3] y) {
  t = Constant <value = bool {1}> ()
  m = Constant <value = int64 {100}> ()
  y = Loop (m, t, x) <body = b (int64 i, bool on, float[3] a) => (bool go, float[3] s) {
    s = Add (a, a)
    top = ReduceMax <keepdims = 0> (s)
    go = Less (top, limit)
  }>
}"""
GROWING = """g (int64 m, float[1] x) => (float[N] y) {
  y = Loop (m, "", x) <body = b (int64 i, bool on, float[K] a) => (bool go, float[L] s) {
    axis = Constant <value = int64[1] {0}> ()
    go = Identity (on)
    f = Cast <to = 1> (i)
    u = Unsqueeze (f, axis)
    s = Concat <axis = 0> (a, u)
  }>
}"""
FEW = """g (float[2] x) => (float[2] y, float[3, 2] rows) {
  m = Constant <value = int64 {3}> ()
  y, rows = Loop (m, "", x) <body = b (int64 i, bool on, float[2] a) => (bool go, float[2] s, float[2] r) {
    go = Identity (on)
    s = Add (a, a)
    r = Sub (s, x)
  }>
}"""
EARLY = """g (float[2] x, int64 last) => (float[2] y, float[M, 2] rows) {
  m = Constant <value = int64 {40}> ()
  y, rows = Loop (m, "", x) <body = b (int64 i, bool on, float[2] a) => (bool go, float[2] s, float[2] r) {
    go = Less (i, last)
    s = Add (a, x)
    r = Identity (a)
  }>
}"""
INNER = """g (int64 m, float[2] x) => (float[2] y) {
  y = Loop (m, "", x) <body = b (int64 i, bool on, float[2] a) => (bool go, float[2] s) {
    go = Identity (on)
    s = Loop (m, "", a) <body = bb (int64 j, bool more, float[2] c) => (bool gogo, float[2] d) {
      gogo = Identity (more)
      d = Add (c, x)
    }>
  }>
}"""
NOTHING = """g (bool c, float[2] x) => (float[2] y, float[M, 2] rows) {
  y, rows = Loop ("", c, x) <body = b (int64 i, bool on, float[2] a) => (bool go, float[2] s, float[2] r) {
    go = Constant <value = bool {0}> ()
    s = Neg (a)
    r = Identity (s)
  }>
}"""
SUM = """g (float[2] s, float[T, 2] x) => (float[2] y, float[T, 2] z) {
  w = Constant <value = float[1] {2}> ()
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] v) => (float[2] p, float[2] q) {
    p = Add (a, v)
    q = Mul (p, w)
  }> (s, x)
}"""
TURNED = """g (float[2] s, float[2, 4] x, float[4, 2] u) => (float[2] y, float[2, 4] z, float[4] n) {
  y, z, n = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
    scan_output_axes = [1, 0], scan_output_directions = [0, 1],
    body = b (float[2] a, float[2] v, float[2] t) => (float[2] p, float[2] q, float r) {
      p = Add (a, v)
      q = Add (p, t)
      r = ReduceSum <keepdims = 0> (t)
  }> (s, x, u)
}"""
BATCHED = """g (float[B, 2] s, float[B, 3, 2] x) => (float[B, 2] y, float[B, 3, 2] z) {
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] v) => (float[2] p, float[2] q) {
    p = Add (a, v)
    q = Identity (p)
  }> ("", s, x)
}"""
LENGTHS = BATCHED.replace('"", s', "n, s").replace("g (", "g (int64[B] n, ")
ROWS = np.arange(8, dtype=F).reshape(4, 2)
MANY = np.tile(ROWS, (20, 1))
BATCH = np.arange(12, dtype=F).reshape(2, 3, 2)


def counted(m: int) -> list[Any]:
    s = np.array([[1, 1]], F) + np.arange(1, m + 1)[:, None] * np.array([1, 2], F)
    return [s[-1] if m else np.ones(2, F), (s * 1).astype(F), 2 * np.arange(m)]


CASES: list[tuple[str, int, list[Any], list[Any]]] = [
    (IF, 21, [True, X], [X + 10, 7]), (IF, 21, [False, X], [np.concatenate([X, X]), 6]),
    (NESTED_IF, 21, [True, True, X], [-X * X - X]), (NESTED_IF, 21, [True, False, X], [-X * X - X]),
    (NESTED_IF, 21, [False, True, X], [-X]), *((COUNT, 21, [m, np.ones(2, F)], counted(m)) for m in (0, 1, 5, 40)),
    (WHILE, 21, [F(1), F(100)], [128, 7]), (FLOAT_WHILE, 21, [X, F(100)], [X * 64]),
    (GROWING, 21, [3, np.array([9], F)], [[9, 0, 1, 2]]), (GROWING, 21, [0, np.array([9], F)], [[9]]),
    (FEW, 21, [X[:2]], [X[:2] * 8, np.array([1, 3, 7], F)[:, None] * X[:2]]), (INNER, 21, [3, X[:2]], [X[:2] * 10]),
    *((EARLY, 21, [X[:2], n - 1], [X[:2] * (n + 1), np.arange(1, n + 1)[:, None] * X[:2]]) for n in (2, 40)),
    (NOTHING, 21, [False, X[:2]], [X[:2], np.zeros((0, 2))]), (NOTHING, 21, [True, X[:2]], [-X[:2], -X[None, :2]]),
    *((SUM, version, [X[:2], ROWS], [X[:2] + ROWS.sum(0), 2 * (X[:2] + ROWS.cumsum(0))]) for version in (9, 21)),
    (SUM, 21, [X[:2], MANY], [X[:2] + MANY.sum(0), 2 * (X[:2] + MANY.cumsum(0))]),
    (TURNED, 21, [np.zeros(2, F), ROWS.T.copy(), ROWS], [ROWS.sum(0), (ROWS.cumsum(0) + ROWS[::-1]).T, ROWS.sum(1)]),
    (BATCHED, 8, [np.ones((2, 2), F), BATCH], [1 + BATCH.sum(1), 1 + BATCH.cumsum(1)]),
    (LENGTHS, 8, [[3, 1], np.ones((2, 2), F), BATCH],
     [np.stack([1 + BATCH[0].sum(0), 1 + BATCH[1, 0]]),
      np.stack([1 + BATCH[0].cumsum(0), np.concatenate([1 + BATCH[1, :1], np.zeros((2, 2), F)])])]),
]


@pytest.mark.parametrize(("text", "opset", "inputs", "want"), CASES)
def test_as_in_numpy(text: str, opset: int, inputs: list[Any], want: list[Any]) -> None:
    found = run(model(text, opset), *inputs)
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-6)
        assert got.shape == np.shape(expected)


def test_a_known_condition_leaves_one_branch() -> None:
    text = IF.replace("(bool c, ", "(").replace("{\n  k", "{\n  c = Constant <value = bool {1}> ()\n  k", 1)
    assert "IF" not in names(text)


MISFIT = """g (bool c, float[3] x) => (float[3] y) {
  y = If (c) <then_branch = a () => (float[3] p) { p = Neg (x) }, else_branch = b () => (float[3] q) {
    k = Constant <value = int64[2] {2, 7}> ()
    q = Reshape (x, k)
  }>
}"""


def test_a_branch_that_the_sizes_do_not_fit_fails_when_it_is_taken() -> None:
    made = nnx_convert.compile(nnx_convert.convert(model(MISFIT).SerializeToString()))
    np.testing.assert_array_equal(made.run([True, X])[0], -X)
    with pytest.raises(RunError, match=r"b op 1 Reshape"):
        made.run([False, X])


SQUEEZED = """g (float[N, T] x) => (REST) {
  last = Constant <value = int64[1] {-1}> ()
  one = Constant <value = int64[1] {1}> ()
  sizes = Shape (x)
  size = Gather (sizes, last)
  c = Equal (size, one)
  y = If (c) <then_branch = a () => (float[N] p) {
    axes = Constant <value = int64[1] {-1}> ()
    p = Squeeze (x, axes)
  }, else_branch = b () => (float[N, T] q) { q = Identity (x) }>
"""


def test_a_squeeze_of_an_open_size_is_one_where_the_rank_is_wanted() -> None:
    text = SQUEEZED.replace("REST", "float[N, N] z") + "u = Unsqueeze (y, one)\n v = Transpose (u) z = MatMul (u, v) }"
    made = nnx_convert.compile(nnx_convert.convert(model(text).SerializeToString()))
    np.testing.assert_array_equal(made.run([X[:, None]])[0], np.outer(X, X))
    with pytest.raises(RunError, match="x has that size along axis"):
        made.run([np.ones((3, 2), F)])


def test_a_squeeze_of_an_open_size_is_either_where_it_is_not() -> None:
    text = SQUEEZED.replace("(REST)", "(y)") + "}"
    made = nnx_convert.compile(nnx_convert.convert(model(text).SerializeToString()))
    for x in (X[:, None], np.ones((3, 2), F)):
        np.testing.assert_array_equal(made.run([x])[0], x.squeeze(-1) if x.shape[-1] == 1 else x)


def test_branches_that_both_fail_are_refused() -> None:
    text = MISFIT.replace("p = Neg (x)", "l = Constant <value = int64[1] {9}> () p = Reshape (x, l)")
    with pytest.raises(NnxError, match="a op 1 Reshape"):
        nnx_convert.convert(model(text).SerializeToString())


def test_a_loop_that_is_counted_has_known_sizes() -> None:
    made = nnx_convert.compile(nnx_convert.convert(model(SUM.replace("T, 2", "40, 2")).SerializeToString()))
    assert made.outputs[1].shape == (40, 2) and made.prepare() is not None


def test_few_rounds_stand_one_after_another() -> None:
    assert not {"WHILE", "LOOP"} & {*names(FEW)}


def test_a_loop_whose_values_keep_their_sizes_is_one_of_nnapi() -> None:
    assert "WHILE" in names(FLOAT_WHILE)


@pytest.mark.parametrize(("text", "inputs"), [
    (WHILE, [F(0), F(1)]), (FLOAT_WHILE.replace("100", "9999999999"), [X * 0, F(1)])])
def test_a_loop_without_end_ends_the_run(text: str, inputs: list[Any]) -> None:
    with pytest.raises(LimitError, match=r"runs longer than 0\.2 seconds"), limited(loop_seconds=0.2):
        run(model(text), *inputs)
    with pytest.raises(LimitError, match="a loop has more than 9 rounds"), limited(rounds=9):
        run(model(text), *inputs)


def changed(text: str, old: str, new: str) -> Callable[[], onnx.ModelProto]:
    assert old in text
    return lambda: model(text.replace(old, new))


@pytest.mark.parametrize(("make", "said"), [
    (changed(COUNT, "(int64 i, bool on, float[2] a)", "(int64 i, bool on, float[2] a, bool c)"),
     "takes 4 inputs, not 3"),
    (changed(FEW, "(bool go, float[2] s, float[2] r)", "(bool go)"), "gives 1 values, 2 at least"),
    (changed(COUNT, "(bool go, float[2] s, float[2] r, int64 k)", "(bool go, int64 k)"),
     "is TENSOR_FLOAT32 and becomes"),
    (changed(TURNED, "scan_input_axes = [1, 0]", "scan_input_axes = [1]"), "gives 1 axes or directions for 2"),
    (changed(TURNED, "scan_input_axes = [1, 0]", "scan_input_axes = [7, 0]"), "position 7"),
    (changed(TURNED, "scan_input_axes = [1, 0]", "scan_input_axes = [0, 0]"), r"scans axes of the sizes \[2, 4\]"),
    (changed(SUM, "num_scan_inputs = 1", "num_scan_inputs = 3"), "scans 3 of 2 inputs")])
def test_what_is_wrong_is_said(make: Callable[[], onnx.ModelProto], said: str) -> None:
    with pytest.raises(NnxError, match=said) as fault:
        nnx_convert.convert(make().SerializeToString())
    assert isinstance(fault.value, FormatError)
