"""Recurrent operations and others in integers natively, against NumPy to the bit: any sizes, batches and grids."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from natively import WIDE, Net, both, code_of

from nnx_convert import OperandCode

Rng = np.random.Generator
Make = Callable[[Rng], Net]
Q8S, QS, Q16S = (OperandCode.TENSOR_QUANT8_ASYMM_SIGNED, OperandCode.TENSOR_QUANT8_SYMM,
                 OperandCode.TENSOR_QUANT16_SYMM)
INT32 = OperandCode.TENSOR_INT32


def spread(rng: Rng, low: int, high: int, *shape: int) -> Any:
    """Integers of a range, sometimes its ends only."""
    return rng.choice([low, high, 0], shape) if rng.random() < 0.2 else rng.integers(low, high + 1, shape)


def scale(rng: Rng, low: float, high: float) -> float:
    """A scale in FLOAT32."""
    return float(np.float32(rng.uniform(low, high)))


def cell(net: Net, rng: Rng, width: int, units: int) -> list[int]:
    """The weights and biases of a cell, its input gate perhaps left out."""
    own = rng.random() < 0.7

    def weights(there: bool, depth: int) -> int:
        grid = scale(rng, 0.002, 0.02), 0
        return net.const(spread(rng, -127, 127, units, depth), QS, grid) if there else net.nothing()
    gates = (own, True, True, True)
    found = [weights(there, depth) for depth in (width, units) for there in gates]
    found += [net.nothing()] * 3
    found += [net.const(spread(rng, -4000, 4000, units), INT32) if there else net.nothing() for there in gates]
    return [*found, net.nothing(), net.nothing()]


def lstm(rng: Rng) -> Net:
    """One step, or a sequence."""
    net, sequence = Net(), bool(rng.integers(0, 2))
    time, batch, units, width = (int(rng.integers(1, n)) for n in (9 if sequence else 2, 4, 70, 90))
    major = bool(rng.integers(0, 2))
    lead = ((time, batch) if major else (batch, time)) if sequence else (batch,)
    x = net.input(spread(rng, -128, 127, *lead, width), Q8S, (scale(rng, 0.005, 0.05), int(rng.integers(-128, 128))))
    of_h, of_c = (scale(rng, 0.004, 0.01), int(rng.integers(-20, 20))), (2.0 ** -int(rng.integers(9, 14)), 0)
    h = net.input(spread(rng, -128, 127, batch, units), Q8S, of_h)
    c = net.input(spread(rng, -32768, 32767, batch, units), Q16S, of_c)
    clip = float(rng.choice([0.0, 2.5]))
    weights, norm = cell(net, rng, width, units), [net.nothing()] * 4
    grids = [net.scalar(scale(rng, 1e-4, 1e-3)) for _ in range(4)]
    hidden = [net.scalar(int(rng.integers(-20, 20))), net.scalar(scale(rng, 0.004, 0.01))]
    states = [net.builder.add_operand(kind, (batch, units), *on) for kind, on in ((Q8S, of_h), (Q16S, of_c))]
    out = net.builder.add_operand(Q8S, (*lead, units), *of_h)
    given = [x, *weights, h, c, *norm, net.scalar(clip), net.scalar(0.0)]
    if sequence:
        net.builder.add_operation(code_of("QUANTIZED_SEQUENCE_LSTM"), [*given, net.scalar(major), *grids, *hidden],
                                  [out, *states])
    else:
        net.builder.add_operation(code_of("QUANTIZED_LSTM"), [*given, *grids, *hidden], [*states, out])
    net.model = net.finish(out, *states)
    return net


def svdf(rng: Rng) -> Net:
    """Memories of any length, filters added up by rank, with and without a bias."""
    net, (batch, width, units, memory, rank) = Net(), (int(n) for n in rng.integers(1, [4, 70, 40, 70, 4]))
    filters = units * rank
    x = net.input(spread(rng, -128, 127, batch, width), Q8S, (scale(rng, 0.005, 0.05), int(rng.integers(-128, 128))))
    of_state, of_out = (scale(rng, 0.0005, 0.005), 0), (scale(rng, 0.005, 0.05), int(rng.integers(-128, 128)))
    wf = net.const(spread(rng, -128, 127, filters, width), Q8S, (scale(rng, 0.002, 0.02), 0))
    wt = net.const(spread(rng, -32768, 32767, filters, memory), Q16S, (scale(rng, 1e-5, 1e-4), 0))
    b = net.const(spread(rng, -4000, 4000, units), INT32) if rng.random() < 0.7 else net.nothing()
    state = net.input(spread(rng, -32768, 32767, batch, filters * memory), Q16S, of_state)
    after = net.builder.add_operand(Q16S, (batch, filters * memory), *of_state)
    out = net.builder.add_operand(Q8S, (batch, units), *of_out)
    net.builder.add_operation(code_of("host.SVDF"), [x, wf, wt, b, state, net.scalar(rank), net.scalar(1)],
                              [after, out])
    net.model = net.finish(after, out)
    return net


def softmax(rng: Rng) -> Net:
    """Rows of 16-bit integers, or of bytes that become such."""
    net, shape = Net(), (int(rng.integers(1, 9)), int(rng.integers(1, 40)))
    wide = bool(rng.integers(0, 2))
    kind, low, high = (OperandCode.TENSOR_INT16, -32768, 32767) if wide else (Q8S, -128, 127)
    grid = (scale(rng, 1e-5, 1e-3), 0) if wide else (scale(rng, 0.01, 0.2), int(rng.integers(-128, 128)))
    x = net.input(spread(rng, low, high, *shape), kind, grid)
    y = net.op("host.SOFTMAX", x, net.scalar(float(np.float32(rng.choice([0.5, 1.0])))), net.scalar(-1), shape=shape,
               kind=OperandCode.TENSOR_INT16, grid=(2.0 ** -15, 0) if wide else (2.0 ** -16, -32768))
    net.model = net.finish(y)
    return net


def short_softmax(rng: Rng) -> Net:
    """Short rows of bytes on a grid that LiteRT has no integer kernel for."""
    net, shape = Net(), (int(rng.integers(1, 30)), int(rng.integers(1, 8)))
    kind, low = ((Q8S, -128), (OperandCode.TENSOR_QUANT8_ASYMM, 0))[int(rng.integers(0, 2))]
    to, grid = ((OperandCode.TENSOR_INT16, (1 / 65535, -32768)), (kind, (1 / 200, low + 3)))[int(rng.integers(0, 2))]
    x = net.input(spread(rng, low, low + 255, *shape), kind, (scale(rng, 0.01, 0.2), low + int(rng.integers(0, 256))))
    y = net.op("host.SOFTMAX", x, net.scalar(float(np.float32(rng.choice([0.5, 1.0])))), net.scalar(-1), shape=shape,
               kind=to, grid=(float(np.float32(grid[0])), grid[1]))
    net.model = net.finish(y)
    return net


def rescaled(rng: Rng) -> Net:
    """Integers of 16 or 32 bits on another grid."""
    kinds = {Q16S: (-32768, 32767), OperandCode.TENSOR_QUANT16_ASYMM: (0, 65535), INT32: (-1 << 31, (1 << 31) - 1)}
    net, shape = Net(), (int(rng.integers(1, 60)),)
    kind, to = list(kinds)[rng.integers(0, 3)], [*kinds, Q8S][rng.integers(0, 4)]

    def grid(kind: OperandCode) -> tuple[float, int]:
        return scale(rng, 1e-4, 1e-2), 0 if kind in (Q16S, INT32) else int(rng.integers(0, 100))
    y = net.op("host.REQUANTIZE", net.input(spread(rng, *kinds[kind], *shape), kind, grid(kind)),
               shape=shape, kind=to, grid=grid(to))
    net.model = net.finish(y)
    return net


MAKES: dict[str, Make] = {"lstm": lstm, "svdf": svdf, "softmax": softmax, "short softmax": short_softmax,
                          "rescaled": rescaled}


@pytest.mark.parametrize("machine", WIDE)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng = np.random.default_rng(7)
    for n in range(24 if machine == "host" else 8):
        net = MAKES[family](rng)
        want, got, native = both(net.model, net.given, WIDE[machine], 1 + n % 2)
        assert native == len(net.model.operations), n
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, err_msg=f"{n}")
