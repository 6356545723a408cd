"""Proofs by trying: what they take for the same is the same on everything, what differs once is refused."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert.convert import evaluate
from nnx_convert.errors import RunError
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.exact import computed, near, same_steps
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.sums import fractions
from nnx_convert.ops import elementwise as e, host, host_math, reduce as r
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, UNKNOWN, Q8, Q8S, Port, Quant, Rim, Tensor

POINTS = np.array([0, 4, 5, 6, 9])
#: Values of two functions at POINTS; whether they are the same function on all of 0 to 9.
STEPS: list[tuple[list[int], list[int], bool]] = [
    ([1, 1, 2, 3, 3], [1, 1, 2, 3, 3], True), ([1, 1, 2, 3, 3], [1, 1, 1, 3, 3], False),
    ([0, 1, 2, 3, 3], [0, 1, 2, 3, 3], False), ([1, 1, 1, 1, 2], [1, 1, 1, 1, 2], False),
    ([1, 1, 1, 2, 2], [1, 1, 1, 2, 2], True)]


@pytest.mark.parametrize(("first", "second", "proven"), STEPS, ids=str)
def test_functions_are_the_same_where_they_stand_still_between_points(first: list[int], second: list[int],
                                                                     proven: bool) -> None:
    assert same_steps(POINTS, np.array(first), np.array(second)) == proven


def test_nothing_is_proven_without_a_kernel() -> None:
    assert not same_steps(POINTS, None, POINTS) and not same_steps(POINTS, POINTS, None)


def test_points_lie_around_steps_and_at_both_ends() -> None:
    assert near(np.array([5.5, -1e30, np.inf]), 0, 20).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 19, 20]


def test_what_is_tried_may_overflow() -> None:
    with warnings.catch_warnings(action="error"):
        found = computed(evaluate, lambda g: g(e.EXP, g.const([1000.0], F32)))
    assert found is not None and found.tolist() == [np.inf]


def test_fractions_are_those_an_int8_weight_can_say() -> None:
    found = fractions(40.0, 0.24, 0.26)
    assert found and all(1 <= value <= 127 for value, _ in found)
    assert not fractions(40.0, 0.26, 0.24)


def summed(op: Any, x: Quant, out: Quant, type_: Any, n: int) -> tuple[Graph, np.ndarray[Any, Any]]:
    """A mean or a sum of n bytes, a channel for every sum there can be, and that input."""
    low, sums = np.iinfo(type_.dtype).min, np.arange(255 * n + 1)
    raw = (sums // n + (np.arange(n)[:, None] < sums % n) + low).astype(type_.dtype).reshape(1, n, 1, -1)
    g, v = Build("g"), Value("x", Tensor(type_, raw.shape, x))
    keep = True if op is r.REDUCE_SUM else 1
    y = g(host.host_twin(op), v, axes=(1, 2), keep=keep, out=Tensor(type_, None, out))
    ports = tuple(Port(w.name, w.type.dtype.name, w.shape, w.tensor.quant) for w in (v, y))
    return g.finish((v,), (y,), Rim(ports[:1], ports[1:])), raw


def run(graph: Graph, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return CompiledModel(flatten(graph), threads=1).run([x])[0]


SCALES = st.integers(40, 2000).map(lambda n: float(np.float32(n / 10000)))
SHARES = st.floats(0.3, 3.0)


@settings(max_examples=40)
@given(st.sampled_from([r.MEAN, r.REDUCE_SUM]), st.sampled_from([Q8, Q8S]), st.integers(1, 70), SCALES, SHARES,
       st.integers(0, 255), st.integers(0, 255), st.sampled_from([Target(27, False, False), Target(29), Target(30)]))
def test_a_sum_is_the_same_for_all_its_values(op: Any, type_: Any, n: int, scale: float, share: float, zero: int,
                                              to: int, target: Target) -> None:
    low = int(np.iinfo(type_.dtype).min)
    step = float(np.float32(scale * share * (n if op is r.REDUCE_SUM else 1)))
    graph, x = summed(op, Quant(scale, zero + low), Quant(step, to + low), type_, n)
    legal, _ = lower(graph, target, evaluate)
    np.testing.assert_array_equal(run(legal, x), run(graph, x))


AXES: dict[str, tuple[tuple[int, ...], list[int]]] = {
    "last": ((2, 3, 3, 4), [-1]), "apart": ((2, 3, 3, 4), [0, 2]), "all": ((2, 3, 3, 4), [0, 1, 2, 3]),
    "nothing": ((2, 0, 3, 4), [1, 2]), "too many": ((1, 300, 300, 1), [1, 2]), "one row": ((9,), [0])}


@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("keep", [0, 1])
def test_sums_over_any_axes_are_as_they_were(name: str, keep: int) -> None:
    dims, axes = AXES[name]
    grid = Quant(0.05, -3)
    g, v = Build("g"), Value("x", Tensor(Q8S, dims, grid))
    y = g(host.host_twin(r.MEAN), v, axes=axes, keep=keep, out=Tensor(Q8S, None, Quant(0.03, 5)))
    ports = tuple(Port(w.name, "int8", w.shape, w.tensor.quant) for w in (v, y))
    graph = g.finish((v,), (y,), Rim(ports[:1], ports[1:]))
    x = np.random.default_rng(0).integers(-128, 128, dims).astype(np.int8)
    for target in (Target(27, False, False), Target()):
        np.testing.assert_array_equal(run(lower(graph, target, evaluate)[0], x), run(graph, x))


def test_the_number_of_images_may_be_open() -> None:
    g, v = Build("g"), Value("x", Tensor(Q8S, (UNKNOWN, 7, 7, 3), Quant(0.0235294122248888, -128)))
    y = g(host.host_twin(r.MEAN), v, axes=(1, 2), keep=0, out=Tensor(Q8S, None, Quant(0.019077831879258156, -128)))
    graph = g.finish((v,), (y,), Rim())
    legal, _ = lower(graph, Target(), evaluate)
    assert [n.op.name for n in legal.nodes] == ["DEPTHWISE_CONV_2D", "RESHAPE"]
    x = np.random.default_rng(0).integers(-128, 128, (5, 7, 7, 3)).astype(np.int8)
    np.testing.assert_array_equal(run(legal, x), run(graph, x))


@pytest.mark.parametrize("n", [1, 9, 49, 64])
@pytest.mark.parametrize("type_", [Q8, Q8S], ids=lambda t: t.name)
def test_a_mean_of_what_is_not_negative_needs_no_host(type_: Any, n: int) -> None:
    """After RELU6 all values are on one side of the zero point, and a bias turns MEAN's double rounding into one."""
    low = int(np.iinfo(type_.dtype).min)
    graph, _ = summed(r.MEAN, Quant(0.0235294122248888, low), Quant(0.019077831879258156, low), type_, n)
    legal, trace = lower(graph, Target(30), evaluate)
    assert [node.op.name for node in legal.nodes] == ["DEPTHWISE_CONV_2D"]
    assert any("every sum" in ev.why for ev in trace)


