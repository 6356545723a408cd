"""Recurrent cells in floating point: one direction over time, the products of all inputs made at once.

Source: NNAPI's reference executor (`LSTM.cpp`, `RNN.cpp` and their sequences); layer normalisation as in
LiteRT's `MeanStddevNormalization`. A sequence is [time, batch, width] here: one that is batch major comes as
a view with its first axes swapped. float16 is computed in float32.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..frozen import frozen
from ..types import Array, Shape, Tensor, rebuilt
from .fixedpoint import f32
from .hybrid import Matrix
from .kernel import Site

#: A matrix to multiply by: plain, or in int8.
Weights = Array | Matrix
#: Added to the variance that a gate is normalised by.
EPSILON = 1e-8


def computed_in(x: Tensor) -> np.dtype[Any]:
    """The type a cell over x works in."""
    return np.dtype(np.float64 if x.type.dtype == np.float64 else np.float32)


def sigmoid(x: Array) -> None:
    """1 / (1 + exp(-x)), in place."""
    x *= -1                                # np.negative in place is wrong on a strided column (NumPy 2.4)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _clip(low: float | None, high: float | None) -> Callable[[Array], None]:
    def clip(x: Array) -> None:
        np.clip(x, low, high, out=x)
    return clip


#: Activations in place, by TFLite's codes; NNAPI's fuse codes are the first four.
ACTIVATIONS: dict[int, Callable[[Array], None]] = {
    0: lambda x: None, 1: _clip(0, None), 2: _clip(-1, 1), 3: _clip(0, 6), 4: _tanh, 6: sigmoid}


def values(args: Any) -> Any:
    """A structure of arguments with arrays in place of tensors."""
    if isinstance(args, tuple):
        return rebuilt(args, map(values, args))
    return args.data if isinstance(args, Tensor) else args


def constants(*args: Any) -> bool:
    """Whether every tensor in these arguments has its value."""
    return all(constants(*a) if isinstance(a, tuple) else not isinstance(a, Tensor) or a.data is not None for a in args)


def in_time(x: Array, time_major: bool) -> Array:
    """A sequence as [time, batch, width]."""
    return x if time_major else x.swapaxes(0, 1)


@frozen
class Span:
    """The sizes of a sequence, and the order of its axes in memory."""

    time: int
    batch: int
    time_major: bool

    @classmethod
    def of(cls, shape: Shape, time_major: bool) -> Span:
        """That of a sequence's shape; [batch, width] is one step."""
        if len(shape) == 2:
            return cls(1, shape[0], True)
        return cls(shape[0], shape[1], True) if time_major else cls(shape[1], shape[0], False)

    def steps(self, rows: Array) -> Array:
        """[time, batch, width] of rows in the order of the sequence in memory."""
        lead = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        return in_time(rows.reshape(*lead, rows.shape[1]), self.time_major)

    def rows(self, x: Array) -> Array:
        """The sequence as rows in the order in memory; undoes `steps`."""
        return x.reshape(self.time * self.batch, x.shape[-1])

    def order(self, backward: bool) -> Iterable[int]:
        """The steps of a pass; of an empty batch none, however many it has."""
        steps = range(self.time if self.batch else 0)
        return steps[::-1] if backward else steps


def columns(parts: Sequence[Array | None], dtype: Any) -> Array:
    """Weights [units, in] of some gates as one matrix [in, gates * units]."""
    return np.concatenate([np.asarray(p, dtype) for p in parts if p is not None]).T


def multiply(x: Array, w: Weights, out: Array) -> None:
    """out = x @ w; weights on a grid bring x to int8 first."""
    if isinstance(w, Matrix):
        np.copyto(out, w.times(x))
    else:
        np.matmul(x, w, out=out)


def optional(a: Array | None, dtype: Any) -> Array | None:
    """The array in the type to compute in, if there is one."""
    return None if a is None else np.asarray(a, dtype)


class Gate(NamedTuple):
    """What changes a gate between the products and its activation: vectors [units]."""

    peephole: Array | None
    norm: Array | None
    bias: Array | None           # beside norm only: otherwise it is in the products

    def settle(self, gate: Array, c: Array) -> None:
        """Apply it to sums [batch, units], in place."""
        if self.peephole is not None:
            gate += self.peephole * c
        if self.norm is None:
            return
        gate -= gate.mean(-1, keepdims=True)
        gate *= self.norm / np.sqrt(np.square(gate).mean(-1, keepdims=True) + f32(EPSILON))
        if self.bias is not None:
            gate += self.bias


class LstmWeights(NamedTuple):
    """An LSTM's weights as its steps use them; columns are the gates (i) f c o, `units` of each."""

    w: Weights                   # [inputs, gates * units]
    r: Weights                   # [width, gates * units]
    aux: Array | None
    b: Array | None
    gates: tuple[Gate, ...]      # i f c o, or f c o
    wp: Weights | None           # [units, width]
    bp: Array | None

    @classmethod
    def of(cls, cell: Any, norm: Any, aux: Any, dtype: Any) -> LstmWeights:
        """From the records of arrays that the op table names."""
        first = 0 if cell.wi is not None else 1
        peepholes, norms, biases = (cell.pi, cell.pf, None, cell.po), (norm.i, norm.f, norm.c, norm.o), cell[11:15]
        normed = norm.f is not None
        gates = tuple(Gate(*(optional(a, dtype) for a in (p, n, b if normed else None)))
                      for p, n, b in list(zip(peepholes, norms, biases, strict=True))[first:])
        return cls(columns(cell[0:4], dtype), columns(cell[4:8], dtype),
                   None if aux is None or aux.f is None else columns(aux, dtype),
                   None if normed else columns(biases, dtype), gates,
                   None if cell.wp is None else np.asarray(cell.wp, dtype).T, optional(cell.bp, dtype))


