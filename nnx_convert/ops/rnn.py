"""Recurrent cells and sequences. Gates come in the order input, forget, cell, output."""
from __future__ import annotations

from math import log2
from typing import Annotated, NamedTuple

from ..kinds import (
    FLOAT, MATH, T1, T2, T3, Act, Bool, Float, Fx, Int, Ints, Ints1, Positive, T, is_product, rank, takes)
from ..schema import Rule, op
from ..signature import Joined, Kind, Must, Since
from ..types import I32, Q8, Q8S, Q16S, QS, Quant, Shape, Tensor, given, maybe

Late = Annotated[T, Since(30)]                # a state output, which may be left out
Opt1 = T1 | None
Opt2 = T2 | None
CellAct = Annotated[Int, Must("is 0 none, 1 relu, 3 relu6, 4 tanh or 6 sigmoid", lambda v: v in (0, 1, 3, 4, 6))]
Flag = Annotated[Int, Must("is 0 or 1", lambda v: v in (0, 1))]
Clip = Annotated[Fx, Must("is not negative", lambda v: v >= 0)]


class Cell(NamedTuple):
    """One cell's weights: w on the input [units, in], r on the output [units, out], p peephole, b bias.

    The letter after it is the gate: i, f, c, o. wp [out, units] and bp project the output.
    """

    wi: Opt2
    wf: T2
    wc: T2
    wo: T2
    ri: Opt2
    rf: T2
    rc: T2
    ro: T2
    pi: Opt1
    pf: Opt1
    po: Opt1
    bi: Opt1
    bf: T1
    bc: T1
    bo: T1
    wp: Opt2
    bp: Opt1


class Norm(NamedTuple):
    """Layer normalisation weights [units] of each gate."""

    i: Opt1
    f: Opt1
    c: Opt1
    o: Opt1


class LateNorm(NamedTuple):
    """Norm, from level 29: all four are listed, or none."""

    i: Annotated[T1, Since(29)] | None = None
    f: Annotated[T1, Since(29), Joined()] | None = None
    c: Annotated[T1, Since(29), Joined()] | None = None
    o: Annotated[T1, Since(29), Joined()] | None = None


class Aux(NamedTuple):
    """Weights [units, in] on the auxiliary input."""

    i: Opt2
    f: Opt2
    c: Opt2
    o: Opt2


def fits(shape: Shape, *tensors: Tensor | None) -> bool:
    """Whether those tensors that are there have this shape."""
    return all(t.shape == shape for t in tensors if given(t))


def cell_rules(cell: str, norm: str) -> list[Rule]:
    """What holds of the cell and layer norm of one direction."""
    return [
        Rule(f"wi, ri and bi of {cell} are all there, or none is and the input gate is 1 - f",
             lambda w: given(w.wi) == given(w.ri) == given(w.bi), of=(cell,)),
        Rule(f"pf and po of {cell} come together, and pi with both of them and wi",
             lambda w: given(w.pf) == given(w.po) and given(w.pi) == (given(w.pf) and given(w.wi)), of=(cell,)),
        Rule(f"bp of {cell} needs wp", lambda w: given(w.wp) or not given(w.bp), of=(cell,)),
        Rule(f"{cell} has wp where its output and its state differ in width",
             lambda w: w.ro.shape[1] == w.wo.shape[0] or given(w.wp), of=(cell,)),
        Rule(f"f, c and o of {norm} come together, and i with all of them and wi", lambda w, n:
             given(n.f) == given(n.c) == given(n.o) and given(n.i) == (given(n.f) and given(w.wi)), of=(cell, norm)),
        *cell_shapes(cell, norm)]


