"""Normalisation. What is per channel has its own axis, so that a layout may move it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import conv, conv_nd, elementwise as e, norm as n, reduce as r, sampling
from ....types import B8, BF16, F16, F32, F64, Type, known, product
from ..importer import Op
from ..registry import imports
from .axes import open_, shaped_like

#: ONNX's codes of the floats that statistics are kept in.
STASH: dict[int, Type] = {1: F32, 10: F16, 11: F64, 16: BF16}


def full(g: Op, x: Value, value: float) -> Value:
    """A number beside x."""
    return g.const(np.full((1,) * max(len(x.shape), 1), value, x.type.dtype), x.type)


def per_channel(g: Op, v: Value, x: Value) -> Value:
    """A vector along the channels of x."""
    return g.reshape(v, (1, *g.shape(v), *(1,) * (g.rank(x) - 1 - g.rank(v))))


def deviations(g: Op, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """The mean over axes, which stay, what x is from it, and the mean of its square."""
    mean = g(r.MEAN, x, list(axes), keep=1)
    d = g(e.SUB, x, mean, act=0)
    return mean, d, g(r.MEAN, g(e.MUL, d, d, act=0), list(axes), keep=1)


def inverse(g: Op, variance: Value, epsilon: float) -> Value:
    """1 / sqrt(variance + epsilon)."""
    return g(e.RSQRT, g(e.ADD, variance, full(g, variance, epsilon), act=0))


def scaled(g: Op, x: Value, scale: Value, shift: Value | None) -> Value:
    """x * scale + shift."""
    y = g.elementwise(e.MUL, x, scale, act=0)
    return y if shift is None else g.elementwise(e.ADD, y, shift, act=0)


@imports("BatchNormalization", until=6, arithmetic=True)
def batch_norm_flagged(g: Op, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *,
                       consumed_inputs: tuple[int, ...] = (), epsilon: float = 1e-5, is_test: int = 0,
                       momentum: float = 0.9, spatial: int = 1) -> Any:
    return batch_norm_outputs(g, x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, spatial=spatial)


@imports("BatchNormalization", since=7, until=13, arithmetic=True)
def batch_norm_outputs(g: Op, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float = 1e-5,
                       momentum: float = 0.9, spatial: int = 1) -> Any:
    """A node with several outputs is in training."""
    if not any(map(g.wanted, range(1, 5))):
        return inferred(g, x, scale, bias, mean, var, epsilon)
    if not spatial:
        g.unsupported("is in training, each element by itself")
    return trained(g, x, scale, bias, mean, var, epsilon, momentum)[:g.count]


@imports(since=14, arithmetic=True)
def BatchNormalization(g: Op, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float = 1e-5,
                       momentum: float = 0.9, training_mode: int = 0) -> Any:
    if training_mode:
        return trained(g, x, scale, bias, mean, var, epsilon, momentum)[:min(g.count, 3)]
    if g.wanted(1) or g.wanted(2):
        return inferred(g, x, scale, bias, mean, var, epsilon), mean, var
    return inferred(g, x, scale, bias, mean, var, epsilon)


def inferred(g: Op, x: Value, scale: Value, bias: Value, mean: Value, var: Value, epsilon: float) -> Value:
    """x times a factor, plus a term, per channel; both in float64 where they are known."""
    known_ = [g.known(v) for v in (scale, bias, mean, var)]
    if all(v is not None for v in known_):
        s, b, m, v = (np.asarray(a, np.float64) for a in known_)
        factor = s / np.sqrt(v + epsilon)
        term = b - m * factor
        k, c = (g.const(a.astype(x.type.dtype), x.type) for a in (factor, term))
    else:
        scale, bias, mean, var = (g.cast(v, x.type) for v in (scale, bias, mean, var))
        k = g.elementwise(e.MUL, scale, inverse(g, var, epsilon), act=0)
        c = g.elementwise(e.SUB, bias, g.elementwise(e.MUL, mean, k, act=0), act=0)
    return scaled(g, x, per_channel(g, k, x), per_channel(g, c, x))


def trained(g: Op, x: Value, scale: Value, bias: Value, mean: Value, var: Value, epsilon: float,
            momentum: float) -> tuple[Value, ...]:
    """The outputs in training: y, the running statistics, and those of this batch."""
    axes = [i for i in range(g.rank(x)) if i != 1]
    now, d, variance = deviations(g, x, axes)
    y = g(e.MUL, d, inverse(g, variance, epsilon), act=0)
    y = scaled(g, y, per_channel(g, g.cast(scale, x.type), x), per_channel(g, g.cast(bias, x.type), x))
    saved = [g.cast(g.reshape(v, g.shape(old)), old.type) for v, old in ((now, mean), (variance, var))]
    running = [g(e.ADD, g(e.MUL, old, full(g, old, momentum), act=0), g(e.MUL, new, full(g, new, 1 - momentum), act=0),
                 act=0) for old, new in zip((mean, var), saved, strict=True)]
    return y, *running, *saved


@imports("InstanceNormalization", until=5, arithmetic=True)
def instance_norm_consuming(g: Op, x: Value, scale: Value, bias: Value, *, consumed_inputs: tuple[int, ...] = (),
                            epsilon: float = 1e-5) -> Value:
    return InstanceNormalization(g, x, scale, bias, epsilon=epsilon)


@imports(since=6, arithmetic=True)
def InstanceNormalization(g: Op, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5) -> Value:
    """NNAPI's for images; a row may be what a group normalisation made of one, whose parts a layout has to see."""
    if g.rank(x) < 3:
        raise FormatError(f"a tensor of rank {g.rank(x)} has no axes to normalise")
    if g.rank(x) == 4 and x.type in (F32, F16):
        y = g(n.INSTANCE_NORMALIZATION, x, gamma=1.0, beta=0.0, eps=epsilon, nchw=True)
    else:
        _, d, variance = deviations(g, x, range(2, g.rank(x)))
        y = g(e.MUL, d, inverse(g, variance, epsilon), act=0)
    return scaled(g, y, per_channel(g, scale, x), per_channel(g, bias, x))


