"""Recurrent cells and sequences, and the projection by hashes. `run` takes the table's outputs in their order."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...ops import rnn
from ...types import Array, Q8S, Tensor
from ..cells import ACTIVATIONS, Lstm, Rnn, Span, computed_in, constants, in_time, optional, values
from ..farmhash import fingerprint64
from ..fixedpoint import grid, wrap32
from ..kernel import Run, Site, kernel
from ..quantcells import GATE_SCALE, ByteLstm, Grids, IntLstm, IntSvdf


def store(outs: Sequence[Array], found: Sequence[Array]) -> None:
    """Write state outputs, which may be left out together."""
    for out, array in zip(outs, found, strict=False):
        np.copyto(out, array, casting="unsafe")


@kernel(rnn.RNN)
def RNN(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor, act: int) -> Run:
    steps = Rnn(Span.of(x.shape, True), w.shape[0], act, computed_in(x))
    steps.ask(site)

    def run(h_out: Array, out: Array, x: Array, w: Array, r: Array, b: Array, h: Array, *buffers: Array) -> None:
        store([h_out], [steps.run([(x, w)], r, b, h, out[None], buffers)])
    return run


@kernel(rnn.UNIDIRECTIONAL_SEQUENCE_RNN)
def UNIDIRECTIONAL_SEQUENCE_RNN(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor, act: int,
                                time_major: int) -> Run:
    major = time_major > 0
    steps = Rnn(Span.of(x.shape, major), w.shape[0], act, computed_in(x))
    steps.ask(site)
    count = len(site.outs)

    def run(out: Array, *rest: Any) -> None:
        x, w, r, b, h, *buffers = rest[count - 1:]
        store(rest[:count - 1], [steps.run([(x, w)], r, b, h, in_time(out, major), buffers)])
    return run


@kernel(rnn.BIDIRECTIONAL_SEQUENCE_RNN)
def BIDIRECTIONAL_SEQUENCE_RNN(
        site: Site, x: Tensor, fw_w: Tensor, fw_r: Tensor, fw_b: Tensor, fw_h: Tensor, bw_w: Tensor, bw_r: Tensor,
        bw_b: Tensor, bw_h: Tensor, aux: Tensor | None, fw_aw: Tensor | None, bw_aw: Tensor | None, act: int,
        time_major: bool, merge: bool) -> Run:
    span, dtype = Span.of(x.shape, time_major), computed_in(x)
    fw, bw = Rnn(span, fw_w.shape[0], act, dtype), Rnn(span, bw_w.shape[0], act, dtype)
    fw.ask(site)
    bw.ask(site)
    count = len(site.outs)

    def run(*arrays: Any) -> None:
        outs = arrays[:count]
        x, fw_w, fw_r, fw_b, fw_h, bw_w, bw_r, bw_b, bw_h, aux, fw_aw, bw_aw, *buffers = arrays[count:]
        ahead, back, states = directions(outs, merge, time_major, fw.units)
        fw_in, bw_in = [(x, fw_w)], [(x if aux is None or bw_aw is not None else aux, bw_w)]
        if bw_aw is not None:
            fw_in, bw_in = [*fw_in, (aux, fw_aw)], [*bw_in, (aux, bw_aw)]
        store(states, [fw.run(fw_in, fw_r, fw_b, fw_h, ahead, buffers[:Rnn.BUFFERS]),
                       bw.run(bw_in, bw_r, bw_b, bw_h, back, buffers[Rnn.BUFFERS:], backward=True)])
    return run


def directions(outs: Sequence[Array], merge: bool, time_major: bool,
               width: int) -> tuple[Array, Array, Sequence[Array]]:
    """The outputs [time, batch, width] ahead and back, and the states', of those that there are."""
    if merge:
        return in_time(outs[0][..., :width], time_major), in_time(outs[0][..., width:], time_major), outs[1:]
    return in_time(outs[0], time_major), in_time(outs[1], time_major), outs[2:]


