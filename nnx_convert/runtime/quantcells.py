"""Recurrent cells in integers: LiteRT's 8x8 -> 16 LSTM, the older LSTM with uint8 states, and SVDF.

Source: LiteRT's `lstm_eval.cc`, `svdf.cc` and `reference/lstm_cell`, AOSP's `QLSTM.cpp` and `QuantizedLSTM.cpp`,
bit by bit. Gates are Q3.12 in 16 bits; a sigmoid or a tanh of them is a look-up in a table of `fixedmath`'s 65536
answers. Sums of products are made exactly in floats.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import log2
from typing import Any, NamedTuple

import numpy as np

from ..errors import RunError
from ..frozen import frozen
from ..types import Array, Tensor
from .cells import Span, constants, values
from .fixedmath import F16, inv_sqrt
from .fixedpoint import f32, grid, high_mul, multiplier, multipliers, scale32, shift_right, to_int32, wrap16, wrap32
from .kernel import Site
from .requantize import Requantizer

I64 = np.int64
LOW16, HIGH16 = -(1 << 15), (1 << 15) - 1
EXACT_F32 = 1 << 24
#: A gate's sums, and the grid they are on where no layer norm sets another.
GATE_BITS, GATE_SCALE = 3, 2.0**-12


@lru_cache(maxsize=16)
def table(function: str, bits: int) -> Array:
    """The logistic function or tanh, without integer bits, of every 16-bit number with `bits` of them."""
    x = np.arange(LOW16, HIGH16 + 1)
    return np.asarray((F16.tanh if function == "tanh" else F16.logistic)(x, bits), np.int16)


def looked_up(answers: Array, x: Array) -> Array:
    """Entries of a table at numbers in 16 bits, as int64."""
    return np.asarray(answers[np.asarray(x, I64) - LOW16], I64)


def clamp16(x: Any) -> Array:
    """Saturated to 16 bits."""
    return np.clip(np.asarray(x, I64), LOW16, HIGH16)


def towards_zero(a: Any, b: int) -> Array:
    """C's integer division."""
    a = np.asarray(a, I64)
    found: Array = np.where(a >= 0, a // b, -(-a // b))
    return found


def exactly(matrix: Array, most: int) -> Array:
    """Weights in the float type that sums their products with numbers up to `most` exactly."""
    reach = most * int(np.abs(matrix).sum(0).max(initial=0))
    return np.asarray(matrix, np.float32 if reach < EXACT_F32 else np.float64)


class Grids(NamedTuple):
    """Grids that no tensor of an LSTM is on: its gates' before their activations, its hidden state's."""

    gates: tuple[float, float, float, float]       # i f c o
    hidden: float
    zero: int


class IntNorm(NamedTuple):
    """Layer normalisation of one gate: vectors [units], what stands for a variance of 0, the output's multiplier."""

    weight: Array
    bias: Array
    guard: int
    m: int
    s: int

    def apply(self, a: Array) -> Array:
        """Rows of gate sums, normalised."""
        n = a.shape[1]
        mean = towards_zero(a.sum(1) * 1024, n)
        variance = wrap32(towards_zero((a * a).sum(1) * ((1 << 20) // n) - mean * mean, 1 << 20))
        m, s = inv_sqrt(np.where(variance < 1, self.guard, variance))
        t = wrap32(scale32(1024 * a - mean[:, None], m[:, None], s[:, None]) * self.weight) + self.bias
        t = wrap32(towards_zero(np.where(t > 0, t + 512, t - 512), 1024))
        return clamp16(scale32(t, self.m, self.s + 12))


class IntGate(NamedTuple):
    """What makes a gate of its sums: peephole weights [batch, units] with their multiplier, norm, activation."""

    peephole: tuple[Array, int, int] | None
    norm: IntNorm | None
    answers: Array

    def of(self, a: Array, c: Array) -> Array:
        """The gate, without integer bits, of sums beside a cell state."""
        if self.peephole is not None:
            w, m, s = self.peephole
            a = clamp16(a + scale32(w * c, m, s))
        if self.norm is not None:
            a = self.norm.apply(a)
        return looked_up(self.answers, a)


class Scaling(NamedTuple):
    """What brings sums to the gates' grids where they are not saturated yet: vectors of one entry a column."""

    added: Array
    m: Array
    s: Array

    def apply(self, sums: Array) -> Array:
        """Sums in floats, scaled, as int64."""
        return scale32(sums.astype(I64) + self.added, self.m, self.s)


class IntWeights(NamedTuple):
    """An integer LSTM's weights as its steps use them; columns are the gates (i) f c o."""

    w: Array
    r: Array
    from_x: Requantizer
    from_h: Scaling
    gates: tuple[IntGate, ...]
    wp: Array | None
    project: Requantizer | None


@frozen
class IntLstm:
    """An LSTM with int8 activations and weights and an int16 cell state, prepared: `ask`, then `run` each time."""

    span: Span
    x: Tensor
    cell: Any                           # the op table's record of tensors
    norm: Any
    h: Tensor
    c: Tensor
    grids: Grids
    cell_clip: float
    proj_clip: float
    rows: bool                          # peepholes reach the first outputs of each row, else of the flat batch

    def __post_init__(self) -> None:
        bits = 15 + self.shift
        if not 0 <= bits <= 6 or abs(log2(self.c.scale) - self.shift) > 1e-3:
            raise RunError("the scale of c is a power of two in [2 ** -15, 2 ** -9]")

    @property
    def shift(self) -> int:
        """The exponent of the cell state's scale."""
        return round(log2(self.c.scale)) if self.c.scale > 0 else -99

    @property
    def units(self) -> int:
        """The width of the cell state."""
        return int(self.cell.wo.shape[0])

    @property
    def width(self) -> int:
        """The width of the output."""
        return int(self.cell.ro.shape[1])

    def ask(self, site: Site) -> None:
        """Ask for the inputs and their products in floats, these on the gates' grid, and one step's of the output."""
        rows, n = self.span.time * self.span.batch, self.units * (3 if self.cell.wi is None else 4)
        site.scratch((rows, self.x.shape[-1]), np.float64)
        site.scratch((rows, n), np.float64)
        site.scratch((rows, n), np.int16)
        site.scratch((self.span.batch, n), np.float64)

    def packed(self, cell: Any, norm: Any) -> IntWeights:
        """The weights, from arrays."""
        first = 1 if cell.wi is None else 0
        biases = [np.zeros(self.units, I64)] * 4 if self.norm.f is not None else cell[11:15]
        w, from_x = self.products(cell[first:4], self.cell[first:4], biases[first:], self.x)
        r, from_h = self.products(cell[4 + first:8], self.cell[4 + first:8], [0] * 4, self.h)
        bound = 128 * np.abs(w).sum(0).astype(I64) + np.abs(from_x.added)
        saturated = Requantizer(from_x.m, from_x.s, 0, LOW16, HIGH16, bound, from_x.added)
        gates = tuple(self._gate(i, cell, norm) for i in range(first, 4))
        return IntWeights(w, r, saturated, from_h, gates, *self._projection(cell))

    def products(self, arrays: Sequence[Array], tensors: Sequence[Tensor], biases: Sequence[Any],
                  x: Tensor) -> tuple[Array, Scaling]:
        """The gates' weights on x as one matrix, and what brings its products to the gates' grids."""
        scale, zero = grid(x)
        ints = np.concatenate([np.asarray(a, I64) for a in arrays])
        added = np.concatenate([np.broadcast_to(np.asarray(b, I64), self.units) for b in biases[:len(arrays)]])
        added = added - zero * ints.sum(1)
        grids = self.grids.gates[4 - len(arrays):]
        m, s = multipliers([float(f32(f32(grid(t)[0] * scale) / f32(g))) for t, g in zip(tensors, grids, strict=True)])
        return exactly(ints.T, 128), Scaling(added, np.repeat(m, self.units), np.repeat(s, self.units))

    def _gate(self, i: int, cell: Any, norm: Any) -> IntGate:
        peephole, weight = (cell.pi, cell.pf, None, cell.po)[i], norm[i]
        tensor: Any = (self.cell.pi, self.cell.pf, None, self.cell.po)[i]
        reach = layer = None
        if peephole is not None:
            real = 2.0**self.shift * float(grid(tensor)[0]) / float(f32(self.grids.gates[i]))
            reach = (self._reach(peephole), *multiplier(float(f32(real))))
        if weight is not None:
            scale = grid(self.norm[i])[0]
            guard = max(1, int(f32(10000) * scale))
            layer = IntNorm(weight.astype(I64), cell[11 + i].astype(I64), guard, *multiplier(float(scale)))
        return IntGate(reach, layer, table("tanh" if i == 2 else "logistic", GATE_BITS))

    def _reach(self, weights: Array) -> Array:
        """Peephole weights for each cell: `width` of them are applied, in a row or end to end, as in the source."""
        n, count = self.span.batch, min(self.width, self.units)
        spread = np.zeros((n, self.units), I64)
        if self.rows:
            spread[:, :count] = weights[:count]
        else:
            spread.reshape(-1)[:n * count] = np.tile(weights[:count], n)
        return spread

    def _projection(self, cell: Any) -> tuple[Array | None, Requantizer | None]:
        if cell.wp is None:
            return None, None
        ints = cell.wp.astype(I64)
        added = self.grids.zero * ints.sum(1) + (0 if cell.bp is None else cell.bp.astype(I64))
        scale, zero = grid(self.h)
        real = float(f32(f32(grid(self.cell.wp)[0] * f32(self.grids.hidden)) / scale))
        bound = 128 * np.abs(ints).sum(1) + np.abs(added)
        return exactly(ints.T, 128), Requantizer(*multipliers([real]), zero, -128, 127, bound, added)

    def clips(self) -> tuple[int, int]:
        """The bounds of the cell state and of the projected output as integers; 0 where there is none."""
        cell = int(to_int32(f32(f32(self.cell_clip) / grid(self.c)[0]))) if self.cell_clip > 0 else 0
        projected = int(to_int32(f32(f32(self.proj_clip) / grid(self.h)[0]))) if self.proj_clip > 0 else 0
        return min(max(cell, LOW16), HIGH16), min(max(projected, -128), 127)

    def hidden(self) -> tuple[int, int]:
        """The multiplier that brings a gate times tanh of the cell state to the hidden state's grid."""
        return multiplier(float(f32(2.0**-15 / float(f32(self.grids.hidden)) * 2.0**-15)))

    def prepare(self) -> Pass:
        """The pass over time, with its weights packed where they are constant."""
        fixed = self.packed(values(self.cell), values(self.norm)) if constants(self.cell, self.norm) else None
        # A projection takes the zero point off twice over: its bias counts on that.
        zero = -self.grids.zero if self.cell.wp is not None else self.grids.zero
        m, s = self.hidden()
        hide = Requantizer(np.array(m), np.array(s), zero, -128, 127, 1 << 30)
        return Pass(self, fixed, hide, *self.clips(), table("tanh", 15 + self.shift))


@frozen
class Pass:
    """An integer LSTM over time."""

    lstm: IntLstm
    weights: IntWeights | None
    hide: Requantizer
    cell_clip: int
    proj_clip: int
    answers: Array                      # tanh of the cell state

    def run(self, x: Array, records: tuple[Any, Any], states: tuple[Array, Array], out: Array | None,
            buffers: Sequence[Array]) -> tuple[Array, Array]:
        """A pass over x from the states (h, c): writes `out` [time, batch, width] and gives the states after it."""
        k, span = self.weights or self.lstm.packed(*records), self.lstm.span
        held, products, on_grid, sums = buffers
        np.copyto(held, span.rows(x))
        np.matmul(held, k.w, out=products)
        k.from_x.apply(products, on_grid)
        h, c = states[0], states[1].astype(I64)
        steps = span.steps(on_grid)
        for t in span.order(backward=False):
            np.matmul(h.astype(k.r.dtype), k.r, out=sums)
            c, h = self.step(k, clamp16(k.from_h.apply(sums) + steps[t]), c)
            if out is not None:
                out[t] = h
        return h, c

    def step(self, k: IntWeights, sums: Array, c: Array) -> tuple[Array, Array]:
        """From the gates' sums to the next cell state and output."""
        units = self.lstm.units
        *early, f, g, o = (sums[:, at:at + units] for at in range(0, sums.shape[1], units))
        forget = k.gates[-3].of(f, c)
        let = k.gates[0].of(early[0], c) if early else HIGH16 - forget
        fresh = shift_right(let * k.gates[-2].of(g, c), 30 + self.lstm.shift)
        c = clamp16(wrap16(shift_right(forget * c, 15)) + wrap16(fresh))
        if self.cell_clip > 0:
            c = np.clip(c, -self.cell_clip, self.cell_clip)
        hidden = np.empty(c.shape, np.int8)
        self.hide.apply(k.gates[-1].of(o, c) * looked_up(self.answers, c), hidden)
        return c, self.projected(k, hidden)

    def projected(self, k: IntWeights, hidden: Array) -> Array:
        """The output of the hidden state; without a projection, that itself."""
        if k.wp is None or k.project is None:
            return hidden
        sums = hidden.astype(k.wp.dtype) @ k.wp
        h = np.empty(sums.shape, np.int8)
        k.project.apply(sums, h)
        return np.clip(h, -self.proj_clip, self.proj_clip) if self.proj_clip > 0 else h


@frozen
class ByteLstm:
    """One step of the LSTM whose states are uint8 (scale 1/128, zero point 128) and int16 (scale 2 ** -11)."""

    scale: float                        # of all weights
    zero: int

    def packed(self, ws: Sequence[Array], rs: Sequence[Array], biases: Sequence[Array]) -> tuple[Array, Requantizer]:
        """Weights of the gates i f c o as one matrix, and what brings the products to Q3.12.

        NNAPI's reference executor puts the recurrent weights first but multiplies by (x, h): the first columns
        meet x whatever their name. Its golden vectors hold only so; TFLite's NNAPI delegate cuts up weights to suit.
        """
        ints = np.concatenate([np.concatenate(pair, 1) for pair in zip(rs, ws, strict=True)]).astype(I64) - self.zero
        added = np.concatenate(biases).astype(I64) - 128 * ints.sum(1)
        m, s = multipliers([4096 * float(f32(self.scale) / f32(128))])
        bound = 255 * np.abs(ints).sum(1) + np.abs(added)
        return exactly(ints.T, 255), Requantizer(m, s, 0, LOW16, HIGH16, bound, added)

    def step(self, packed: tuple[Array, Requantizer], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """The next states (c, h)."""
        matrix, requantizer = packed
        sums = np.concatenate([x, h], 1).astype(matrix.dtype) @ matrix
        a = np.empty(sums.shape, np.int16)
        requantizer.apply(sums, a)
        i, f, g, o = np.split(a, 4, axis=1)
        return byte_states(i, f, g, o, c)


def byte_states(i: Array, f: Array, g: Array, o: Array, c: Array) -> tuple[Array, Array]:
    """The next states (c, h) of an LSTM on uint8 whose gates have the sums i, f, g and o in Q3.12."""
    logistic, tanh = table("logistic", GATE_BITS), table("tanh", GATE_BITS)
    fresh = high_mul(looked_up(logistic, i), looked_up(tanh, g), 16)
    c = clamp16(shift_right(fresh, 4) + high_mul(looked_up(logistic, f), c, 16))
    hidden = high_mul(looked_up(logistic, o), looked_up(table("tanh", 4), c), 16)
    return c, np.clip(shift_right(hidden, 8), -128, 127) + 128


@frozen
class MatrixLstm:
    """One step of LiteRT's LSTM of kernel type BASIC: the grids of `ByteLstm`, one matrix of the gates i g f o.

    The products come to Q3.12 as from its matrix library: rounded twice, ties up both times.
    """

    scale: float                        # of the products
    zero: int                           # of the weights

    def packed(self, w: Array, b: Array) -> tuple[Array, Array]:
        """The weights, and what is added to their products with bytes."""
        ints = w.astype(I64) - self.zero
        return exactly(ints.T, 255), b.astype(I64) - 128 * ints.sum(1)

    def step(self, packed: tuple[Array, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
        """The next states (h, c), and the gates' sums [batch, 4 units] in Q3.12."""
        matrix, added = packed
        acc = (np.concatenate([x, h], 1).astype(matrix.dtype) @ matrix).astype(I64) + added
        m, s = multiplier(4096 * self.scale)
        right = max(-s, 0)
        once = high_mul(wrap32(acc << max(s, 0)), m)
        sums = clamp16(once + ((1 << right) >> 1) >> right)
        i, g, f, o = np.split(sums, 4, axis=1)
        c, h = byte_states(i, f, g, o, c)
        return h, c, sums


@frozen
class IntSvdf:
    """SVDF with int8 activations and feature weights, an int16 state and int16 weights on time.

    A fused activation adds nothing: LiteRT clamps to int8 alone.
    """

    x: Tensor
    wf: Tensor
    wt: Tensor
    state: Tensor
    out: Tensor
    rank: int

    def run(self, x: Array, wf: Array, wt: Array, b: Array | None, state: Array) -> Array:
        """The output of memories `state` [batch, filters, memory], whose last column it fills."""
        (sx, zx), (st, _), (so, zo) = grid(self.x), grid(self.state), grid(self.out)
        first = multiplier(float(f32(f32(sx * grid(self.wf)[0]) / st)))
        second = multiplier(float(f32(f32(st * grid(self.wt)[0]) / so)))
        sums = (x.astype(np.float64) - zx) @ wf.T.astype(np.float64)
        state[:, :, -1] = clamp16(scale32(wrap32(sums.astype(I64)), *first))
        dots = np.einsum("bnm,nm->bn", state.astype(np.float64), wt.astype(np.float64)).astype(I64)
        total = dots.reshape(len(dots), -1, self.rank).sum(2) + (0 if b is None else b.astype(I64))
        return np.asarray(np.clip(scale32(wrap32(total), *second) + zo, -128, 127))
