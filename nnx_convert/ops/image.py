"""Pooling, resizing and moving blocks between space, depth and batch. Images have rank 4."""
from __future__ import annotations

import math
from typing import Annotated

from ..kinds import (
    FLOAT, FROM29, QUANT, T4, ZERO_IS_ZERO, Act, Bool, Fx, Ints, Ints1, Layout, Natural, Positive, Scheme,
    T, T4z, image, nhwc, rank, scheme_pads, window)
from ..schema import Rule, op
from ..signature import Args, Since
from ..types import F32, Q8, Q8S, Tensor, maybe, product

LateBool = Annotated[Bool, Since(30)]
SMALL_PADS = Rule("the filter is larger than each padding amount",
                  lambda pl, pr, pt, pb, kw, kh: max(pl, pr) < kw and max(pt, pb) < kh)
ONE_GRID = Rule("align and half exclude each other", lambda align, half: not (align and half))
IMAGE = FLOAT | {Q8: 29, Q8S: 30}


def pool(x: Tensor, pads: tuple[int, int, int, int], sw: int, sh: int, kw: int, kh: int, nchw: bool) -> Tensor:
    """The output of a window of kw by kh moved over x; pads are left, right, top, bottom."""
    n, h, w, c = nhwc(x, nchw)
    oh, ow = window(h, kh, sh, 1, pads[2:]), window(w, kw, sw, 1, pads[:2])
    return x.like(image(n, oh, ow, c, nchw))


@op(QUANT, SMALL_PADS)
def AVERAGE_POOL_2D(x: T4z, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive, sh: Positive,
                    kw: Positive, kh: Positive, act: Act, nchw: Layout = False) -> T:
    """act(mean of each window), padding not counted."""
    return pool(x, (pl, pr, pt, pb), sw, sh, kw, kh, nchw)


@op(QUANT, SMALL_PADS)
def MAX_POOL_2D(x: T4z, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive, sh: Positive, kw: Positive,
                kh: Positive, act: Act, nchw: Layout = False) -> T:
    """act(largest of each window)."""
    return pool(x, (pl, pr, pt, pb), sw, sh, kw, kh, nchw)


@op(FLOAT, SMALL_PADS)
def L2_POOL_2D(x: T4z, pl: Natural, pr: Natural, pt: Natural, pb: Natural, sw: Positive, sh: Positive, kw: Positive,
               kh: Positive, act: Act, nchw: Layout = False) -> T:
    """act(sqrt(mean of x ** 2 over each window)), padding not counted."""
    return pool(x, (pl, pr, pt, pb), sw, sh, kw, kh, nchw)


@AVERAGE_POOL_2D.form(27)
@MAX_POOL_2D.form(27)
@L2_POOL_2D.form(27)
def pool_by_scheme(x: T4z, scheme: Scheme, sw: Positive, sh: Positive, kw: Positive, kh: Positive, act: Act,
                   nchw: Layout = False) -> Args:
    _, h, w, _ = nhwc(x, nchw)
    pl, pr = scheme_pads(scheme, w, kw, sw)
    pt, pb = scheme_pads(scheme, h, kh, sh)
    return {"pl": pl, "pr": pr, "pt": pt, "pb": pb}


@op(IMAGE, ONE_GRID)
def RESIZE_BILINEAR(x: T4z, ow: Positive, oh: Positive, nchw: Layout = False, align: LateBool = False,
                    half: LateBool = False) -> T:
    """x interpolated on an oh by ow grid."""
    n, _, _, c = nhwc(x, nchw)
    return x.like(image(n, oh, ow, c, nchw))


@op(FROM29, ONE_GRID)
def RESIZE_NEAREST_NEIGHBOR(x: T4, ow: Positive, oh: Positive, nchw: Bool, align: LateBool = False,
                            half: LateBool = False) -> T:
    """x at the nearest cell of an oh by ow grid."""
    n, _, _, c = nhwc(x, nchw)
    return x.like(image(n, oh, ow, c, nchw))


@RESIZE_BILINEAR.form(29)
def resize_by_scale(x: T4z, w_scale: Fx, h_scale: Fx, nchw: Layout = False, align: LateBool = False,
                    half: LateBool = False) -> Args:
    _, h, w, _ = nhwc(x, nchw)
    return {"ow": maybe(lambda: math.floor(w * w_scale)), "oh": maybe(lambda: math.floor(h * h_scale))}


@RESIZE_NEAREST_NEIGHBOR.form(29)
def nearest_by_scale(x: T4, w_scale: Fx, h_scale: Fx, nchw: Bool, align: LateBool = False,
                     half: LateBool = False) -> Args:
    return resize_by_scale(x, w_scale, h_scale, nchw)


@op(QUANT, Rule("block * block divides the depth of x", lambda x, block, nchw:
                   nhwc(x, nchw)[3] % (block * block) == 0))
def DEPTH_TO_SPACE(x: T4, block: Positive, nchw: Layout = False) -> T:
    """Channels (row, column, c) laid out as blocks of cells."""
    n, h, w, c = nhwc(x, nchw)
    return x.like(image(n, h * block, w * block, c // (block * block), nchw))


@op(QUANT, Rule("block divides the height and width of x", lambda x, block, nchw:
                    nhwc(x, nchw)[1] % block == 0 and nhwc(x, nchw)[2] % block == 0))
def SPACE_TO_DEPTH(x: T4, block: Positive, nchw: Layout = False) -> T:
    """Blocks of cells stacked into channels (row, column, c)."""
    n, h, w, c = nhwc(x, nchw)
    return x.like(image(n, h // block, w // block, c * block * block, nchw))


BLOCKS = Rule("blocks are two positive sizes", lambda blocks: blocks.shape == (2,) and min(blocks.ints()) > 0)


@op(QUANT | {F32: 28, Q8: 28}, BLOCKS, Rule("the product of the blocks divides the batch of x",
                                                lambda x, blocks: x.shape[0] % product(blocks.ints()) == 0))
def BATCH_TO_SPACE_ND(x: T4, blocks: Ints1, nchw: Layout = False) -> T:
    """Batch (block row, block column, n) laid out as blocks of cells."""
    n, h, w, c = nhwc(x, nchw)
    bh, bw = blocks.ints()
    return x.like(image(n // bh // bw, h * bh, w * bw, c, nchw))


@op(QUANT | {F32: 28, Q8: 28}, BLOCKS, ZERO_IS_ZERO,
    Rule("pads are two pairs of amounts, not negative", lambda pads:
         pads.shape == (2, 2) and min(pads.ints()) >= 0),
    Rule("the blocks divide the padded height and width", lambda x, blocks, pads, nchw:
         all(size % block == 0 for size, block in zip(_padded(x, pads, nchw), blocks.ints(), strict=True))))
def SPACE_TO_BATCH_ND(x: T4, blocks: Ints1, pads: Annotated[Ints, rank(2)], nchw: Layout = False) -> T:
    """x padded with logical zeros, blocks of cells stacked into the batch (block row, block column, n)."""
    n, _, _, c = nhwc(x, nchw)
    (h, w), (bh, bw) = _padded(x, pads, nchw), blocks.ints()
    return x.like(image(n * bh * bw, h // bh, w // bw, c, nchw))


def _padded(x: Tensor, pads: Tensor, nchw: bool) -> tuple[int, int]:
    _, h, w, _ = nhwc(x, nchw)
    top, bottom, left, right = pads.ints()
    return h + top + bottom, w + left + right
