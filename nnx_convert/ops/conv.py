"""Convolutions and matrix products. Filters keep their own layout; `nchw` is about activations."""
from __future__ import annotations

from typing import Annotated

from ..kinds import (
    FILLED, BIAS_SCALE, FL6, FROM29, OUT_SCALE, QUANT, T4, Act, Bias, Bool, Dilation, DilationToo, Filter, Int,
    Ints1, Layout, Natural, Positive, Scheme, T, T4z, by_key, channel_axis, image, nhwc, rank, scheme_pads,
    window)
from ..schema import Rule, op
from ..signature import Args
from ..symbols import differ
from ..types import F16, F32, I32, Q8, Q8S, Tensor, maybe, product

Weights = Annotated[Tensor, by_key("weights", {t: {t: 27} for t in (F32, F16, Q8, Q8S)}), rank(2)]
BIAS_SIZE = Rule("b has one element per filter", lambda w, b: b.rank == 1 and b.shape[0] == w.shape[0])
DEPTH = Rule("w is as deep as x", lambda x, w, nchw: w.shape[3] == nhwc(x, nchw)[3])


def slide(x: Tensor, w: Tensor, out_c: int, pads: tuple[int, int, int, int], strides: tuple[int, int],
          nchw: bool, dilations: tuple[int, int] = (1, 1)) -> Tensor:
    """The output of a filter [_, kh, kw, _] moved over x; pads are left, right, top, bottom."""
    n, h, wd, _ = nhwc(x, nchw)
    oh = window(h, w.shape[1], strides[1], dilations[1], pads[2:])
    ow = window(wd, w.shape[2], strides[0], dilations[0], pads[:2])
    return x.free(image(n, oh, ow, out_c, nchw))


def explicit(x: Tensor, w: Tensor, scheme: int, sw: int, sh: int, nchw: bool, dw: int = 1, dh: int = 1) -> Args:
    """A padding scheme as amounts."""
    _, h, wd, _ = nhwc(x, nchw)
    pl, pr = scheme_pads(scheme, wd, w.shape[2], sw, dw)
    pt, pb = scheme_pads(scheme, h, w.shape[1], sh, dh)
    return {"pl": pl, "pr": pr, "pt": pt, "pb": pb}


@op(QUANT, DEPTH, BIAS_SIZE, BIAS_SCALE, OUT_SCALE, channel_axis(0))
def CONV_2D(x: T4z, w: Filter, b: Bias, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive, sh: Positive,
            act: Act, nchw: Layout = False, dw: Dilation = 1, dh: DilationToo = 1) -> T:
    """act(sum of x * w over each window + b), w [out, kh, kw, in]."""
    return slide(x, w, w.shape[0], (pl, pr, pt, pb), (sw, sh), nchw, (dw, dh))


@CONV_2D.form(27)
def conv_by_scheme(x: T4z, w: Filter, b: Bias, scheme: Scheme, sw: Positive, sh: Positive, act: Act,
                   nchw: Layout = False, dw: Dilation = 1, dh: DilationToo = 1) -> Args:
    return explicit(x, w, scheme, sw, sh, nchw, dw, dh)


@op(QUANT, Rule("w has 1 as its first dimension", lambda w: w.shape[0] == 1),
    Rule("w makes `mult` output channels of each input channel",
         lambda x, w, mult, nchw: w.shape[3] == nhwc(x, nchw)[3] * mult),
    Rule("b has one element per output channel", lambda w, b: b.rank == 1 and b.shape[0] == w.shape[3]),
    BIAS_SCALE, OUT_SCALE, channel_axis(3))
def DEPTHWISE_CONV_2D(x: T4z, w: Filter, b: Bias, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive,
                      sh: Positive, mult: Positive, act: Act, nchw: Layout = False, dw: Dilation = 1,
                      dh: DilationToo = 1) -> T:
    """CONV_2D channel by channel: output c * mult + m reads input c, w [1, kh, kw, out]."""
    return slide(x, w, w.shape[3], (pl, pr, pt, pb), (sw, sh), nchw, (dw, dh))


@DEPTHWISE_CONV_2D.form(27)
def depthwise_by_scheme(x: T4z, w: Filter, b: Bias, scheme: Scheme, sw: Positive, sh: Positive,
                        mult: Positive, act: Act, nchw: Layout = False, dw: Dilation = 1,
                        dh: DilationToo = 1) -> Args:
    return explicit(x, w, scheme, sw, sh, nchw, dw, dh)


