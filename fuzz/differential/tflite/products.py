"""Steps that sum: matrices, reductions, recurrent operators."""
from __future__ import annotations

import math

import numpy as np

from ..draw import Unfit
from .elementwise import activation
from .growing import ACT, Growing, Value, step
from .images import product


@step("fq", range(1, 5), weight=4)
def fully_connected(m: Growing, x: Value) -> None:
    """FULLY_CONNECTED, axes kept at times; of floats with weights of bytes at times."""
    x = m.tamed(x)
    size = x.shape[-1]
    if not size:
        raise Unfit
    units, keep = m.draw.one([1, 2, 3, 5, 8, 17]), m.draw.chance(0.5)
    weight, scales = m.weights(x, (units, size), 0)
    rows = math.prod(x.shape[:-1])
    shape = [*x.shape[:-1], units] if keep else [rows, units]
    y = product(m, x, shape, float(scales.mean()), size)
    m.op("FULLY_CONNECTED", [x, weight, *(m.bias(x, units, scales) or [-1])], [y], "FullyConnectedOptions",
         {"KeepNumDims": keep, ACT: activation(m, x)}, {"int8": 5, "int16": 7}.get(x.dtype, 5))


@step("f", range(2, 5), weight=2)
def hybrid(m: Growing, x: Value) -> None:
    """FULLY_CONNECTED of floats with weights of bytes, symmetric and not."""
    x = m.tamed(x)
    units, size = m.draw.one([1, 2, 5, 8]), x.shape[-1]
    if not size:
        raise Unfit
    each = m.draw.chance(0.4)
    scales = m.draw.numbers.uniform(0.005, 0.02, units if each else 1).astype(np.float32)
    data = m.draw.integers((units, size), -127, 127, "int8")
    weight = m.tensor("int8", (units, size), data, scale=scales.tolist(), zero=0)
    y = product(m, x, [math.prod(x.shape[:-1]), units], 1.0, size)
    bias = m.bias(x, units, scales) or [-1]
    m.op("FULLY_CONNECTED", [x, weight, *bias], [y], "FullyConnectedOptions",
         {"AsymmetricQuantizeInputs": m.draw.chance(0.5), ACT: activation(m, x)}, 9)


@step("fq", range(2, 5), weight=3)
def matmul(m: Growing, x: Value) -> None:
    """BATCH_MATMUL with transposed factors and broadcast batches."""
    if x.dtype == "uint8":
        raise Unfit
    x = m.tamed(x)
    adj_x, adj_y = m.draw.chance(0.4), m.draw.chance(0.4)
    rows, depth = x.shape[-2:] if not adj_x else x.shape[:-3:-1]
    columns = m.draw.one([1, 2, 3, 5, 9])
    batch = m.draw.broadcast(x.shape[:-2]) if x.rank > 2 else ()
    right = m.constant(x, (*batch, *((columns, depth) if adj_y else (depth, columns))), -1, 1)
    if x.dtype == "int16":
        raise Unfit
    shape = [*np.broadcast_shapes(batch, x.shape[:-2]), rows, columns]
    y = product(m, x, shape, (right.scale or 1) * 1e-2, depth)
    m.op("BATCH_MATMUL", [x, right], [y], "BatchMatMulOptions", {"AdjX": adj_x, "AdjY": adj_y}, 2)


REDUCED = {"MEAN": "fq", "SUM": "fqi", "REDUCE_MAX": "fqi", "REDUCE_MIN": "fqi", "REDUCE_PROD": "fi",
           "REDUCE_ANY": "b", "REDUCE_ALL": "b"}