@kernel(rnn.SVDF)
def SVDF(site: Site, x: Tensor, wf: Tensor, wt: Tensor, b: Tensor | None, state: Tensor, rank: int, act: int) -> Run:
    """The new activations fill the last place of each memory; the state that goes on has it free again."""
    (filters, memory), dtype = wt.shape, computed_in(x)
    whole = IntSvdf(x, wf, wt, state, site.outs[1], rank) if is_integer(x) else None

    def activate(x: Array, wf: Array, wt: Array, b: Array | None, held: Array) -> Array:
        held[:, :, -1] = x.astype(dtype) @ wf.T.astype(dtype)
        dots = np.einsum("bnm,nm->bn", held, wt.astype(dtype))
        sums: Array = dots.reshape(len(x), dots.shape[1] // rank, rank).sum(2)
        if b is not None:
            sums += b
        ACTIVATIONS[act](sums)
        return sums

    def run(state_out: Array, out: Array, x: Array, wf: Array, wt: Array, b: Array | None, state: Array) -> None:
        held = state.reshape(-1, filters, memory).astype(state.dtype if whole else dtype)
        found = whole.run(x, wf, wt, b, held) if whole else activate(x, wf, wt, b, held)
        held[:, :, :-1] = held[:, :, 1:]
        held[:, :, -1] = 0
        store([state_out, out], [held.reshape(state_out.shape), found])
    return run


def is_integer(x: Tensor) -> bool:
    """Whether activations are int8; raises `RunError` on other integers, which no source has a recurrent kernel for."""
    if x.type.dtype.kind not in "iu":
        return False
    if x.type != Q8S:
        raise RunError(f"no recurrent operation takes {x.type.name}")
    return True


@kernel(rnn.LSTM)
def LSTM(site: Site, x: Tensor, cell: rnn.Cell, h: Tensor, c: Tensor, act: int, cell_clip: float, proj_clip: float,
         norm: rnn.LateNorm) -> Run:
    if is_integer(x):
        return over_time(site, integers(Span.of(x.shape, True), x, cell, norm, h, c, cell_clip, proj_clip, rows=False),
                         ("scratch", "h_out", "c_out", "out"), True)
    lstm = Lstm.of(x, Span.of(x.shape, True), cell, norm, None, act, cell_clip, proj_clip)
    return floats(site, lstm, ("scratch", "h_out", "c_out", "out"), True)


@kernel(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM)
def UNIDIRECTIONAL_SEQUENCE_LSTM(site: Site, x: Tensor, cell: rnn.Cell, h: Tensor, c: Tensor, act: int,
                                 cell_clip: float, proj_clip: float, time_major: bool, norm: rnn.Norm) -> Run:
    span, names = Span.of(x.shape, time_major), ("out", "h_out", "c_out")
    if is_integer(x):
        return over_time(site, integers(span, x, cell, norm, h, c, cell_clip, proj_clip, rows=not time_major),
                         names, time_major)
    return floats(site, Lstm.of(x, span, cell, norm, None, act, cell_clip, proj_clip), names, time_major)


@kernel(rnn.QUANTIZED_LSTM)
def QUANTIZED_LSTM(site: Site, x: Tensor, cell: rnn.QuantCell, h: Tensor, c: Tensor, norm: rnn.QuantNorm,
                   cell_clip: float | None, proj_clip: float | None, i_scale: float, f_scale: float, c_scale: float,
                   o_scale: float, h_zero: int, h_scale: float) -> Run:
    grids = Grids((i_scale, f_scale, c_scale, o_scale), h_scale, h_zero)
    lstm = IntLstm(Span.of(x.shape, True), x, cell, norm, h, c, grids, cell_clip or 0.0, proj_clip or 0.0, rows=False)
    return over_time(site, lstm, ("h_out", "c_out", "out"), True)


def integers(span: Span, x: Tensor, cell: rnn.Cell, norm: rnn.Norm | rnn.LateNorm, h: Tensor, c: Tensor,
             cell_clip: float, proj_clip: float, rows: bool) -> IntLstm:
    """TFLite's int8 LSTM as far as its operands say it: the gates in Q3.12, the hidden state being the output."""
    if norm.f is not None or cell.wp is not None:
        raise RunError("layer norm and projection in int8 need grids that the operation has no operands for")
    scale, zero = grid(h)
    grids = Grids((GATE_SCALE,) * 4, float(scale), zero)
    return IntLstm(span, x, cell, norm, h, c, grids, cell_clip, proj_clip, rows)


def floats(site: Site, lstm: Lstm, names: Sequence[str], time_major: bool, backward: bool = False) -> Run:
    """The run of one direction whose outputs have these names; arguments are x, cell, h, c, norm."""
    lstm.ask(site)
    count = len(site.outs)

    def run(*arrays: Any) -> None:
        outs = dict(zip(names, arrays[:count], strict=False))
        x, cell, h, c, norm, *buffers = arrays[count:]
        out = sequence(outs["out"], time_major)
        h_out, c_out = lstm.run(x, None, (cell, norm, None), (h, c), out, buffers, backward)
        finish(outs, h_out, c_out)
    return run


def over_time(site: Site, lstm: IntLstm, names: Sequence[str], time_major: bool) -> Run:
    """The same in integers."""
    lstm.ask(site)
    count, whole = len(site.outs), lstm.prepare()

    def run(*arrays: Any) -> None:
        outs = dict(zip(names, arrays[:count], strict=False))
        x, cell, h, c, norm, *buffers = arrays[count:]
        h_out, c_out = whole.run(x, (cell, norm), (h, c), sequence(outs["out"], time_major), buffers)
        finish(outs, h_out, c_out)
    return run


def sequence(out: Array, time_major: bool) -> Array:
    """An output as [time, batch, width]; [batch, width] is one step."""
    return out[None] if out.ndim == 2 else in_time(out, time_major)


def finish(outs: dict[str, Array], h: Array, c: Array) -> None:
    """Write the states; what is scratch to others holds zeros."""
    for name, found in (("h_out", h), ("c_out", c), ("scratch", 0)):
        if name in outs:
            np.copyto(outs[name], found, casting="unsafe")


@kernel(rnn.BIDIRECTIONAL_SEQUENCE_LSTM)
def BIDIRECTIONAL_SEQUENCE_LSTM(
        site: Site, x: Tensor, fw: rnn.Cell, bw: rnn.Cell, fw_h: Tensor, fw_c: Tensor, bw_h: Tensor, bw_c: Tensor,
        aux: Tensor | None, fw_aux: rnn.Aux, bw_aux: rnn.Aux, act: int, cell_clip: float, proj_clip: float,
        merge: bool, time_major: bool, fw_norm: rnn.Norm, bw_norm: rnn.Norm) -> Run:
    span = Span.of(x.shape, time_major)
    if x.type.dtype.kind in "iu":
        raise RunError(f"no LSTM in two directions takes {x.type.name}")
    ahead = Lstm.of(x, span, fw, fw_norm, fw_aux, act, cell_clip, proj_clip)
    back = Lstm.of(x, span, bw, bw_norm, bw_aux, act, cell_clip, proj_clip)
    ahead.ask(site)
    back.ask(site)
    count, linked = len(site.outs), bw_aux.f is not None

    def run(*arrays: Any) -> None:
        x, fw, bw, fw_h, fw_c, bw_h, bw_c, aux, fw_aux, bw_aux, fw_norm, bw_norm, *buffers = arrays[count:]
        fw_out, bw_out, states = directions(arrays[:count], merge, time_major, ahead.width)
        other = x if aux is None or linked else aux
        first = ahead.run(x, aux, (fw, fw_norm, fw_aux), (fw_h, fw_c), fw_out, buffers[:Lstm.BUFFERS])
        second = back.run(other, aux, (bw, bw_norm, bw_aux), (bw_h, bw_c), bw_out, buffers[Lstm.BUFFERS:], True)
        store(states, [*first, *second])
    return run


@kernel(rnn.QUANTIZED_16BIT_LSTM)
def QUANTIZED_16BIT_LSTM(site: Site, x: Tensor, wi: Tensor, wf: Tensor, wc: Tensor, wo: Tensor, ri: Tensor, rf: Tensor,
                         rc: Tensor, ro: Tensor, bi: Tensor, bf: Tensor, bc: Tensor, bo: Tensor, c: Tensor,
                         h: Tensor) -> Run:
    """Section by section as in the source; see `ByteLstm`."""
    scale, zero = grid(wi)
    lstm = ByteLstm(float(scale), zero)
    weights = (wi, wf, wc, wo), (ri, rf, rc, ro), (bi, bf, bc, bo)
    fixed = lstm.packed(*values(weights)) if constants(weights) else None

    def run(c_out: Array, h_out: Array, x: Array, *rest: Array) -> None:
        packed = fixed or lstm.packed(rest[:4], rest[4:8], rest[8:12])
        store([c_out, h_out], lstm.step(packed, x, rest[13], rest[12]))
    return run


#: LSH_PROJECTION's types.
SPARSE_OLD, DENSE = 1, 2


@kernel(rnn.LSH_PROJECTION)
def LSH_PROJECTION(site: Site, hash: Tensor, x: Tensor, weight: Tensor | None, type: int) -> Run:
    rows, bits = hash.shape
    place = 1 << np.arange(bits)[::-1]

    def run(out: Array, hash: Array, x: Array, weight: Array | None) -> None:
        signs = (scores(hash, x, weight) > 0).reshape(rows, bits)
        if type == DENSE:
            np.copyto(out, signs.reshape(-1), casting="unsafe")
            return
        packed = signs @ place
        np.copyto(out, wrap32(packed if type == SPARSE_OLD else packed + (np.arange(rows) << bits)), casting="unsafe")
    return run


def scores(hash: Array, x: Array, weight: Array | None) -> Array:
    """For each seed, the weighted sum of its fingerprints with all rows of x, added up in order in float64."""
    items, seeds = len(x), hash.astype(np.float32).reshape(-1, 1)
    body = np.ascontiguousarray(x).reshape(items, math.prod(x.shape[1:])).view(np.uint8)
    head = np.ascontiguousarray(seeds).view(np.uint8)
    total = np.zeros(len(seeds))
    factors = optional(weight, np.float64)
    for n, row in enumerate(body):
        keys = np.concatenate([head, np.broadcast_to(row, (len(head), row.size))], 1)
        marks = fingerprint64(keys).view(np.int64).astype(np.float64)
        total += marks if factors is None else factors[n] * marks
    return total
