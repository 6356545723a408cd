"""Models of one recurrent operator with weights drawn by a seed; their states are variables."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from tflite_writer import TFLiteWriter

Array = np.ndarray[Any, np.dtype[Any]]
ACT, WIDE = "FusedActivationFunction", "AsymmetricQuantizeInputs"
BATCH, TIME, WIDTH, UNITS = 2, 3, 5, 4
LIMITS = {"int8": 127, "int16": 32767}
TANH = 4


@dataclass
class Maker:
    """Draws the tensors of one model; `file` finishes it."""

    seed: int
    w: TFLiteWriter = field(default_factory=TFLiteWriter)
    made: int = 0

    def __post_init__(self) -> None:
        self.r = np.random.default_rng(self.seed)

    def count(self) -> int:
        """One more each time."""
        self.made += 1
        return self.made

    def weights(self, dtype: str, *shape: int, scale: float = 0.01) -> int:
        """A constant; of integers over their whole range."""
        name = f"t{self.count()}"
        if dtype == "float32":
            return self.w.tensor(name, dtype, shape, (self.r.normal(size=shape) * 0.5).astype(np.float32))
        most = LIMITS.get(dtype, 1000)
        return self.w.tensor(name, dtype, shape, self.r.integers(-most, most + 1, shape), scale=scale, zero=0)

    def port(self, dtype: str, *shape: int, scale: float | None = None, zero: int = 0, variable: bool = False) -> int:
        """An input, an output or a state."""
        name = f"t{self.count()}"
        return self.w.tensor(name, dtype, shape, scale=scale, zero=None if scale is None else zero, variable=variable)

    def file(self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: str, values: dict[str, Any],
             intermediates: Sequence[int] = ()) -> bytes:
        """The model of this operator; its first input is what the model takes."""
        self.w.op(name, inputs, outputs, options, values, intermediates=intermediates)
        return self.w.finish(inputs[:1], outputs)


def svdf(seed: int, kind: str = "float32", wide: bool = False, x: str = "float32") -> bytes:
    """SVDF of rank 2 and 3 outputs."""
    m, (rank, memory) = Maker(seed), (2, 6)
    filters, whole = 3 * rank, x == "int8"
    wt = m.weights("int16" if whole else kind, filters, memory, scale=0.0002 if whole else 0.01)
    ins = [m.port(x, BATCH, WIDTH, scale=0.05 if whole else None, zero=-3), m.weights(kind, filters, WIDTH), wt,
           m.weights("int32" if whole else "float32", 3, scale=2e-7),
           m.port("int16" if whole else "float32", BATCH, memory * filters, scale=0.001 if whole else None,
                  variable=True)]
    out = m.port(x, BATCH, 3, scale=0.4 if whole else None, zero=4)
    return m.file("SVDF", ins, [out], "SVDFOptions", {"Rank": rank, ACT: 1 if whole else seed % 2, WIDE: wide})


def network(m: Maker, kind: str) -> list[int]:
    """The weights and the state of an RNN."""
    return [m.weights(kind, UNITS, WIDTH), m.weights(kind, UNITS, UNITS), m.weights("float32", UNITS),
            m.port("float32", BATCH, UNITS, variable=True)]


def rnn(seed: int, kind: str = "float32", wide: bool = False) -> bytes:
    """One step."""
    m = Maker(seed)
    ins = [m.port("float32", BATCH, WIDTH), *network(m, kind)]
    return m.file("RNN", ins, [m.port("float32", BATCH, UNITS)], "RNNOptions",
                  {ACT: (TANH, 1)[seed % 2], WIDE: wide})


def steps(major: bool, width: int) -> tuple[int, int, int]:
    """The shape of a sequence."""
    return (TIME, BATCH, width) if major else (BATCH, TIME, width)


def sequence_rnn(seed: int, kind: str = "float32", wide: bool = False) -> bytes:
    """Over time, in both layouts."""
    m, major = Maker(seed), seed // 2 % 2 == 1
    ins = [m.port("float32", *steps(major, WIDTH)), *network(m, kind)]
    return m.file("UNIDIRECTIONAL_SEQUENCE_RNN", ins, [m.port("float32", *steps(major, UNITS))], "SequenceRNNOptions",
                  {ACT: (TANH, 1)[seed % 2], "TimeMajor": major, WIDE: wide})


def two_way_rnn(seed: int, kind: str = "float32", wide: bool = False) -> bytes:
    """In both directions. (LiteRT's own kernel of int8 weights ends the process.)"""
    m, major, merge = Maker(seed), seed // 2 % 2 == 1, seed % 3 == 0
    ins = [m.port("float32", *steps(major, WIDTH)), *network(m, kind), *network(m, kind), *[-1] * 3]
    outs = [m.port("float32", *steps(major, 2 * UNITS if merge else UNITS)) for _ in range(1 if merge else 2)]
    return m.file("BIDIRECTIONAL_SEQUENCE_RNN", ins, outs, "BidirectionalSequenceRNNOptions",
                  {ACT: (TANH, 1)[seed % 2], "TimeMajor": major, "MergeOutputs": merge, WIDE: wide})


def cell(m: Maker, kind: str, way: str, bias: str = "float32", vector: str = "float32") -> list[int]:
    """The weights of an LSTM; its way is some of cifg, peephole, projection."""
    width = UNITS - 1 if "projection" in way else UNITS
    first, skip = (1, [-1]) if "cifg" in way else (0, [])
    count, grid = (3 - first if "peephole" in way else 0), 0.0001 if vector == "int16" else 0.005
    peepholes = [m.weights(vector, UNITS, scale=grid) for _ in range(count)]
    spread = [*skip, *peepholes] if peepholes else [-1] * 3
    biases = [m.weights(bias, UNITS, scale=0.0005) for _ in range(4 - first)]
    wp = [m.weights(kind, width, UNITS), m.weights(bias, width, scale=0.0001)] if "projection" in way else [-1, -1]
    return [*skip, *(m.weights(kind, UNITS, WIDTH) for _ in range(4 - first)),
            *skip, *(m.weights(kind, UNITS, width) for _ in range(4 - first)), *spread, *skip, *biases, *wp]


def norms(m: Maker, way: str, kind: str) -> list[int]:
    """The weights of layer normalisation, where the way has it."""
    if "norm" not in way:
        return []
    skip = [-1] if "cifg" in way else []
    return skip + [m.weights(kind, UNITS, scale=0.00003) for _ in range(4 - len(skip))]


def lstm(seed: int, kind: str = "float32", wide: bool = False, way: str = "") -> bytes:
    """Over time on floats."""
    m, major, width = Maker(seed), seed % 2 == 1, UNITS - 1 if "projection" in way else UNITS
    ins = [m.port("float32", *steps(major, WIDTH)), *cell(m, kind, way, vector=kind),
           m.port("float32", BATCH, width, variable=True), m.port("float32", BATCH, UNITS, variable=True)]
    ins += norms(m, way, "float32")
    return m.file("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, [m.port("float32", *steps(major, width))],
                  "UnidirectionalSequenceLSTMOptions",
                  {ACT: TANH, "TimeMajor": major, "CellClip": 1.5 * (seed % 3 == 0), WIDE: wide})


def one_lstm(seed: int, kind: str = "float32", wide: bool = False) -> bytes:
    """One step on floats."""
    m = Maker(seed)
    ins = [m.port("float32", BATCH, WIDTH), *cell(m, kind, ""), m.port("float32", BATCH, UNITS, variable=True),
           m.port("float32", BATCH, UNITS, variable=True)]
    return m.file("LSTM", ins, [m.port("float32", BATCH, UNITS)], "LSTMOptions", {ACT: TANH, WIDE: wide})


def whole_lstm(seed: int, way: str = "", one: bool = False) -> bytes:
    """In integers: over time, or one step."""
    m, major = Maker(seed), seed % 2 == 1
    width, shape = (UNITS - 1 if "projection" in way else UNITS), partial(steps, major)
    lead = (BATCH,) if one else shape(0)[:2]
    ins = [m.port("int8", *lead, WIDTH, scale=0.02, zero=5), *cell(m, "int8", way, "int32", "int16"),
           m.port("int8", BATCH, width, scale=0.008, zero=-4, variable=True),
           m.port("int16", BATCH, UNITS, scale=2.0**-11, variable=True)]
    ins += norms(m, way, "int16")
    grids = [m.port("int16", 1, scale=0.0004 + 0.0001 * i) for i in range(4)]
    grids.append(m.port("int8", 1, scale=0.009, zero=-6))
    out = m.port("int8", *lead, width, scale=0.008, zero=-4)
    values = {ACT: TANH, "CellClip": 1.5 * (seed % 3 == 0), "ProjClip": 0.9 * (seed % 5 == 0)}
    if one:
        return m.file("LSTM", ins, [out], "LSTMOptions", values, grids)
    return m.file("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, [out], "UnidirectionalSequenceLSTMOptions",
                  values | {"TimeMajor": major}, grids)


def basic_lstm(seed: int, whole: bool = False) -> bytes:
    """One step of the kernel with one matrix; on uint8 or floats."""
    m, x, c = Maker(seed), "uint8" if whole else "float32", "int16" if whole else "float32"
    grid: dict[str, Any] = {"scale": 2.0**-7, "zero": 128} if whole else {}
    kept: dict[str, Any] = {"scale": 2.0**-11} if whole else {}
    w = m.w.tensor("w", x, (4 * UNITS, WIDTH + UNITS), m.r.integers(0, 256, (4 * UNITS, WIDTH + UNITS)), scale=0.01,
                   zero=120) if whole else m.weights(x, 4 * UNITS, WIDTH + UNITS)
    ins = [m.port(x, BATCH, WIDTH, **grid), m.port(x, BATCH, UNITS, variable=True, **grid), w,
           m.weights("int32" if whole else x, 4 * UNITS, scale=0.01 * 2.0**-7),
           m.port(c, BATCH, UNITS, variable=True, **kept)]
    sums: dict[str, Any] = {"scale": 2.0**-12} if whole else {}
    outs = [m.port(x, BATCH, UNITS, **grid), m.port(c, BATCH, UNITS, **kept), m.port(x, BATCH, WIDTH + UNITS, **grid),
            m.port(c, BATCH, 4 * UNITS, **sums)]
    m.w.op("LSTM", ins, outs, "LSTMOptions", {"KernelType": 1, ACT: TANH})
    return m.w.finish(ins[:1], outs if whole else outs[:2])


def two_way_lstm(seed: int, kind: str = "float32", wide: bool = False) -> bytes:
    """In both directions on floats; time major, as LiteRT reads states it has not written where the batch is first."""
    m, major, merge = Maker(seed), True, seed % 2 == 0
    ins = [m.port("float32", *steps(major, WIDTH)), *cell(m, kind, ""), *cell(m, kind, ""),
           *(m.port("float32", BATCH, UNITS, variable=True) for _ in range(4)), *[-1] * 9]
    outs = [m.port("float32", *steps(major, 2 * UNITS if merge else UNITS)) for _ in range(1 if merge else 2)]
    return m.file("BIDIRECTIONAL_SEQUENCE_LSTM", ins, outs, "BidirectionalSequenceLSTMOptions",
                  {ACT: TANH, "TimeMajor": major, "MergeOutputs": merge, WIDE: wide})


Make = Callable[[int], bytes]
#: What is made, and the largest difference from LiteRT's, whose functions of floats are its own.
FILES: dict[str, tuple[Make, float]] = {
    "SVDF": (svdf, 1e-6), "int8 SVDF": (partial(svdf, kind="int8", x="int8"), 0),
    "hybrid SVDF": (partial(svdf, kind="int8"), 0),
    "hybrid SVDF asymmetric": (partial(svdf, kind="int8", wide=True), 0),
    "RNN": (rnn, 1e-6), "hybrid RNN": (partial(rnn, kind="int8"), 1e-6),
    "hybrid RNN asymmetric": (partial(rnn, kind="int8", wide=True), 1e-6),
    "sequence RNN": (sequence_rnn, 1e-6), "hybrid sequence RNN": (partial(sequence_rnn, kind="int8"), 1e-6),
    "RNN both ways": (two_way_rnn, 1e-6),
    **{f"LSTM {way}".strip(): (partial(lstm, way=way), 2e-6)
       for way in ("", "cifg", "peephole", "projection", "norm", "cifg peephole projection norm")},
    **{f"hybrid LSTM {way}".strip(): (partial(lstm, kind="int8", way=way), 2e-6)
       for way in ("", "cifg", "peephole", "projection")},
    "hybrid LSTM asymmetric": (partial(lstm, kind="int8", wide=True), 2e-6),
    "LSTM of one step": (one_lstm, 2e-6), "hybrid LSTM of one step": (partial(one_lstm, kind="int8"), 2e-6),
    "LSTM of one matrix": (basic_lstm, 2e-6), "uint8 LSTM of one matrix": (partial(basic_lstm, whole=True), 0),
    "LSTM both ways": (two_way_lstm, 2e-6), "hybrid LSTM both ways": (partial(two_way_lstm, kind="int8"), 2e-6),
    **{f"int8 LSTM {way}".strip(): (partial(whole_lstm, way=way), 0)
       for way in ("", "cifg", "peephole", "projection", "norm", "cifg peephole projection norm")},
    "int8 LSTM of one step": (partial(whole_lstm, one=True), 0)}
