"""Convolutions by fewer products: the matrices exactly, the code against NumPy, and where they are chosen."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Array, Net, apart, both
from stacks import spilt

from nnx_convert.runtime.codegen import winograd
from nnx_convert.runtime.codegen.cooktoom import form
from nnx_convert.runtime.codegen.elements import Part
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.winograd import Enter, Leave

#: What follows the convolution.
CHAINS = ((), ("ADD",), ("LOGISTIC", "ADD"))


def network(rng: np.random.Generator, shape: tuple[int, ...], out: int, *, act: int = 0, chain: tuple[str, ...] = (),
            pads: tuple[int, ...] = (1, 1, 1, 1), x: Array | None = None, w: Array | None = None) -> Net:
    """A convolution of 3 x 3 of an image [n, h, w, c], and what follows it."""
    net, (n, h, wide, c) = Net(), shape
    to = (n, h + pads[2] + pads[3] - 2, wide + pads[0] + pads[1] - 2, out)
    x = rng.standard_normal(shape) if x is None else x
    w = rng.standard_normal((out, 3, 3, c)) if w is None else w
    y = net.op("CONV_2D", net.input(x), net.const(w), net.const(rng.standard_normal(out)),
               *map(net.scalar, (*pads, 1, 1, act)), shape=to)
    for op in chain:
        y = net.op(op, y, net.input(rng.standard_normal(to)), net.scalar(0), shape=to) if op == "ADD" else net.op(
            op, y, shape=to)
    net.model = net.finish(y)
    return net


@pytest.mark.parametrize("outputs", [2, 4])
def test_the_forms_are_convolutions_and_their_numbers_exact(outputs: int) -> None:
    rng, how = np.random.default_rng(0), form(outputs)
    x, w = rng.integers(-9, 9, outputs + 2), rng.integers(-9, 9, 3)
    got = np.array(how.y) @ ((np.array(how.w) @ w) * (np.array(how.x) @ x))
    np.testing.assert_allclose(got, [x[i:i + 3] @ w for i in range(outputs)], atol=1e-11)
    for matrix in (how.x, how.y):
        assert np.array_equal(np.array(matrix, np.float32), matrix)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("outputs", [2, 4])
def test_native_code_gives_what_numpy_gives(outputs: int, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "outputs_of", lambda b: outputs)
    rng = np.random.default_rng(outputs)
    for n in range(12 if machine == "host" else 6):
        shape = (1 + n % 2, *(int(k) for k in rng.integers(1, 20, 2)), int(rng.integers(1, 60)))
        pads = tuple(int(k) for k in rng.integers(1, 3, 4))
        net = network(rng, shape, int(rng.integers(1, 70)), act=(0, 1, 3)[n % 3], chain=CHAINS[n // 2 % 3], pads=pads)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(CHAINS[n // 2 % 3]) + 1 and apart(got, want) <= NEAR, (n, shape)


@pytest.mark.parametrize("outputs", [2, 4])
def test_sums_that_cancel_lose_no_more_than_they_may(outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image far from zero by filters whose taps add up to none: results are a fraction of what is added up."""
    monkeypatch.setattr(winograd, "outputs_of", lambda b: outputs)
    rng = np.random.default_rng(1)
    w = rng.standard_normal((32, 3, 3, winograd.MANY))
    w -= w.mean((1, 2, 3), keepdims=True)
    shape = (1, 16, 16, winograd.MANY)
    net = network(rng, shape, 32, x=rng.standard_normal(shape) + 4, w=w)
    want, got, _ = both(net.model, net.given, MACHINES["host"], 1)
    assert apart(got, want) <= NEAR


def test_bands_and_panels_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "BAND", 1)
    net = network(np.random.default_rng(2), (1, 40, 40, 48), 112)
    want, got, _ = both(net.model, net.given, MACHINES["host"], 2)
    assert apart(got, want) <= NEAR


@pytest.mark.parametrize(("shape", "depth", "outputs"), [
    ((1, 56, 56, 64), 64, 4),       # the more outputs the fewer products
    ((1, 14, 14, 512), 512, 2),     # so many channels that rounding counts
    ((1, 2, 2, 64), 64, 2),         # tiles of four would be empty, most of them
    ((1, 112, 112, 32), 3, 0),      # so few channels that the way there and back costs more
    ((1, 7, 7, 512), 512, 0)])      # weights of points are more than those of taps, and read for few outputs
def test_a_convolution_is_done_as_costs_least(shape: tuple[int, ...], depth: int, outputs: int) -> None:
    n, h, w, channels = shape
    assert winograd.costs_least(n, h, w, depth, channels) == outputs


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("outputs", [2, 4])
def test_whole_vectors_need_no_stack(outputs: int, machine: str) -> None:
    m = Module(MACHINES[machine])
    lanes = m.machine.lanes
    Enter(outputs, (4096, 256), 2 * lanes, 320).emit(m)
    for columns in (outputs, 1):
        Leave(outputs, outputs, columns, (4096, 256), 2 * lanes, 320, 3, (Part("ADD", (0, 1)),),
              ((4096, 256, 4),)).emit(m)
    assert not spilt(m)

