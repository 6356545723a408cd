"""Signals amid everything: the command ends at once, with the shell's code, one line, and no half-written file."""
from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from faulty import ROOT, Child, Host, heard

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op
from nnx_convert.cli import stopping

MODEL = str(ROOT / "models" / "digits_cnn_int8.tflite")
#: Processor seconds from a signal to the end: those of two threads in `stopping.GRACE`, and as many again.
MOST = 4 * stopping.GRACE
LONG = "../long.nnx"
SIDE, PRODUCTS = 3072, 6


def products(side: int, count: int) -> Model:
    """Products of square matrices, one after the other: of large ones many seconds of a processor without Python."""
    b = ModelBuilder()
    x, adjoint = b.add_operand(T.TENSOR_FLOAT32, (side, side)), b.add_operand(T.BOOL)
    b.set_operand_value(adjoint, False)
    now = x
    for _ in range(count):
        y = b.add_operand(T.TENSOR_FLOAT32, (side, side))
        b.add_operation(Op.BATCH_MATMUL, [now, x, adjoint, adjoint], [y])
        now = y
    b.identify_inputs_and_outputs([x], [now])
    return b.finish()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The current folder of a command, with a model beside it that takes long."""
    products(SIDE, PRODUCTS).save(tmp_path / "long.nnx")
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


#: What the command is at, and the function where it is that.
MOMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "lowering": ((MODEL, "-o", "out.nnx"), "nnx_convert.lowering.pipeline:lower"),
    "writing": ((MODEL, "-o", "out.nnx"), "os:fsync"),
    "compiling": (("run", MODEL, "--random", "1", "--backend", "native", "--output", "out.npz"),
                  "nnx_convert.runtime.codegen.objects:_emitted"),
    "a run in NumPy": (("run", LONG, "--random", "1", "--backend", "numpy", "--threads", "1", "--output",
                        "out.npz"), "nnx_convert.runtime.runner:Compiled.run"),
    "a native run": (("run", LONG, "--random", "1", "--backend", "native", "--threads", "1", "--output",
                      "out.npz"), "nnx_convert.runtime.codegen.ready:Frame.go"),
    "a native run on threads": (("run", LONG, "--random", "1", "--backend", "native", "--threads", "2"),
                                "nnx_convert.runtime.codegen.ready:Frame.go"),
    "runs that are timed": (("bench", LONG, "--backend", "native", "--threads", "1"),
                            "nnx_convert.runtime.codegen.ready:Frame.go"),
}


def begun(moment: str, host: Host, here: Path, mark: Path, slow: float = 0.0) -> Child:
    """The command, at that moment."""
    args, where = MOMENTS[moment]
    child = host.begun(*args, cwd=here, marked=(where, str(mark), slow))
    child.reached(mark)
    return child


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_ends_it(moment: str, host: Host, here: Path, tmp_path: Path) -> None:
    slow = 60.0 if moment in ("lowering", "writing") else 0.0         # else it may have ended before the signal
    found = begun(moment, host, here, tmp_path / "mark", slow).ended(signal.SIGINT)
    assert (found.code, found.line) == (128 + signal.SIGINT, "interrupted")
    assert found.seconds < MOST
    assert os.listdir(here) == []


@pytest.mark.parametrize(("name", "said"), [*stopping.SAID.items()])
@pytest.mark.parametrize("moment", ["writing", "a native run"])
def test_each_signal_has_its_code(moment: str, name: str, said: str, host: Host, here: Path, tmp_path: Path) -> None:
    number = signal.Signals[name]
    found = begun(moment, host, here, tmp_path / "mark", 60.0 if moment == "writing" else 0.0).ended(number)
    assert (found.code, found.line) == (128 + number, said)
    assert os.listdir(here) == []


def test_what_was_to_be_ignored_is(host: Host, here: Path, tmp_path: Path) -> None:
    child = host.begun("run", MODEL, "--random", "1", cwd=here, ignored=("SIGINT", "SIGHUP"),
                       marked=("nnx_convert.runtime.runner:Compiled.run", str(tmp_path / "mark"), 0.2))
    child.reached(tmp_path / "mark")
    for n in (signal.SIGINT, signal.SIGHUP):
        os.kill(child.pid, n)
    found = child.ended()
    assert (found.code, found.said) == (0, "")


def alone() -> None:
    """A process with a session of its own, which hears signals."""
    os.setsid()
    heard()


CI = """
[models.long]
path = "{path}"
verify = [{{ against = "{path}", random = 1 }}]
"""


@pytest.mark.parametrize("whole", [False, True], ids=["the command", "its process group"])
def test_an_interrupt_ends_the_workers_of_ci(whole: bool, here: Path) -> None:
    (here / "nnx.toml").write_text(CI.format(path=here / LONG))
    process = subprocess.Popen(
        [sys.executable, "-m", "nnx_convert", "ci", "nnx.toml", "--junit", "out.xml"], text=True, cwd=here,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=alone)  # noqa: PLW1509  (no threads here)
    while len(group(process.pid)) < 4 and process.poll() is None:        # it, a server, a tracker and the worker
        time.sleep(0.02)
    (os.killpg if whole else os.kill)(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (128 + signal.SIGINT, "", "interrupted\n")
    end = time.monotonic() + 5                   # Python's tracker ends when it sees that all others have
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not group(process.pid) and os.listdir(here) == ["nnx.toml"]


def group(leader: int) -> list[Any]:
    """The processes of a group, but those that have ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.parametrize(("threads", "code", "said"), [
    ("1", 0, ""), ("2", 5, "NNX402 the system starts no more threads (--threads 1 needs none)\n")])
def test_threads_that_cannot_be_started_are_one_line(threads: str, code: int, said: str, host: Host, here: Path
                                                     ) -> None:
    products(SIDE // 8, 1).save(here / "short.nnx")
    found = host.ran("run", "short.nnx", "--random", "1", "--backend", "native", "--threads", threads, cwd=here,
                     threadless=())
    assert (found.code, found.said) == (code, said)


def test_too_little_room_to_begin_is_one_line(here: Path) -> None:
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (128 << 20, 128 << 20))
    done = subprocess.run([sys.executable, "-m", "nnx_convert", LONG], text=True, cwd=here, capture_output=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)}, preexec_fn=small, check=False)
    assert done.returncode == 5 and done.stderr.startswith("NNX402 addresses are limited to 134,217,728 bytes")


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("more", [8, 64])
def test_memory_that_does_not_suffice_is_one_line(more: int, backend: str, host: Host, here: Path) -> None:
    found = host.ran("run", LONG, "--random", "1", "--backend", backend, cwd=here, limit=("AS", more << 20))
    assert found.code == 5 and found.line.startswith("NNX40")