def cell_shapes(cell: str, norm: str) -> list[Rule]:
    """How the weights of one direction fit together: wo is [units, in], ro [units, out]."""
    return [
        Rule(f"wf, wc and wo of {cell} have one shape, and rf, rc and ro as many rows",
             lambda w: fits(w.wo.shape, w.wf, w.wc) and fits((w.wo.shape[0], w.ro.shape[1]), w.rf, w.rc, w.ro),
             of=(cell,)),
        Rule(f"wi and ri of {cell} have the shapes of wo and ro",
             lambda w: fits(w.wo.shape, w.wi) and fits(w.ro.shape, w.ri), of=(cell,)),
        Rule(f"bf, bc and bo of {cell} have an element for each row of wo",
             lambda w: fits(w.wo.shape[:1], w.bf, w.bc, w.bo), of=(cell,)),
        Rule(f"bi, pi, pf and po of {cell} have an element for each row of wo",
             lambda w: fits(w.wo.shape[:1], w.bi, w.pi, w.pf, w.po), of=(cell,)),
        Rule(f"wp of {cell} is [columns of ro, rows of wo], and bp has an element for each row of wp",
             lambda w: fits((w.ro.shape[1], w.wo.shape[0]), w.wp) and fits(w.ro.shape[1:], w.bp), of=(cell,)),
        Rule(f"{norm} has an element for each row of wo in {cell}",
             lambda w, n: fits(w.wo.shape[:1], *n), of=(cell, norm))]


def reads(cell: str) -> Rule:
    """The width of what a cell reads."""
    return Rule(f"{cell} has weights as wide as x", lambda w, x: w.wo.shape[1] == x.shape[-1], of=(cell, "x"))


def states(cell: str, h: str, c: str) -> Rule:
    """The shapes of a sequence's states."""
    return Rule(f"{h} is [batch, columns of ro] and {c} is [batch, rows of wo] of {cell}",
                lambda w, h, c, x, time_major: h.shape == (batch(x, time_major), w.ro.shape[1])
                and c.shape == (batch(x, time_major), w.wo.shape[0]), of=(cell, h, c, "x", "time_major"))


#: The same of a single step.
STEP = Rule("h is [batch, columns of ro] and c is [batch, rows of wo] of cell", lambda cell, h, c, x:
            h.shape == (x.shape[0], cell.ro.shape[1]) and c.shape == (x.shape[0], cell.wo.shape[0]))


def recurrent(w: str, r: str, b: str) -> Rule:
    """How the weights of one direction of an RNN fit together."""
    return Rule(f"{w} has a row, {r} a row and a column, and {b} an element for each unit", lambda w, r, b:
                r.shape == (w.shape[0], w.shape[0]) and b.shape == w.shape[:1], of=(w, r, b))


def state(h: str, w: str) -> Rule:
    """The shape of an RNN's state in a sequence."""
    return Rule(f"{h} is [batch, rows of {w}]", lambda h, w, x, time_major:
                h.shape == (batch(x, time_major), w.shape[0]), of=(h, w, "x", "time_major"))


def batch(x: Tensor, time_major: bool | int) -> int:
    """The batch size of a sequence in either layout."""
    return x.shape[1] if time_major else x.shape[0]


WIDE = Rule("w is as wide as x", lambda w, x: w.shape[1] == x.shape[-1])
AUX_TIME = Rule("aux has the time and batch of x", lambda aux, x: not given(aux) or aux.shape[:2] == x.shape[:2])


@op(FLOAT, WIDE, recurrent("w", "r", "b"), Rule("h is [batch, rows of w]", lambda h, w, x:
                                                h.shape == (x.shape[0], w.shape[0])), outs=("h_out", "out"))
def RNN(x: T2, w: T2, r: T2, b: T1, h: T2, act: Act) -> tuple[T, T]:
    """h' = out = act(x @ w.T + h @ r.T + b)."""
    out = x.free((x.shape[0], w.shape[0]))
    return out, out


