"""Operators that library users bring along: imported, run, saved and loaded; what is said of unknown ones."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert import ArtifactError, FormatError, RunError, Unsupported
from nnx_convert.ops.custom import CUSTOM_OPS
from nnx_convert.types import F32, Tensor

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    before = dict(CUSTOM_OPS)
    yield
    CUSTOM_OPS.clear()
    CUSTOM_OPS.update(before)


def model(name: str = "Sums", options: bytes = b"\x02", outputs: int = 1) -> bytes:
    """relu(custom(x)), x [2, 3] -> [3]."""
    w = TFLiteWriter()
    x, z = w.tensor("x", "float32", (2, 3)), w.tensor("z", "float32", (3,))
    ys = [w.tensor(f"y{i}", "float32", (3,)) for i in range(outputs)]
    w.custom(name, [x], ys, options)
    w.op("RELU", [ys[0]], [z])
    return w.finish([x], [z])


def scaled_sums(options: bytes, x: Any) -> Any:
    """The sums of the columns, times the first byte of the options."""
    return x.sum(0) * np.float32(options[0] if options else 1)


def columns(options: bytes, x: Tensor) -> Tensor:
    """One number per column."""
    return x.like(x.shape[1:])


def test_a_registered_operator_runs_is_saved_and_loaded(tmp_path: Path) -> None:
    nnx_convert.register_custom_op("Sums", columns, scaled_sums)
    made = nnx_convert.convert(model())
    made.save(tmp_path / "m.nnx")
    for m in (made, nnx_convert.load(tmp_path / "m.nnx")):
        np.testing.assert_array_equal(nnx_convert.compile(m).run([X])[0], X.sum(0) * 2)
    CUSTOM_OPS.clear()
    with pytest.raises(ArtifactError, match=r"'Sums' is not registered.*register_custom_op"):
        nnx_convert.load(tmp_path / "m.nnx")


def test_options_may_be_absent() -> None:
    nnx_convert.register_custom_op("Sums", columns, scaled_sums)
    np.testing.assert_array_equal(nnx_convert.compile(nnx_convert.convert(model(options=b""))).run([X])[0], X.sum(0))


def test_a_users_operator_comes_before_one_that_is_known_here() -> None:
    nnx_convert.register_custom_op("SignalEnergy", columns, scaled_sums)
    found = nnx_convert.compile(nnx_convert.convert(model("SignalEnergy"))).run([X])
    np.testing.assert_array_equal(found[0], X.sum(0) * 2)


@pytest.mark.parametrize(("name", "says"), [
    ("fake-op-double", "custom operator 'fake-op-double' is not known here .nnx_convert.register_custom_op"),
    ("FlexDouble", "FlexDouble is TensorFlow's own")])
def test_what_nobody_registered_is_named(name: str, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        nnx_convert.convert(model(name))


def broken(*_: Any) -> Any:
    """A function with a fault."""
    raise TypeError("no such thing")


INFER: list[tuple[Callable[..., Any], int, str]] = [
    (broken, 1, "infer function raises TypeError: no such thing"), (columns, 2, "has 2 outputs, its infer .* gives 1"),
    (lambda options, x: x.like((4,)), 1, r"gives TENSOR_FLOAT32\[4\]")]


@pytest.mark.parametrize(("infer", "outputs", "says"), INFER)
def test_a_faulty_infer_function_is_said(infer: Callable[..., Any], outputs: int, says: str) -> None:
    nnx_convert.register_custom_op("Sums", infer, scaled_sums)
    with pytest.raises(FormatError, match=says):
        nnx_convert.convert(model(outputs=outputs))


def written(options: bytes, x: Any) -> Any:
    """A kernel that changes its input."""
    x[0] = 0
    return x[0]


KERNELS: list[tuple[Callable[..., Any], str]] = [
    (broken, "kernel raises TypeError"), (written, "kernel raises ValueError"),
    (lambda options, x: x.sum(0, dtype=np.float64), "gives float64, not float32"),
    (lambda options, x: x, r"shape \[2, 3\], the model says \[3\]"),
    (lambda options, x: [x[0], x[0]], "gives float32, float32, not float32")]


@pytest.mark.parametrize(("kernel", "says"), KERNELS)
def test_a_faulty_kernel_is_said(kernel: Callable[..., Any], says: str) -> None:
    nnx_convert.register_custom_op("Sums", columns, kernel)
    with pytest.raises(RunError, match=says):
        nnx_convert.compile(nnx_convert.convert(model())).run([X])


def test_sizes_may_follow_from_values() -> None:
    nnx_convert.register_custom_op("Kept", lambda options, x: Tensor(F32, None), lambda options, x: x[x > 0])
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (4,)), w.tensor("y", "float32", (1,), signature=(-1,))
    w.custom("Kept", [x], [y])
    found = nnx_convert.compile(nnx_convert.convert(w.finish([x], [y]))).run([np.array([1, -1, 2, 0], np.float32)])
    assert found[0].tolist() == [1, 2]


def of_onnx(domain: str = "com.acme", element: int = TensorProto.FLOAT, shape: Sequence[Any] = (1, 2, 4, 4)) -> bytes:
    """relu(Scaled(conv(x), axis=1 of it)), an operator of somebody's own between two that are turned."""
    rng = np.random.default_rng(0)
    x, y = (helper.make_tensor_value_info(n, element, shape) for n in "xy")
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("Scaled", ["a", ""], ["b"], domain=domain, by=3.0),
             helper.make_node("MaxPool", ["b"], ["y"], kernel_shape=[1, 1])]
    weights = numpy_helper.from_array(rng.standard_normal((2, 2, 1, 1)).astype(np.float32), "w")
    graph = helper.make_graph(nodes, "g", [x], [y], [weights])
    made: bytes = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]).SerializeToString()
    return made


