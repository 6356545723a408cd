"""Products by matrices that were weights of four bits, natively against NumPy; and what such a matrix is told by."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Array, Net, apart, both

from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import AVX2, AVX512, Machine, host
from nnx_convert.runtime.codegen.nibbles import Nibbles, blockwise
from nnx_convert.runtime.codegen.objects import assembly
from nnx_convert.runtime.codegen.places import Place

Rng = np.random.Generator


def matrix(rng: Rng, units: int, depth: int, size: int) -> tuple[Array, Array]:
    """Integers of four bits, and them as floats with a scale for each block; some blocks are of zeros."""
    whole = rng.integers(-8, 8, (units, depth // size, size))
    whole[rng.random(whole.shape[:2]) < 0.05] = 0
    scale = (rng.uniform(0.2, 2, whole.shape[:2]) * 10.0 ** rng.integers(-3, 3)).astype(np.float32)
    return whole.reshape(units, depth), (whole.astype(np.float32) * scale[:, :, None]).reshape(units, depth)


def product(rng: Rng) -> Net:
    """A few rows, some of whose elements are much larger than others, by a matrix with any tail of channels."""
    net, size, rows = Net(), int(rng.choice([32, 64, 128])), int(rng.integers(1, 5))
    depth = size * int(rng.integers(1, 5))
    units = (1 << 16) // depth + int(rng.integers(1, 100))
    x = rng.standard_normal((rows, depth)) * 10.0 ** rng.integers(-2, 3, (rows, depth // size)).repeat(size, 1)
    y = net.op("FULLY_CONNECTED", net.input(x), net.const(matrix(rng, units, depth, size)[1]),
               net.const(rng.standard_normal(units)), net.scalar(int(rng.integers(0, 2))), shape=(rows, units))
    net.model = net.finish(y)
    return net


MAKES = {"nibbles": product}


@pytest.mark.parametrize("machine", MACHINES)
def test_native_code_gives_what_numpy_gives(machine: str) -> None:
    rng = np.random.default_rng(6)
    for n in range(12 if machine == "host" else 3):
        net = product(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1, n
        assert apart(got, want) <= NEAR, n


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [32, 128])
def test_the_largest_sums_fit(size: int, machine: str) -> None:
    net, depth, units = Net(), 256, 300
    whole = np.full((units, depth), 7.0, np.float32)
    whole[::3], whole[1, ::2] = -8, -8
    x = np.ones((4, depth), np.float32) * np.array([1, -1, 3e30, 1], np.float32)[:, None]
    x[3, ::2] = -1
    y = net.op("FULLY_CONNECTED", net.input(x), net.const(whole * np.repeat(np.arange(1, depth // size + 1), size)),
               net.const(np.zeros(units)), net.scalar(0), shape=(4, units))
    net.model = net.finish(y)
    want, got, native = both(net.model, net.given, MACHINES[machine], 1)
    assert native == 1
    for a, b in zip(got[0], want[0], strict=True):
        assert np.abs(a - b).max() <= NEAR * np.abs(b).max()


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_leaves_no_number(odd: float) -> None:
    net = product(np.random.default_rng(0))
    net.given[0][:, 3] = odd
    _, got, _ = both(net.model, net.given, host(), 1)
    assert not np.isfinite(got[0][got[0] != 0]).any()


@pytest.mark.parametrize("size", [32, 64, 128])
def test_a_matrix_shows_its_blocks(size: int) -> None:
    rng = np.random.default_rng(size)
    whole, floats = matrix(rng, 20, 3 * size, size)
    found = blockwise(floats)
    assert found is not None
    steps, scales = found
    assert np.abs(steps * scales.repeat(floats.shape[1] // scales.shape[1], 1) - floats).max() <= 1e-6 * np.abs(
        floats).max()
    assert scales.shape == (20, 3) and (np.sign(steps) == np.sign(whole)).all()
    for odd in (np.nan, np.inf):
        spoilt = floats.copy()
        spoilt[7, 5] = odd
        assert blockwise(spoilt) is None
    floats[7, np.abs(whole[7]).argmax()] *= np.float32(1.001)
    assert blockwise(floats) is None
    assert blockwise(rng.standard_normal((20, 3 * size)).astype(np.float32)) is None


@pytest.mark.parametrize(("features", "multiply"), [(AVX512 | {"avx512vnni"}, "vpdpbusd"), (AVX2, "vpmaddubsw")])
def test_the_loop_over_a_block_does_not_spill(features: frozenset[str], multiply: str) -> None:
    at = Machine("x86_64-unknown-linux-gnu", features)
    m = Module(at)
    x, out = (Place("%arena", n, (1, 1, 1, 1024), (0, 0, 4096, 4), 4) for n in (0, 4096))
    Nibbles(x, out, 32, 0, 1 << 20, 2 << 20, 0, Place("%arena", 8192, (1, 1 << 14), (1 << 14, 1), 1)).emit(m)
    text = assembly(m.text().replace("define internal", "define"), at)
    loop = text[text.find(multiply):text.rfind(multiply)]
    assert loop and "(%rsp)" not in loop
