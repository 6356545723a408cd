"""Convolutions of 16-bit integers natively: NumPy's to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both, draw, reach

from nnx_convert import OperandCode

SHORT, INT64 = OperandCode.TENSOR_QUANT16_SYMM, OperandCode.TENSOR_INT64
BYTE = OperandCode.TENSOR_QUANT8_ASYMM_SIGNED


def convolution(rng: np.random.Generator) -> Net | None:
    """Any padding, stride and dilation, two convolutions one after the other, the loudest numbers among others."""
    (n,), (h, w), (c, out) = draw(rng, 1, 3, 1), draw(rng, 1, 14, 2), draw(rng, 1, 20, 2)
    (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr) = draw(rng, 1, 4, 2), draw(rng, 1, 3, 2), draw(rng, 1, 3, 2), draw(
        rng, 0, 3, 4)
    oh, ow = reach(h, kh, sh, dh, pt, pb), reach(w, kw, sw, dw, pl, pr)
    if oh < 1 or ow < 1:
        return None
    x, net = rng.integers(-0x8000, 0x8000, (n, h, w, c)), Net()
    x[rng.random(x.shape) < 0.1] = -0x8000
    weights, bias = rng.integers(-127, 128, (out, kh, kw, c)), rng.integers(-1 << 33, 1 << 33, out)
    grids = (2.0 ** -rng.uniform(8, 12), 0), (2.0 ** -rng.uniform(7, 9), 0), (2.0 ** -rng.uniform(4, 10), 0)
    filters, added = net.const(weights, BYTE, grids[1]), net.const(bias, INT64)
    y = net.op("host.CONV_2D", net.input(x, SHORT, grids[0]), filters, added,
               *map(net.scalar, (pl, pr, pt, pb, sw, sh, int(rng.integers(0, 4)), False, dw, dh)),
               shape=(n, oh, ow, out), kind=SHORT, grid=grids[2])
    last = net.const(rng.integers(-127, 128, (3, 2, 1, out)), BYTE, grids[1])
    z = net.op("host.CONV_2D", y, last, net.const(np.zeros(3), INT64), *map(net.scalar, (0, 1, 1, 0, 1, 1, 0)),
               shape=(n, oh, ow + 1, 3), kind=SHORT, grid=grids[2])
    net.model = net.finish(y, z)
    return net


def product(rng: np.random.Generator) -> Net:
    """Rows by a matrix, turned or not, with a scale in all or one for each column."""
    net, (rows, depth, units), lead = Net(), (int(rng.choice([1, 4, 7, 48, 64])), *draw(rng, 1, 40, 2)), draw(
        rng, 1, 3, draw(rng, 0, 3, 1)[0])
    turn, several = bool(rng.integers(2)), bool(rng.integers(2))
    x = net.input(rng.integers(-0x8000, 0x8000, (*lead, rows, depth)), SHORT, (2.0 ** -rng.uniform(8, 12), 0))
    matrix = rng.integers(-127, 128, (units, depth) if turn else (depth, units))
    y = net.const(matrix, OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL if several else BYTE,
                  (0, 0) if several else (2.0 ** -rng.uniform(7, 9), 0))
    if several:
        net.builder.set_operand_symm_per_channel_quant_params(
            y, 0 if turn else 1, (2.0 ** -rng.uniform(7, 9, units)).astype(np.float32).tolist())
    z = net.op("host.MATMUL", x, y, net.scalar(False), net.scalar(turn), shape=(*lead, rows, units), kind=SHORT,
               grid=(2.0 ** -rng.uniform(4, 10), 0))
    net.model = net.finish(z)
    return net


MAKES = {"convolution": convolution, "matrix": product}


@pytest.mark.parametrize("machine", MACHINES)
def test_convolutions_are_those_of_numpy(machine: str) -> None:
    rng, found = np.random.default_rng(3), 0
    while found < 24:
        net = convolution(rng)
        if net is not None:
            want, got, native = both(net.model, net.given, MACHINES[machine], 1 + found % 2)
            assert native == 2
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)
            found += 1


@pytest.mark.parametrize("machine", MACHINES)
def test_products_are_those_of_numpy(machine: str) -> None:
    rng = np.random.default_rng(43)
    for n in range(16 if machine == "host" else 5):
        net = product(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0])


def test_sums_beyond_32_bits_are_left_to_numpy() -> None:
    net = Net()
    x = net.input(np.full((1, 1, 1, 600), -0x8000), SHORT, (0.25, 0))
    w, b = net.const(np.full((2, 1, 1, 600), 127), BYTE, (0.5, 0)), net.const(np.zeros(2), INT64)
    y = net.op("host.CONV_2D", x, w, b, *map(net.scalar, (0, 0, 0, 0, 1, 1, 0)), shape=(1, 1, 1, 2), kind=SHORT,
               grid=(2.0 ** 20, 0))
    want, got, native = both(net.finish(y), net.given, MACHINES["host"], 1)
    assert native == 0
    np.testing.assert_array_equal(got[0], want[0])
