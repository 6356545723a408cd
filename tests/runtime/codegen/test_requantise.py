"""Formulas that scale sums: exact at and beside every threshold, whether or not products and sums are fused."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from natively import EVERY, MACHINES, Net, both

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen.ir import Function, Module, vector
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.objects import Library, compiled
from nnx_convert.runtime.codegen.pool import RUN, prepared
from nnx_convert.runtime.codegen.requantise import (
    Range,
    Scaling,
    Steps,
    block,
    blocks,
    cut_by,
    narrowed,
    planned,
    scaled,
)
from nnx_convert.runtime.fixedpoint import away, scale32

Array = np.ndarray[Any, Any]
#: No multipliers of FLOAT32: those that are exact are asked for.
NONE = np.zeros(0, np.float32)
#: What a network has, what it seldom has, and what no formula in FLOAT32 does.
DRAWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "usual": lambda rng: 2.0 ** rng.uniform(-11, -6, 16), "wide": lambda rng: 2.0 ** rng.uniform(-16, 1, 16),
    "tiny": lambda rng: 2.0 ** rng.uniform(-40, -20, 16), "deep": lambda rng: 2.0 ** rng.uniform(-14, -10, 16),
    "halves": lambda rng: 2.0 ** -rng.integers(1, 12, 16)}


def sums(steps: Steps, rng: np.random.Generator) -> Array:
    """Sums [n, channels]: some of all, zero, the ends, and those beside thresholds."""
    found = steps.thresholds(np.arange(-255, 256))
    near = np.where(np.abs(found) < 2.0 ** 40, found, 0).astype(np.int64).T
    drawn = rng.integers(steps.low, steps.high + 1, (2000, steps.low.size))
    x = np.concatenate([near, near - 1, near + 1, drawn, [0 * steps.low]])
    return np.clip(x, steps.low, steps.high)


def definition(steps: Steps, x: Array, out: Range) -> Array:
    """What is exact, as bytes of the output."""
    found = away(x * steps.reals).astype(np.int64) if steps.exact else scale32(x, steps.m, steps.s)
    return np.clip(found + out.zero, out.low, out.high)


def natively(scaling: Scaling, x: Array, out: Range, machine: str, cut: bool) -> Array:
    """What code gives for 16 channels, `cut` by the processor's state or not."""
    m = Module(MACHINES[machine])
    f, lanes = Function(m, "rows", RUN), m.machine.lanes
    step = block(scaling.formula) * lanes

    def row(i: str, _: list[str]) -> None:
        for v in range(16 // lanes):
            value = f.load(vector(lanes, "i32"), "%arena", f.add(f.mul(i, 64), v * lanes * 4))
            y = narrowed(f, lanes, scaled(f, scaling.formula, lanes, value, "%weights", v * step), out)
            y = f.let(f"sext {vector(lanes, 'i8')} {y} to {vector(lanes, 'i32')}")
            f.store(vector(lanes, "i32"), y, "%arena", f.add(f.mul(i, 64), v * lanes * 4))
    f.loop(0, len(x), 1, [], row)
    f.finish()
    whole = Function(m, "f", RUN, exported=True)
    call = f"call void @rows({', '.join(f'{kind} {name}' for kind, name in RUN)})"
    cut_by(whole, scaling.formula if cut else "", lambda: whole.do(call))
    whole.finish()
    library = Library(compiled(m.text(), m.machine), ("f",), m.machine)
    cells, given = x.astype(np.int32), blocks(np.zeros(16, np.int64), scaling, lanes)
    prepared(library.address("f"), cells.ctypes.data, given.ctypes.data, 1, 0)()
    return cells.astype(np.int8)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("draw", DRAWS)
def test_every_formula_is_the_definition(draw: str, cut: bool, exact: bool, machine: str) -> None:
    rng, seen = np.random.default_rng(5), set()
    for n in range(6):
        bound = rng.integers(1, 1 << int(rng.integers(3, 26)), 16)
        middle = rng.integers(-bound, bound + 1) * 8 if n > 3 else 0 * bound
        steps = Steps.of(DRAWS[draw](rng), middle - bound, middle + bound, exact)
        zero = int(rng.integers(-128, 128))
        out = Range(zero, zero if n % 2 else -128, 127, True)
        scaling, x = planned(steps, out, MACHINES[machine], NONE, cut), sums(steps, rng)
        seen.add(scaling.formula)
        np.testing.assert_array_equal(natively(scaling, x, out, machine, cut), definition(steps, x, out), str(n))
    assert draw != "usual" or seen >= {"above", "around"}


def test_only_what_is_proven_is_taken() -> None:
    out = Range(0, -128, 127, signed=True)
    deep = Steps.of(np.full(1, 2.0 ** -30), -np.array([1 << 30]), np.array([1 << 30]))
    assert planned(deep, out, host(), NONE).formula == "shifts"
    high = Steps.of(np.full(1, 2.0 ** 8), -np.array([1 << 24]), np.array([1 << 24]), exact=True)
    assert planned(high, out, host(), NONE).formula == "double"


@pytest.mark.parametrize("machine", ["host", "avx2"])
def test_layers_are_scaled_in_float32_where_that_is_cut(machine: str) -> None:
    """As many channels as networks have: hardly any such layer is, where the machine only rounds to the nearest."""
    rng, out, wide = np.random.default_rng(7), Range(0, -128, 127, signed=True), np.full(64, 1 << 20)
    found = [planned(Steps.of(2.0 ** rng.uniform(-11, -9, 64), -wide, wide), out, MACHINES[machine], NONE, cut=True)
             for _ in range(10)]
    assert {scaling.formula for scaling in found} <= {"around", "finely around"}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_processor_rounds_afterwards_as_before(machine: str) -> None:
    bound, out, more = np.full(16, 100), Range(0, 0, 255, signed=False), np.full(1, 1.5 * 2.0 ** -24, np.float32)
    scaling = planned(Steps.of(np.full(16, 0.3), -bound, bound), out, MACHINES[machine], NONE, cut=True)
    natively(scaling, np.zeros((1, 16)), out, machine, cut=True)
    assert scaling.formula == "above" and more + np.float32(1) > 1       # what is cut is 1


@pytest.mark.parametrize("scale", [2.0 ** -149, 2.0 ** -60, 2.0 ** -40])
@pytest.mark.parametrize("name", ["ADD", "SUB"])
@pytest.mark.parametrize("machine", EVERY)
def test_a_grid_beyond_all_shifts_gives_what_numpy_gives(machine: str, name: str, scale: float) -> None:
    """Sums are shifted to the left by more bits than they have: by the last five bits of how many, as in C on x86."""
    net, kind, rng = Net(), OperandCode.TENSOR_QUANT8_ASYMM_SIGNED, np.random.default_rng(0)
    x, y = (net.input(rng.integers(-128, 128, (16, 24)), kind, (0.004, zero)) for zero in (-128, 3))
    model = net.finish(net.op(name, x, y, net.scalar(0), shape=(16, 24), kind=kind, grid=(scale, -128)))
    with np.errstate(all="ignore"):              # as compiling has it
        want, got, native = both(model, net.given, EVERY[machine], 1)
    assert native == 1
    np.testing.assert_array_equal(got[0], want[0])
