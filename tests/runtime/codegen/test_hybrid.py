"""Floats by int8 weights natively, against NumPy: bit by bit, on every machine, whatever the values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from natively import MACHINES, WIDE, Array, Net, apart, both

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen.bytecells import rarely
from nnx_convert.runtime.codegen.ir import SHARED, Function, Module
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.objects import assembly
from nnx_convert.runtime.codegen.tiles import FIT
from nnx_convert.runtime.codegen.wholes import SHORT, Walk, shortens, tile_of

Rng = np.random.Generator
Make = Callable[[Rng], Net]
Q8, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
QPC = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
#: |got - want| <= NEAR * the largest |want| after a curve; without one they are equal.
NEAR = 1e-6
SAME, VALID, TANH = 1, 2, 4


def values(rng: Rng, *shape: int) -> Array:
    """Floats of any magnitude, about 0 or beside it, some of them 0, sometimes all."""
    beside = rng.choice([0.0, 3.0, -50.0]) * rng.random()
    drawn = (rng.standard_normal(shape) + beside) * 10.0 ** float(rng.integers(-6, 6))
    return np.where(rng.random(shape) < rng.choice([0.05, 0.05, 0.05, 1]), 0, drawn)


def weights(net: Net, rng: Rng, shape: tuple[int, ...], axis: int) -> int:
    """Filters with a scale for each channel, or with one in all and a zero point."""
    if rng.random() < 0.5:
        w = net.builder.add_operand(QPC, shape)
        scales = rng.uniform(0.001, 0.01, shape[axis]).astype(np.float32)
        net.builder.set_operand_symm_per_channel_quant_params(w, axis, scales.tolist())
        net.builder.set_operand_value(w, rng.integers(-127, 128, shape).astype(np.int8))
        return w
    kind, zero = (Q8, int(rng.choice([128, 90]))) if rng.random() < 0.5 else (Q8S, 0)
    drawn = rng.normal(zero, 40, shape).clip(*((0, 255) if kind == Q8 else (-128, 127)))
    return net.const(drawn, kind, (float(np.float32(rng.uniform(0.001, 0.01))), zero))


def bias(net: Net, rng: Rng, count: int) -> int:
    """A bias, or none."""
    return net.const(rng.standard_normal(count)) if rng.random() < 0.7 else net.nothing()


def product(rng: Rng, act: int | None = None) -> Net:
    """Rows by a matrix."""
    net, (rows, depth, units) = Net(), (int(n) for n in rng.integers(1, [40, 300, 90]))
    act = int(rng.integers(0, 4)) if act is None else act
    x = np.stack([values(rng, depth) for _ in range(rows)])
    y = net.op("HYBRID_FULLY_CONNECTED", net.input(x), weights(net, rng, (units, depth), 0), bias(net, rng, units),
               net.scalar(bool(rng.integers(0, 2))), net.scalar(act), shape=(rows, units))
    net.model = net.finish(y)
    return net


def sizes(x: tuple[int, ...], k: int, scheme: int, stride: int, dilation: int) -> tuple[int, int]:
    """Rows and columns of a convolution's result."""
    rows, columns = (-(-n // stride) if scheme == SAME else (n - (k - 1) * dilation - 1) // stride + 1 for n in x[1:3])
    return rows, columns


def convolution(rng: Rng) -> Net:
    """Filters over images."""
    net, (n, depth, units) = Net(), (int(v) for v in rng.integers(1, [3, 40, 60]))
    k, stride, dilation, scheme = (int(rng.choice(of)) for of in ([1, 1, 3, 4], [1, 1, 2], [1, 1, 2], [SAME, VALID]))
    shape = (n, *(int(v) for v in rng.integers((k - 1) * dilation + 1, 20, 2)), depth)
    rest = [net.scalar(v) for v in (scheme, stride, stride, dilation, dilation, 1, bool(rng.integers(0, 2)),
                                    int(rng.integers(0, 4)))]
    x = net.input(np.stack([values(rng, *shape[1:]) for _ in range(n)]))
    y = net.op("HYBRID_CONV_2D", x, weights(net, rng, (units, k, k, depth), 0), bias(net, rng, units), *rest,
               shape=(n, *sizes(shape, k, scheme, stride, dilation), units))
    net.model = net.finish(y)
    return net


def depthwise(rng: Rng) -> Net:
    """A filter for each channel."""
    net, (n, depth) = Net(), (int(v) for v in rng.integers(1, [3, 60]))
    k, stride, dilation, scheme = (int(rng.choice(of)) for of in ([1, 3, 3, 5], [1, 1, 2], [1, 1, 2], [SAME, VALID]))
    shape = (n, *(int(v) for v in rng.integers((k - 1) * dilation + 1, 20, 2)), depth)
    rest = [net.scalar(v) for v in (scheme, stride, stride, dilation, dilation, int(rng.integers(0, 4)))]
    x = net.input(np.stack([values(rng, *shape[1:]) for _ in range(n)]))
    y = net.op("HYBRID_DEPTHWISE_CONV_2D", x, weights(net, rng, (1, k, k, depth), 3), bias(net, rng, depth), *rest,
               shape=(n, *sizes(shape, k, scheme, stride, dilation), depth))
    net.model = net.finish(y)
    return net


def transposed(rng: Rng) -> Net:
    """Images scattered by filters, some of whose outputs may be cut off, or more than are met."""
    net, (n, depth, units) = Net(), (int(v) for v in rng.integers(1, [3, 40, 60]))
    scheme, stride = int(rng.choice([SAME, VALID])), int(rng.integers(1, 4))
    k = stride + int(rng.integers(0, 3))
    shape = (n, *(int(v) for v in rng.integers(1, 12, 2)), depth)
    out = [s * stride if scheme == SAME else (s - 1) * stride + k + int(rng.integers(0, 2)) * int(k > stride)
           for s in shape[1:3]]
    x = net.input(np.stack([values(rng, *shape[1:]) for _ in range(n)]))
    y = net.op("HYBRID_TRANSPOSE_CONV_2D", x, weights(net, rng, (units, k, k, depth), 0), bias(net, rng, units),
               net.const([n, *out, units], OperandCode.TENSOR_INT32),
               *map(net.scalar, (scheme, stride, stride, int(rng.integers(0, 4)))), shape=(n, *out, units))
    net.model = net.finish(y)
    return net


EXACT: dict[str, Make] = {"product": product, "convolution": convolution, "depthwise": depthwise,
                          "transposed": transposed}


@pytest.mark.parametrize("machine", WIDE)
@pytest.mark.parametrize("family", EXACT)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng = np.random.default_rng(3)
    for n in range(24 if machine == "host" else 10):
        net = EXACT[family](rng)
        want, got, native = both(net.model, net.given, WIDE[machine], 1 + n % 2)
        assert native == 1, n
        np.testing.assert_array_equal(got[0], want[0], err_msg=f"{n}")


@pytest.mark.parametrize("machine", WIDE)
@pytest.mark.parametrize("ends", [(-127, 127), (-128, 127), (127, 127), (-127, -127), (-128, -128), (64, 64), (-64, 64),
                                  (32, 32), (-32, 32), (16, 16), (-16, 16)])
def test_the_largest_products_of_bytes_are_exact(ends: tuple[int, int], machine: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(8):
        net, rows, (depth, units) = Net(), (1, 8)[n // 4], (int(v) for v in rng.integers(1, [300, 90]))
        x = rng.choice([(0, 1), (-1, 0), (-1, 1), (1, 1)][n % 4], (rows, depth)).astype(np.float32)
        w = net.const(rng.choice(ends, (units, depth)), Q8S, (0.01, 0))
        y = net.op("HYBRID_FULLY_CONNECTED", net.input(x), w, net.nothing(), net.scalar(n % 2 == 0), net.scalar(0),
                   shape=(rows, units))
        net.model = net.finish(y)
        want, got, native = both(net.model, net.given, WIDE[machine], 1)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0], err_msg=f"{n}")


@pytest.mark.parametrize("machine", WIDE)
def test_a_curve_follows(machine: str) -> None:
    net = product(np.random.default_rng(1), TANH)
    want, got, native = both(net.model, net.given, WIDE[machine], 1)
    assert native == 1
    assert apart(got, want) <= NEAR


def cells(rng: Rng, time: int, spread: float = 40) -> Net:
    """An LSTM of ONNX in one direction or two, whose weights have a scale each or for each column."""
    net, (units, width, count) = Net(), (int(n) for n in rng.integers(1, [40, 60, 3]))
    kind, zero = (Q8, 120) if rng.random() < 0.5 else (Q8S, 0)
    columns = 4 * units if rng.random() < 0.5 else 1

    def matrix(depth: int) -> int:
        drawn = np.clip(rng.normal(zero, spread, (count, depth, 4 * units)), *((0, 255) if kind == Q8 else (-128, 127)))
        return net.const(drawn, kind, (1.0, 0))

    def floats(there: bool, *shape: int) -> int:
        return net.const(rng.standard_normal(shape)) if there else net.nothing()
    grids = [v for _ in range(2) for v in (net.const(rng.uniform(0.001, 0.01, count * columns)), net.const(
        np.full(count * columns, zero), kind, (1.0, 0)))]
    x, states = net.input(rng.standard_normal((time, 1, width))), bool(rng.integers(0, 2))
    outs = net.ops("DYNAMIC_QUANTIZE_LSTM", x, matrix(width), matrix(units),
                   floats(bool(rng.integers(0, 2)), count, 8 * units), net.nothing(),
                   floats(states, count, 1, units), floats(states, count, 1, units), net.nothing(), *grids,
                   net.scalar(count == 1 and rng.random() < 0.5), net.scalar(False), net.scalar(0.0),
                   outs=[((time, count, 1, units), OperandCode.TENSOR_FLOAT32),
                         *[((count, 1, units), OperandCode.TENSOR_FLOAT32)] * 2])
    net.model = net.finish(*outs)
    return net


MAKES = EXACT | {"cells": lambda rng: cells(rng, int(rng.integers(1, 3)))}


@pytest.mark.parametrize("machine", WIDE)
def test_cells_whose_states_are_brought_to_bytes(machine: str) -> None:
    rng = np.random.default_rng(4)
    for n in range(16 if machine == "host" else 8):
        net = cells(rng, 1 + n % 6)
        want, got, native = both(net.model, net.given, WIDE[machine], 1 + n % 2)
        assert native == 1, n
        assert apart(got, want) <= 1e-5, n


@pytest.mark.parametrize("machine", WIDE)
def test_cells_whose_weights_are_mostly_small(machine: str) -> None:
    rng = np.random.default_rng(8)
    for n in range(12 if machine == "host" else 6):
        net = cells(rng, 1 + n % 6, float(rng.choice([4, 8, 16, 24])))
        want, got, native = both(net.model, net.given, WIDE[machine], 1 + n % 2)
        assert native == 1, n
        assert apart(got, want) <= 1e-5, n


@pytest.mark.parametrize(("size", "wild", "short"), [
    (16, 0, 4), (16, 1, 4), (16, 9, 0), (17, 0, 2), (32, 1, 2), (33, 0, 1), (64, 1, 1), (65, 0, 0)])
def test_vectors_of_units_are_wild_by_themselves(size: int, wild: int, short: int) -> None:
    lanes = MACHINES["avx2"].lanes
    matrix = np.random.default_rng(0).choice([-size, size], (64, 4 * lanes * 10))
    for n in range(wild):
        matrix[n:n + 2, 4 * lanes * n + 5] = 127
    found, which = rarely(MACHINES["avx2"], matrix)
    assert found == short
    if short:
        assert np.flatnonzero(which).tolist() == list(range(wild))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, (-3e38, 3e38), (1e-37,), (2e-36, -1e-38)])
