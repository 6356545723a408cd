"""Random draws: how they are distributed, what a seed does, and whose type and shape they have."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from chance import unlikely
from one_node import Port, element, model
from onnx import AttributeProto, NodeProto, helper

import nnx_convert
from nnx_convert.errors import FormatError, NnxError

F = np.float32
TYPES = (np.float32, np.float16, np.float64, ml_dtypes.bfloat16)
X = np.linspace(0, 1, 12, dtype=F).reshape(3, 4)


def compiled(node: NodeProto, *inputs: np.ndarray, way: str = "fixed", opset: int = 22) -> Any:
    """A model of one node."""
    sizes = [[f"x{i}_{j}" for j in range(v.ndim)] if way == "open" else v.shape for i, v in enumerate(inputs)]
    ports: list[Port] = [(f"x{i}", element(v), s) for i, (v, s) in enumerate(zip(inputs, sizes, strict=True))]
    made = model([node], [], [], opset)
    made.graph.input.extend(helper.make_tensor_value_info(*p) for p in ports)
    made.graph.output.append(helper.make_empty_tensor_value_info("y"))
    return nnx_convert.compile(made.SerializeToString(), threads=1)


def draws(op: str, *inputs: np.ndarray, way: str = "fixed", **attributes: Any) -> list[np.ndarray]:
    """What two runs draw."""
    shape = attributes.pop("shape", None)
    node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], ["y"], **attributes)
    if shape is not None:
        node.attribute.append(AttributeProto(name="shape", type=AttributeProto.INTS, ints=shape))
    ready = compiled(node, *inputs, way=way)
    return [ready.run(list(inputs))[0] for _ in range(2)]


@pytest.mark.parametrize("kind", TYPES)
def test_uniform_numbers_are_spread_evenly(kind: Any) -> None:
    first, second = draws("RandomUniform", shape=[50, 400], low=-2.0, high=3.0, dtype=element(np.zeros(1, kind)))
    assert (first.dtype, first.shape) == (np.dtype(kind), (50, 400))
    assert (first != second).any() and first.min() >= -2 and first.max() <= 3
    counts = np.histogram(first.astype(float), 10, (-2, 3))[0]
    assert not unlikely(counts, np.ones(10)) or kind == ml_dtypes.bfloat16


@pytest.mark.parametrize("kind", TYPES)
def test_normal_numbers_have_a_mean_and_a_spread(kind: Any) -> None:
    first, second = draws("RandomNormal", shape=[50, 400], mean=5.0, scale=2.0, dtype=element(np.zeros(1, kind)))
    assert (first.dtype, first.shape) == (np.dtype(kind), (50, 400)) and (first != second).any()
    found = first.astype(float)
    assert abs(found.mean() - 5) < 0.08 and abs(found.std() - 2) < 0.06
    assert abs((np.abs(found - 5) < 2).mean() - 0.6827) < 0.02


OPS: dict[str, dict[str, Any]] = {"RandomUniformLike": {"low": 2.0, "high": 3.0}, "RandomNormalLike": {"scale": 0.5},
                                  "RandomUniform": {"shape": [3, 4]}, "RandomNormal": {"shape": [3, 4]},
                                  "Bernoulli": {}, "Multinomial": {"sample_size": 40}}


@pytest.mark.parametrize("way", ["fixed", "open"])
@pytest.mark.parametrize("seed", [0.0, 3.0, -1.5])
@pytest.mark.parametrize("op", OPS)
def test_with_a_seed_each_run_draws_the_same(op: str, seed: float, way: str) -> None:
    inputs = [] if op in ("RandomUniform", "RandomNormal") else [X]
    first, second = draws(op, *inputs, way=way, seed=seed, **OPS[op])
    (other, _) = draws(op, *inputs, way=way, seed=seed + 1, **OPS[op])
    assert first.shape == ((3, 40) if op == "Multinomial" else (3, 4))
    assert (first == second).all() and (op == "Bernoulli" or (first != other).any())


@pytest.mark.parametrize("op", ["RandomUniformLike", "RandomNormalLike"])
@pytest.mark.parametrize("way", ["fixed", "open"])
def test_a_draw_has_the_type_and_shape_of_another(op: str, way: str) -> None:
    for x in (X.astype(np.float16), np.zeros((2, 1, 3, 1, 2), np.float64), np.zeros((), F), np.zeros((0, 3), F)):
        first, _ = draws(op, x, way=way)
        assert (first.dtype, first.shape) == (x.dtype, x.shape)
    first, _ = draws(op, X.astype(np.int64), way=way, dtype=11)
    assert (first.dtype, first.shape) == (np.float64, (3, 4))


def test_two_draws_without_seeds_differ() -> None:
    nodes = [helper.make_node("RandomNormal", [], [name], shape=[8]) for name in "ab"]
    made = model([*nodes, helper.make_node("Sub", ["a", "b"], ["y"])], [], [("y", 1, (8,))], 22)
    assert nnx_convert.compile(made.SerializeToString()).run([])[0].all()


def test_a_scalar_is_drawn() -> None:
    assert draws("RandomUniform", shape=[])[0].shape == ()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_one_comes_with_its_probability(kind: Any) -> None:
    chances = np.repeat(np.array([0, 0.2, 0.7, 1], kind), 4000)
    first, _ = draws("Bernoulli", chances)
    assert first.dtype == kind
    ones = first.reshape(4, 4000).astype(float).sum(1)
    assert ones[0] == 0 and ones[3] == 4000
    for n, p in ((ones[1], 0.2), (ones[2], 0.7)):
        assert not unlikely(np.array([n, 4000 - n]), np.array([p, 1 - p]))


@pytest.mark.parametrize(("dtype", "kind"), [(9, bool), (7, np.int64), (6, np.int32), (10, np.float16), (2, np.uint8)])
def test_ones_have_a_type_of_their_own(dtype: int, kind: Any) -> None:
    first, _ = draws("Bernoulli", X, dtype=dtype, seed=1.0)
    same, _ = draws("Bernoulli", X, seed=1.0)
    assert first.dtype == kind
    np.testing.assert_array_equal(first.astype(F), same)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("dtype", "to"), [(6, np.int32), (7, np.int64)])
def test_classes_come_with_their_odds(kind: Any, dtype: int, to: Any) -> None:
    odds = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-12]])
    first, second = draws("Multinomial", np.log(odds).astype(kind), dtype=dtype, sample_size=4000)
    assert (first.dtype, first.shape) == (np.dtype(to), (2, 4000)) and (first != second).any()
    for row, o in zip(first, odds, strict=True):
        assert not unlikely(np.bincount(row, minlength=3), o)


@pytest.mark.parametrize(("op", "inputs", "attributes"), [
    ("RandomUniform", [], {"shape": [-1]}), ("RandomNormal", [], {"shape": [1 << 40]}),
    ("RandomUniform", [], {"shape": [2], "dtype": 7}), ("RandomNormal", [], {"shape": [2], "dtype": 99}),
    ("RandomUniform", [], {}), ("RandomNormalLike", [X.astype(np.int64)], {}), ("Bernoulli", [X], {"dtype": -3}),
    ("Multinomial", [X], {"sample_size": 0}), ("Multinomial", [X], {"sample_size": 1 << 40}),
    ("Multinomial", [X], {"dtype": 1}), ("Multinomial", [X[0]], {}), ("Multinomial", [X[:, :0]], {})])
def test_what_cannot_be_drawn_is_refused(op: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=op):
        draws(op, *inputs, **attributes)


def test_a_draw_that_no_memory_holds_fails() -> None:
    with pytest.raises(NnxError, match="bytes"):
        draws("RandomUniform", shape=[1 << 30, 1 << 30])