@step("fqib", range(1, 5), weight=5)
def reduction(m: Growing, x: Value) -> None:
    """A reduction over any axes, counted from either end."""
    x = m.tamed(x)
    rank = x.rank
    name = m.draw.one([n for n, kinds in REDUCED.items() if x.kind in kinds])
    axes = m.draw.some(range(rank), 1, rank)
    keep = m.draw.chance(0.5)
    count = math.prod(x.shape[i] for i in axes)
    if not count or x.dtype == "int16" and name not in ("MEAN", "REDUCE_MAX", "REDUCE_MIN"):
        raise Unfit
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    said = [i - (rank if m.draw.chance(0.4) else 0) for i in axes]
    low, high = x.low, x.high
    if name == "SUM":
        low, high = low * count, high * count
    if name == "REDUCE_PROD":
        if x.bound > 1 and math.log(x.bound) * count > 12:
            raise Unfit
        low, high = -max(1, x.bound) ** count, max(1, x.bound) ** count
    if x.kind == "i" and max(abs(low), abs(high)) > 1e8:
        raise Unfit
    y = m.made(x.dtype, shape, low, high, scale=x.scale, zero=x.zero)
    if x.kind == "q" and name in ("MEAN", "SUM") and m.draw.chance(0.7):
        y = m.coded(shape, max(abs(low), abs(high)) * (0.3 if name == "MEAN" else 0.2), x.dtype)
    m.op(name, [x, m.ints(said)], [y], "ReducerOptions", {"KeepDims": keep},
         2 if x.kind == "q" else 1)


@step("f", range(3, 4), weight=2)
def recurrent(m: Growing, x: Value) -> None:
    """UNIDIRECTIONAL_SEQUENCE_RNN and _LSTM of floats."""
    x = m.tamed(x)
    major = m.draw.chance(0.5)
    time, batch, depth = x.shape if major else (x.shape[1], x.shape[0], x.shape[2])
    units = m.draw.one([1, 2, 3, 4, 5, 8])
    if 0 in x.shape or time > 12:
        raise Unfit
    shape = (time, batch, units) if major else (batch, time, units)
    spread = 1 / math.sqrt(depth + units)

    def weight(*dims: int) -> int:
        return m.float32(m.draw.floats(dims, -spread, spread))

    if m.draw.chance(0.5):
        state = m.tensor("float32", (batch, units), variable=True)
        act = m.draw.one([1, 3, 4])
        high = 1.0 if act == 4 else (x.bound + 2) * 2.0 ** time
        if high > 1e6:
            raise Unfit
        m.op("UNIDIRECTIONAL_SEQUENCE_RNN",
             [x, weight(units, depth), weight(units, units), weight(units), state],
             [m.made("float32", shape, -high, high)], "SequenceRNNOptions",
             {"TimeMajor": major, ACT: act})
        return
    coupled, peephole, projected = (m.draw.chance(0.25) for _ in range(3))
    outputs = m.draw.one([1, 2, 3]) if projected else units
    shape = (*shape[:2], outputs)
    own, none = [weight(units, depth) for _ in range(4)], -1
    rec = [weight(units, outputs) for _ in range(4)]
    peep = [weight(units) if peephole else none for _ in range(3)]
    bias = [weight(units) for _ in range(4)]
    if coupled:
        own[0] = rec[0] = bias[0] = peep[0] = none
    projection = [weight(outputs, units), weight(outputs) if m.draw.chance(0.5) else none] if projected else [none] * 2
    states = [m.tensor("float32", (batch, outputs), variable=True), m.tensor("float32", (batch, units), variable=True)]
    clips = {"CellClip": m.draw.one([0.0, 0.0, 1.0]), "ProjClip": m.draw.one([0.0, 0.5]) if projected else 0.0}
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *own, *rec, *peep, *bias, *projection, *states],
         [m.made("float32", shape, -4, 4)], "UnidirectionalSequenceLSTMOptions",
         {ACT: 4, "TimeMajor": major, **clips})


@step("f", range(2, 3))
def svdf(m: Growing, x: Value) -> None:
    """SVDF of floats."""
    x = m.tamed(x)
    batch, depth = x.shape
    units, rank, memory = m.draw.one([1, 2, 4]), m.draw.between(1, 2), m.draw.between(1, 5)
    if 0 in x.shape:
        raise Unfit
    filters = units * rank
    state = m.tensor("float32", (batch, memory * filters), variable=True)
    bias = m.float32(m.draw.floats((units,), -1, 1)) if m.draw.chance(0.7) else -1
    bound = x.bound * depth * memory * rank + 1
    m.op("SVDF", [x, m.float32(m.draw.floats((filters, depth), -1, 1)),
                  m.float32(m.draw.floats((filters, memory), -1, 1)), bias, state],
         [m.made("float32", (batch, units), -bound, bound)], "SVDFOptions", {"Rank": rank, ACT: m.draw.one([0, 1])})
