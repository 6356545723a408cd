"""Recurrent operators: NNAPI's LSTM and RNN where they say the same, else the host's sequences.

ONNX's weights of all gates are one matrix, in the order i o f c (LSTM) or z r h (GRU), one for each direction.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import FormatError
from ....frozen import frozen
from ....graph import Value, Values
from ....ops import conv, elementwise as e, recurrent, rnn, rnn_nd, shape
from ....types import F16, F32, Tensor, known
from ..importer import Op
from ..registry import imports

DIRECTIONS = ("forward", "reverse", "bidirectional")
#: NNAPI's codes of activations.
CODES = {"Relu": 1, "Tanh": 4, "Sigmoid": 6}
#: The activations of a direction where the file names none, by how many there are.
DEFAULTS = {1: ("Tanh",), 2: ("Sigmoid", "Tanh"), 3: ("Sigmoid", "Tanh", "Tanh")}


@frozen
class Sequence:
    """An operator's tensors, time first, and how it runs over them."""

    x: Value
    w: Value
    r: Value
    b: Value | None
    lengths: Value | None
    h: Value | None
    acts: tuple[str, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    clip: float
    direction: str

    @property
    def count(self) -> int:
        """How many directions there are."""
        return 2 if self.direction == "bidirectional" else 1

    @property
    def units(self) -> int:
        """How many numbers a state has."""
        return self.r.shape[2]

    @property
    def plain(self) -> bool:
        """Whether all steps of all sequences are run, nothing is clipped, and all ranks are known."""
        shaped = all(v is None or v.tensor.dims is not None for v in (self.x, self.w, self.r, self.h))
        return self.lengths is None and not self.clip and shaped

    @property
    def named(self) -> dict[str, Any]:
        """As arguments of the host's sequences."""
        names = [*rnn_nd.ACTIVATIONS]
        return {"x": self.x, "w": self.w, "r": self.r, "b": self.b, "lengths": self.lengths, "h": self.h,
                "acts": [names.index(a) for a in self.acts], "clip": self.clip,
                "backward": self.direction == "reverse"}


def sequence(g: Op, each: int, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None, h: Value | None,
             acts: tuple[str, ...] | None, alpha: tuple[float, ...], beta: tuple[float, ...], clip: float,
             direction: str, layout: int) -> Sequence:
    """An operator's inputs and attributes put together, `each` direction with so many activations.

    Raises `FormatError`.
    """
    if direction not in DIRECTIONS or layout not in (0, 1):
        raise FormatError(f"direction is {direction!r}, layout {layout}")
    ranks = [3 if v is None or v.tensor.dims is None else g.rank(v) for v in (x, w, r, h)]
    if set(ranks) != {3}:
        raise FormatError(f"x, w, r and h have the ranks {ranks}, not 3")
    count = 2 if direction == "bidirectional" else 1
    names = named(acts or DEFAULTS[each] * count, each * count)
    if layout:
        x = g(shape.TRANSPOSE, x, [1, 0, 2])
        h = None if h is None else g(shape.TRANSPOSE, h, [1, 0, 2])
    lengths = None if lengths is None or whole(g, lengths, x) else lengths
    a, z = numbers(names, alpha, 0), numbers(names, beta, 1)
    return Sequence(x, w, r, b, lengths, h, names, a, z, clip, direction)


def named(acts: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The names of activations as ONNX spells them; raises `FormatError`."""
    spelt = {a.lower(): a for a in rnn_nd.ACTIVATIONS}
    if len(acts) != count or not all(a.lower() in spelt for a in acts):
        raise FormatError(f"activations are {list(acts)}")
    return tuple(spelt[a.lower()] for a in acts)


def numbers(acts: tuple[str, ...], given: tuple[float, ...], which: int) -> tuple[float, ...]:
    """The numbers of activations: the file's for those that have one, in order, else their own."""
    rest, takes = list(given), TAKES[which]
    return tuple(rest.pop(0) if a in takes and rest else rnn_nd.ACTIVATIONS[a][which] for a in acts)


#: Activations with an alpha, and those with a beta.
TAKES = ({"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"},
         {"Affine", "ScaledTanh", "HardSigmoid"})


def whole(g: Op, lengths: Value, x: Value) -> bool:
    """Whether all sequences are known to be as long as they can be."""
    data = g.known(lengths)
    return data is not None and known(x.shape[0]) and bool((data == x.shape[0]).all())


def results(g: Op, found: Values, layout: int) -> Any:
    """The outputs [time, directions, batch, units] and [directions, batch, units], batch first where asked for."""
    if layout:
        found = (g(shape.TRANSPOSE, found[0], [2, 0, 1, 3]), *(
            g(shape.TRANSPOSE, v, [1, 0, 2]) for v in found[1:]))
    return list(found[:g.count])


def part(g: Op, v: Value, direction: int, at: slice) -> Value:
    """Rows of the weights of one direction."""
    begin, end = at.start, at.stop
    rest = v.shape[2:]
    cut = g(shape.SLICE, v, [direction, begin] + [0] * len(rest), [1, end - begin, *[-1] * len(rest)]) \
        if v.shape[0] > 1 or end - begin != v.shape[1] else v
    return g.reshape(cut, (end - begin, *rest))


def gate(g: Op, s: Sequence, v: Value | None, direction: int, index: int) -> Value:
    """The weights of one gate of one direction; zeros of a bias that is not there."""
    if v is None:
        return g.const(np.zeros(s.units, s.x.type.dtype), s.x.type)
    return part(g, v, direction, slice(index * s.units, (index + 1) * s.units))


def biases(g: Op, s: Sequence, direction: int, index: int, gates: int) -> Value:
    """The bias of one gate: that of the input and that of the state."""
    first = gate(g, s, s.b, direction, index)
    return first if s.b is None else g(e.ADD, first, gate(g, s, s.b, direction, gates + index), act=0)


def state(g: Op, s: Sequence, v: Value | None, direction: int) -> Value:
    """A state [batch, units] of one direction before the first step: zeros where none is given."""
    if v is not None:
        return g.reshape(v if v.shape[0] == 1 else g(shape.SLICE, v, [direction, 0, 0], [1, -1, -1]), v.shape[1:])
    if known(s.x.shape[1]):
        return g.const(np.zeros((s.x.shape[1], s.units), s.x.type.dtype), s.x.type)
    return zeros(g, s, s.direction == "reverse" or direction == 1)


def zeros(g: Op, s: Sequence, last: bool) -> Value:
    """Zeros [batch, units] for a batch of an open size, made of the step that is run first.

    What is no number there gives none, and so it does in every output of its sequence anyway.
    """
    kind, width = s.x.type, s.w.shape[2]
    step = g(shape.STRIDED_SLICE, s.x, [-1 if last else 0, 0, 0], [0 if last else 1, 0, 0], [1, 1, 1], begin_mask=6,
             end_mask=6 | last, shrink_mask=1, out=Tensor(kind, s.x.shape[1:]))
    none = g.const(np.zeros((1, 1), kind.dtype), kind)
    flat = g(e.MINIMUM, g(e.MAXIMUM, step, none), none)
    w, b = (g.const(np.zeros(n, kind.dtype), kind) for n in ((s.units, width), s.units))
    return g(conv.FULLY_CONNECTED, flat, w, b, act=0, out=Tensor(kind, (s.x.shape[1], s.units)))


def stacked(g: Op, ways: list[Values]) -> Values:
    """The outputs of directions, all with an axis for these."""
    outs = [[g.reshape(v, (*v.shape[:-2], 1, *v.shape[-2:])) for v in column] for column in zip(*ways, strict=True)]
    return tuple(column[0] if len(column) == 1 else g(shape.CONCATENATION, xs=tuple(column), axis=len(
        column[0].shape) - 3) for column in outs)


def reversed_(g: Op, x: Value) -> Value:
    """A sequence from its end to its beginning."""
    every, rank = (1 << len(x.shape)) - 1, len(x.shape)
    return g(shape.STRIDED_SLICE, x, [0] * rank, [0] * rank, [-1, *[1] * (rank - 1)], begin_mask=every, end_mask=every,
             shrink_mask=0, out=Tensor(x.type, x.shape))


@imports("LSTM", until=6, arithmetic=True)
def lstm_outputs(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
                 h: Value | None = None, c: Value | None = None, p: Value | None = None, *,
                 activation_alpha: tuple[float, ...] = (), activation_beta: tuple[float, ...] = (),
                 activations: tuple[str, ...] | None = None, clip: float = 0.0, direction: str = "forward",
                 hidden_size: int = 0, input_forget: int = 0, output_sequence: int = 0) -> Any:
    return LSTM(g, x, w, r, b, lengths, h, c, p, activation_alpha=activation_alpha, activation_beta=activation_beta,
                activations=activations, clip=clip, direction=direction, input_forget=input_forget)


@imports(since=7, arithmetic=True)
def LSTM(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
         h: Value | None = None, c: Value | None = None, p: Value | None = None, *,
         activation_alpha: tuple[float, ...] = (), activation_beta: tuple[float, ...] = (),
         activations: tuple[str, ...] | None = None, clip: float = 0.0, direction: str = "forward",
         hidden_size: int = 0, input_forget: int = 0, layout: int = 0) -> Any:
    s = sequence(g, 3, x, w, r, b, lengths, h, activations, activation_alpha, activation_beta, clip, direction, layout)
    if layout and c is not None:
        c = g(shape.TRANSPOSE, c, [1, 0, 2])
    found = None if input_forget else lstm(g, s, c, p)
    if found is None:
        found = g.add(rnn_nd.LSTM_SEQUENCE, **s.named, c=c, p=p, alpha=g.const(np.array(s.alpha, np.float32)),
                      beta=g.const(np.array(s.beta, np.float32)), coupled=bool(input_forget))
    return results(g, found, layout)


def lstm(g: Op, s: Sequence, c: Value | None, p: Value | None) -> Values | None:
    """The outputs by NNAPI's; None where that means something else."""
    acts = s.acts[:3]
    if not s.plain or c is not None and c.tensor.dims is None or s.x.type not in (F32, F16) or not known(s.units):
        return None
    if acts[0] != "Sigmoid" or acts[1] != acts[2] or acts[1] not in CODES or s.acts != acts * s.count:
        return None
    held = [v for d in range(s.count) for v in both(g, s, c, d)]
    cells = [cell(g, s, p, d) for d in range(s.count)]
    none = rnn.Norm(*[None] * 4)
    named: dict[str, Any] = {"act": CODES[acts[1]], "cell_clip": 0.0, "proj_clip": 0.0, "time_major": True}
    if s.count == 2:
        fw, bw, *ends = g.add(
            rnn.BIDIRECTIONAL_SEQUENCE_LSTM, s.x, *cells, *held, None, rnn.Aux(*[None] * 4), rnn.Aux(*[None] * 4),
            merge=False, fw_norm=none, bw_norm=none, outs=(None,) * 6, **named)
        return stacked(g, [(fw, *ends[:2]), (bw, *ends[2:])])
    back = s.direction == "reverse"
    out, *last = g.add(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, reversed_(g, s.x) if back else s.x, *cells, *held, norm=none,
                       outs=(None,) * 3, **named)
    return stacked(g, [(reversed_(g, out) if back else out, *last)])


def both(g: Op, s: Sequence, c: Value | None, d: int) -> tuple[Value, Value]:
    """The states of one direction before the first step; the same zeros for both."""
    h = state(g, s, s.h, d)
    return h, h if s.h is None and c is None else state(g, s, c, d)


def cell(g: Op, s: Sequence, p: Value | None, d: int) -> rnn.Cell:
    """The weights of one direction."""
    gates = (("i", 0), ("o", 1), ("f", 2), ("c", 3))
    parts: dict[str, Any] = {f"{kind}{name}": gate(g, s, v, d, at) for kind, v in (("w", s.w), ("r", s.r))
                             for name, at in gates}
    parts |= {f"b{name}": biases(g, s, d, at, 4) for name, at in gates}
    parts |= {f"p{name}": None if p is None else gate(g, s, p, d, at) for name, at in gates[:3]}
    return rnn.Cell(**parts, wp=None, bp=None)


@imports("GRU", until=6, arithmetic=True)
def gru_outputs(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
                h: Value | None = None, *, activation_alpha: tuple[float, ...] = (),
                activation_beta: tuple[float, ...] = (), activations: tuple[str, ...] | None = None,
                clip: float = 0.0, direction: str = "forward", hidden_size: int = 0, linear_before_reset: int = 0,
                output_sequence: int = 0) -> Any:
    # The schema of version 1 misspells its own default, and files have it from there.
    return GRU(g, x, w, r, b, lengths, h, activation_alpha=activation_alpha, activation_beta=activation_beta,
               activations=activations, clip=clip, direction="forward" if direction == "foward" else direction,
               linear_before_reset=linear_before_reset)


@imports(since=7, arithmetic=True)
def GRU(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None, *, activation_alpha: tuple[float, ...] = (), activation_beta: tuple[float, ...] = (),
        activations: tuple[str, ...] | None = None, clip: float = 0.0, direction: str = "forward",
        hidden_size: int = 0, layout: int = 0, linear_before_reset: int = 0) -> Any:
    s = sequence(g, 2, x, w, r, b, lengths, h, activations, activation_alpha, activation_beta, clip, direction, layout)
    if s.h is None and not known(x.shape[1 - layout]) and known(s.units) and s.plain and s.x.type in (F32, F16):
        s = replace(s, h=stacked(g, [(state(g, s, None, d),) for d in range(s.count)])[0])
    found = g.add(rnn_nd.GRU_SEQUENCE, **s.named, alpha=g.const(np.array(s.alpha, np.float32)),
                  beta=g.const(np.array(s.beta, np.float32)), linear=bool(linear_before_reset))
    return results(g, found, layout)


@imports("RNN", until=6, arithmetic=True)
def rnn_outputs(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
                h: Value | None = None, *, activation_alpha: tuple[float, ...] = (),
                activation_beta: tuple[float, ...] = (), activations: tuple[str, ...] | None = None,
                clip: float = 0.0, direction: str = "forward", hidden_size: int = 0,
                output_sequence: int = 0) -> Any:
    return RNN(g, x, w, r, b, lengths, h, activation_alpha=activation_alpha, activation_beta=activation_beta,
               activations=activations, clip=clip, direction=direction)


@imports(since=7, arithmetic=True)
def RNN(g: Op, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None, *, activation_alpha: tuple[float, ...] = (), activation_beta: tuple[float, ...] = (),
        activations: tuple[str, ...] | None = None, clip: float = 0.0, direction: str = "forward",
        hidden_size: int = 0, layout: int = 0) -> Any:
    count = 2 if direction == "bidirectional" else 1
    if activations is not None and len(activations) > count:       # the default is a pair, whatever the direction
        activations = activations[:count]
    s = sequence(g, 1, x, w, r, b, lengths, h, activations, activation_alpha, activation_beta, clip, direction, layout)
    ways = [network(g, s, d) for d in range(s.count)]
    if None in ways:
        found = g.add(rnn_nd.RNN_SEQUENCE, **s.named, alpha=g.const(np.array(s.alpha, np.float32)),
                      beta=g.const(np.array(s.beta, np.float32)))
        return results(g, found, layout)
    return results(g, stacked(g, [way for way in ways if way is not None]), layout)


def network(g: Op, s: Sequence, d: int) -> Values | None:
    """One direction by SEQUENCE_RNN, which becomes NNAPI's; None where that means something else."""
    if not s.plain or s.x.type not in (F32, F16) or s.acts[d] not in ("Relu", "Tanh") or not known(s.units) \
            or not known(s.x.shape[0]):
        return None
    held = state(g, s, s.h, d)
    return g.add(recurrent.SEQUENCE_RNN, s.x, gate(g, s, s.w, d, 0), gate(g, s, s.r, d, 0), biases(g, s, d, 0, 1),
                 held, act=CODES[s.acts[d]], time_major=True, asymmetric=False,
                 backward=s.direction == "reverse" or d == 1)
