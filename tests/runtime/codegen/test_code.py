"""The machinery of native code: text, objects, threads, places."""
from __future__ import annotations

import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from natively import MACHINES, Net, apart, both, net

from nnx_convert import CompiledModel, NnxError
from nnx_convert.runtime.codegen import dense, mathematics
from nnx_convert.runtime.codegen.elements import Part
from nnx_convert.runtime.codegen.epilogue import Epilogue
from nnx_convert.runtime.codegen.ir import SHARED, Function, Module, vector
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.micro import Micro, stretches
from nnx_convert.runtime.codegen.objects import Library, assembly, compiled
from nnx_convert.runtime.codegen.places import Border, dense_strides, room
from nnx_convert.runtime.codegen.pool import RUN, barrier, pool, prepared
from nnx_convert.runtime.codegen.requantise import Range
from nnx_convert.runtime.codegen.tiles import FIT, best, fit


@pytest.mark.parametrize(("name", "ulp", "low", "high"), [
    ("exp", 2, -87, 88), ("logistic", 3, -80, 30), ("tanh", 5, -10, 10)])
@pytest.mark.parametrize("machine", MACHINES)
def test_functions_are_as_near_as_they_say(name: str, ulp: float, low: float, high: float, machine: str) -> None:
    m = Module(MACHINES[machine])
    f = Function(m, "f", RUN, exported=True)
    type = vector(m.machine.lanes)
    size = 4 * m.machine.lanes

    def step(i: str, _: list[str]) -> None:
        at = f.mul(i, size)
        found = getattr(mathematics, name)(f, type, f.load(type, "%arena", at))
        f.store(type, found, "%weights", at)
    f.loop(0, (1 << 16) // m.machine.lanes, 1, [], step)
    f.finish()
    library = Library(compiled(m.text(), m.machine), ("f",), m.machine)
    x = np.random.default_rng(0).uniform(low, high, 1 << 16).astype(np.float32)
    y = np.empty_like(x)
    prepared(library.address("f"), x.ctypes.data, y.ctypes.data, 1, 0)()
    exact = {"exp": np.exp, "tanh": np.tanh, "logistic": lambda v: 1 / (1 + np.exp(-v))}[name](x.astype(np.float64))
    allowed = ulp if MACHINES[machine].fused else ulp + 2
    assert (np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() <= allowed


@pytest.mark.parametrize("machine", ["host", "avx2"])
def test_no_micro_kernel_spills(machine: str) -> None:
    at = MACHINES[machine]
    for vectors, pixels in fit(at).items():
        m = Module(at)
        name = Micro(tuple(64 * i for i in range(pixels)), tuple(96 * i for i in range(pixels)), vectors, 1, 0,
                     ((0, 16),), 0, 3).emit(m)
        f = Function(m, "f", SHARED, exported=True)
        f.do(f"call void @{name}(ptr %arena, ptr %weights, ptr %arena, ptr %weights)")
        f.finish()
        text, spilt = assembly(m.text(), at), r"[xyz]mm\d+, *-?\d*\(%rsp|\(%rsp\), *%[xyz]mm"
        assert "fmadd" in text and not re.findall(spilt, text), (vectors, pixels)


def test_a_long_chain_is_written_once() -> None:
    m = Module(host())
    swish = (Part("LOGISTIC", (0,)), Part("MUL", (0, -1)))
    Micro(tuple(range(0, 384, 64)), tuple(range(0, 576, 96)), 4, 1, 0, ((0, 16),), 0, 0, swish).emit(m)
    assert m.text().count("fdiv") == 1


def test_the_rounding_of_bytes_is_written_once_for_all_pixels() -> None:
    m = Module(host())
    Epilogue(3, 0, "shifts", Range(0, -128, 127, signed=True), 192, 64).emit(m)
    assert m.text().count(f"mul <{host().lanes} x i64>") == 3


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("channels", [3, 16, 37])
@pytest.mark.parametrize("width", [1, 7, 23])
def test_a_long_chain_behind_a_product(machine: str, channels: int, width: int) -> None:
    made, rng = Net(), np.random.default_rng(width)
    x, shape = made.input(rng.standard_normal((width, 5))), (width, channels)
    y = made.op("FULLY_CONNECTED", x, made.const(rng.standard_normal((channels, 5))), made.const(np.ones(channels)),
                made.scalar(0), shape=shape)
    y = made.op("MUL", y, made.op("LOGISTIC", y, shape=shape), made.scalar(0), shape=shape)
    y = made.op("ADD", y, made.input(rng.standard_normal(shape)), made.scalar(0), shape=shape)
    got, want, count = both(made.finish(y), made.given, MACHINES[machine], 2)
    assert count == 4 and apart(want, got) < 1e-5


def test_threads_meet_at_barriers_run_after_run() -> None:
    m = Module(host())
    wait = barrier(m)
    f = Function(m, "f", RUN, exported=True)
    for n in range(1, 4):                        # each thread adds what the other one wrote before
        mine, other = f.mul("%thread", 64), f.mul(f.let("xor i64 %thread, 1"), 64)
        value = f.load("i64", f.at("%arena", other), 0, 8)
        f.do(f"call void @{wait}(ptr %sync, i64 {f.add('%base', f.mul('%threads', 2 * n - 1))}, i64 %threads)")
        f.store("i64", f.let(f"add i64 {value}, 1"), f.at("%arena", mine), 0, 8)
        f.do(f"call void @{wait}(ptr %sync, i64 {f.add('%base', f.mul('%threads', 2 * n))}, i64 %threads)")
    f.finish()
    library = Library(compiled(m.text(), host()), ("f",), host())
    cells = np.zeros(16, np.int64)
    for _ in range(2000):
        prepared(library.address("f"), cells.ctypes.data, 0, min(2, pool().threads), 6)()
    assert cells[0] == 6000


def test_several_threads_run_several_models() -> None:
    made = net()
    models = [CompiledModel(made.model, backend="native", threads=2) for _ in range(3)]
    want, wrong = models[0].run(made.given)[0], list[int]()

    def work(n: int) -> None:
        for _ in range(60):
            if not np.array_equal(models[n % 3].run(made.given)[0], want):
                wrong.append(n)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


AFTER_FORK = """
import os, sys
sys.path[:0] = {paths}
from test_code import net
from nnx_convert import CompiledModel
made = net()
run = CompiledModel(made.model, backend="native", threads=2)
want = run.run(made.given)[0]
child = os.fork()
found = run.run(made.given)[0]
if not child:
    os._exit(0 if (found == want).all() else 1)
assert (found == want).all() and os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_has_threads_of_its_own() -> None:
    paths = [p for p in sys.path if p] + [str(__file__).rpartition("/")[0]]
    subprocess.run([sys.executable, "-c", AFTER_FORK.format(paths=paths)], check=True, timeout=60)


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(NnxError, match="native"):
        CompiledModel(net().model, backend="cuda")


def test_borders_and_rooms() -> None:
    assert Border(1, 0, 2, 0).joined(Border(0, 3, 1, 0)) == Border(1, 3, 2, 0)
    assert Border(1).joined(Border(1, fill=7)) is None
    assert dense_strides((2, 3, 4), 4) == (48, 16, 4)
    size, strides, first = room((1, 2, 3, 4), 4, Border(1, 1, 1, 1))
    assert (size, strides, first) == (4 * 5 * 4 * 4, (320, 80, 16, 4), 96)


@pytest.mark.parametrize("registers", [16, 32])
def test_tiles_fit_and_cover(registers: int) -> None:
    for channels in (1, 8, 17, 64, 300):
        for width in (1, 7, 14, 56, 113):
            t = best(channels, 27, 3, width, width, 8, registers)
            assert sum(size * count for size, count in t.sizes) == width
            assert max(size for size, _ in t.sizes) <= FIT[registers][t.vectors]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("rows", "width", "act", "op"), [(7, 7, 1, "ADD"), (5, 6, 0, "LOGISTIC"), (6, 3, 3, "ADD")])
def test_tiles_go_on_from_row_to_row_where_there_are_few(rows: int, width: int, act: int, op: str, machine: str,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "WORTH", 9)
    rng, at = np.random.default_rng(rows), MACHINES[machine]
    channels, shape = 3 * at.lanes, (2, rows, width, 3 * at.lanes)
    net = Net()
    x = net.input(rng.standard_normal((2, 2 * rows + 1, 2 * width + 1, 40)))
    y = net.op("CONV_2D", x, net.const(rng.standard_normal((channels, 3, 3, 40))), net.const(rng.standard_normal(
        channels)), *map(net.scalar, (0, 0, 0, 0, 2, 2, act)), shape=shape)
    more = (net.input(rng.standard_normal(shape)), net.scalar(0)) if op == "ADD" else ()
    net.model = net.finish(net.op(op, y, *more, shape=shape))
    want, got, native = both(net.model, net.given, at, 2)
    assert native == 2 and apart(got, want) <= 1e-5


def test_places_are_cut_where_steps_change() -> None:
    assert stretches([(0, 0), (4, 8), (8, 16), (20, 24), (24, 32), (40, 40)]) == [(0, 3), (3, 2), (5, 1)]
    assert stretches([(3,)]) == [(0, 1)]