def by_channel(options: bytes, x: Any, left_out: Any) -> Any:
    """Times `by`, and the number of the channel: in the file's own order of axes these are axis 1."""
    assert left_out is None
    by, = onnx.NodeProto.FromString(options).attribute
    return x * np.float32(by.f) * np.arange(1, x.shape[1] + 1, dtype=np.float32)[:, None, None]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("shape", [(1, 2, 4, 4), ("n", 2, 4, 4)])
def test_an_operator_of_an_onnx_domain(shape: Sequence[Any], backend: str, tmp_path: Path) -> None:
    nnx_convert.register_custom_op("com.acme.Scaled", lambda options, x, left_out: x, by_channel)
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 4)).astype(np.float32)
    w = numpy_helper.to_array(onnx.load_from_string(of_onnx()).graph.initializer[0])[:, :, 0, 0]
    want = np.einsum("oc,nchw->nohw", w, x) * 3 * np.array([1, 2], np.float32)[:, None, None]
    made = nnx_convert.convert(of_onnx(shape=shape))
    made.save(tmp_path / "m.nnx")
    for m in (made, nnx_convert.load(tmp_path / "m.nnx")):
        np.testing.assert_allclose(nnx_convert.compile(m, backend=backend).run([x])[0], want, 1e-5, 1e-6)
    assert [s.name for s in made if s.op.host] == ["CUSTOM"]


def test_a_users_operator_comes_before_the_standards() -> None:
    w = helper.make_tensor_value_info("x", TensorProto.INT64, (3,))
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [w],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, (3,))])
    data = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    big = np.array([1, -2, 1 << 40])
    assert nnx_convert.compile(data).run([big])[0].tolist() == [-1, 2, -(1 << 40)]
    nnx_convert.register_custom_op("ai.onnx.Neg", lambda options, x: x, lambda options, x: x + 1)
    assert nnx_convert.compile(nnx_convert.convert(data)).run([big])[0].tolist() == [2, -1, (1 << 40) + 1]


def test_what_nobody_registered_of_a_domain_is_named() -> None:
    with pytest.raises(Unsupported, match=r"op 1 Scaled.*'com.acme'.*register_custom_op\('com.acme.Scaled', ...\)"):
        nnx_convert.convert(of_onnx())
