"""What the recurrent rows refuse: each argument of a good operation changed in one way, and the rule's words."""
from __future__ import annotations

from typing import Any

import pytest

from nnx_convert.ops import rnn
from nnx_convert.schema import OpDef, OpError
from nnx_convert.types import F32, I32, Q8, Q8S, Q16S, QS, Quant, Tensor

N, T, IN, U, OUT, A = 2, 5, 3, 4, 6, 7                    # batch, time, inputs, units, output, auxiliary inputs


def real(*shape: int) -> Tensor:
    return Tensor(F32, shape)


W, R, B, P = real(U, IN), real(U, OUT), real(U), real(OUT, U)
CELL = rnn.Cell(W, W, W, W, R, R, R, R, B, B, B, B, B, B, B, P, real(OUT))
COUPLED = CELL._replace(wi=None, ri=None, pi=None, bi=None)
NORM, NO_NORM = rnn.Norm(B, B, B, B), rnn.Norm(None, None, None, None)
AUX, NO_AUX = rnn.Aux(*[real(U, A)] * 4), rnn.Aux(None, None, None, None)
LSTM = {"x": real(N, IN), "cell": CELL, "h": real(N, OUT), "c": real(N, U), "act": 4, "cell_clip": 0.0,
        "proj_clip": 0.0, "norm": rnn.LateNorm(*NORM)}
SEQUENCE = LSTM | {"x": real(N, T, IN), "time_major": False, "norm": NORM}
BOTH = {"x": real(T, N, IN), "fw": CELL, "bw": CELL, "fw_h": real(N, OUT), "fw_c": real(N, U), "bw_h": real(N, OUT),
        "bw_c": real(N, U), "aux": real(T, N, A), "fw_aux": AUX, "bw_aux": AUX, "act": 4, "cell_clip": 0.0,
        "proj_clip": 0.0, "merge": False, "time_major": True, "fw_norm": NORM, "bw_norm": NORM}
RNN = {"x": real(N, IN), "w": W, "r": real(U, U), "b": B, "h": real(N, U), "act": 1}
RNN_SEQUENCE = RNN | {"x": real(T, N, IN), "time_major": 1}
RNN_BOTH = {"x": real(T, N, IN), "fw_w": W, "fw_r": real(U, U), "fw_b": B, "fw_h": real(N, U), "bw_w": real(OUT, IN),
            "bw_r": real(OUT, OUT), "bw_b": real(OUT), "bw_h": real(N, OUT), "aux": real(T, N, A), "fw_aw": real(U, A),
            "bw_aw": real(OUT, A), "act": 0, "time_major": True, "merge": False}
SVDF = {"x": real(N, IN), "wf": real(6, IN), "wt": real(6, 5), "b": real(3), "state": real(N, 30), "rank": 2, "act": 1}
LSH = {"hash": real(4, 3), "x": real(5, 2), "weight": real(5), "type": 2}
UNIT, GRID = Quant(1 / 128, 128), Quant(0.004, 100)


def byte(*shape: int, quant: Quant = GRID) -> Tensor:
    return Tensor(Q8, shape, quant)


def bias(units: int = U, scale: float = 0.004 / 128, zero: int = 0) -> Tensor:
    return Tensor(I32, (units,), Quant(scale, zero))


BYTES = {"x": byte(N, IN, quant=UNIT), **{f"w{g}": byte(U, IN) for g in "ifco"},
         **{f"r{g}": byte(U, U) for g in "ifco"}, **{f"b{g}": bias() for g in "ifco"},
         "c": Tensor(Q16S, (N, U), Quant(2**-11)), "h": byte(N, U, quant=UNIT)}


def small(*shape: int) -> Tensor:
    return Tensor(QS, shape, Quant(0.01))


