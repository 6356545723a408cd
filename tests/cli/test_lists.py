"""`nnx-convert run` with lists, None and the types that NumPy's files do not name."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from nnx_convert.arrays import taken_apart
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

node, F = helper.make_node, np.float32
TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE, OPTIONAL = helper.make_sequence_type_proto(TENSOR), helper.make_optional_type_proto(TENSOR)


def saved(path: Path, nodes: list[onnx.NodeProto], kinds: dict[str, Any], outputs: dict[str, Any]) -> str:
    """A model in a file."""
    ports = [[helper.make_value_info(n, t) for n, t in side.items()] for side in (kinds, outputs)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *ports), ir_version=10,
                                opset_imports=[helper.make_opsetid("", 21)]), path)
    return str(path)


def test_a_list_is_given_and_kept_by_its_elements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path / "m.onnx", [node("SequenceErase", ["s"], ["y"])], {"s": SEQUENCE}, {"y": SEQUENCE})
    np.savez(tmp_path / "i.npz", **{"s[0]": np.ones(2, F), "s[1]": np.zeros((1, 3), F), "s[2]": np.zeros(1, F)})
    args = ["run", file, "--inputs", str(tmp_path / "i.npz")]
    assert ended([*args, "--output", str(tmp_path / "o.npz")]) == ExitCode.GOOD
    said = capsys.readouterr().out
    assert "list of 3" in said and "y[0]" in said and "y[1]" in said
    with np.load(tmp_path / "o.npz") as found:
        assert {k: v.shape for k, v in found.items()} == {"y[0]": (2,), "y[1]": (1, 3)}
    assert ended([*args, "--expect", str(tmp_path / "o.npz"), "--report", "json"]) == ExitCode.GOOD


def test_nothing_given_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path / "m.onnx", [node("OptionalHasElement", ["o"], ["y"])], {"o": OPTIONAL},
                 {"y": helper.make_tensor_type_proto(TensorProto.BOOL, ())})
    np.savez(tmp_path / "i.npz", **{"o[0]": np.ones(2, F)})
    np.savez(tmp_path / "none.npz", other=np.ones(2, F))
    for name, want in (("i.npz", "bool []   1"), ("none.npz", "bool []   0")):
        assert ended(["run", file, "--inputs", str(tmp_path / name)]) == ExitCode.GOOD
        assert want in capsys.readouterr().out


def test_nothing_is_drawn_for_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path / "m.onnx", [node("SequenceErase", ["s"], ["y"])], {"s": SEQUENCE}, {"y": SEQUENCE})
    assert ended(["run", file, "--random", "1"]) != ExitCode.GOOD
    assert "nothing is drawn for it" in capsys.readouterr().err


def test_narrow_types_go_through_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = helper.make_tensor_type_proto(TensorProto.BFLOAT16, (3,))
    file = saved(tmp_path / "m.onnx", [node("Neg", ["x"], ["y"])], {"x": kind}, {"y": kind})
    np.save(tmp_path / "x.npy", np.array([1, -2, 3], F).astype(ml_dtypes.bfloat16).view("V2"))
    args = ["run", file, "--input", f"x={tmp_path / 'x.npy'}"]
    assert ended([*args, "--output", str(tmp_path / "o.npz")]) == ExitCode.GOOD
    assert "bfloat16 [3]   -1 2 -3" in capsys.readouterr().out
    assert ended([*args, "--expect", str(tmp_path / "o.npz")]) == ExitCode.GOOD
    assert ended(["run", file, "--random", "1", "--expect", str(tmp_path / "o.npz")]) == ExitCode.DIFFERENT


def test_dicts_and_lists_are_taken_apart() -> None:
    found = taken_apart("y", [{b"a": np.ones(1)}, {2: np.ones(2)}, None, [np.ones(3)]])
    assert {k: v.size for k, v in found.items()} == {"y[0][a]": 1, "y[1][2]": 2, "y[3][0]": 3}
