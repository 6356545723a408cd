"""A run by an entry point: inputs, outputs and answers have the names its signature gives them."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sample_files import two_entries

from nnx_convert import convert
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

X = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of two entry points, double [1, 2] and negate [?, 2], and what they were converted to."""
    (tmp_path / "m.tflite").write_bytes(two_entries())
    convert(tmp_path / "m.tflite", signature="negate").save(tmp_path / "negate.nnx")
    np.savez(tmp_path / "in.npz", a=X)
    np.savez(tmp_path / "row.npz", a=X[:1])
    np.savez(tmp_path / "port.npz", p=X)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("file", "signature", "inputs", "want"), [
    ("m.tflite", "double", "row.npz", X[:1] * 2), ("m.tflite", "negate", "in.npz", -X),
    ("m.tflite", "negate", "row.npz", -X[:1]), ("negate.nnx", "negate", "in.npz", -X)])
def test_a_signature_is_run_by_its_name(file: str, signature: str, inputs: str, want: np.ndarray, here: Path) -> None:
    assert ended(["run", file, "--signature", signature, "--inputs", inputs, "--output", "o.npz"]) == ExitCode.GOOD
    with np.load(here / "o.npz") as found:
        assert found.files == ["b"] and np.array_equal(found["b"], want)


def test_sizes_that_are_drawn_have_the_names_of_the_file(here: Path) -> None:
    assert ended(["run", "m.tflite", "--signature", "negate", "--random", "1", "--shape", "p=5,2",
                  "--output", "o.npz"]) == ExitCode.GOOD
    with np.load(here / "o.npz") as found:
        assert found["b"].shape == (5, 2)


@pytest.mark.parametrize(("args", "code", "says"), [
    (["m.tflite", "--signature", "third", "--random", "1"], ExitCode.USAGE, "there is no signature 'third'"),
    (["negate.nnx", "--signature", "double", "--random", "1"], ExitCode.USAGE, "the model has no signature 'double'"),
    (["missing", "--signature", "double"], ExitCode.UNREADABLE, "cannot be read"),
    (["m.tflite", "--signature", "negate", "--inputs", "port.npz"], ExitCode.FAILED, "missing")])
def test_a_signature_that_does_not_fit_is_one_line(args: list[str], code: ExitCode, says: str, here: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["run", *args]) == code
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_without_native_code_a_line_on_stderr_says_so(here: Path) -> None:
    code = "import sys; sys.modules['llvmlite'] = None; from nnx_convert.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, "run", "negate.nnx", "--random", "1", "--shape", "p=1,2"],
                          capture_output=True, text=True, env=os.environ | {"NNX_BACKEND": ""}, check=False)
    assert (done.returncode, done.stderr) == (
        ExitCode.GOOD, "models run in NumPy, many times slower than natively: there is no llvmlite\n"), done.stdout
