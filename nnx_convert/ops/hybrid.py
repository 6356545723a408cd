"""Float activations beside int8 weights, computed as TFLite does (dynamic range quantisation).

Each run brings the activations to int8 on a grid of their own: one for every row of a matrix product, one for
every image of a convolution. The grid has zero point 0, or where `asymmetric` is set, one that covers just the
values there are. NNAPI has no operation that does this; DEQUANTIZE and the float operation are near to it.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import (
    MATRICES, Act, Any1, Bool, Int, Ints1, Positive, Scheme, T, T2, T4, broadcast, rank, scheme_pads, takes, window)
from ..schema import Rule, host
from ..signature import Must
from ..types import F32, Q8, Q8S, QPC, Tensor, maybe, product

ONLY_FLOAT = {F32: 27}
#: uint8 are int8 moved up by 128, as are their zero points: for targets that know no signed ones.
Weights2 = Annotated[Tensor, takes(Q8S, Q8, QPC), rank(2)]
Weights4 = Annotated[Tensor, takes(Q8S, Q8, QPC), rank(4)]
AnyAct = Annotated[Int, Must("is 0 none, 1 relu, 2 relu1, 3 relu6 or 4 tanh", lambda v: 0 <= v <= 4)]
Bias = Annotated[Tensor, takes(F32), rank(1)] | None


def slid(x: Tensor, w: Tensor, units: int, scheme: int, strides: tuple[int, int], dilations: tuple[int, int]) -> Tensor:
    """The output of a filter [_, kh, kw, _] moved over x in a padding scheme; strides and dilations are w, h."""
    n, h, wd, _ = x.shape
    sizes = zip((h, wd), w.shape[1:3], strides[::-1], dilations[::-1], strict=True)
    oh, ow = (window(size, k, s, d, scheme_pads(scheme, size, k, s, d)) for size, k, s, d in sizes)
    return x.free((n, oh, ow, units))


@host(60100, ONLY_FLOAT, Rule("w is as wide as a flattened row of x", lambda x, w: product(x.shape) % w.shape[1] == 0))
def HYBRID_FULLY_CONNECTED(x: T, w: Weights2, b: Bias, asymmetric: Bool, act: AnyAct) -> T:
    """FULLY_CONNECTED on int8 rows."""
    return x.free((maybe(lambda: product(x.shape) // w.shape[1]), w.shape[0]))


@host(60101, ONLY_FLOAT, Rule("w is as deep as x / groups", lambda x, w, groups: w.shape[3] * groups == x.shape[3]),
      Rule("groups divides the output channels", lambda w, groups: w.shape[0] % groups == 0))
def HYBRID_CONV_2D(x: T4, w: Weights4, b: Bias, scheme: Scheme, sw: Positive, sh: Positive, dw: Positive,
                   dh: Positive, groups: Positive, asymmetric: Bool, act: Act) -> T:
    """CONV_2D on int8 images, in groups."""
    return slid(x, w, w.shape[0], scheme, (sw, sh), (dw, dh))


@host(60102, ONLY_FLOAT, Rule("w makes as many channels of each of x", lambda x, w: w.shape[3] % x.shape[3] == 0))
def HYBRID_DEPTHWISE_CONV_2D(x: T4, w: Weights4, b: Bias, scheme: Scheme, sw: Positive, sh: Positive, dw: Positive,
                             dh: Positive, act: Act) -> T:
    """DEPTHWISE_CONV_2D on int8 images, always asymmetric."""
    return slid(x, w, w.shape[3], scheme, (sw, sh), (dw, dh))


@host(60103, ONLY_FLOAT, Rule("w is as deep as x", lambda x, w: w.shape[3] == x.shape[3]))
def HYBRID_TRANSPOSE_CONV_2D(x: T4, w: Weights4, b: Bias, shape: Ints1, scheme: Scheme, sw: Positive, sh: Positive,
                             act: Act) -> T:
    """TRANSPOSE_CONV_2D on int8 images, always asymmetric; each product becomes a float before it is added."""
    _, oh, ow, _ = shape.ints()
    return x.free((x.shape[0], oh, ow, w.shape[0]))


@host(60104, ONLY_FLOAT, MATRICES, Rule("the columns of x are as many as the rows of y", lambda x, y, adj_x, adj_y:
                                        x.shape[-2 if adj_x else -1] == y.shape[-1 if adj_y else -2]))
def HYBRID_MATMUL(x: T, y: Annotated[Tensor, takes(Q8S, Q8, QPC)], adj_x: Bool, adj_y: Bool, asymmetric: Bool) -> T:
    """MATMUL on int8 rows of x."""
    rows, cols = x.shape[-1 if adj_x else -2], y.shape[-2 if adj_y else -1]
    return x.free((*broadcast(x.shape[:-2], y.shape[:-2]), rows, cols))


@host(60105, ONLY_FLOAT, Rule("rank divides the filters", lambda wf, rank: wf.shape[0] % rank == 0),
      Rule("wf is as wide as x, with a row for each of wt", lambda wf, wt, x: wf.shape == (wt.shape[0], x.shape[1])),
      outs=("state_out", "out"))
def HYBRID_SVDF(x: T2, wf: Weights2, wt: Any1, b: Bias, state: T2, rank: Positive, act: AnyAct,
                asymmetric: Bool) -> tuple[T, T]:
    """SVDF on int8 rows; the memories are floats."""
    return state.free(state.shape), x.free((x.shape[0], wf.shape[0] // rank))
