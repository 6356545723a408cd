"""Native RNNs, LSTMs and GRUs against NumPy: any sizes, batches, both directions, with and without what is optional."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both

from nnx_convert import OperandCode

INT32, FLOAT32 = OperandCode.TENSOR_INT32, OperandCode.TENSOR_FLOAT32
Make = Callable[[np.random.Generator], Net]


def cell(net: Net, rng: np.random.Generator, sizes: tuple[int, int], gates: int, peepholes: bool) -> list[int]:
    """An LSTM's weights, its input gate left out where there are three gates."""
    units, width = sizes

    def const(there: bool, *shape: int) -> int:
        return net.const(rng.standard_normal(shape) / np.sqrt(shape[-1])) if there else net.nothing()
    own = [const(gates == 4 or n > 0, units, width) for n in range(4)]
    own += [const(gates == 4 or n > 0, units, units) for n in range(4)]
    own += [const(peepholes and (gates == 4 or n > 0), units) for n in range(3)]
    own += [const(gates == 4 or n > 0, units) for n in range(4)]
    return [*own, net.nothing(), net.nothing()]


def lstm(rng: np.random.Generator) -> Net:
    """One direction or two, joined or not."""
    time, batch, units, width = (int(rng.integers(1, n)) for n in (12, 4, 40, 24))
    gates, peepholes, major, merge = int(rng.choice([3, 4])), *(bool(v) for v in rng.integers(0, 2, 3))
    net, lead = Net(), (time, batch) if major else (batch, time)
    x = net.input(rng.standard_normal((*lead, width)))
    act, clip = net.scalar(int(rng.choice([0, 1, 3, 4, 6]))), net.scalar(float(rng.choice([0.0, 0.4])))

    def states(count: int) -> list[int]:
        return [net.input(rng.standard_normal((batch, units))) for _ in range(count)]
    rest = [act, clip, net.scalar(0.0)]
    out = ((*lead, units), FLOAT32)
    ends = [((batch, units), FLOAT32)] * 2
    one = net.ops("UNIDIRECTIONAL_SEQUENCE_LSTM", x, *cell(net, rng, (units, width), gates, peepholes), *states(2),
                  *rest, net.scalar(major), *(net.nothing() for _ in range(4)), outs=[out, *ends])
    outs = [((*lead, 2 * units), FLOAT32)] if merge else [out, out]
    two = net.ops("BIDIRECTIONAL_SEQUENCE_LSTM", one[0],
                  *(v for _ in range(2) for v in cell(net, rng, (units, units), gates, peepholes)), *states(4),
                  *(net.nothing() for _ in range(9)), *rest, net.scalar(merge), net.scalar(major),
                  *(net.nothing() for _ in range(8)), outs=outs + ends * 2 * int(rng.integers(0, 2)))
    net.model = net.finish(*one, *two)
    return net


def step(rng: np.random.Generator) -> Net:
    """One step of a few sequences, twice."""
    batch, units, width = (int(rng.integers(1, n)) for n in (4, 40, 24))
    gates, peepholes, net = int(rng.choice([3, 4])), bool(rng.integers(0, 2)), Net()
    x, outs = net.input(rng.standard_normal((batch, width))), list[int]()
    states = [net.input(rng.standard_normal((batch, units))) for _ in range(2)]
    for _ in range(2):
        rest = [net.scalar(4), net.scalar(float(rng.choice([0.0, 0.4]))), net.scalar(0.0)]
        kinds = [((batch, units * gates), FLOAT32), *[((batch, units), FLOAT32)] * 3]
        found = net.ops("LSTM", x, *cell(net, rng, (units, width), gates, peepholes), *states, *rest, outs=kinds)
        outs, states = outs + found, found[1:3]
    net.model = net.finish(*outs)
    return net


def gru(rng: np.random.Generator) -> Net:
    """One direction, forwards or backwards, or two."""
    time, batch, units, width = (int(rng.integers(1, n)) for n in (12, 4, 40, 24))
    count, net = int(rng.integers(1, 3)), Net()
    w, r = (net.const(rng.standard_normal((count, 3 * units, n)) / 2 / np.sqrt(n)) for n in (width, units))
    b = net.const(rng.standard_normal((count, 6 * units))) if rng.random() < 0.7 else net.nothing()
    zeros, acts = np.zeros(2 * count), [int(rng.integers(1, 3)), int(rng.integers(0, 3))]
    h = net.input(rng.standard_normal((count, batch, units))) if rng.random() < 0.5 else net.nothing()
    outs = net.ops("GRU_SEQUENCE", net.input(rng.standard_normal((time, batch, width))), w, r,
                   b, net.nothing(), h, net.const(acts * count, INT32),
                   net.const(zeros), net.const(zeros), net.scalar(0.0), net.scalar(count == 1 and rng.random() < 0.5),
                   net.scalar(rng.random() < 0.5),
                   outs=[((time, count, batch, units), FLOAT32), ((count, batch, units), FLOAT32)])
    net.model = net.finish(*outs)
    return net


def rnn(rng: np.random.Generator) -> Net:
    """A sequence forwards, one with any activation either way, and a step."""
    time, batch, units, width = (int(rng.integers(1, n)) for n in (12, 4, 40, 24))
    net, major = Net(), bool(rng.integers(0, 2))
    lead, end = (time, batch) if major else (batch, time), ((batch, units), FLOAT32)

    def weights(width: int) -> list[int]:
        return [net.const(rng.standard_normal(s) / 4) for s in ((units, width), (units, units), (units,))]

    def state() -> int:
        return net.input(rng.standard_normal((batch, units)))
    outs = [((*lead, units), FLOAT32), end]
    one = net.ops("UNIDIRECTIONAL_SEQUENCE_RNN", net.input(rng.standard_normal((*lead, width))), *weights(width),
                  state(), net.scalar(int(rng.integers(0, 4))), net.scalar(int(major)),
                  outs=outs[:int(rng.integers(1, 3))])
    two = net.ops("SEQUENCE_RNN", one[0], *weights(units), state(), net.scalar(int(rng.choice([0, 1, 3, 4, 6]))),
                  net.scalar(major), net.scalar(False), net.scalar(rng.random() < 0.5), outs=outs)
    last = net.ops("RNN", two[1], *weights(units), state(), net.scalar(int(rng.integers(0, 4))), outs=[end, end])
    net.model = net.finish(*one, *two, *last)
    return net


MAKES: dict[str, Make] = {"lstm": lstm, "step": step, "gru": gru, "rnn": rnn}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(20 if machine == "host" else 8):
        net = MAKES[family](rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations), n
        assert apart(got, want) <= NEAR, n
