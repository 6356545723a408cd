"""Two files side by side."""
from __future__ import annotations

from pathlib import Path

import pytest

import nnx_convert as nnx
from nnx_convert.artifact import to_bytes
from nnx_convert.comparison import Figure, compare
from nnx_convert.inspection import inspect

MODELS = Path(__file__).parent.parent / "models"
FILES = sorted(p for p in MODELS.iterdir() if p.suffix in (".tflite", ".onnx"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_file_equals_itself_and_differs_from_others(path: Path) -> None:
    own = inspect(path)
    assert compare(own, inspect(path)).equal
    assert not any(compare(own, inspect(other)).equal for other in FILES if other != path)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_what_a_file_becomes_is_what_it_is_compared_as(path: Path) -> None:
    found = compare(inspect(path), inspect(to_bytes(nnx.convert(path, nnx.Target(8)))))
    assert not (found.ops or found.dtypes or found.shapes or found.scales)
    assert not any(f.changed for n, f in found.figures.items() if n != "size")


def test_quantisation_shows_in_types_and_scales() -> None:
    found = compare(inspect(MODELS / "digits_cnn.tflite"), inspect(MODELS / "digits_cnn_int8.tflite"))
    types = {c.of: (c.before, c.after) for c in found.dtypes}
    assert types["image"] == ("TENSOR_FLOAT32", "TENSOR_QUANT8_ASYMM_SIGNED") and not found.ops
    assert any(c.of == "image" and c.before == "" for c in found.scales)
    assert found.figures["size"].growth is not None and found.figures["size"].growth < -0.5


def test_sparsity_shows_in_the_density() -> None:
    found = compare(inspect(MODELS / "digits_cnn.tflite"), inspect(MODELS / "digits_sparse.tflite"))
    density = found.figures["density"]
    assert density.before is not None and density.after is not None and density.after < 0.2 < density.before


def test_operations_of_converted_files_are_called_as_the_table_does() -> None:
    sparse = MODELS / "digits_sparse.tflite"
    kept, folded = (inspect(to_bytes(nnx.convert(sparse, nnx.Target(sparse=way)))) for way in ("keep", "fold"))
    assert [(c.of, c.before, c.after) for c in compare(kept, folded).ops] == [("DENSIFY", "3", "0")]


@pytest.mark.parametrize(("before", "after", "growth"), [
    (100, 105, 0.05), (100, 100, 0.0), (0, 0, 0.0), (0, 5, None), (None, 5, None), (5, None, None), (200, 50, -0.75)])
def test_growth(before: float | None, after: float | None, growth: float | None) -> None:
    assert Figure(before, after).growth == growth
