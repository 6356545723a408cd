"""What a file holds: as the file says it, and the same of the model that it becomes."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nnx_convert as nnx
from nnx_convert.artifact import to_bytes
from nnx_convert.inspection import inspect
from nnx_convert.types import ChannelQuant, Quant

MODELS = Path(__file__).parent.parent / "models"
FILES = sorted(p for p in MODELS.iterdir() if p.suffix in (".tflite", ".onnx"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_all_of_a_file_is_there(path: Path) -> None:
    found = inspect(path)
    made = {n for o in found.operations for n in o.outputs}
    read = {n for o in found.operations for n in o.inputs}
    names = {t.name: t for t in found.tensors}
    assert made | read == set(names) and found.bytes == path.stat().st_size
    assert {t.name for t in found.tensors if t.role in ("input", "constant")} == read - made
    assert found.macs == sum(o.macs or 0 for o in found.operations) > 100_000
    assert all(o.origin and o.source for o in found.operations)
    assert all(t.bytes == int(np.prod(t.shape)) * np.dtype(t.dtype).itemsize
               for t in nnx.compile(path).inputs for t in [Spec(names[t.name], t.dtype)])


class Spec:
    """An input's row with NumPy's type."""

    def __init__(self, row: object, dtype: object) -> None:
        self.bytes, self.shape, self.dtype = row.bytes, row.shape, dtype  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_converted_model_has_the_same_work(path: Path) -> None:
    source, model = inspect(path), inspect(to_bytes(nnx.convert(path)))
    assert model.macs == source.macs and model.format == "nnx"
    assert {t.name for t in model.tensors if t.role == "input"} == {t.name for t in source.tensors if t.role == "input"}
    assert model.memory is not None and source.memory is not None


def test_sparse_levels() -> None:
    kept = {t.name: t.sparsity for t in inspect(MODELS / "digits_sparse.tflite").constants if t.sparsity}
    sparse = {n: s for n, s in kept.items() if s.levels}
    assert len(sparse) == 3 and all(0 < s.density < 0.5 and s.stored < s.dense for s in sparse.values())
    for s in sparse.values():
        assert np.isclose(np.prod([v.density for v in s.levels]), s.density, rtol=0.05)     # blocks have zeros, too
        assert {v.block for v in s.levels} == {True, False}


def test_grids() -> None:
    found = inspect(MODELS / "digits_cnn_int8.tflite")
    channels = [t for t in found.constants if isinstance(t.quant, ChannelQuant)]
    assert channels and all(t.shape and t.shape[t.quant.axis] == len(t.quant.scales) for t in channels
                            if isinstance(t.quant, ChannelQuant))
    assert any(isinstance(t.quant, Quant) for t in found.tensors)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_memory_over_time(path: Path) -> None:
    """The most in use is no more than the arena, and every block lies in it."""
    memory = inspect(path).memory
    assert memory is not None and len(memory.live) == len(memory.steps) > 5
    assert 0 < max(memory.live) <= memory.arena
    assert all(0 <= b.offset and b.offset + b.bytes <= memory.arena and -1 <= b.first <= b.last
               for b in memory.stretches)


def test_open_sizes_are_told_and_measured_as_1() -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4]) for n in "xy")
    w = helper.make_tensor("w", TensorProto.FLOAT, (4, 4), np.ones(16))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    found = inspect(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    row = next(t for t in found.tensors if t.name == "x")
    assert found.at_1 and found.macs == 16 and row.shape == (None, 4) and row.bytes is None
    assert onnx.__version__


def test_faults_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"abc")
    with pytest.raises(nnx.FormatError, match=r"m\.tflite"):
        inspect(tmp_path / "m.tflite")
