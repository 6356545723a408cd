"""A model in guarded memory gives what it gives; what touches a byte beyond an array of it ends the process."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from guards import PAGE, Guarded, reach

from nnx_convert import CompiledModel, convert
from nnx_convert.runtime.codegen import pages
from nnx_convert.runtime.codegen.program import NativeProgram

MODELS = Path(__file__).resolve().parent.parent / "models"
#: Reads the byte at an offset from where an array of so many bytes begins, in an arena or among weights.
SCRIPT = """
import ctypes, sys
import numpy as np
from guards import Guarded
from nnx_convert.runtime.codegen.places import SLACK
behind, known, fixed, size, far, put = map(int, sys.argv[1:])
memory = Guarded(bool(behind))
at = memory.begin(1000, size) if known else 0
if fixed:
    array = memory.filled(at + size + SLACK, [(at, np.zeros(size, np.uint8))])
else:
    array = memory.take(at + size + SLACK if known else size, [(at, size)] if known else [])
place = array.ctypes.data + at + far
print("in reach", flush=True)
if put:
    ctypes.memset(place, 1, 1)
else:
    ctypes.string_at(place, 1)
print("done")
"""


def touched(behind: bool, known: bool, size: int, far: int, fixed: bool = False, put: bool = False) -> int:
    """How a process ends that reads or writes a byte so far from an array's first one."""
    words = [str(int(v)) for v in (behind, known, fixed, size, far, put)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("in reach"), done.stderr
    return done.returncode


@pytest.mark.parametrize(("known", "end"), [(True, reach(100)), (False, 128)])
def test_the_byte_beyond_what_may_be_read_ends_the_process(known: bool, end: int) -> None:
    assert [touched(True, known, 100, far) for far in (end - 1, end)] == [0, -signal.SIGSEGV]
    assert [touched(False, known, 100, far) for far in (0, -1)] == [0, -signal.SIGSEGV]


def test_weights_are_written_by_nobody() -> None:
    assert touched(True, True, 100, 0, fixed=True) == 0
    assert touched(True, True, 100, 0, fixed=True, put=True) == -signal.SIGSEGV


@pytest.mark.parametrize("behind", [True, False])
def test_a_model_s_arrays_have_pages_of_their_own(behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path = np.random.default_rng(0), MODELS / "digits_sparse.tflite"
    want = CompiledModel(convert(path), backend="native")
    image = rng.normal(size=want.inputs[0].shape or ()).astype(np.float32)
    monkeypatch.setattr(pages, "MEMORY", Guarded(behind))
    model = CompiledModel(convert(path), backend="native")
    assert [a.tobytes() for a in model.run([image])] == [a.tobytes() for a in want.run([image])]
    program = model.prepare()
    assert isinstance(program, NativeProgram)
    arrays = sorted(program.layout.arrays)
    ends = [(a + reach(n)) % PAGE if behind else a % PAGE for a, n in arrays]
    assert len(arrays) > 3 and not any(ends)
    assert all(b // PAGE - (a + reach(n) - 1) // PAGE > 1 for (a, n), (b, _) in pairwise(arrays))