@frozen
class Lstm:
    """One direction of an LSTM, prepared: `ask` for its buffers, then `run` each time."""

    span: Span
    units: int
    width: int
    gates: int
    act: int
    cell_clip: float
    proj_clip: float
    dtype: np.dtype[Any]
    weights: LstmWeights | None          # None: they come with each run

    #: The number of buffers `ask` asks for.
    BUFFERS = 5

    @classmethod
    def of(cls, x: Tensor, span: Span, cell: Any, norm: Any, aux: Any, act: int, cell_clip: float,
           proj_clip: float) -> Lstm:
        """From tensors; the weights are packed here where all of them are constant."""
        dtype = computed_in(x)
        packed = LstmWeights.of(values(cell), values(norm), values(aux), dtype) if constants(cell, norm, aux) else None
        return cls(span, cell.wo.shape[0], cell.ro.shape[1], 3 if cell.wi is None else 4, act, float(cell_clip),
                   float(proj_clip), dtype, packed)

    def ask(self, site: Site) -> None:
        """Ask for the products of all steps, one step's gates, the cell state, the hidden state and the output."""
        n, span = self.gates * self.units, self.span
        for shape in ((span.time * span.batch, n), (span.batch, n), *((span.batch, self.units),) * 2,
                      (span.batch, self.width)):
            site.scratch(shape, self.dtype)

    def run(self, x: Array, aux: Array | None, records: tuple[Any, Any, Any], states: tuple[Array, Array],
            out: Array | None, buffers: Sequence[Array], backward: bool = False) -> tuple[Array, Array]:
        """A pass over x from the states (h, c): writes `out` [time, batch, width] and gives the states after it.

        `records` are the cell, its norm and its auxiliary weights, as arrays.
        """
        k = self.weights or LstmWeights.of(*records, self.dtype)
        products, gates, c, hidden, h = buffers
        multiply(self.span.rows(x).astype(self.dtype, copy=False), k.w, products)
        if k.aux is not None and aux is not None:
            products += self.span.rows(aux).astype(self.dtype, copy=False) @ k.aux
        if k.b is not None:
            products += k.b
        h[...], c[...] = states
        steps = self.span.steps(products)
        for t in self.span.order(backward):
            multiply(h, k.r, gates)
            gates += steps[t]
            self.step(k, gates, c, hidden, h)
            if out is not None:
                out[t] = h
        return h, c

    def step(self, k: LstmWeights, sums: Array, c: Array, hidden: Array, h: Array) -> None:
        """From the gates' sums to the next states, in place."""
        units, act = self.units, ACTIVATIONS[self.act]
        *early, f, a, o = (sums[:, at:at + units] for at in range(0, sums.shape[1], units))
        for gate, own in zip((*early, f), k.gates, strict=False):
            own.settle(gate, c)
        sigmoid(sums[:, :(len(early) + 1) * units])
        k.gates[-2].settle(a, c)
        act(a)
        c *= f
        a *= early[0] if early else 1 - f
        c += a
        if self.cell_clip > 0:
            np.clip(c, -self.cell_clip, self.cell_clip, out=c)
        k.gates[-1].settle(o, c)
        sigmoid(o)
        np.copyto(hidden, c)
        act(hidden)
        hidden *= o
        self.project(k, hidden, h)

    def project(self, k: LstmWeights, hidden: Array, h: Array) -> None:
        """The output of the hidden state; without a projection, that itself."""
        if k.wp is None:
            np.copyto(h, hidden)
            return
        multiply(hidden, k.wp, h)
        if k.bp is not None:
            h += k.bp
        if self.proj_clip > 0:
            np.clip(h, -self.proj_clip, self.proj_clip, out=h)


@frozen
class Rnn:
    """One direction of an RNN: h' = act(x @ w.T + aux @ aw.T + h @ r.T + b)."""

    span: Span
    units: int
    act: int
    dtype: np.dtype[Any]

    #: The number of buffers `ask` asks for.
    BUFFERS = 3

    def ask(self, site: Site) -> None:
        """Ask for the products of all steps, one step's sums and the state."""
        for rows in (self.span.time * self.span.batch, self.span.batch, self.span.batch):
            site.scratch((rows, self.units), self.dtype)

    def run(self, inputs: Sequence[tuple[Array, Weights]], r: Weights, b: Array, h: Array, out: Array,
            buffers: Sequence[Array], backward: bool = False) -> Array:
        """A pass over pairs of a sequence and its weights: writes `out` [time, batch, units]; the state after."""
        products, sums, state = buffers
        products[...] = b
        for x, w in inputs:
            rows = self.span.rows(x).astype(self.dtype, copy=False)
            products += w.times(rows) if isinstance(w, Matrix) else rows @ w.T.astype(self.dtype, copy=False)
        recurrent = r if isinstance(r, Matrix) else r.T.astype(self.dtype, copy=False)
        act, steps = ACTIVATIONS[self.act], self.span.steps(products)
        state[...] = h
        for t in self.span.order(backward):
            multiply(state, recurrent, sums)
            np.add(sums, steps[t], out=state)
            act(state)
            out[t] = state
        return state
