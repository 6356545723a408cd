"""The fixture `nnx_model`, in a test session of its own."""
from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nnx_convert.ci import plugin

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
FLOAT, INT8 = (str(ROOT / "models" / f"digits_cnn{n}.tflite") for n in ("", "_int8"))
TESTS = f"""
import numpy as np
import pytest
from nnx_convert import InputError, Target

def test_good(nnx_model):
    model = nnx_model("digits.tflite")
    assert model.check("fl7", fail_on="host").host == 0
    assert model.check(Target(29)).level == 27
    assert model.inspect().operations and model.inspect().macs > 0
    first = model.run(random=4)
    again = model.run({{"image": np.zeros((1, 8, 8, 1), np.float32)}})
    assert first["probabilities"].shape == again["probabilities"].shape == (1, 10)
    assert np.array_equal(again["probabilities"], model.run([np.zeros((1, 8, 8, 1), np.float32)])["probabilities"])
    np.savez("golden.npz", out0=first["probabilities"])
    assert model.verify("golden.npz", random=4).good

def test_level(nnx_model):
    nnx_model({INT8!r}).check(28, fail_on="host,partitions>1")

def test_numbers(nnx_model, tmp_path):
    np.savez(tmp_path / "golden.npz", out0=np.zeros((1, 10), np.float32))
    nnx_model({FLOAT!r}).verify(tmp_path / "golden.npz", random=4)

def test_missing(nnx_model):
    nnx_model("gone.tflite").inspect()

def test_inputs(nnx_model):
    with pytest.raises(InputError):
        nnx_model({FLOAT!r}).run({{"picture": np.zeros(3)}})
    with pytest.raises(InputError):
        nnx_model({FLOAT!r}).run([1, 2])
"""


def test_the_entry_point_is_the_plugin() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {plugin.__name__: plugin.__name__}


def test_what_it_says(pytester: pytest.Pytester) -> None:
    (pytester.path / "digits.tflite").write_bytes(Path(FLOAT).read_bytes())
    pytester.makepyfile(TESTS)
    found = pytester.runpytest("-p", plugin.__name__, "-p", "no:xdist")
    found.assert_outcomes(passed=2, failed=3)
    found.stdout.fnmatch_lines([
        "*AssertionError: digits_cnn_int8.tflite for level 28*: host, partitions>1; CONV_2D 3 *change: --target 29",
        "*AssertionError: digits_cnn.tflite beside golden.npz: probabilities: * of 10 differ, off by *",
        "*FormatError: *gone.tflite: cannot be read: No such file or directory"])


def test_it_is_light(pytester: pytest.Pytester) -> None:
    """It is loaded wherever pytest runs beside this package."""
    found = pytester.runpython_c(
        "import sys, nnx_convert.ci.plugin; print({'numpy', 'onnx', 'click'} & {*sys.modules})")
    found.stdout.fnmatch_lines(["set()"])
