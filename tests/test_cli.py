"""The command, through its entry point: the screen, JSON, exit codes, files that are none."""
from __future__ import annotations

import json
import os
import pty
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_models import SAMPLES
from shared import SHARED

from nnx_convert import load
from nnx_convert.cli import entry
from nnx_convert.emit.facts import Facts
from nnx_convert.errors import ExitCode

ROOT = Path(__file__).resolve().parent.parent
DIGITS = str(ROOT / "models" / "digits_cnn_int8.tflite")
SPARSE = str(ROOT / "models" / "digits_sparse.tflite")
#: Seconds of work until the help is there.
HELP_SECONDS = 0.25


def nnx(*args: object, cwd: Path | None = None,
        env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command; what it says and how it ends."""
    return subprocess.run([sys.executable, "-m", "nnx_convert", *map(str, args)], capture_output=True, text=True,
                          cwd=cwd, env={**os.environ, **(env or {})}, timeout=120, check=False)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the sample models, some arrays, and files that are none."""
    for name, make in SAMPLES.items():
        make().save(tmp_path / f"{name}.nnx")
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    np.save(tmp_path / "wide.npy", np.ones((2, 5), np.float32))
    np.savez(tmp_path / "x.npz", in0=np.ones((2, 4), np.float32), out0=np.zeros((2, 4), np.float32))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "noise").write_bytes(np.random.default_rng(0).bytes(4096))
    (tmp_path / "cut.tflite").write_bytes(Path(DIGITS).read_bytes()[:5000])
    (tmp_path / "folder").mkdir()
    return tmp_path


def worked() -> float:
    """Seconds of processor time of all processes this one has started and awaited: others may keep it waiting."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_is_there_at_once() -> None:
    taken = []
    for _ in range(3):
        begun = worked()
        assert nnx("--help").returncode == ExitCode.GOOD
        taken.append(worked() - begun)
    assert statistics.median(taken) < HELP_SECONDS


@pytest.mark.parametrize("args", [(), ("convert",), ("run",)])
def test_help_says_the_exit_codes(args: tuple[str, ...]) -> None:
    said = nnx(*args, "--help").stdout
    assert all(f"  {int(code)}  " in said for code in ExitCode)
    assert "Usage: nnx-convert" in said


def test_the_console_script_is_the_same() -> None:
    script = Path(sys.executable).parent / "nnx-convert"
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == nnx("--version").stdout


def masked(text: str) -> str:
    """The text with `#` for every number and one space for many, so that a golden screen holds what it means."""
    text = re.sub(r"\d+(\.\d+)? [kM]?(?=(B|MAC)\b)|\d+\.\d+(e-?\d+)?", "#", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


SCREENS = {
    "dense": """\
dense.nnx NNX, #B # s
in input0 float32 [2,4]
out output0 float32 [2,4]
maps to NNAPI level 27
base FULLY_CONNECTED 2
size weights #B arena #B #MAC""",
    "per_channel": """\
per_channel.nnx NNX, #B, of TFLite v3, 1 operator, 2 sparse tensors # s
out y int8 [1,?,4,3] scale # zero 7
state Bild ☃ int8 [1,4,4,2] scale # zero -3 mean # std 2, #
about made up
entries sign, other (not in this model)
labels cat; dog
files a.txt
maps to NNAPI level 30
base CONV_2D 1
needs level 30: CONV_2D takes TENSOR_QUANT8_ASYMM_SIGNED from 30 (1 operation)
size weights #B arena #B #MAC
note op 0 CONV_2D: seen""",
    "sparse": """\
sparse.nnx NNX, #B # s
in input0 float32 [?,8]
out output0 float32 [?,8]
maps to NNAPI level 27 + DENSIFY
base ADD 1
DENSIFY 1 keeps #B of weights at #B
size weights #B #MAC""",
    "host": """\
host.nnx NNX, #B # s
in input0 float64 [3]
out output0 float64 [3]
maps to NNAPI level 27 + host
host COS 1 (op 3 COS): takes no TENSOR_FLOAT64
size weights #B #MAC""",
    "branch": """\
branch.nnx NNX, #B # s
in input0 bool [1]
in input1 float32 [2]
out output0 float32 [2]
maps to NNAPI level 30 + EX
base IF 1
EX NEG_EX 1
needs level 30: IF is there from 30 (1 operation)
size weights #B arena #B #MAC""",
}


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen(name: str, here: Path) -> None:
    done = nnx(f"{name}.nnx", cwd=here)
    assert (done.returncode, done.stderr) == (ExitCode.GOOD, "")
    got = re.sub(r" arena #B", "", masked(done.stdout)) if name == "host" else masked(done.stdout)
    assert got == SCREENS[name]


