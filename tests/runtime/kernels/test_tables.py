"""Tables of a byte, of two bytes, of 16 bits."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scalars
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_convert.runtime.kernel import Site
from nnx_convert.runtime.kernels import tables
from nnx_convert.types import I16, Q8, Q8S, QPC, Q16S, ChannelQuant, Quant, Tensor, Type


def test_patterns_are_in_the_order_of_bits() -> None:
    assert tables.patterns(Tensor(Q8S, ())).tolist() == [*range(128), *range(-128, 0)]
    assert tables.patterns(Tensor(Q8, ())).tolist() == [*range(256)]
    assert tables.patterns(Tensor(Q16S, ()))[[0, 32767, 32768, 65535]].tolist() == [0, 32767, -32768, -1]


@pytest.mark.parametrize(("t", "found"), [
    (Tensor(Q8, (1,), Quant(1.0, 0)), True), (Tensor(I16, (1,), Quant(1.0, 5)), True), (Tensor(I16, (1,)), False),
    (Tensor(QPC, (1,), ChannelQuant((1.0,), 0)), False)])
def test_on_grid(t: Tensor, found: bool) -> None:
    assert tables.on_grid(t) is found


@given(st.floats(2.0**-10, 1, width=32), st.integers(-128, 127), st.floats(2.0**-10, 1, width=32),
       st.integers(-128, 127))
@settings(max_examples=30)
def test_table_of_a_byte(si: float, zi: int, so: float, zo: int) -> None:
    """Each entry in float32, by the definition of TFLite's `LUTPopulate`."""
    f32 = np.float32
    x, out = Tensor(Q8S, (), Quant(si, zi)), Tensor(Q8S, (), Quant(so, zo))
    table = tables.by_real(x, out, tables.exactly(np.tanh))
    inverse = f32(1) / f32(so)
    for v in range(-128, 128, 5):
        real = f32(math.tanh(f32(f32(si) * f32(v - zi))))
        step = scalars.away(float(f32(real * inverse)))
        assert table[v & 255] == scalars.clamp(step + zo, -128, 127)


def test_saturation_and_what_is_no_number() -> None:
    t = Tensor(Q8, (), Quant(0.5, 3))
    given_ = np.array([np.inf, -np.inf, np.nan, 1e30, 0.25, -0.25], np.float32)
    assert tables.raw(t, given_).tolist() == [255, 0, 0, 255, 4, 2]


@pytest.mark.parametrize(("source", "target"), [
    (Q8S, Q8), (Q8, Q8S), (Q8, Q16S), (Q16S, Q16S), (Q16S, Q8)], ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(0,), (5,), (3, 70000)], ids=str)
def test_looked_up(source: Type, target: Type, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    size = 1 << 8 * source.dtype.itemsize
    table = rng.integers(0, size, size).astype(target.dtype)
    x = rng.integers(0, size, shape).astype(source.dtype)
    out = np.empty(shape, target.dtype)
    tables.looked_up(table)(out, x)
    np.testing.assert_array_equal(out, table[x.view(f"u{x.itemsize}")])
    tables.looked_up(table)(out.T, x.T)                             # neither side in one piece
    np.testing.assert_array_equal(out, table[x.view(f"u{x.itemsize}")])


def test_a_table_that_clamps() -> None:
    values = np.arange(256, dtype=np.uint8).view(np.int8)
    x = values[::-1].copy()
    out = np.empty_like(x)
    tables.looked_up(np.clip(values, -7, 100))(out, x)
    np.testing.assert_array_equal(out, np.clip(x, -7, 100))


@pytest.mark.parametrize("shapes", [((70000,), (70000,)), ((3, 5), (5,)), ((3, 1), (1, 5)), ((0, 5), (5,))], ids=str)
def test_paired(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, s).astype(np.int8) for s in shapes)
    full = np.broadcast_shapes(*shapes)
    values = tables.patterns(Tensor(Q8S, ())).astype(int)
    site = Site((Tensor(Q8S, full),))
    run = tables.paired(site, Tensor(Q8S, x.shape), Tensor(Q8S, y.shape),
                        ((values[:, None] * 3 - values) % 100).astype(np.int8))
    out = np.empty(full, np.int8)
    run(out, x, y, *(np.empty(s, d) for s, d in site.buffers))
    np.testing.assert_array_equal(out, (x.astype(int) * 3 - y) % 100)


@pytest.mark.parametrize("function", [np.exp, np.tanh], ids=["exp", "tanh"])
def test_interpolation_is_close(function: Any) -> None:
    """513 points and straight lines follow a smooth function within three steps."""
    x, out = Tensor(Q16S, (), Quant(2.0**-14)), Tensor(Q16S, (), Quant(2.0**-12))
    table = tables.interpolated(x, out, tables.exactly(function))
    want = function(tables.patterns(x) * 2.0**-14) * 2.0**12
    assert np.abs(table - want).max() <= 3


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 2.0**-13, 0.0003, 0.0011])
@pytest.mark.parametrize("tanh", [False, True])
def test_int16_sigmoids_are_close(scale: float, tanh: bool) -> None:
    """TFLite's int16 LOGISTIC and TANH interpolate in one table of 256 points."""
    x = Tensor(Q16S, (), Quant(scale))
    real = tables.patterns(x) * scale
    want = np.tanh(real) if tanh else 1 / (1 + np.exp(-real))
    assert np.abs(tables.sigmoid16(x, tanh) * 2.0**-15 - want).max() < 2e-4


@pytest.mark.parametrize(("scale", "exponent"), [
    (1.0, 0), (2.0**-12, -12), (0.00025, None), (1.0005, 0), (1.01, None), (8.0, 3)])
def test_power_of_two(scale: float, exponent: int | None) -> None:
    assert tables.power_of_two(scale) == exponent
