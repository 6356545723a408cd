"""Recurrent sequences as ONNX has them: step by step, the products of all inputs made at once."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import rnn_nd as r
from ...types import Array, Tensor
from ..kernel import Run, Site, ints, kernel
from ..slides import computed_in

#: What makes a step's states of sums over its inputs and the states before.
States = tuple[Array, ...]
Step = Callable[[Array, States], States]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + e), e / (1 + e)))


#: The activations by name: of x, with alpha and beta.
FUNCTIONS: dict[str, Callable[[Array, Any, Any], Array]] = {
    "Relu": lambda x, a, b: np.maximum(x, 0), "Tanh": lambda x, a, b: np.tanh(x),
    "Sigmoid": lambda x, a, b: sigmoid(x), "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x), "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x), "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)), "Softplus": lambda x, a, b: np.logaddexp(x, 0)}


@frozen
class Activation:
    """A function of what comes in, clipped before where `clip` is not 0."""

    name: str
    alpha: Any
    beta: Any
    clip: Any

    def __call__(self, x: Array) -> Array:
        bounded = np.clip(x, -self.clip, self.clip) if self.clip else x
        return FUNCTIONS[self.name](bounded, self.alpha, self.beta).astype(x.dtype, copy=False)


def activations(acts: Tensor, alpha: Array, beta: Array, clip: float, dtype: np.dtype[Any]) -> list[Activation]:
    """The activations in order."""
    names = [*r.ACTIVATIONS]
    return [Activation(names[code], dtype.type(a), dtype.type(b), dtype.type(clip)) for code, a, b in zip(
        ints(acts), alpha.reshape(-1).tolist(), beta.reshape(-1).tolist(), strict=True)]


def over_time(x: Array, w: Array, bias: Array, states: States, lengths: Array | None, backward: bool, step: Step,
              out: Array) -> States:
    """The states after a direction's steps, its outputs [time, batch, units] into `out`: zero beyond a length."""
    if not out.size:
        return states                            # nothing changes, however many steps there are
    sums = np.matmul(x, w.T) + bias
    for at in range(len(x))[::-1] if backward else range(len(x)):
        made = step(sums[at], states)
        if lengths is not None:
            there = (at < lengths)[:, None]
            out[at] = np.where(there, made[0], 0)
            states = tuple(np.where(there, new, old) for new, old in zip(made, states, strict=True))
        else:
            out[at] = made[0]
            states = made
    return states


def directions(site: Site, x: Tensor, r_: Tensor, gates: int, backward: bool, make: Callable[..., Step]) -> Run:
    """The run of all directions; `make` gives one's step of its weights, bias of the states, rest and number."""
    dtype, units, batch = computed_in(x), r_.shape[2], x.shape[1]
    count = len(site.outs)

    def run(*arrays: Any) -> None:
        (out, *last), (x, w, r, b, lengths, h, *rest) = arrays[:count], arrays[count:]
        x = x.astype(dtype, copy=False)
        for d in range(len(w)):
            wd, rd = (v[d].astype(dtype, copy=False) for v in (w, r))
            bias = np.zeros(2 * gates * units, dtype) if b is None else b[d].astype(dtype)
            given = [h, *rest[:count - 2]]
            states = tuple(np.zeros((batch, units), dtype) if v is None else v[d].astype(dtype) for v in given)
            step = make(rd, bias[gates * units:], rest, d, dtype)
            made = np.empty((len(x), batch, units), dtype)
            ends = over_time(x, wd, bias[:gates * units], states, lengths, backward or d == 1, step, made)
            np.copyto(out[:, d], made, casting="unsafe")
            for to, state in zip(last, ends, strict=True):
                np.copyto(to[d], state, casting="unsafe")
    return run


def split(x: Array, count: int) -> list[Array]:
    """Equal parts of the last axis."""
    return np.split(x, count, axis=-1)


@kernel(r.RNN_SEQUENCE)
def RNN_SEQUENCE(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
                 h: Tensor | None, acts: Tensor, alpha: Tensor, beta: Tensor, clip: float, backward: bool) -> Run:
    def make(rd: Array, bias: Array, rest: Any, d: int, dtype: np.dtype[Any]) -> Step:
        f = activations(acts, rest[1], rest[2], clip, dtype)[d]
        return lambda sums, held: (f(sums + held[0] @ rd.T + bias),)
    return directions(site, x, r, 1, backward, make)


@kernel(r.GRU_SEQUENCE)
def GRU_SEQUENCE(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
                 h: Tensor | None, acts: Tensor, alpha: Tensor, beta: Tensor, clip: float, backward: bool,
                 linear: bool) -> Run:
    def make(rd: Array, bias: Array, rest: Any, d: int, dtype: np.dtype[Any]) -> Step:
        f, g = activations(acts, rest[1], rest[2], clip, dtype)[2 * d:2 * d + 2]
        units = rd.shape[1]
        gates, candidate, shift = rd[:2 * units].T, rd[2 * units:].T, bias[2 * units:]

        def step(sums: Array, held: States) -> States:
            z, reset = split(f(sums[:, :2 * units] + held[0] @ gates + bias[:2 * units]), 2)
            inner = reset * (held[0] @ candidate + shift) if linear else (reset * held[0]) @ candidate + shift
            return ((1 - z) * g(sums[:, 2 * units:] + inner) + z * held[0],)
        return step
    return directions(site, x, r, 3, backward, make)


@kernel(r.LSTM_SEQUENCE)
def LSTM_SEQUENCE(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
                  h: Tensor | None, c: Tensor | None, p: Tensor | None, acts: Tensor, alpha: Tensor, beta: Tensor,
                  clip: float, backward: bool, coupled: bool) -> Run:
    def make(rd: Array, bias: Array, rest: Any, d: int, dtype: np.dtype[Any]) -> Step:
        peep = rest[1]
        f, g, h_ = activations(acts, rest[3], rest[4], clip, dtype)[3 * d:3 * d + 3]
        h_ = replace(h_, clip=0)                     # as in ONNX Runtime: the state itself is not clipped
        pi, po, pf = [dtype.type(0)] * 3 if peep is None else split(peep[d].astype(dtype), 3)

        def step(sums: Array, held: States) -> States:
            i, o, forget, cell = split(sums + held[0] @ rd.T + bias, 4)
            i = f(i + pi * held[1])
            forget = 1 - i if coupled else f(forget + pf * held[1])
            state = forget * held[1] + i * g(cell)
            return f(o + po * state) * h_(state), state
        return step
    return directions(site, x, r, 4, backward, make)
