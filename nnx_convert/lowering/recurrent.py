"""TFLite's recurrent operations as NNAPI's: sequences as steps, in the order of time that NNAPI has."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..graph import Node, Value, Values
from ..ops import conv, elementwise as e, recurrent, rnn, shape
from ..types import F32, Q8S, QS, Quant, Tensor, known
from .axes import as_written
from .hybrid import FLOAT, HYBRID, TANH, real, stays
from .rewrite import Event, Refusal, Result, Rewriter

#: How many steps are written out one by one.
MOST_STEPS = 64
#: The numbers that QUANTIZED_LSTM has, too.
NUMBERS = "cell_clip", "proj_clip", "i_scale", "f_scale", "c_scale", "o_scale", "h_zero", "h_scale"
#: What parts QUANTIZED_16BIT_LSTM from TFLite's kernel.
TIES = "QUANTIZED_16BIT_LSTM rounds ties down that TFLite rounds up; --hybrid float takes it"
#: What a step gives: its output, and the states after it.
Step = tuple[Value, Values]


def constant(*values: Value | None) -> bool:
    """Whether none of some values differs from run to run."""
    return all(v is None or v.tensor.data is not None for v in values)


def backwards(g: Rewriter, x: Value, axis: int) -> Value:
    """The tensor with one axis from its end to its beginning."""
    rank, every = len(x.shape), (1 << len(x.shape)) - 1
    strides = [-1 if i == axis else 1 for i in range(rank)]
    return g(shape.STRIDED_SLICE, x, [0] * rank, [0] * rank, strides, begin_mask=every, end_mask=every, shrink_mask=0)


def in_order(g: Rewriter, node: Node, forward: Callable[[Value], Values]) -> Values:
    """What an operation forward in time gives of a sequence; where the node runs backward, of the sequence reversed."""
    x, axis = node.args["x"], 0 if node.args["time_major"] else 1
    if not node.args["backward"]:
        return forward(x)
    out, *states = forward(backwards(g, x, axis))
    return backwards(g, out, axis), *states


def over_steps(g: Rewriter, node: Node, states: Values, step: Callable[[Value, Values], Step],
               backward: bool = False) -> Result:
    """A sequence step by step; [batch, width] is one."""
    x, axis = node.args["x"], 0 if node.args["time_major"] else 1
    if len(x.shape) == 2:
        out, states = step(x, states)
        return out, *states
    count = x.shape[axis]
    if not known(count) or not 0 < count <= MOST_STEPS:
        return Refusal(f"its steps are not 1 to {MOST_STEPS}")
    parts = g.add(shape.SPLIT, x, axis=axis, count=count) if count > 1 else (x,)
    outs: list[Value] = []
    for part in parts[::-1] if backward else parts:
        flat = g(shape.RESHAPE, part, as_written((*part.shape[:axis], *part.shape[axis + 1:])))
        out, states = step(flat, states)
        outs.append(g(shape.RESHAPE, out, as_written((*out.shape[:axis], 1, *out.shape[axis:]))))
    outs = outs[::-1] if backward else outs
    whole = g(shape.CONCATENATION, xs=tuple(outs), axis=axis, out=Tensor(outs[0].type, None, outs[0].tensor.quant)) \
        if count > 1 else outs[0]
    return whole, *states


@HYBRID.on(recurrent.SEQUENCE_RNN)
def network(g: Rewriter, node: Node) -> Result:
    """An RNN on floats: NNAPI's, or its products and activations where that has not the activation."""
    plain = node.args["w"].type == F32
    if g.target.here and constant(*(node.args[n] for n in ("w", "r", "b"))) if plain else stays(g, node):
        return None
    g.why = "" if plain else FLOAT
    x, w, r, b, h, act = (real(g, node.args[n]) for n in ("x", "w", "r", "b", "h", "act"))
    if 0 in (*x.shape, *w.shape, *h.shape):
        return Refusal("NNAPI multiplies no matrices of nothing")
    if act == TANH:
        return over_steps(g, node, (h,), lambda v, held: _tanh(g, v, w, r, b, held[0]), node.args["backward"])
    if act > TANH:
        return Refusal("NNAPI has no RNN with this activation")
    if len(x.shape) == 2:
        h_out, out = g.add(rnn.RNN, x, w, r, b, h, act=act)
        return out, h_out
    major = int(node.args["time_major"])
    return in_order(g, node, lambda v: g.add(
        rnn.UNIDIRECTIONAL_SEQUENCE_RNN, v, w, r, b, h, act=act, time_major=major, outs=(None, h.tensor)))


