"""Properties that hold for every model: targets agree, saving, repeating, threads and shared storage change nothing."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_models import RandomModel, models
from tflite_writer import Array, TFLiteWriter, sparsify

import nnx_convert
from nnx_convert import Target
from nnx_convert.runtime import rim
from nnx_convert.runtime.plan import plan
from nnx_convert.runtime.runner import Compiled

DTYPES = ["float32", "int8", "uint8"]
TARGETS = [Target(27, ex=False, experimental=False), Target(29, ex=False), Target(29, experimental=False),
           Target(30, ex=False, experimental=False), Target(30, sparse="fold")]

CASES = settings(max_examples=30)


def outputs(model: RandomModel, target: Target = Target()) -> list[Array]:  # noqa: B008  (a frozen value)
    return nnx_convert.compile(nnx_convert.convert(model.data, target)).run(model.inputs)


def same(found: Sequence[Array], wanted: Sequence[Array]) -> bool:
    """Bit for bit, NaN included."""
    return [(a.dtype, a.shape, a.tobytes()) for a in found] == [(a.dtype, a.shape, a.tobytes()) for a in wanted]


@CASES
@given(models("float32"))
def test_targets_agree_on_float_models(model: RandomModel) -> None:
    wanted = outputs(model)
    for target in TARGETS:
        for a, b in zip(outputs(model, target), wanted, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=str(target))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@CASES
@given(data=st.data())
def test_targets_agree_on_quantised_models(dtype: str, data: st.DataObject) -> None:
    model = data.draw(models(dtype))
    wanted = outputs(model)
    for target in TARGETS:
        assert same(outputs(model, target), wanted), target


@pytest.mark.parametrize("target", [Target(), *TARGETS], ids=str)
def test_a_filter_pruned_to_nothing_is_zero(target: Target) -> None:
    writer = TFLiteWriter()
    sparsity, values = sparsify(np.zeros((4, 8), np.float32), (0, 1), "ds")
    x, stored, weight, y = (writer.tensor("x", "float32", (1, 8)),
                            writer.tensor("stored", "float32", (4, 8), values, sparsity=sparsity),
                            writer.tensor("weight", "float32", (4, 8)), writer.tensor("y", "float32", (1, 4)))
    writer.op("DENSIFY", [stored], [weight], "DensifyOptions")
    writer.op("FULLY_CONNECTED", [x, weight, -1], [y], "FullyConnectedOptions")
    model = RandomModel(writer.finish([x], [y]), (np.ones((1, 8), np.float32),), ())
    assert same(outputs(model, target), [np.zeros((1, 4), np.float32)])


@pytest.mark.parametrize("dtype", DTYPES)
@CASES
@given(data=st.data())
def test_a_saved_model_gives_the_same_bits(dtype: str, tmp_path_factory: pytest.TempPathFactory,
                                           data: st.DataObject) -> None:
    case = data.draw(models(dtype))
    model = nnx_convert.convert(case.data)
    path = tmp_path_factory.mktemp("saved") / "model.nnx"
    model.save(path)
    before, after = nnx_convert.compile(model), nnx_convert.compile(nnx_convert.load(path))
    assert same(after.run(case.inputs), before.run(case.inputs))


@pytest.mark.parametrize("dtype", DTYPES)
@CASES
@given(data=st.data())
def test_runs_repeat_also_in_threads_and_leave_the_inputs(dtype: str, data: st.DataObject) -> None:
    case = data.draw(models(dtype))
    compiled = nnx_convert.compile(case.data)
    given_inputs = [a.copy() for a in case.inputs]
    first = compiled.run(case.inputs)
    kept = [a.copy() for a in first]
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: compiled.run(case.inputs), range(4)))
    assert all(same(run, kept) for run in [first, *runs])
    assert same(case.inputs, given_inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@CASES
@given(data=st.data())
def test_shared_storage_changes_nothing(dtype: str, data: st.DataObject) -> None:
    case = data.draw(models(dtype))
    model = nnx_convert.convert(case.data)
    shared = nnx_convert.compile(model).prepare()
    assert shared is not None
    apart = Compiled(shared.program)
    apart.plan = plan(shared.program, share=False)
    arrays = rim.Doors(model).enter(case.inputs)
    assert same(shared.run(arrays), apart.run(arrays))
    assert shared.plan.size <= apart.plan.size


@pytest.mark.parametrize("name", ["LOGISTIC", "EXP"])
def test_compiling_ahead_warns_of_no_overflow(name: str) -> None:
    writer = TFLiteWriter()
    x = writer.tensor("x", "int8", (1, 8), scale=8.0, zero=0)
    y = writer.tensor("y", "int8", (1, 8), scale=1 / 256, zero=-128)
    writer.op(name, [x], [y])
    compiled = nnx_convert.compile(writer.finish([x], [y]))
    with warnings.catch_warnings(action="error"):
        compiled.prepare()
    found, = compiled.run([np.array([[-128, -1, 0, 1, 2, 3, 64, 127]], np.int8)])
    assert found[0, 0] == -128 and found[0, -1] == 127
