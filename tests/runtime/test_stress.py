"""Many threads, failures in the middle of runs, many shapes: the numbers stay right and nothing piles up."""
from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

from nnx_convert import CompiledModel, RunError, compile
from nnx_convert.runtime import memory, runner
from nnx_convert.runtime.blas import _libraries

Array = np.ndarray[Any, Any]
#: More shapes than programs are kept.
WORKERS, RUNS, SHAPES = 8, 200, 12
FOLDER = Path(__file__).resolve().parents[2] / "models"
MODELS = ("digits_cnn", "digits_cnn_int8", "digits_sparse")


@pytest.fixture(autouse=True)
def hasty() -> Iterator[None]:
    """Threads that change places as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def chain() -> bytes:
    """y = tanh(x w) v of x [?, 8]: two products and a scratch between them; the rows choose the program."""
    w, r = TFLiteWriter(), np.random.default_rng(0)
    x, y, z = (w.tensor(n, "float32", (1, 8), signature=(-1, 8)) for n in "xyz")
    a, b = (w.tensor(n, "float32", (8, 8), r.normal(size=(8, 8)).astype(np.float32)) for n in "ab")
    t = w.tensor("t", "float32", (1, 8), signature=(-1, 8))
    w.op("FULLY_CONNECTED", [x, a], [y], "FullyConnectedOptions")
    w.op("TANH", [y], [t])
    w.op("FULLY_CONNECTED", [t, b], [z], "FullyConnectedOptions")
    return w.finish([x], [z])


def counter() -> bytes:
    """total += x[i] of x [4] and i [1], which fails on an i beyond x after total is computed."""
    w = TFLiteWriter()
    h, x, i, v = (w.tensor(n, t, s) for n, t, s in (
        ("h", "resource", ()), ("x", "int32", (4,)), ("i", "int32", (1,)), ("v", "int32", (4,))))
    y, q = w.tensor("y", "int32", (4,)), w.tensor("q", "int32", (1,))
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, y], [])
    w.op("GATHER", [y, i], [q], "GatherOptions")
    return w.finish([x, i], [q])


def test_stateful_and_stateless_models_run_at_once() -> None:
    stateless, serial, stateful = compile(chain()), compile(chain()), compile(counter())
    r = np.random.default_rng(1)
    given = [r.normal(size=(1 + n % SHAPES, 8)).astype(np.float32) for n in range(RUNS)]
    want = [serial.run([x])[0] for x in given]
    ones, first = np.ones(4, np.int32), np.zeros(1, np.int32)

    def both(n: int) -> tuple[Array, int]:
        found = stateless.run([given[n]])[0]
        if n % 5:
            return found, int(stateful.run([ones, first])[0][0])
        with pytest.raises(RunError, match="GATHER"):
            stateful.run([ones * 1000, first + 4])
        return found, 0
    before = [library.get_num_threads() for library in _libraries()]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(both, range(RUNS)))
    assert all(np.array_equal(a, w) for (a, _), w in zip(found, want, strict=True))
    assert sorted(k for _, k in found if k) == list(range(1, RUNS - RUNS // 5 + 1))
    assert [library.get_num_threads() for library in _libraries()] == before


@pytest.mark.parametrize("name", MODELS)
def test_threads_have_kernels_to_themselves(name: str) -> None:
    m, serial, r = (*(compile(FOLDER / f"{name}.tflite") for _ in range(2)), np.random.default_rng(2))
    shape, dtype = m.inputs[0].shape or (), m.inputs[0].dtype
    given = [(r.normal(size=shape) * 50).astype(dtype) for _ in range(24)]
    want = [serial.run([x])[0] for x in given]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(lambda x: m.run([x])[0], given))
    assert all(np.array_equal(a, b) for a, b in zip(found, want, strict=True))


def programs(m: CompiledModel) -> list[runner.Compiled]:
    """Those it keeps."""
    return [c for c in m._runner._programs.values() if c is not None]


def test_programs_and_arenas_do_not_pile_up() -> None:
    m = compile(chain())
    gone = []
    for rows in range(1, 40):
        m.run([np.ones((rows, 8), np.float32)])
        gone.append(weakref.ref(programs(m)[-1]))
    gc.collect()
    assert len(programs(m)) == runner.PROGRAMS == sum(w() is not None for w in gone)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda n: m.run([np.ones((39, 8), np.float32)]), range(RUNS)))
    assert max(len(c._idle) for c in programs(m)) <= memory.ARENAS


def test_runs_that_fail_leave_nothing_behind() -> None:
    m = compile(counter())
    ones, first = np.ones(4, np.int32), np.zeros(1, np.int32)
    assert m.run([ones, first])[0][0] == 1
    for _ in range(20):
        with pytest.raises(RunError):
            m.run([ones * 7, first + 4])
    assert [m.run([ones, first])[0][0] for _ in range(3)] == [2, 3, 4]
    assert len(programs(m)) == 1 and len(programs(m)[0]._idle) == 1