def test_a_conversion_writes_what_it_says(here: Path) -> None:
    done = nnx(DIGITS, cwd=here)
    assert (done.returncode, done.stderr) == (ExitCode.GOOD, "")
    assert re.search(r"^wrote +digits_cnn_int8\.nnx +\d+ kB$", done.stdout, re.M)
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert load(here / "digits_cnn_int8.nnx").level == 30
    again = nnx(DIGITS, "-o", "again.nnx", cwd=here)
    assert again.returncode == ExitCode.GOOD
    assert (here / "again.nnx").read_bytes() == (here / "digits_cnn_int8.nnx").read_bytes()


def test_options_reach_the_target(here: Path) -> None:
    facts = {tuple(options): json.loads(nnx(SPARSE, "-o", "o.nnx", "--report", "json", *options, cwd=here).stdout)
             for options in ([], ["--sparse", "fold"], ["--no-experimental"], ["--no-ex", "--target", "fl6"])}
    densify = {options: sum(f["operations"]["DENSIFY"].values()) for options, f in facts.items()}
    assert [bool(n) for n in densify.values()] == [True, False, False, True]
    assert facts[()]["output_bytes"] < facts[("--sparse", "fold")]["output_bytes"] / 2


def test_json_has_the_facts(here: Path) -> None:
    found = json.loads(nnx(DIGITS, "--report", "json", cwd=here).stdout)
    assert list(found) == [f.name for f in fields(Facts)]
    assert found["inputs"][0]["shape"] == [1, 8, 8, 1]
    assert found["macs"] > 100_000
    assert found["output_bytes"] == (here / found["output"]).stat().st_size