def _tanh(g: Rewriter, x: Value, w: Value, r: Value, b: Value, h: Value) -> Step:
    none = g.build.full(b.shape, 0, b.tensor)
    sums = g(e.ADD, g(conv.FULLY_CONNECTED, x, w, b, act=0), g(conv.FULLY_CONNECTED, h, r, none, act=0), act=0)
    out = g(e.TANH, sums)
    return out, (out,)


@HYBRID.on(recurrent.HYBRID_LSTM)
def lstm(g: Rewriter, node: Node) -> Result:
    """An LSTM on floats."""
    if stays(g, node):
        return None
    g.why = FLOAT
    a = node.args
    cell, norm, h, c = (real(g, a[n]) for n in ("cell", "norm", "h", "c"))
    named = {n: a[n] for n in ("act", "cell_clip", "proj_clip")}
    if len(a["x"].shape) == 2:
        _, h_out, c_out, out = g.add(rnn.LSTM, a["x"], rnn.Cell(*cell), h, c, norm=rnn.LateNorm(*norm), **named)
        return out, h_out, c_out
    return in_order(g, node, lambda x: g.add(
        rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, x, rnn.Cell(*cell), h, c, time_major=a["time_major"], norm=rnn.Norm(*norm),
        outs=(None, h.tensor, c.tensor), **named))


@HYBRID.on(recurrent.QUANTIZED_SEQUENCE_LSTM)
def whole(g: Rewriter, node: Node) -> Result:
    """QUANTIZED_LSTM step by step, which is the same arithmetic."""
    a, cell, norm = node.args, node.args["cell"], node.args["norm"]
    x, h = a["x"], a["h"]
    if cell.wp is not None and cell.po is not None and len(x.shape) == 3 and not a["time_major"]:
        return Refusal("peepholes of a projected LSTM reach other cells in QUANTIZED_LSTM where the batch comes first")
    if h.tensor.quant != node.outputs[0].tensor.quant:
        return Refusal("its output is on another grid than its state")
    matrices = (*cell[:8], cell.wp)
    if any(m is not None and not _symmetric(m) for m in matrices):
        return Refusal("QUANTIZED_LSTM takes constant weights with zero point 0")
    signed: list[Any] = [m and Value(m.name, replace(m.tensor, type=QS)) for m in matrices]
    whole_cell = rnn.QuantCell(*[*signed[:8], *cell[8:15], signed[8], cell.bp])
    named = {n: a[n] for n in NUMBERS}

    def step(part: Value, held: Values) -> Step:
        h_out, c_out, out = g.add(rnn.QUANTIZED_LSTM, part, whole_cell, *held, rnn.QuantNorm(*norm), **named,
                                  outs=(h.tensor, a["c"].tensor, h.tensor))
        return out, (h_out, c_out)
    return g.legal(over_steps(g, node, (h, a["c"]), step))


@HYBRID.on(recurrent.BASIC_LSTM)
def basic(g: Rewriter, node: Node) -> Result:
    """QUANTIZED_16BIT_LSTM, which rounds ties between the gates' sums the other way; it does not give those."""
    if g.target.hybrid == "exact":
        g.trace.append(Event("to_host", node.at, node.op.name, True, TIES))
        return None
    x, w, b, h, c = (node.args[n] for n in "xwbhc")
    if w.tensor.data is None or b.tensor.data is None:
        return Refusal("its weights are no constants")
    if g.graph.uses.get(node.outputs[2]):
        return Refusal("the sums of its gates are used")
    units = c.shape[1]
    cut = {k: slice(n * units, (n + 1) * units) for n, k in enumerate("icfo")}
    # NNAPI puts the recurrent weights first, and multiplies the first columns by x whatever their name is.
    first, second = ([_part(w, (cut[k], at)) for k in "ifco"] for at in (slice(0, units), slice(units, None)))
    c_out, h_out = g.add(rnn.QUANTIZED_16BIT_LSTM, x, *second, *first, *(_part(b, cut[k]) for k in "ifco"), c, h)
    g.why = TIES
    return h_out, c_out, g.build.full((x.shape[0], 4 * units), 0, node.outputs[2].tensor)


def _part(v: Value, at: Any) -> Value:
    """A part of a constant, on its grid."""
    data = v.array[at]
    return Value(f"{v.name}.{v.array.size}", Tensor(v.type, data.shape, v.tensor.quant, data))


def _symmetric(w: Value) -> bool:
    quant = w.tensor.quant
    return w.type == Q8S and w.tensor.data is not None and isinstance(quant, Quant) and quant.zero == 0