@op(FLOAT, Rule("rank divides the filters", lambda wf, rank: wf.shape[0] % rank == 0),
    Rule("wf is as wide as x, with a row for each of wt", lambda wf, wt, x:
         wf.shape == (wt.shape[0], x.shape[1])),
    Rule("wt holds one step at least", lambda wt: wt.shape[1] > 0),
    Rule("b has an element for each output", lambda b, wf, rank: fits((wf.shape[0] // rank,), b)),
    Rule("state is [batch, memory * filters]", lambda x, wt, state:
         state.shape == (x.shape[0], wt.shape[0] * wt.shape[1])), outs=("state_out", "out"))
def SVDF(x: T2, wf: T2, wt: T2, b: Opt1, state: T2, rank: Positive, act: Act) -> tuple[T, T]:
    """act(sum over rank of (state shifted, x @ wf.T appended) . wt + b)."""
    return state.free(state.shape), x.free((x.shape[0], wf.shape[0] // rank))


@op(FLOAT, *cell_rules("cell", "norm"), reads("cell"), STEP, outs=("scratch", "h_out", "c_out", "out"))
def LSTM(x: T2, cell: Cell, h: T2, c: T2, act: CellAct, cell_clip: Clip, proj_clip: Clip,
         norm: LateNorm) -> tuple[T, T, T, T]:
    """c' = f * c + i * act(cell), out = h' = o * act(c') projected; gates are sigmoids of x, h and c."""
    n, units, width = x.shape[0], cell.wo.shape[0], cell.ro.shape[1]
    out, gates = x.free((n, width)), maybe(lambda: 4 if given(cell.wi) else 3)
    return x.free((n, units * gates)), out, x.free((n, units)), out


@op(MATH, *cell_rules("cell", "norm"), reads("cell"), states("cell", "h", "c"), outs=("out", "h_out", "c_out"))
def UNIDIRECTIONAL_SEQUENCE_LSTM(x: T3, cell: Cell, h: T2, c: T2, act: CellAct, cell_clip: Clip, proj_clip: Clip,
                                 time_major: Bool, norm: Norm) -> tuple[T, Late, Late]:
    """LSTM over the time axis of x: [T, B, I] where time_major, else [B, T, I]."""
    n, units, width = batch(x, time_major), cell.wo.shape[0], cell.ro.shape[1]
    return x.free((*x.shape[:2], width)), x.free((n, width)), x.free((n, units))


LINKED = [
    Rule("fw_aux and bw_aux are there together, and need aux", lambda aux, fw_aux, bw_aux: len(
        {given(w) for w in (*fw_aux[1:], *bw_aux[1:])}) == 1 and (given(aux) or not given(fw_aux.f))),
    Rule("fw_aux and bw_aux have i with f, and with wi of fw and bw", lambda fw_aux, fw, bw_aux, bw: all(
        given(a.i) == (given(a.f) and given(w.wi)) for a, w in ((fw_aux, fw), (bw_aux, bw)))),
    Rule("fw_aux and bw_aux are [rows of wo, width of aux]", lambda fw_aux, fw, bw_aux, bw, aux: not given(fw_aux.f)
         or all(fits((w.wo.shape[0], aux.shape[2]), *a) for a, w in ((fw_aux, fw), (bw_aux, bw)))),
    Rule("bw has weights as wide as aux where that comes without bw_aux, else as x", lambda bw, x, aux, bw_aux:
         bw.wo.shape[1] == (aux if given(aux) and not given(bw_aux.f) else x).shape[2])]


@op(MATH, *cell_rules("fw", "fw_norm"), *cell_rules("bw", "bw_norm"), reads("fw"), *LINKED, AUX_TIME,
    states("fw", "fw_h", "fw_c"), states("bw", "bw_h", "bw_c"),
    outs=("fw_out", "bw_out", "fw_h_out", "fw_c_out", "bw_h_out", "bw_c_out"))
def BIDIRECTIONAL_SEQUENCE_LSTM(x: T3, fw: Cell, bw: Cell, fw_h: T2, fw_c: T2, bw_h: T2, bw_c: T2, aux: T3 | None,
                                fw_aux: Aux, bw_aux: Aux, act: CellAct, cell_clip: Clip, proj_clip: Clip,
                                merge: Bool, time_major: Bool, fw_norm: Norm,
                                bw_norm: Norm) -> tuple[T, T | None, Late, Late, Late, Late]:
    """An LSTM over time and one against it; merge joins their outputs on the last axis."""
    n, fw_width, bw_width = batch(x, time_major), fw.ro.shape[1], bw.ro.shape[1]
    return (*directions(x, fw_width, bw_width, merge), x.free((n, fw_width)), x.free((n, fw.wo.shape[0])),
            x.free((n, bw_width)), x.free((n, bw.wo.shape[0])))


def directions(x: Tensor, fw: int, bw: int, merge: bool) -> tuple[Tensor, Tensor | None]:
    """The sequences of either direction; a single one of both widths where merge is set."""
    time = x.shape[:2]
    return (x.free((*time, fw + bw)), None) if merge else (x.free((*time, fw)), x.free((*time, bw)))


@op(MATH, WIDE, recurrent("w", "r", "b"), state("h", "w"), outs=("out", "h_out"))
def UNIDIRECTIONAL_SEQUENCE_RNN(x: T3, w: T2, r: T2, b: T1, h: T2, act: Act, time_major: Flag) -> tuple[T, Late]:
    """RNN over the time axis of x: [T, B, I] where time_major is 1, else [B, T, I]."""
    units = w.shape[0]
    return x.free((*x.shape[:2], units)), x.free((batch(x, time_major > 0), units))


@op(MATH, Rule("fw_aw and bw_aw come together, with aux", lambda aux, fw_aw, bw_aw:
                   given(fw_aw) == given(bw_aw) and (given(aux) or not given(fw_aw))),
    Rule("fw_w is as wide as x", lambda fw_w, x: fw_w.shape[1] == x.shape[2]),
    Rule("bw_w is as wide as aux where that comes without fw_aw and bw_aw, else as x", lambda bw_w, x, aux, bw_aw:
         bw_w.shape[1] == (aux if given(aux) and not given(bw_aw) else x).shape[2]),
    Rule("fw_aw and bw_aw are [units, width of aux]", lambda fw_aw, bw_aw, fw_w, bw_w, aux: not given(fw_aw)
         or fits((fw_w.shape[0], aux.shape[2]), fw_aw) and fits((bw_w.shape[0], aux.shape[2]), bw_aw)),
    AUX_TIME, recurrent("fw_w", "fw_r", "fw_b"), recurrent("bw_w", "bw_r", "bw_b"), state("fw_h", "fw_w"),
    state("bw_h", "bw_w"), outs=("fw_out", "bw_out", "fw_h_out", "bw_h_out"))
def BIDIRECTIONAL_SEQUENCE_RNN(
        x: T3, fw_w: T2, fw_r: T2, fw_b: T1, fw_h: T2, bw_w: T2, bw_r: T2, bw_b: T1, bw_h: T2, aux: T3 | None,
        fw_aw: Opt2, bw_aw: Opt2, act: Act, time_major: Bool,
        merge: Bool) -> tuple[T, T | None, Late, Late]:
    """An RNN over time and one against it; merge joins their outputs on the last axis."""
    fw, bw, n = fw_w.shape[0], bw_w.shape[0], batch(x, time_major)
    return *directions(x, fw, bw, merge), x.free((n, fw)), x.free((n, bw))


W8 = Annotated[Tensor, takes(Q8), rank(2)]
C16 = Annotated[Tensor, takes(Q16S), rank(2)]


@op({Q8: 29}, Rule("x and h have scale 1/128 and zero point 128", lambda x, h:
                      x.quant == h.quant == Quant(1 / 128, 128)),
    Rule("c has scale 2 ** -11", lambda c: c.scale == 2 ** -11),
    Rule("all weights have one quantisation", lambda wi, wf, wc, wo, ri, rf, rc, ro:
         wi.quant == wf.quant == wc.quant == wo.quant == ri.quant == rf.quant == rc.quant == ro.quant),
    Rule("wi, wf, wc and wo are [units, width of x]", lambda wi, wf, wc, wo, x:
         fits((wi.shape[0], x.shape[1]), wi, wf, wc, wo)),
    Rule("ri, rf, rc and ro are [units, units]", lambda ri, rf, rc, ro, wi:
         fits((wi.shape[0], wi.shape[0]), ri, rf, rc, ro)),
    Rule("bi, bf, bc and bo are [units]", lambda bi, bf, bc, bo, wi: fits(wi.shape[:1], bi, bf, bc, bo)),
    Rule("bi, bf, bc and bo have zero point 0 and scale x.scale * wi.scale", lambda bi, bf, bc, bo, x, wi:
         all(is_product(b, x, wi) for b in (bi, bf, bc, bo)), limit=True),
    Rule("c and h are [batch, units]", lambda c, h, x, wi: fits((x.shape[0], wi.shape[0]), c, h)),
    outs=("c_out", "h_out"))
def QUANTIZED_16BIT_LSTM(x: T2, wi: W8, wf: W8, wc: W8, wo: W8, ri: W8, rf: W8, rc: W8, ro: W8, bi: Ints1, bf: Ints1,
                         bc: Ints1, bo: Ints1, c: C16, h: W8) -> tuple[C16, W8]:
    """LSTM in integers: gates in Q3.12, the cell state in 16 bits."""
    return c.like(c.shape), h.like(h.shape)


QW = Annotated[Tensor, Kind({QS: 30}), rank(2)]
QN = Annotated[Tensor, Kind({Q16S: 30}), rank(1)]
Byte = Annotated[Int, Must("is in [-128, 127]", lambda v: -128 <= v <= 127)]


class QuantCell(NamedTuple):
    """Cell, in integers."""

    wi: QW | None
    wf: QW
    wc: QW
    wo: QW
    ri: QW | None
    rf: QW
    rc: QW
    ro: QW
    pi: QN | None
    pf: QN | None
    po: QN | None
    bi: Ints1 | None
    bf: Ints1
    bc: Ints1
    bo: Ints1
    wp: QW | None
    bp: Ints1 | None


class QuantNorm(NamedTuple):
    """Norm, in integers."""

    i: QN | None
    f: QN | None
    c: QN | None
    o: QN | None


@op({Q8S: 30}, *cell_rules("cell", "norm"), reads("cell"), STEP,
    Rule("the scale of c is a power of two (to 0.1 %), 2 ** -9 at most", lambda c:
         abs(log2(c.scale) - round(log2(c.scale))) < 1e-3 and log2(c.scale) < -8.5, limit=True),
    outs=("h_out", "c_out", "out"))
def QUANTIZED_LSTM(x: T2, cell: QuantCell, h: T2, c: C16, norm: QuantNorm, cell_clip: Float | None,
                   proj_clip: Float | None, i_scale: Float, f_scale: Float, c_scale: Float, o_scale: Float,
                   h_zero: Byte, h_scale: Float) -> tuple[T, C16, T]:
    """LSTM in integers with symmetric weights; the four scales are those of the gates before activation."""
    out = h.like((x.shape[0], cell.ro.shape[1]))
    return out, c.like((x.shape[0], cell.wo.shape[0])), out


ProjectedType = Annotated[Tensor, takes(*FLOAT, I32, Q8)]


@op(FLOAT, Rule("type is 1 sparse (old), 2 dense or 3 sparse", lambda type: 1 <= type <= 3),
    Rule("type is not 3", lambda type: type != 3, until=29),
    Rule("hash has at most 32 bits a row", lambda hash: hash.shape[1] <= 32),
    Rule("weight is there when dense only", lambda weight, type: given(weight) == (type == 2), limit=True),
    Rule("weight has one element per row of x", lambda x, weight: not given(weight) or weight.shape[0] == x.shape[0]))
def LSH_PROJECTION(hash: T2, x: ProjectedType, weight: T1 | None, type: Int) -> Ints:
    """Bits: the signs of the weighted sum of Fingerprint64(seed, row); sparse packs them by hash row."""
    rows, bits = hash.shape
    return Tensor(I32, (rows * bits if type == 2 else rows,))
