"""How many multiplications with an addition an operation takes: the usual measure of a model's work."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..schema import OpDef
from ..types import Tensor, product
from . import conv, conv_nd, ex, grids, host, hybrid, linear, recurrent, rnn, rnn_nd

Args = Mapping[str, Any]
#: From an operation's canonical arguments and its first output.
Count = Callable[[Args, Tensor], int]


def per_output(*axes: int) -> Count:
    """Each output element sums over these axes of w."""
    return lambda args, out: out.size * product(tuple(args["w"].shape[i] for i in axes))


def per_input(*axes: int) -> Count:
    """Each element of x is scattered over these axes of w."""
    return lambda args, out: args["x"].size * product(tuple(args["w"].shape[i] for i in axes))


def per_filter(args: Args, out: Tensor) -> int:
    """Each output element sums over a filter of w, the first axis of which counts these."""
    return out.size * product(args["w"].shape[1:])


def per_channel(args: Args, out: Tensor) -> int:
    """Each element of x is scattered over the filter of its channel, the first axis of w."""
    x: Tensor = args["x"]
    return x.size * product(args["w"].shape[1:])


def per_step(args: Args, out: Tensor) -> int:
    """Each step of each sequence is multiplied by the weights of all directions."""
    x, w, r = (args[name] for name in ("x", "w", "r"))
    steps: int = product(x.shape[:2])
    return steps * int(w.size + r.size)


def per_row(*names: str) -> Count:
    """Each row of x is multiplied by every matrix in these arguments, records of weights among them."""
    def count(args: Args, out: Tensor) -> int:
        values = [v for n in names for v in (args[n] if isinstance(args[n], tuple) else (args[n],))]
        matrices = [v for v in values if isinstance(v, Tensor) and v.rank == 2]
        return product(args["x"].shape[:-1]) * sum(m.size for m in matrices)
    return count


def product_of_matrices(args: Args, out: Tensor) -> int:
    """x @ y."""
    x: Tensor = args["x"]
    return out.size * x.shape[-2 if args["adj_x"] else -1]


def per_column(args: Args, out: Tensor) -> int:
    """x @ y, the columns of x being the rows of y."""
    x: Tensor = args["x"]
    return out.size * x.shape[-1]


def product_of_parts(args: Args, out: Tensor) -> int:
    """x @ w.T, over axes that are apart."""
    w, b = args["w"], args["b"]
    each: int = w.size // max(b.size, 1)
    return out.size * each


COUNTS: dict[str, Count] = {op.name: count for ops, count in (
    ((conv.CONV_2D, conv.GROUPED_CONV_2D, hybrid.HYBRID_CONV_2D), per_output(1, 2, 3)),
    ((conv.DEPTHWISE_CONV_2D, hybrid.HYBRID_DEPTHWISE_CONV_2D), per_output(1, 2)),
    ((conv.TRANSPOSE_CONV_2D, ex.TRANSPOSE_CONV_EX, hybrid.HYBRID_TRANSPOSE_CONV_2D), per_input(0, 1, 2)),
    ((conv.FULLY_CONNECTED, hybrid.HYBRID_FULLY_CONNECTED), per_output(1)),
    ((conv.BATCH_MATMUL, host.MATMUL, hybrid.HYBRID_MATMUL), product_of_matrices),
    ((linear.LINEAR,), product_of_parts),
    ((host.CONV_3D,), per_output(0, 1, 2, 3)),
    ((conv_nd.CONV_ND, conv_nd.DEFORM_CONV, grids.CONV_INTEGER), per_filter),
    ((grids.MATMUL_INTEGER,), per_column),
    ((conv_nd.TRANSPOSE_CONV_ND,), per_channel),
    ((rnn_nd.RNN_SEQUENCE, rnn_nd.GRU_SEQUENCE, rnn_nd.LSTM_SEQUENCE, grids.DYNAMIC_QUANTIZE_LSTM), per_step),
    ((rnn.RNN, rnn.UNIDIRECTIONAL_SEQUENCE_RNN, recurrent.SEQUENCE_RNN), per_row("w", "r")),
    ((rnn.BIDIRECTIONAL_SEQUENCE_RNN,), per_row("fw_w", "fw_r", "bw_w", "bw_r", "fw_aw", "bw_aw")),
    ((rnn.SVDF, hybrid.HYBRID_SVDF), per_row("wf", "wt")),
    ((rnn.LSTM, rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, rnn.QUANTIZED_LSTM, recurrent.HYBRID_LSTM,
      recurrent.QUANTIZED_SEQUENCE_LSTM), per_row("cell")),
    ((rnn.BIDIRECTIONAL_SEQUENCE_LSTM,), per_row("fw", "bw", "fw_aux", "bw_aux")),
    ((recurrent.BASIC_LSTM,), per_row("w")),
    ((rnn.QUANTIZED_16BIT_LSTM,), per_row("wi", "wf", "wc", "wo", "ri", "rf", "rc", "ro")),
) for op in ops}


def counter(op: OpDef) -> Count | None:
    """The count of an operation: its own, or that of the one it is a twin of; None where it multiplies no matrices."""
    return next((COUNTS[o.name] for o in op.versions if o.name in COUNTS), None)


def multiplied(op: OpDef, args: Args, outs: Sequence[Tensor]) -> int:
    """The multiply-adds of an operation on concrete shapes."""
    count = counter(op)
    return int(count(args, outs[0])) if count else 0