@op(FROM29, Rule("w is as deep as x / groups", lambda x, w, groups, nchw:
                     w.shape[3] * groups == nhwc(x, nchw)[3]),
    Rule("groups divides the output channels", lambda w, groups: w.shape[0] % groups == 0),
    BIAS_SIZE, BIAS_SCALE, channel_axis(0))
def GROUPED_CONV_2D(x: T4, w: Filter, b: Bias, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive,
                    sh: Positive, groups: Positive, act: Act, nchw: Bool) -> T:
    """CONV_2D in `groups` independent slices of the channels, w [out, kh, kw, in / groups]."""
    return slide(x, w, w.shape[0], (pl, pr, pt, pb), (sw, sh), nchw)


@GROUPED_CONV_2D.form(29)
def grouped_by_scheme(x: T4, w: Filter, b: Bias, scheme: Scheme, sw: Positive, sh: Positive,
                      groups: Positive, act: Act, nchw: Bool) -> Args:
    return explicit(x, w, scheme, sw, sh, nchw)


@op(FROM29, DEPTH, BIAS_SIZE, BIAS_SCALE, channel_axis(0))
def TRANSPOSE_CONV_2D(x: T4, w: Filter, b: Bias, pl: Int, pr: Int, pt: Int, pb: Int, sw: Positive,
                      sh: Positive, act: Act, nchw: Bool) -> T:
    """act(each x scattered times w at i * stride - pad, + b), w [out, kh, kw, in]."""
    n, h, wd, _ = nhwc(x, nchw)
    oh = (h - 1) * sh + w.shape[1] - pt - pb
    ow = (wd - 1) * sw + w.shape[2] - pl - pr
    return x.free(image(n, oh, ow, w.shape[0], nchw))


@TRANSPOSE_CONV_2D.form(29)
def transpose_by_scheme(x: T4, w: Filter, b: Bias, shape: Ints1, scheme: Scheme, sw: Positive, sh: Positive,
                        act: Act, nchw: Bool) -> Args:
    """The padding is the scheme's for the output size; the tail may be negative to meet that size."""
    _, h, wd, _ = nhwc(x, nchw)
    _, oh, ow, _ = nhwc(Tensor(I32, shape.ints()), nchw)
    pl, pr = scatter_pads(scheme, wd, ow, w.shape[2], sw)
    pt, pb = scatter_pads(scheme, h, oh, w.shape[1], sh)
    return {"pl": pl, "pr": pr, "pt": pt, "pb": pb}


def scatter_pads(scheme: int, size: int, out: int, k: int, stride: int) -> tuple[int, int]:
    """Head and tail cut off a scattered axis of `size` positions so that `out` are left; a tail may be negative."""
    head, _ = scheme_pads(scheme, out, k, stride)
    return head, (size - 1) * stride + k - head - out


@op(QUANT, Rule("w is as wide as a flattened row of x", lambda x, w: product(x.shape) % w.shape[1] == 0),
    BIAS_SIZE, BIAS_SCALE, OUT_SCALE)
def FULLY_CONNECTED(x: Annotated[T, rank(2, 4), FILLED], w: Weights, b: Bias, act: Act) -> T:
    """act(x @ w.T + b), x flattened to rows as wide as w [units, in]."""
    straight = x.rank == 2 and not differ(x.shape[1], w.shape[1])
    rows = x.shape[0] if straight else maybe(lambda: product(x.shape) // w.shape[1])
    return x.free((rows, w.shape[0]))


@op({F16: FL6, F32: FL6, Q8S: FL6, I32: FL6},
    Rule("x and y have one rank and equal leading dimensions",
         lambda x, y: x.rank == y.rank and x.shape[:-2] == y.shape[:-2]),
    Rule("the columns of x are as many as the rows of y", lambda x, y, adj_x, adj_y:
         x.shape[-2 if adj_x else -1] == y.shape[-1 if adj_y else -2]))
def BATCH_MATMUL(x: Annotated[T, rank(2, 4)], y: Annotated[T, rank(2, 4)], adj_x: Bool,
                 adj_y: Bool) -> T:
    """x @ y, matrix by matrix, either one transposed first where adj_ is set."""
    return x.free((*x.shape[:-2], x.shape[-1 if adj_x else -2], y.shape[-2 if adj_y else -1]))