X = ("--input", "input0=x.npy")
#: Arguments, exit code, and what the line on stderr says.
FAULTS: dict[str, tuple[tuple[str, ...], ExitCode, str]] = {
    "nothing": ((), ExitCode.USAGE, "Missing argument 'MODEL'"),
    "unknown option": (("--nonsense", "m"), ExitCode.USAGE, "No such option"),
    "unknown level": (("m", "--target", "26"), ExitCode.USAGE, "26"),
    "bad shape": (("m", "--shape", "x=1,a"), ExitCode.USAGE, "NAME=1,224"),
    "bad input": (("run", "dense.nnx", "--input", "x"), ExitCode.USAGE, "NAME=x.npy"),
    "bad tolerance": (("run", "dense.nnx", "--atol", "-1"), ExitCode.USAGE, "-1"),
    "no folder": ((DIGITS, "-o", "no/such/o.nnx"), ExitCode.USAGE,
                  "no/such/o.nnx: cannot be written: No such file or directory (there is no folder "),
    "a folder": ((DIGITS, "-o", "folder"), ExitCode.USAGE, "folder: cannot be written: Is a directory"),
    "onto itself": (("cut.tflite", "-o", "./cut.tflite"), ExitCode.USAGE, "is the model itself"),
    "no golden output": (("run", "dense.nnx", *X, "--expect", "none.npz"), ExitCode.UNREADABLE, "none.npz"),
    "golden without": (("run", "dense.nnx", *X, "--expect", "other.npz"), ExitCode.USAGE, "output0"),
    "absent": (("absent.tflite",), ExitCode.UNREADABLE, "absent.tflite: cannot be read: No such file"),
    "directory": (("folder",), ExitCode.UNREADABLE, "folder: cannot be read: it is a folder"),
    "empty": (("empty",), ExitCode.UNREADABLE, "empty"),
    "noise": (("noise",), ExitCode.UNREADABLE, "noise"),
    "cut": (("cut.tflite",), ExitCode.UNREADABLE, "cut.tflite"),
    "run absent": (("run", "absent.nnx"), ExitCode.UNREADABLE, "absent.nnx: cannot be read"),
    "run noise": (("run", "noise"), ExitCode.UNREADABLE, "noise"),
    "broken array": (("run", "dense.nnx", "--input", "input0=noise"), ExitCode.UNREADABLE, "noise: cannot be read"),
    "broken archive": (("run", "dense.nnx", "--inputs", "x.npy"), ExitCode.UNREADABLE, "x.npy: holds one array"),
    "archive as array": (("run", "dense.nnx", "--input", "input0=x.npz"), ExitCode.UNREADABLE, "--inputs"),
    "missing input": (("run", "dense.nnx"), ExitCode.FAILED, "'input0' is missing"),
    "missing in archive": (("run", "dense.nnx", "--inputs", "other.npz"), ExitCode.FAILED, "other.npz holds z"),
    "converted already": (("dense.nnx", "--target", "27", "--strict"), ExitCode.USAGE,
                          "dense.nnx: is converted already and cannot follow --target, --strict"),
    "size of a model that has sizes": (("run", "dense.nnx", "--shape", "input0=7,7", "--random", "1"), ExitCode.USAGE,
                                       "dense.nnx: input 'input0' cannot have the shape [7, 7]"),
    "size of nothing": (("run", "dense.nnx", "--shape", "x=1", "--random", "1"), ExitCode.USAGE, "no input 'x'"),
    "unknown input": (("run", "dense.nnx", "--input", "z=x.npy", "--random", "1"), ExitCode.FAILED, "'z'"),
    "wrong shape": (("run", "dense.nnx", "--input", "input0=wide.npy"), ExitCode.FAILED, "shape"),
    "open size": (("run", "sparse.nnx", "--random", "1"), ExitCode.FAILED, "--shape input0="),
    "differs": (("run", "dense.nnx", "--inputs", "x.npz", "--expect", "x.npz"), ExitCode.DIFFERENT, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_and_a_code(fault: str, here: Path) -> None:
    np.savez(here / "other.npz", z=np.ones(3))
    args, code, said = FAULTS[fault]
    done = nnx(*args, cwd=here)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == (code != ExitCode.DIFFERENT)
    assert not done.stdout or code == ExitCode.DIFFERENT


def test_strict_refuses_what_the_device_does_not_take(here: Path) -> None:
    done = nnx(DIGITS, "--target", "27", "--strict", "-o", "strict.nnx", cwd=here)
    lax = json.loads(nnx(DIGITS, "--target", "27", "-o", "lax.nnx", "--report", "json", cwd=here).stdout)
    assert done.returncode == (ExitCode.UNSUPPORTED if lax["host"] else ExitCode.GOOD)
    assert (here / "strict.nnx").exists() == (not lax["host"])
    assert done.stderr.count("\n") == bool(lax["host"])


@pytest.mark.parametrize("model", ["cut.tflite", "noise", "absent"])
def test_a_conversion_that_fails_leaves_the_old_file(model: str, here: Path) -> None:
    (here / "old.nnx").write_bytes(b"old")
    before = sorted(os.listdir(here))
    assert nnx(model, "-o", "old.nnx", cwd=here).returncode == ExitCode.UNREADABLE
    assert (here / "old.nnx").read_bytes() == b"old"
    assert sorted(os.listdir(here)) == before


@pytest.mark.parametrize("path", [DIGITS, SPARSE], ids=lambda p: Path(p).stem)
def test_a_cut_file_is_one_line_and_code_3(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, cut = Path(path).read_bytes(), tmp_path / "cut.tflite"
    for end in range(0, len(data), len(data) // 60):
        cut.write_bytes(data[:end])
        assert entry.ended([str(cut), "-o", str(tmp_path / "o.nnx")]) == ExitCode.UNREADABLE
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "o.nnx").exists()


BAD_CASES = sorted(SHARED / "cases" / c["file"] for c in json.loads((SHARED / "cases" / "index.json").read_text())
                   if c["expect"] == "error") if SHARED else []


@pytest.mark.parametrize("path", BAD_CASES, ids=lambda p: p.stem)
def test_a_case_that_is_an_error_is_one(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = entry.ended(["run", str(path), "--random", "1"])
    said = capsys.readouterr()
    assert code in (ExitCode.UNREADABLE, ExitCode.FAILED)
    assert said.err.count("\n") == 1
    assert "internal error" not in said.err


def test_random_inputs_are_the_same_for_one_seed(here: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert nnx("run", "dense.nnx", "--random", seed, "--output", f"{name}.npz", cwd=here).returncode == 0
    a, b, c = ((here / f"{name}.npz").read_bytes() for name in "abc")
    assert a == b != c


def test_inputs_and_outputs_are_files(here: Path) -> None:
    done = nnx("run", "dense.nnx", *X, "--output", "out.npz", "--threads", 1, "--backend", "numpy", cwd=here)
    assert done.returncode == ExitCode.GOOD
    assert "from x.npy" in done.stdout
    with np.load(here / "out.npz") as out:
        assert out.files == ["output0"]
        assert out["output0"].shape == (2, 4)
    assert nnx("run", "dense.nnx", *X, "--expect", "out.npz", cwd=here).returncode == ExitCode.GOOD


def test_differences_are_counted(here: Path) -> None:
    nnx("run", "dense.nnx", *X, "--output", "out.npz", cwd=here)
    with np.load(here / "out.npz") as out:
        golden = out["output0"]
    golden[1, 2] += 3
    np.savez(here / "golden.npz", ref_out0=golden)
    args = ("run", "dense.nnx", *X, "--expect", "golden.npz", "--report", "json")
    done = nnx(*args, cwd=here)
    assert done.returncode == ExitCode.DIFFERENT
    found: dict[str, Any] = json.loads(done.stdout)
    difference, = found["differences"]
    assert (difference["key"], difference["differing"], difference["count"]) == ("ref_out0", 1, 8)
    assert (difference["first"], difference["largest"]) == ([1, 2], 3.0)
    assert not found["good"]
    assert nnx(*args, "--atol", 3, cwd=here).returncode == ExitCode.GOOD


def test_open_sizes_are_given(here: Path) -> None:
    done = nnx("run", "sparse.nnx", "--random", 1, "--shape", "input0=4,8", "--report", "json", cwd=here)
    assert done.returncode == ExitCode.GOOD
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [4, 8]


def on_terminal(*args: str, cwd: Path, **env: str) -> str:
    """What the command says where stdout is a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen([sys.executable, "-m", "nnx_convert", *args], stdout=theirs, cwd=cwd,
                            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **env})
    done.wait(60)
    os.close(theirs)
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return said


def test_colour_is_for_terminals_that_want_it(here: Path) -> None:
    assert "\x1b[" in on_terminal("dense.nnx", cwd=here, NO_COLOR="")
    assert "\x1b[" not in on_terminal("dense.nnx", cwd=here, NO_COLOR="1")
    assert "\x1b[" not in nnx("dense.nnx", cwd=here, env={"FORCE_COLOR": "1"}).stdout


def test_a_reader_that_has_gone_is_no_fault(here: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([sys.executable, "-m", "nnx_convert", "dense.nnx"], stdout=theirs, stderr=subprocess.PIPE,
                          cwd=here, text=True, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (ExitCode.GOOD, "")


@pytest.mark.parametrize(("raised", "code", "said"), [
    (KeyboardInterrupt(), entry.INTERRUPTED, "interrupted\n"),
    (MemoryError(), ExitCode.FAILED, "NNX402 out of memory\n"),
    (ZeroDivisionError("a\nb\x1b[2J"), ExitCode.FAILED,
     "internal error, please report it: ZeroDivisionError: a b\\x1b[2J (NNX_DEBUG=1 shows where)\n")])
def test_what_nobody_expects_is_one_line(raised: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*args: Any, **named: Any) -> None:
        raise raised
    monkeypatch.setattr(entry.commands, "main", fails)
    assert entry.ended([]) == code
    assert capsys.readouterr().err == said


def test_debugging_shows_the_traceback(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **named: Any) -> None:
        raise ZeroDivisionError
    monkeypatch.setattr(entry.commands, "main", fails)
    monkeypatch.setenv("NNX_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        entry.ended([])