def elements(op: Any, **named: Any) -> Graph:
    """An operation on a row of floats of any length."""
    g, v = Build("g"), Value("x", Tensor(F32, (UNKNOWN,)))
    return g.finish((v,), (g(op, v, **named),), Rim())


RANGES = [(0.0, 255 / 64, 8, False), (-1.0, 1.0, 8, False), (-2.0, 255 / 64 - 2, 8, False), (-0.3, 5.7, 8, True),
          (-1.5, 1.5, 2, False), (1.0, 3.0, 5, False), (-6.0, -0.1, 16, False)]


@pytest.mark.parametrize(("least", "most", "bits", "narrow"), RANGES)
def test_a_fake_quantised_float_is_the_same_halfway(least: float, most: float, bits: int, narrow: bool) -> None:
    """Every midpoint between two steps, and the floats on both sides of it."""
    graph = elements(host_math.FAKE_QUANT, least=least, most=most, bits=bits, narrow=narrow)
    low, _, step, _ = host_math.fake_grid(least, most, bits, narrow)
    middle = (low + step * np.arange(-1.5, (1 << bits) + 1)).astype(np.float32)
    x = np.concatenate([middle, *(np.nextafter(middle, np.float32(far)) for far in (-np.inf, np.inf))])
    legal, _ = lower(graph, Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_array_equal(run(legal, x), run(graph, x))


def test_a_cosine_is_near_at_any_distance() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (10, 50_000)) * 10.0 ** np.arange(-4, 6)[:, None]
    x = rows.ravel().astype(np.float32)
    legal, _ = lower(elements(host.COS), Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_allclose(run(legal, x), np.cos(x.astype(np.float64)), rtol=0, atol=2.0 ** -21)


@pytest.mark.parametrize("op", [host.FLOOR_DIV, host.FLOOR_MOD, host.TRUNC_DIV], ids=lambda o: o.name)
def test_a_division_by_a_constant_zero_fails_as_in_tflite(op: Any) -> None:
    g, v = Build("g"), Value("x", Tensor(I32, (3,)))
    graph = g.finish((v,), (g(op, v, g.const([2, 0, 1], I32)),), Rim())
    legal, trace = lower(graph, Target(), evaluate)
    assert any("constant zero" in ev.why for ev in trace)
    with pytest.raises(RunError, match="division by zero"):
        run(legal, np.array([4, 5, 6], np.int32))
