"""The committed models do what models/README.md says of them."""
from __future__ import annotations

import re
from pathlib import Path

import evaluate
import numpy as np
import onnx
import pytest
import tflite
from evaluate import HERE, held_out, run

import nnx_convert

ROW = re.compile(r"^\| (\S+\.(?:tflite|onnx)) \| ([\d,]+) \| ([\d.]+%) \|", re.MULTILINE)


def rows(page: Path) -> dict[str, tuple[int, str]]:
    """Size and accuracy of each model as a page states them."""
    return {name: (int(size.replace(",", "")), accuracy)
            for name, size, accuracy in ROW.findall(page.read_text(encoding="utf-8"))}


ROWS = rows(HERE / "README.md")


def test_every_model_has_a_row() -> None:
    assert set(ROWS) == {path.name for path in HERE.iterdir() if path.suffix in (".tflite", ".onnx")}
    assert rows(HERE.parent / "README.md") == ROWS


@pytest.mark.parametrize("name", sorted(ROWS))
def test_size_and_accuracy_are_what_the_readme_states(name: str) -> None:
    size, accuracy = ROWS[name]
    assert (HERE / name).stat().st_size == size
    assert f"{evaluate.accuracy(HERE / name):.2%}" == accuracy


def test_both_formats_give_the_same_answers() -> None:
    images, _ = held_out()
    answers = [run(HERE / name, images) for name in ("digits_cnn.tflite", "digits_cnn.onnx")]
    np.testing.assert_allclose(*answers, rtol=0, atol=2e-6)


def test_int8_probabilities_are_close_to_the_float_models() -> None:
    images, _ = held_out()
    exact = run(HERE / "digits_cnn.tflite", images)
    codes = run(HERE / "digits_cnn_int8.tflite", images)
    assert codes.dtype == np.int8
    probabilities = (codes.astype(np.float64) + 128) / 256
    assert np.abs(probabilities - exact).mean() < 0.01
    assert (probabilities.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.99


def test_the_sparse_file_is_smaller_than_its_weights_would_be() -> None:
    data = (HERE / "digits_sparse.tflite").read_bytes()
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    tensors = [graph.Tensors(i) for i in range(graph.TensorsLength())]
    sparse = [int(np.prod(t.ShapeAsNumpy())) for t in tensors if t.Sparsity() is not None]
    assert len(sparse) == 3
    assert len(data) < sum(sparse) * np.dtype(np.float32).itemsize / 4


def test_the_sparse_model_keeps_its_compression_when_saved(tmp_path: Path) -> None:
    saved = tmp_path / "digits.nnx"
    nnx_convert.convert(HERE / "digits_sparse.tflite").save(saved)
    image = held_out()[0][:1]
    before, = nnx_convert.compile(HERE / "digits_sparse.tflite").run([image])
    after, = nnx_convert.compile(nnx_convert.load(saved)).run([image])
    assert np.array_equal(before, after)
    assert saved.stat().st_size < 2 * ROWS["digits_sparse.tflite"][0]


def test_the_onnx_file_has_the_weights_of_the_tflite_file() -> None:
    model = onnx.load(HERE / "digits_cnn.onnx")
    onnx.checker.check_model(model, full_check=True)
    written = sorted(np.sort(onnx.numpy_helper.to_array(t).ravel()).tobytes() for t in model.graph.initializer)
    file = tflite.Model.GetRootAs((HERE / "digits_cnn.tflite").read_bytes(), 0)
    graph = file.Subgraphs(0)
    tensors = [graph.Tensors(i) for i in range(graph.TensorsLength())]
    constants = [file.Buffers(t.Buffer()) for t in tensors if t.Type() == tflite.TensorType.FLOAT32 and t.Buffer()]
    assert written == sorted(np.sort(c.DataAsNumpy().view(np.float32)).tobytes() for c in constants)