QUANTIZED = {
    "x": Tensor(Q8S, (N, IN), Quant(0.01)), "h": Tensor(Q8S, (N, U), Quant(0.01)),
    "c": Tensor(Q16S, (N, U), Quant(2**-11)), "norm": rnn.QuantNorm(None, None, None, None), "cell_clip": 0.0,
    "cell": rnn.QuantCell(*[small(U, IN)] * 4, *[small(U, U)] * 4, None, None, None, *[Tensor(I32, (U,))] * 4,
                          None, None),
    "proj_clip": 0.0, "i_scale": 0.1, "f_scale": 0.1, "c_scale": 0.1, "o_scale": 0.1, "h_zero": 0, "h_scale": 0.01}
ODD = real(9)

GOOD: list[tuple[OpDef, dict[str, Any]]] = [
    (rnn.LSTM, LSTM), (rnn.LSTM, LSTM | {"cell": COUPLED, "norm": rnn.LateNorm(None, B, B, B)}),
    (rnn.LSTM, LSTM | {"norm": rnn.LateNorm()}), (rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, SEQUENCE),
    (rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, SEQUENCE | {"x": real(T, N, IN), "time_major": True, "norm": NO_NORM}),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH), (rnn.RNN, RNN), (rnn.UNIDIRECTIONAL_SEQUENCE_RNN, RNN_SEQUENCE),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH), (rnn.SVDF, SVDF), (rnn.SVDF, SVDF | {"b": None}),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES), (rnn.QUANTIZED_LSTM, QUANTIZED),
    (rnn.QUANTIZED_LSTM, QUANTIZED | {"cell_clip": None, "proj_clip": None}), (rnn.LSH_PROJECTION, LSH)]

