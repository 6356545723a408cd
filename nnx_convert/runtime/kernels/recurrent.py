"""Recurrent operations of TFLite beyond NNAPI's. `run` takes the table's outputs in their order."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...ops import recurrent as r
from ...types import Array, F32, Tensor
from ..cells import Lstm, LstmWeights, Rnn, Span, constants, values
from ..fixedpoint import f32, grid
from ..hybrid import centred, of_rows
from ..kernel import NeedsValue, Run, Site, kernel
from ..quantcells import Grids, IntLstm, MatrixLstm
from .rnn import floats, over_time, sequence, store

NAMES = "out", "h_out", "c_out"


@kernel(r.SEQUENCE_RNN)
def SEQUENCE_RNN(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor, act: int, time_major: bool,
               asymmetric: bool, backward: bool) -> Run:
    steps = Rnn(Span.of(x.shape, time_major), w.shape[0], act, np.dtype(f32))
    on_x, on_h = (None if t.type == F32 else of_rows([centred(t)], [t], asymmetric) for t in (w, r))
    steps.ask(site)

    def run(out: Array, h_out: Array, x: Array, w: Array, r: Array, b: Array, h: Array, *buffers: Array) -> None:
        store([h_out], [steps.run([(x, on_x or w)], on_h or r, b, h, sequence(out, time_major), buffers, backward)])
    return run


@kernel(r.HYBRID_LSTM)
def HYBRID_LSTM(site: Site, x: Tensor, cell: Any, h: Tensor, c: Tensor, act: int, cell_clip: float, proj_clip: float,
                time_major: bool, norm: Any, asymmetric: bool, backward: bool) -> Run:
    """The gates' biases are added to the products of x, then those of h, as in LiteRT."""
    if not constants(cell, norm):
        raise NeedsValue
    ints = [t if t is None else centred(t) for t in (*cell[:8], cell.wp)]
    packed = LstmWeights.of(values(cell), values(norm), None, f32)._replace(
        w=of_rows(ints[:4], cell[:4], asymmetric), r=of_rows(ints[4:8], cell[4:8], asymmetric),
        wp=None if cell.wp is None else of_rows(ints[8:], [cell.wp], asymmetric))
    lstm = Lstm.of(x, Span.of(x.shape, time_major), cell, norm, None, act, cell_clip, proj_clip)
    return floats(site, replace(lstm, weights=packed), NAMES, time_major, backward)


@kernel(r.QUANTIZED_SEQUENCE_LSTM)
def QUANTIZED_SEQUENCE_LSTM(site: Site, x: Tensor, cell: Any, h: Tensor, c: Tensor, norm: Any, cell_clip: float,
                            proj_clip: float, time_major: bool, i_scale: float, f_scale: float, c_scale: float,
                            o_scale: float, h_zero: int, h_scale: float) -> Run:
    grids = Grids((i_scale, f_scale, c_scale, o_scale), h_scale, h_zero)
    lstm = IntLstm(Span.of(x.shape, time_major), x, cell, norm, h, c, grids, cell_clip, proj_clip,
                   rows=x.rank == 3 and not time_major)
    return over_time(site, lstm, NAMES, time_major)


@kernel(r.BASIC_LSTM)
def BASIC_LSTM(site: Site, x: Tensor, w: Tensor, b: Tensor, h: Tensor, c: Tensor) -> Run:
    """See `MatrixLstm`."""
    lstm = MatrixLstm(float(grid(b)[0]), grid(w)[1])
    fixed = lstm.packed(*values((w, b))) if constants((w, b)) else None

    def run(h_out: Array, c_out: Array, sums: Array, x: Array, w: Array, b: Array, h: Array, c: Array) -> None:
        store([h_out, c_out, sums], lstm.step(fixed or lstm.packed(w, b), x, h, c))
    return run
