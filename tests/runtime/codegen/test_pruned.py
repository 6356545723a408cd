"""Convolutions of single cells by filters that are mostly zeros, natively against NumPy; and where they are taken."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from natively import MACHINES, NEAR, Array, Net, apart, both, draw
from stacks import spilt

from nnx_convert.runtime.codegen import pruned
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import AVX512, Machine, host
from nnx_convert.runtime.codegen.pruned import MOST, Cut, Sums, faster, packed

Rng = np.random.Generator
WIDEST = Machine("x86_64-unknown-linux-gnu", AVX512)


def filters(rng: Rng, channels: int, depth: int, density: float) -> Array:
    """Filters of single cells; one has no weights, one has all."""
    w = rng.standard_normal((channels, 1, 1, depth)) * (rng.random((channels, 1, 1, depth)) < density)
    w[rng.integers(channels)] = 0
    if density:
        w[rng.integers(channels)] = 1
    return w.astype(np.float32)


def conv(net: Net, x: int, w: Array, rng: Rng, shape: tuple[int, ...], act: int) -> int:
    """A convolution of single cells of an image, whose result has a shape."""
    return net.op("CONV_2D", x, net.const(w), net.const(rng.standard_normal(len(w))),
                  *map(net.scalar, (0, 0, 0, 0, 1, 1, act)), shape=shape)


def cells(rng: Rng, density: float | None = None) -> Net:
    """Any image and any numbers of channels; a sum or a function may follow, and a depthwise convolution, which wants
    a border, may come before or behind."""
    net = Net()
    n, h, w = draw(rng, 1, 3, 1) + draw(rng, 1, 30, 2)
    if h * w < 16:
        h = 16
    depth, channels = draw(rng, 20, 90, 2)
    x = net.input(rng.standard_normal((n, h, w, depth)))
    if rng.random() < 0.4:
        x = wide(net, x, (n, h, w, depth), rng)
    shape = (n, h, w, channels)
    y = conv(net, x, filters(rng, channels, depth, rng.uniform(0, 0.05) if density is None else density), rng, shape,
             int(rng.integers(0, 4)))
    follows = rng.integers(4)
    if follows == 1:
        y = net.op("ADD", y, net.input(rng.standard_normal(shape)), net.scalar(1), shape=shape)
    elif follows == 2:
        y = net.op("LOGISTIC", y, shape=shape)
    elif follows == 3:
        y = wide(net, y, shape, rng)
    net.model = net.finish(y)
    return net


def wide(net: Net, x: int, shape: tuple[int, ...], rng: Rng) -> int:
    """A depthwise convolution over 3 x 3 cells."""
    return net.op("DEPTHWISE_CONV_2D", x, net.const(rng.standard_normal((1, 3, 3, shape[3]))),
                  net.const(rng.standard_normal(shape[3])), *map(net.scalar, (1, 1, 1, 1, 1, 1, 1, 0)), shape=shape)


MAKES = {"pruned": cells}


@pytest.mark.parametrize("machine", MACHINES)
def test_native_code_gives_what_numpy_gives(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = np.random.default_rng(2), list[bool]()

    def asked(*given: Any) -> bool:
        found.append(faster(*given))
        return found[-1]
    monkeypatch.setattr(pruned, "faster", asked)
    for n in range(12 if machine == "host" else 4):
        net = cells(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native and apart(got, want) <= NEAR, n
    assert sum(found) > len(found) / 2


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize("machine", MACHINES)
def test_any_density(machine: str, density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()
    monkeypatch.setattr(pruned, "faster", lambda *given: asked.append(given) or True)
    rng = np.random.default_rng(4)
    for n in range(3):
        net = cells(rng, density)
        want, got, _ = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert len(asked) > n and apart(got, want) <= NEAR, n


@pytest.mark.parametrize(("rows", "width", "slices"), [(6, 6, 2), (12, 12, 2), (1, 36, 2), (48, 48, 1), (3, 100, 1)])
def test_two_threads_have_something_to_do(rows: int, width: int, slices: int) -> None:
    found = Cut.of((1, rows, width, 64), MACHINES["avx2"])
    rounds = -(-rows // found.lines) * found.tile.parts
    assert found.slices == slices and (rounds * found.slices % 2 == 0 or rounds >= pruned.FEW)
    assert found.vectors <= MOST


def test_it_is_taken_where_there_are_few_weights() -> None:
    shape, depth = (1, 24, 24, 128), 64
    taken = [faster(shape, depth, int(share * 128 * 64), host()) for share in (0.05, 0.1, 1)]
    assert taken == [True, True, False]
    assert not faster((1, 1, 1, 128), depth, 10, host())             # that is a product by a matrix


def test_what_is_added_to_the_weights_is_zero_and_read_where_there_is_none() -> None:
    w = filters(np.random.default_rng(0), 40, 33, 0.2)[:, 0, 0]
    heads, pairs = packed(w, np.arange(40, dtype=np.float32), 256, 2)
    told = heads.view([("steps", "<i4"), ("to", "<i4"), ("bias", "<f4")])
    steps = pairs.view([("at", "<i4"), ("w", "<f4")])
    assert (np.diff(told["steps"]) >= 0).all() and len(steps) == 2 * told["steps"].sum()
    found, at = np.zeros((40, 33), np.float32), 0
    for head in told:
        for pair in steps[at:at + 2 * head["steps"]]:
            found[head["to"] // 256, pair["at"] // 256] += pair["w"]
        at += 2 * head["steps"]
        assert head["bias"] == head["to"] // 256
    assert (found == w).all()


def test_no_zero_that_the_filter_has_not_meets_infinity() -> None:
    w = np.random.default_rng(0).uniform(1, 2, (3, 5)).astype(np.float32)
    heads, pairs = packed(w, np.zeros(3, np.float32), 256, 2)
    steps = pairs.view([("at", "<i4"), ("w", "<f4")])
    assert len(steps) == 2 * heads.view("<i4")[::3].sum() == 18 and (steps["w"] != 0).all()


@pytest.mark.parametrize("machine", [*MACHINES.values(), WIDEST])
def test_no_sum_spills(machine: Machine) -> None:
    m = Module(machine)
    for vectors in range(1, MOST + 1):
        for turns in (1, 2):
            if vectors * turns <= pruned.SUMS[machine.registers]:
                Sums(64, vectors, turns).emit(m)
    assert not spilt(m)
