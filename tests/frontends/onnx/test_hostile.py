"""ONNX files that ask for what cannot be, by the command: a survey by hand found each (docs/reliability.md)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_node import model
from onnx import ModelProto, TensorProto, TypeProto, helper, numpy_helper

from nnx_convert.cli import entry


LEAST = -1 << 63


def on_x(op: str, *constants: Any, sizes: tuple[int, ...] = (2, 3), opset: int = 21, **attributes: Any) -> ModelProto:
    """One node on x of these sizes and constants, which gives y."""
    names = [f"c{i}" for i in range(len(constants))]
    tensors = [numpy_helper.from_array(np.asarray(c), n) for c, n in zip(constants, names, strict=True)]
    return model([helper.make_node(op, ["x", *names], ["y"], **attributes)], [("x", TensorProto.FLOAT, sizes)],
                 [("y", TypeProto())], opset, initializer=tensors)


#: Files, the exit code of `check` and of `run`, and what either says.
CASES: dict[str, tuple[ModelProto, int, str]] = {
    "more axes than an array has": (on_x("Expand", np.ones(100, np.int64), sizes=(1,)), 3,
                                    "op 0 Expand: RESHAPE: output 0 would have 100 axes, 32 at most"),
    "more axes by a reshape": (on_x("Reshape", np.ones(65, np.int64), sizes=(1,)), 3, "would have 65 axes"),
    "the least number of elements around": (on_x("Pad", np.array([LEAST, 0, LEAST, 0])), 0, ""),
    "a matrix of texts": (on_x("EyeLike", dtype=TensorProto.STRING), 3,
                          "op 0 EyeLike: does not give TENSOR_STRING"),
    "one update for several elements": (
        on_x("ScatterND", np.zeros((2, 1), np.int64), np.ones(1, np.float32), sizes=(4, 4)), 3,
        "updates have the shape of the elements picked"),
    "more sizes than parts": (on_x("Split", np.ones(2, np.int64), sizes=(2,)), 3, "has 1 outputs, and 2 sizes"),
    "cells beyond count, blurred into none": (
        on_x("Resize", np.zeros(0, np.float32), np.array([1, 1, 1e-9, 1e-9], np.float32), sizes=(1, 1, 4, 4),
             mode="cubic", antialias=1), 5, "what counts for a place needs"),
    "draws of texts": (on_x("Bernoulli", dtype=TensorProto.STRING), 3, "op 0 Bernoulli: does not give TENSOR_STRING"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:
    made, code, said = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(made.SerializeToString())
    for command in (["check", "m.onnx"], ["run", "m.onnx", "--random", "1"],
                    ["run", "m.onnx", "--random", "1", "--backend", "numpy"]):
        assert entry.ended(command) == code
        err = capsys.readouterr().err
        assert said in err and err.count("\n") == (code != 0)


def test_texts_that_are_no_utf8_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    filled = numpy_helper.from_array(np.array([b"\xff\xfe"], object), "t")
    made = model([helper.make_node("ConstantOfShape", ["s"], ["y"], value=filled)], [("s", TensorProto.INT64, [1])],
                 [("y", TypeProto())])
    Path("m.onnx").write_bytes(made.SerializeToString())
    assert entry.ended(["m.onnx"]) == 0
    assert entry.ended(["verify", "m.onnx", "--against", "m.nnx"]) == 0
    assert not capsys.readouterr().err


def test_maps_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                           capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    made = model([node], [("x", TensorProto.FLOAT, [3, 2])], [("y", TypeProto())])
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    Path("m.onnx").write_bytes(made.SerializeToString())
    assert entry.ended(["m.onnx"]) == 0
    assert entry.ended(["verify", "m.onnx", "--against", "m.nnx"]) == 0
    assert not capsys.readouterr().err
