"""Where sizes follow from values, what waits for none of them is a native program that is run before."""
from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from natively import Net
from odd import outcome

from nnx_convert import CompiledModel, OperandCode
from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.backends import SETS, VARIABLE
from nnx_convert.schema import OPS

FLOAT32, INT32, BOOL8 = (OperandCode[f"TENSOR_{n}"] for n in ("FLOAT32", "INT32", "BOOL8"))
OPEN = (0, 4)


def picking(rows: int = 6) -> Net:
    """Rows that a run picks, of something computed before; what is picked is computed with, beside a constant that is
    computed, too, and an input that nobody has read before. `rows` may be 0: of any number."""
    net = Net()
    x, keep = net.builder.add_operand(FLOAT32, (rows, 4)), net.builder.add_operand(BOOL8, (rows,))
    beside = net.builder.add_operand(FLOAT32, (1, 4))
    net.inputs = [x, keep, beside]
    before = net.op("TANH", net.op("RELU6", x, shape=(rows, 4)), shape=(rows, 4))
    table = net.op("EXP", net.const(np.arange(4.0)), shape=(4,))
    picked = net.op("COMPRESS", before, keep, net.scalar(0), shape=OPEN)
    after = net.op("ADD", net.op("MUL", picked, table, net.scalar(0), shape=OPEN), beside, net.scalar(0), shape=OPEN)
    alone = net.op("LOGISTIC", before, shape=(rows, 4))
    net.model = net.finish(after, before, alone)
    return net


def given(rng: np.random.Generator, rows: int) -> list[np.ndarray]:
    return [rng.standard_normal((rows, 4)).astype(np.float32), rng.random(rows) < 0.5,
            rng.standard_normal((1, 4)).astype(np.float32)]


@pytest.mark.parametrize("rows", [6, 0])
def test_it_gives_what_numpy_gives(rows: int) -> None:
    """Of any number of rows, some of which have been met before."""
    rng, model = np.random.default_rng(0), picking(rows).model
    plain, native = (CompiledModel(model, backend=b, threads=2) for b in ("numpy", "native"))
    for count in (6, 6, 3, 6, 1) if rows == 0 else (6, 6):
        values = given(rng, count)
        for want, got in zip(plain.run(values), native.run(values), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert native.prepare({"input0": (6, 4), "input1": (6,)} if rows == 0 else None) is None


def engines(model: CompiledModel, values: list[np.ndarray]) -> list[tuple[str, list[str]]]:
    """Who does what, in the order of a run."""
    rows = model.profile(values).rows
    return [(engine, [n for r in group for n in r.work.operations])
            for engine, group in groupby(rows, lambda r: r.work.engine)]


def test_a_profile_tells_what_is_done_before() -> None:
    values = given(np.random.default_rng(0), 6)
    found = engines(CompiledModel(picking().model, backend="native"), values)
    assert [engine for engine, _ in found] == ["native", "numpy"] and found[1][1] == ["COMPRESS", "MUL", "ADD"]
    assert sorted(found[0][1]) == ["LOGISTIC", "RELU6", "TANH"]
    assert [engine for engine, _ in engines(CompiledModel(picking().model, backend="numpy"), values)] == ["numpy"]


def test_what_all_waits_is_numpys() -> None:
    net = Net()
    x, keep = net.input(np.ones((3, 2))), net.input(np.ones(3), BOOL8)
    y = net.op("RELU", net.op("COMPRESS", x, keep, net.scalar(0), shape=(0, 2)), shape=(0, 2))
    model = CompiledModel(net.finish(y), backend="native")
    assert engines(model, net.given) == [("numpy", ["COMPRESS", "RELU"])]


def test_what_is_wrong_is_told() -> None:
    """In the part before, and behind it."""
    for wrong in (0, 1):
        net, at = Net(), (9, 0) if wrong == 0 else (0, 9)
        rows = net.op("GATHER", net.input(np.ones((3, 2))), net.scalar(0), net.input(np.array(at[:1]), INT32),
                      shape=(1, 2))
        picked = net.op("COMPRESS", rows, net.input(np.ones(1), BOOL8), net.scalar(0), shape=(0, 2))
        y = net.op("GATHER", picked, net.scalar(0), net.input(np.array(at[1:]), INT32), shape=(1, 2))
        model = net.finish(y)
        said = [outcome(model, net.given, backend) for backend in ("numpy", "native")]
        assert said[0] == said[1] == f"NNX402 index 9 is not in [0, {(3, 1)[wrong]})"


def test_who_feeds_ever_new_sizes_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    rng, model = np.random.default_rng(0), CompiledModel(picking(0).model, backend="auto")
    for count in range(1, SETS + 3):
        values = given(rng, count)
        model.run(values)
        assert len(engines(model, values)) == (2 if count <= SETS else 1), count


def test_an_operation_that_draws_draws_each_time() -> None:
    net = Net()
    assert not host_twin(OPS["RANDOM_UNIFORM"]).pure
    drawn = net.op("RANDOM_UNIFORM", net.const([5], INT32), net.scalar(0), net.scalar(0), shape=(5,))
    y = net.op("COMPRESS", net.op("TANH", drawn, shape=(5,)), net.input(np.ones(5), BOOL8), net.scalar(0), shape=(0,))
    z = net.op("TANH", net.input(np.ones(3)), shape=(3,))
    model = CompiledModel(net.finish(y, z), backend="native")
    assert not np.array_equal(model.run(net.given)[0], model.run(net.given)[0])
