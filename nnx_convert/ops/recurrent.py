"""Recurrent operations as TFLite has them beyond NNAPI's: on int8 weights beside floats, or in integers over time.

See `hybrid` for the former: x and h are brought to int8 row by row, all else is in floats.
"""
from __future__ import annotations

from typing import Annotated, NamedTuple

from ..kinds import Any1, Bool, Float, Fx, Ints1, T, T2, is_product, rank
from ..schema import Rule, host
from ..types import Q8, Q8S, Quant
from .hybrid import ONLY_FLOAT
from .rnn import C16, W8, Byte, CellAct, batch, cell_rules, fits, reads, recurrent, states

Vector = Annotated[Any1, rank(1)]
Matrix = Annotated[Any1, rank(2)]
Sequence = Annotated[T, rank(2, 3)]             # [batch, width] is one step


class AnyCell(NamedTuple):
    """Cell, of any types."""

    wi: Matrix | None
    wf: Matrix
    wc: Matrix
    wo: Matrix
    ri: Matrix | None
    rf: Matrix
    rc: Matrix
    ro: Matrix
    pi: Vector | None
    pf: Vector | None
    po: Vector | None
    bi: Vector | None
    bf: Vector
    bc: Vector
    bo: Vector
    wp: Matrix | None
    bp: Vector | None


class AnyNorm(NamedTuple):
    """Norm, of any types."""

    i: Vector | None
    f: Vector | None
    c: Vector | None
    o: Vector | None


@host(60106, ONLY_FLOAT, recurrent("w", "r", "b"), Rule("w is as wide as x", lambda w, x: w.shape[1] == x.shape[-1]),
      Rule("h is [batch, rows of w]", lambda h, w, x, time_major: h.shape == (batch(x, time_major), w.shape[0])),
      outs=("out", "h_out"))
def SEQUENCE_RNN(x: Sequence, w: Matrix, r: Matrix, b: Vector, h: T2, act: CellAct, time_major: Bool, asymmetric: Bool,
               backward: Bool) -> tuple[T, T]:
    """UNIDIRECTIONAL_SEQUENCE_RNN, any activation; on int8 rows where w is int8; backward: the last step first."""
    return x.free((*x.shape[:-1], w.shape[0])), x.free(h.shape)


@host(60107, ONLY_FLOAT, *cell_rules("cell", "norm"), reads("cell"), states("cell", "h", "c"),
      outs=("out", "h_out", "c_out"))
def HYBRID_LSTM(x: Sequence, cell: AnyCell, h: T2, c: T2, act: CellAct, cell_clip: Fx, proj_clip: Fx, time_major: Bool,
                norm: AnyNorm, asymmetric: Bool, backward: Bool) -> tuple[T, T, T]:
    """UNIDIRECTIONAL_SEQUENCE_LSTM on int8 rows; backward: the last step first."""
    return x.free((*x.shape[:-1], cell.ro.shape[1])), x.free(h.shape), x.free(c.shape)


@host(60110, {Q8S: 27}, *cell_rules("cell", "norm"), reads("cell"), states("cell", "h", "c"),
      outs=("out", "h_out", "c_out"))
def QUANTIZED_SEQUENCE_LSTM(x: Sequence, cell: AnyCell, h: T2, c: Matrix, norm: AnyNorm, cell_clip: Float,
                            proj_clip: Float, time_major: Bool, i_scale: Float, f_scale: Float, c_scale: Float,
                            o_scale: Float, h_zero: Byte, h_scale: Float) -> tuple[T, T, Matrix]:
    """QUANTIZED_LSTM over time; peepholes of x in batches reach the first outputs of each row."""
    return x.free((*x.shape[:-1], cell.ro.shape[1])), h.like(h.shape), c.like(c.shape)


@host(60111, {Q8: 27}, Rule("x and h have scale 1/128 and zero point 128", lambda x, h:
                            x.quant == h.quant == Quant(1 / 128, 128)),
      Rule("c has scale 2 ** -11", lambda c: c.scale == 2 ** -11),
      Rule("b has zero point 0 and scale x.scale * w.scale", is_product),
      Rule("c and h are [batch, units]", lambda c, h, x: fits((x.shape[0], h.shape[1]), c, h)),
      Rule("w is [4 units, width of x + units]", lambda w, x, h:
           fits((4 * h.shape[1], x.shape[1] + h.shape[1]), w)),
      Rule("b is [4 units]", lambda b, h: fits((4 * h.shape[1],), b)), outs=("h_out", "c_out", "sums"))
def BASIC_LSTM(x: T2, w: W8, b: Ints1, h: T2, c: C16) -> tuple[T, C16, C16]:
    """QUANTIZED_16BIT_LSTM with gates i c f o in one matrix, its products rounded as LiteRT does; sums: the gates'."""
    return h.like(h.shape), c.like(c.shape), c.free((x.shape[0], w.shape[0]))