@pytest.mark.parametrize("family", EXACT)
def test_values_at_the_ends_of_what_there_is(family: str, odd: Any) -> None:
    rng = np.random.default_rng(2)
    for at in range(6):
        net = EXACT[family](rng)
        flat = net.given[0].reshape(-1)
        flat[:] = 0 if isinstance(odd, tuple) else flat
        found = np.atleast_1d(odd)[:flat.size - at]
        flat[at:at + found.size] = found
        want, got, _ = both(net.model, net.given, host(), 1)
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("machine", ["host", "avx512", "avx2"])
def test_no_walk_spills(machine: str) -> None:
    at = WIDE[machine]
    ways = [(vectors, pixels, at.vnni, narrow, 0) for vectors, pixels in FIT[at.registers].items()
            for narrow in {False, shortens(at)}]
    if shortens(at):
        ways += [(n, 1, True, False, short) for n in (1, 2, 3, 4) for short in (0, *SHORT)]
        ways += [(t.vectors, t.most, True, False, short) for short in SHORT if short <= 2
                 for t in (tile_of(n, 30, short, at.lanes) for n in (8, 64))]
    for vectors, pixels, quads, narrow, short in ways:
        m = Module(at)
        f = Function(m, "f", SHARED, exported=True)
        walk = Walk(tuple(64 * i for i in range(pixels)), vectors, 1, 0, ((0, 17),), quads, narrow, short)
        for n, total in enumerate(walk.sums(f, "%arena", "%weights", ["zeroinitializer"] * (pixels * vectors))):
            f.store(f"<{at.lanes} x i32>", total, "%arena", 4096 + n * 4 * at.lanes)
        f.finish()
        text = assembly(m.text(), at)
        assert "(%rsp)" not in text.replace("popq", ""), (vectors, pixels, quads, narrow, short)