#: An operation, what is changed in good arguments, and words of the rule that breaks.
BAD: list[tuple[OpDef, dict[str, Any], dict[str, Any], str]] = [
    *[(rnn.LSTM, LSTM, {"cell": CELL._replace(**{part: value})}, said) for part, value, said in [
        ("wi", None, "wi, ri and bi"), ("bi", None, "wi, ri and bi"), ("pf", None, "pf and po"),
        ("pi", None, "pf and po"), ("wp", None, "bp of cell needs wp"), ("wf", real(U, 9), "wf, wc and wo"),
        ("rc", real(9, OUT), "wf, wc and wo"),
        ("ro", real(9, OUT), "wf, wc and wo"), ("wi", real(U, 9), "wi and ri"), ("ri", real(9, OUT), "wi and ri"),
        ("bo", ODD, "bf, bc and bo"), ("bi", ODD, "bi, pi, pf and po"), ("po", ODD, "bi, pi, pf and po"),
        ("wp", real(OUT, 9), "wp of cell"), ("wp", real(9, U), "wp of cell"), ("bp", ODD, "wp of cell")]],
    (rnn.LSTM, LSTM, {"cell": CELL._replace(wp=None, bp=None)}, "differ in width"),
    (rnn.LSTM, LSTM, {"norm": rnn.LateNorm(B, B, None, B)}, "come together"),
    (rnn.LSTM, LSTM, {"norm": rnn.LateNorm(B, B, ODD, B)}, "an element for each row of wo"),
    (rnn.LSTM, LSTM, {"x": real(N, 9)}, "as wide as x"), (rnn.LSTM, LSTM, {"h": real(N, U)}, "h is"),
    (rnn.LSTM, LSTM, {"c": real(1, U)}, "c is"), (rnn.LSTM, LSTM, {"act": 2}, "act is 0 none"),
    (rnn.LSTM, LSTM, {"cell_clip": -1.0}, "not negative"),
    (rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, SEQUENCE, {"time_major": True}, "h is"),
    (rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, SEQUENCE, {"c": real(N, OUT)}, "c is"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"bw_h": real(9, OUT)}, "bw_h is"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"aux": None}, "need aux"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"aux": real(1, N, A)}, "time and batch of x"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"fw_aux": NO_AUX}, "there together"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"bw_aux": AUX._replace(i=None)}, "have i with f"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"fw_aux": AUX._replace(c=real(U, 9))}, "width of aux"),
    (rnn.BIDIRECTIONAL_SEQUENCE_LSTM, BOTH, {"fw_aux": NO_AUX, "bw_aux": NO_AUX}, "as wide as aux"),
    (rnn.RNN, RNN, {"w": real(U, 9)}, "as wide as x"), (rnn.RNN, RNN, {"r": real(U, 9)}, "for each unit"),
    (rnn.RNN, RNN, {"b": ODD}, "for each unit"), (rnn.RNN, RNN, {"h": real(1, U)}, "h is"),
    (rnn.RNN, RNN, {"act": 4}, "act is 0 none"),
    (rnn.UNIDIRECTIONAL_SEQUENCE_RNN, RNN_SEQUENCE, {"time_major": 0}, "h is"),
    (rnn.UNIDIRECTIONAL_SEQUENCE_RNN, RNN_SEQUENCE, {"time_major": 2}, "is 0 or 1"),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH, {"fw_aw": None}, "come together"),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH, {"fw_aw": None, "bw_aw": None}, "as wide as aux"),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH, {"bw_aw": real(U, A)}, "width of aux"),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH, {"fw_w": real(U, 9)}, "fw_w is as wide"),
    (rnn.BIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH, {"bw_r": real(U, U)}, "for each unit"),
    (rnn.SVDF, SVDF, {"rank": 4}, "rank divides"), (rnn.SVDF, SVDF, {"b": real(6)}, "each output"),
    (rnn.SVDF, SVDF, {"state": real(N, 24)}, "state is"), (rnn.SVDF, SVDF, {"wf": real(6, 9)}, "as wide as x"),
    (rnn.SVDF, SVDF, {"wt": real(6, 0), "state": real(N, 0)}, "one step"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"wf": byte(U, IN, quant=Quant(0.004, 99))}, "one quantisation"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"x": byte(N, IN)}, "scale 1/128"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"c": Tensor(Q16S, (N, U), Quant(2**-12))}, "scale 2"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"wo": byte(U, 9)}, "width of x"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"rf": byte(U, 9)}, "units, units"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"bf": bias(9)}, r"bo are \[units\]"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"bo": bias(scale=0.1)}, "x.scale"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"bo": bias(zero=1)}, "x.scale"),
    (rnn.QUANTIZED_16BIT_LSTM, BYTES, {"h": byte(1, U, quant=UNIT)}, "batch, units"),
    (rnn.QUANTIZED_LSTM, QUANTIZED, {"c": Tensor(Q16S, (N, U), Quant(2**-8))}, "power of two"),
    (rnn.QUANTIZED_LSTM, QUANTIZED, {"c": Tensor(Q16S, (N, U), Quant(0.0003))}, "power of two"),
    (rnn.QUANTIZED_LSTM, QUANTIZED, {"h_zero": 128}, "in \\[-128, 127\\]"),
    (rnn.LSH_PROJECTION, LSH, {"weight": None}, "weight is there"),
    (rnn.LSH_PROJECTION, LSH, {"type": 1}, "weight is there"),
    (rnn.LSH_PROJECTION, LSH, {"type": 4}, "type is 1"), (rnn.LSH_PROJECTION, LSH, {"hash": real(1, 33)}, "32 bits"),
    (rnn.LSH_PROJECTION, LSH, {"weight": real(4)}, "one element per row")]


def name(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "name", "")


def check(op: OpDef, args: dict[str, Any]) -> None:
    op.check(op.forms[0].operands(args, op.types), [])


@pytest.mark.parametrize("op, args", GOOD, ids=name)
def test_good_arguments_are_taken(op: OpDef, args: dict[str, Any]) -> None:
    check(op, args)


@pytest.mark.parametrize("op, args, change, said", BAD, ids=name)
def test_one_wrong_argument_is_refused(op: OpDef, args: dict[str, Any], change: dict[str, Any], said: str) -> None:
    with pytest.raises(OpError, match=said):
        check(op, args | change)
