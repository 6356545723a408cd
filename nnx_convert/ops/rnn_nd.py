"""Recurrent sequences as ONNX has them: in both directions, of any lengths and activations.

x is [time, batch, width]; the weights of a direction stand along the first axis of w, r, b, p, h and c, those of its
gates along the second. `acts` are codes of ACTIVATIONS, each with its numbers in alpha and beta.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Float, Ints1, T, T3
from ..schema import Rule, host
from ..signature import Must
from ..types import Tensor, given
from .host import ALL, AnyT
from .rnn import fits

#: Activations by code, with the default numbers of those that have any.
ACTIVATIONS: dict[str, tuple[float, float]] = {
    "Relu": (0, 0), "Tanh": (0, 0), "Sigmoid": (0, 0), "Affine": (1, 0), "LeakyRelu": (0.01, 0),
    "ThresholdedRelu": (1, 0), "ScaledTanh": (1, 1), "HardSigmoid": (0.2, 0.5), "Elu": (1, 0), "Softsign": (0, 0),
    "Softplus": (0, 0)}
Numbers = Annotated[AnyT, Must("has rank 1", lambda t: t.rank == 1)]
Clip = Annotated[Float, Must("is not negative", lambda v: v >= 0)]


def directed(gates: int) -> list[Rule]:
    """How the operands of a sequence with so many gates fit together."""
    return [
        Rule("x, w and r have rank 3", lambda x, w, r: x.rank == w.rank == r.rank == 3),
        Rule(f"r is [directions, {gates} * units, units] and w as tall, as wide as x", lambda x, w, r:
             r.shape[1] == gates * r.shape[2] and w.shape == (r.shape[0], r.shape[1], x.shape[2])),
        Rule(f"b is [directions, {2 * gates} * units]", lambda r, b: not given(b) or b.shape == (
            r.shape[0], 2 * r.shape[1])),
        Rule("lengths has one number per sequence", lambda x, lengths: not given(lengths) or
             lengths.shape == x.shape[1:2]),
        Rule("h is [directions, batch, units]", lambda x, r, h: fits((r.shape[0], x.shape[1], r.shape[2]), h))]


def activated(count: int) -> Rule:
    """How many activations there are."""
    return Rule(f"acts are {count} codes for each direction, with an alpha and a beta", lambda r, acts, alpha, beta:
                acts.shape == alpha.shape == beta.shape == (count * r.shape[0],) and
                all(0 <= a < len(ACTIVATIONS) for a in acts.ints()))


def sequence(x: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs of all steps [time, directions, batch, units], and of the last ones."""
    last = (r.shape[0], x.shape[1], r.shape[2])
    return x.free((x.shape[0], *last)), x.free(last)


@host(60610, ALL, *directed(1), activated(1), outs=("out", "h_out"))
def RNN_SEQUENCE(x: T3, w: AnyT, r: AnyT, b: AnyT | None, lengths: AnyT | None, h: AnyT | None, acts: Ints1,
                 alpha: Numbers, beta: Numbers, clip: Clip, backward: Bool) -> tuple[T, T]:
    """h' = f(x @ w.T + h @ r.T + b); clip bounds what goes into f, backward starts a single direction at the end."""
    return sequence(x, r)


@host(60611, ALL, *directed(3), activated(2), outs=("out", "h_out"))
def GRU_SEQUENCE(x: T3, w: AnyT, r: AnyT, b: AnyT | None, lengths: AnyT | None, h: AnyT | None, acts: Ints1,
                 alpha: Numbers, beta: Numbers, clip: Clip, backward: Bool, linear: Bool) -> tuple[T, T]:
    """h' = (1 - z) * g(x, r * h) + z * h, gates z, r, h; linear: r is multiplied by what h gives."""
    return sequence(x, r)


@host(60612, ALL, *directed(4), activated(3),
      Rule("c is [directions, batch, units]", lambda x, r, c: fits((r.shape[0], x.shape[1], r.shape[2]), c)),
      Rule("p is [directions, 3 * units]", lambda r, p: fits((r.shape[0], 3 * r.shape[2]), p)),
      outs=("out", "h_out", "c_out"))
def LSTM_SEQUENCE(x: T3, w: AnyT, r: AnyT, b: AnyT | None, lengths: AnyT | None, h: AnyT | None, c: AnyT | None,
                  p: AnyT | None, acts: Ints1, alpha: Numbers, beta: Numbers, clip: Clip, backward: Bool,
                  coupled: Bool) -> tuple[T, T, T]:
    """c' = f * c + i * g(x, h), h' = o * h(c'), gates i, o, f, c; p: peepholes of i, o, f; coupled: f is 1 - i."""
    out, last = sequence(x, r)
    return out, last, last