def stashed(g: Op, x: Value, code: int) -> Value:
    """x in the type that statistics are kept in; raises `FormatError` where that is no float."""
    if code not in STASH:
        raise FormatError(f"stash_type is {code}")
    kept = STASH[code]
    return g.cast(x, F32 if kept == BF16 else kept)


def restored(g: Op, y: Value, x: Value, scale: Value, shift: Value | None) -> Value:
    """y * scale + shift in the type of x; in float32 where that is a bfloat16."""
    kept = F32 if x.type == BF16 else x.type
    shift = None if shift is None else g.cast(shift, kept)
    return g.cast(scaled(g, g.cast(y, kept), g.cast(scale, kept), shift), x.type)


def last_axes(g: Op, x: Value, axis: int) -> list[int]:
    """The axes from one on; raises `FormatError` where there is none such."""
    rank = g.rank(x)
    if not -rank <= axis < rank:
        raise FormatError(f"axis {axis} of a tensor of rank {rank}")
    return list(range(axis % rank, rank))


@imports()
def LayerNormalization(g: Op, x: Value, scale: Value, bias: Value | None = None, *, axis: int = -1,
                       epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    wide = stashed(g, x, stash_type)
    mean, d, variance = deviations(g, wide, last_axes(g, x, axis))
    inv = inverse(g, variance, epsilon)
    y = restored(g, g(e.MUL, d, inv, act=0), x, scale, bias)
    return [y, mean, inv][:g.count]


@imports()
def RMSNormalization(g: Op, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5,
                     stash_type: int = 1) -> Value:
    wide = stashed(g, x, stash_type)
    square = g(r.MEAN, g(e.MUL, wide, wide, act=0), last_axes(g, x, axis), keep=1)
    return restored(g, g(e.MUL, wide, inverse(g, square, epsilon), act=0), x, scale, None)


@imports(since=21)
def GroupNormalization(g: Op, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5, num_groups: int,
                       stash_type: int = 1) -> Value:
    y = shaped_like(g, grouped(g, stashed(g, x, stash_type), num_groups, epsilon), x)
    return restored(g, y, x, per_channel(g, scale, x), per_channel(g, bias, x))


@imports("GroupNormalization", until=20)
def group_norm_by_group(g: Op, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5,
                        num_groups: int) -> Value:
    """Before version 21 the scale and the bias are those of a group."""
    y = grouped(g, stashed(g, x, 1), num_groups, epsilon)
    return shaped_like(g, restored(g, y, x, per_channel(g, scale, y), per_channel(g, bias, y)), x)


def grouped(g: Op, x: Value, groups: int, epsilon: float) -> Value:
    """x normalised over groups of channels: [n, groups, channels of a group, cells], the last two as one if open."""
    channels = x.shape[1]
    if groups < 1 or known(channels) and channels % groups:
        raise FormatError(f"{channels} channels in {groups} groups")
    sizes = (x.shape[0], groups, channels // groups, product(x.shape[2:]))
    parts: Value = g.reshape(x, sizes) if open_(sizes) < 2 else \
        g.call("Reshape", x, g.const(np.array([0, groups, -1])))[0]
    _, d, variance = deviations(g, parts, range(2, g.rank(parts)))
    return g(e.MUL, d, inverse(g, variance, epsilon), act=0)


@imports(arithmetic=True)
def MeanVarianceNormalization(g: Op, x: Value, *, axes: tuple[int, ...] = (0, 2, 3)) -> Value:
    _, d, variance = deviations(g, x, axes)
    return g(e.DIV, d, g(e.ADD, g(e.SQRT, variance), full(g, variance, 1e-9), act=0), act=0)


@imports(arithmetic=True)
def LpNormalization(g: Op, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """What is all zero stays so."""
    at = last_axes(g, x, axis)[0]
    if p == 2:
        return g(n.L2_NORMALIZATION, x, axis=at)
    if p != 1:
        raise FormatError(f"p is {p}, not 1 or 2")
    total = g(r.REDUCE_SUM, g(e.ABS, x), [at], keep=True)
    return g(e.DIV, x, g(e.MAXIMUM, total, full(g, x, float(np.finfo(x.type.dtype).tiny))), act=0)


@imports(arithmetic=True)
def LRN(g: Op, x: Value, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Value:
    """NNAPI's window has a middle; one of an even size is a product with a band of ones."""
    if g.rank(x) < 2 or size < 1:
        raise FormatError(f"a window of {size} on a tensor of rank {g.rank(x)}")
    image = x if g.rank(x) == 4 else g.reshape(x, (*x.shape[:2], 1, product(x.shape[2:])))
    if size % 2:
        y = g(n.LOCAL_RESPONSE_NORMALIZATION, image, radius=(size - 1) // 2, bias=bias, alpha=alpha / size, beta=beta,
              axis=1)
        return g.reshape(y, x.shape)
    sums = windows(g, image, size, alpha / size, bias)
    return g.reshape(g(e.MUL, image, g(e.POW, sums, full(g, sums, -beta)), act=0), x.shape)


def windows(g: Op, image: Value, size: int, factor: float, term: float) -> Value:
    """factor times the sums of squares of `size` channels, the odd one after, plus a term."""
    channels = image.shape[1]
    distance = np.arange(channels) - np.arange(channels)[:, None]
    band = ((distance >= -((size - 1) // 2)) & (distance <= size // 2)) * factor
    squares = g(e.MUL, image, image, act=0)
    b = g.const(np.full(channels, term, image.type.dtype), image.type)
    if image.type not in (F32, F16):
        w = g.const(band.reshape(channels, channels, 1, 1).astype(image.type.dtype), image.type)
        return g(conv_nd.CONV_ND, squares, w, b, pads=[0] * 4, strides=[1, 1], dilations=[1, 1], groups=1)
    w = g.const(band.reshape(channels, 1, 1, channels).astype(image.type.dtype), image.type)
    return g(conv.CONV_2D, squares, w, b, pl=0, pr=0, pt=0, pb=0, sw=1, sh=1, act=0, nchw=True)


@imports("Dropout", until=6)
def dropout_flagged(g: Op, x: Value, *, consumed_inputs: tuple[int, ...] = (), is_test: int = 0,
                    ratio: float = 0.5) -> Any:
    return dropout_none(g, x, ratio=ratio)


@imports("Dropout", since=7, until=11)
def dropout_none(g: Op, x: Value, *, ratio: float = 0.5) -> Any:
    """Nothing is dropped in inference; before version 10 the mask has the type of x."""
    if not g.wanted(1):
        return x
    mask = Dropout(g, x)[1]
    return x, mask if g.opset >= 10 else g.cast(mask, x.type)


@imports(since=12)
def Dropout(g: Op, x: Value, ratio: Value | None = None, training_mode: Value | None = None, *,
            seed: int | None = None) -> Any:
    training, share = g.known(training_mode), g.known(ratio)
    idle = training_mode is None or training is not None and not training.any() or share is not None and not share.any()
    if idle and not g.wanted(1):
        return x
    if idle and all(map(known, x.shape)):
        return x, g.const(np.ones(g.shape(x), bool), B8)
    ratio = ratio if ratio is not None else g.const(np.full(1, 0.5, np.float32))
    mode = g.const(np.zeros(1, bool)) if training_mode is None or idle else training_mode
    y, mask = g.add(sampling.DROPOUT, x, ratio, mode, seed=(seed or 0) & 0x7FFFFFFF, seeded=seed is not None)
    return y, mask
