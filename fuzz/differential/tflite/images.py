"""Steps on images: convolutions, pooling, resizing, blocks of places."""
from __future__ import annotations

import math

import numpy as np

from ..draw import Unfit
from .elementwise import activation
from .growing import ACT, Growing, Value, step

FOUR = range(4, 5)
SAME, VALID = 0, 1
Options = dict[str, int | float | bool]


def windows(m: Growing, sizes: tuple[int, ...], dilate: bool) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Padding, and of each axis kernel, stride, dilation and the output's size; strides may exceed kernels."""
    padding, found = m.draw.one([SAME, VALID]), []
    stretched = dilate and m.draw.chance(0.35)
    for n in sizes:
        if not n:
            raise Unfit
        dilation = m.draw.between(1, 3) if stretched else 1
        limit = 5 if padding == SAME else min(5, (n - 1) // dilation + 1)
        kernel = m.draw.between(1, limit)
        # LiteRT's kernels take dilations with a stride of 1 only.
        stride = 1 if stretched else m.draw.one([1, 1, 2, 3, 4])
        reach = 0 if padding == SAME else (kernel - 1) * dilation
        found.append((kernel, stride, dilation, (n - reach - 1) // stride + 1))
    return padding, found


def said(padding: int, axes: list[tuple[int, int, int, int]], letters: str = "HW", dilate: bool = True) -> Options:
    """Those as options."""
    found: Options = {"Padding": padding}
    for letter, (_, stride, dilation, _) in zip(letters, axes, strict=True):
        found[f"Stride{letter}"] = stride
        if dilate:
            found[f"Dilation{letter}Factor"] = dilation
    return found


def product(m: Growing, x: Value, shape: list[int], scales: float, size: int) -> Value:
    """What a sum of `size` products with weights of a mean scale gives."""
    if x.kind == "f":
        bound = x.bound * 2 * math.sqrt(max(1, size)) + 1
        return m.made("float32", shape, -bound, bound)
    return m.coded(shape, (x.scale or 1) * scales * math.sqrt(max(1, size)) * 5000, x.dtype)


@step("fq", FOUR, weight=6)
def conv(m: Growing, x: Value) -> None:
    """CONV_2D, dilated or grouped at times."""
    x = m.tamed(x)
    padding, axes = windows(m, x.shape[1:3], True)
    outputs, depth = m.draw.one([1, 2, 3, 4, 5, 8, 16]), x.shape[3]
    if not depth:
        raise Unfit
    if x.kind == "f" and m.draw.chance(0.15):
        groups = m.draw.one([g for g in (2, 3, 4) if depth % g == 0] or [1])
        outputs, depth = groups * m.draw.between(1, 3), depth // groups
    filter_shape = (outputs, axes[0][0], axes[1][0], depth)
    weight, scales = m.weights(x, filter_shape, 0)
    y = product(m, x, [x.shape[0], axes[0][3], axes[1][3], outputs], float(scales.mean()), math.prod(filter_shape[1:]))
    # LiteRT wants a bias here.
    m.op("CONV_2D", [x, weight, *m.bias(x, outputs, scales, 0)], [y], "Conv2DOptions",
         {**said(padding, axes), ACT: activation(m, x)}, {"int8": 3, "int16": 4}.get(x.dtype, 1))


@step("fq", FOUR, weight=4)
def depthwise(m: Growing, x: Value) -> None:
    """DEPTHWISE_CONV_2D."""
    x = m.tamed(x)
    padding, axes = windows(m, x.shape[1:3], True)
    times = m.draw.one([1, 1, 2, 3])
    outputs = times * x.shape[3]
    if not outputs:
        raise Unfit
    weight, scales = m.weights(x, (1, axes[0][0], axes[1][0], outputs), 3)
    y = product(m, x, [x.shape[0], axes[0][3], axes[1][3], outputs], float(scales.mean()), axes[0][0] * axes[1][0])
    m.op("DEPTHWISE_CONV_2D", [x, weight, *m.bias(x, outputs, scales)], [y], "DepthwiseConv2DOptions",
         {**said(padding, axes), "DepthMultiplier": times, ACT: activation(m, x)}, 3 if x.dtype == "int8" else 1)


@step("fq", FOUR, weight=2)
def transposed(m: Growing, x: Value) -> None:
    """TRANSPOSE_CONV, its output's size any that fits."""
    x = m.tamed(x)
    padding = m.draw.one([SAME, VALID])
    sizes, options = [], {"Padding": padding}
    kernels = []
    for letter, n in zip("HW", x.shape[1:3], strict=True):
        kernel, stride = m.draw.between(1, 4), m.draw.between(1, 3)
        if padding == SAME:
            sizes.append((n - 1) * stride + m.draw.between(1, stride))
        else:
            sizes.append((n - 1) * stride + kernel + m.draw.between(0, stride - 1))
        kernels.append(kernel)
        options[f"Stride{letter}"] = stride
    outputs = m.draw.one([1, 2, 3, 5])
    weight, scales = m.weights(x, (outputs, *kernels, x.shape[3]), 0)
    shape = [x.shape[0], *sizes, outputs]
    y = product(m, x, shape, float(scales.mean()), math.prod(kernels) * x.shape[3])
    bias = m.bias(x, outputs, scales) if m.draw.chance(0.4) else []
    m.op("TRANSPOSE_CONV", [m.ints(shape), weight, x, *bias], [y], "TransposeConvOptions", options,
         3 if bias else 2 if x.kind == "q" else 1)


@step("f", range(5, 6), weight=2)
def conv_3d(m: Growing, x: Value) -> None:
    """CONV_3D."""
    x = m.tamed(x)
    padding, axes = windows(m, x.shape[1:4], False)
    outputs = m.draw.one([1, 2, 4])
    kernel = [a[0] for a in axes]
    spread = 1 / math.sqrt(math.prod(kernel) * max(1, x.shape[4]))
    weight, scales = m.float32(m.draw.floats((*kernel, x.shape[4], outputs), -spread, spread)), np.ones(1, np.float32)
    y = product(m, x, [x.shape[0], *(a[3] for a in axes), outputs], 1.0, math.prod(kernel) * x.shape[4])
    m.op("CONV_3D", [x, weight, *m.bias(x, outputs, scales)], [y], "Conv3DOptions",
         {**said(padding, axes, "DHW"), ACT: activation(m, x)})


@step("fq", FOUR, weight=4)
def pool(m: Growing, x: Value) -> None:
    """MAX_POOL_2D, AVERAGE_POOL_2D, L2_POOL_2D."""
    x = m.tamed(x)
    padding, axes = windows(m, x.shape[1:3], False)
    names = ["MAX_POOL_2D", "AVERAGE_POOL_2D", *["L2_POOL_2D"] * (x.kind == "f")]
    name, shape = m.draw.one(names), [x.shape[0], axes[0][3], axes[1][3], x.shape[3]]
    y = m.made("float32", shape, 0, x.bound) if name == "L2_POOL_2D" else m.like(x, shape)
    options = said(padding, axes, dilate=False) | {"FilterHeight": axes[0][0], "FilterWidth": axes[1][0]}
    m.op(name, [x], [y], "Pool2DOptions", {**options, ACT: activation(m, x)}, {"int8": 2, "int16": 3}.get(x.dtype, 1))


@step("fq", FOUR, weight=3)
def resize(m: Growing, x: Value) -> None:
    """RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR in each mode."""
    if 0 in x.shape:
        raise Unfit
    sizes = [m.draw.between(1, 12), m.draw.between(1, 12)]
    mode: Options = m.draw.one([{}, {"AlignCorners": True}, {"HalfPixelCenters": True}])
    name, table = m.draw.one([("RESIZE_BILINEAR", "ResizeBilinearOptions"),
                              ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")])
    m.op(name, [x, m.ints(sizes)], [m.like(x, (x.shape[0], *sizes, x.shape[3]))], table, mode, 3)


@step("fq", FOUR, weight=2)
def blocks(m: Growing, x: Value) -> None:
    """SPACE_TO_DEPTH, DEPTH_TO_SPACE."""
    n, h, w, c = x.shape
    block = m.draw.between(1, 3)
    if h % block == 0 and w % block == 0 and m.draw.chance(0.6):
        m.op("SPACE_TO_DEPTH", [x], [m.like(x, (n, h // block, w // block, c * block * block))], "SpaceToDepthOptions",
             {"BlockSize": block})
    elif c % (block * block) == 0:
        m.op("DEPTH_TO_SPACE", [x], [m.like(x, (n, h * block, w * block, c // (block * block)))],
             "DepthToSpaceOptions", {"BlockSize": block})
    else:
        raise Unfit


@step("fq", range(3, 5), weight=2)
def batches(m: Growing, x: Value) -> None:
    """SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""
    space = x.shape[1:-1]
    block = [m.draw.between(1, 3) for _ in space]
    if x.dtype == "int16":
        raise Unfit
    if x.shape[0] % math.prod(block) == 0 and m.draw.chance(0.5):
        whole = [n * b for n, b in zip(space, block, strict=True)]
        crops = [[m.draw.between(0, min(2, n - 1)), 0] for n in whole]
        crops = [[a, m.draw.between(0, min(2, n - a - 1))] for (a, _), n in zip(crops, whole, strict=True)]
        sizes = [n - a - b for n, (a, b) in zip(whole, crops, strict=True)]
        m.op("BATCH_TO_SPACE_ND", [x, m.ints(block), m.ints(crops)],
             [m.like(x, (x.shape[0] // math.prod(block), *sizes, x.shape[-1]))], "BatchToSpaceNDOptions", version=2)
        return
    pads, sizes = [], []
    for n, b in zip(space, block, strict=True):
        before = m.draw.between(0, 2)
        after = -(n + before) % b + b * m.draw.one([0, 0, 1])
        pads.append([before, after])
        sizes.append((n + before + after) // b)
    y = m.made(x.dtype, (x.shape[0] * math.prod(block), *sizes, x.shape[-1]), min(x.low, 0), max(x.high, 0),
               scale=x.scale, zero=x.zero)
    m.op("SPACE_TO_BATCH_ND", [x, m.ints(block), m.ints(pads)], [y], "SpaceToBatchNDOptions", version=2)


@step("f", FOUR)
def local_response(m: Growing, x: Value) -> None:
    """LOCAL_RESPONSE_NORMALIZATION."""
    x = m.tamed(x)
    m.op("LOCAL_RESPONSE_NORMALIZATION", [x], [m.made("float32", x.shape, -x.bound, x.bound)],
         "LocalResponseNormalizationOptions", {"Radius": m.draw.between(0, 3), "Bias": m.draw.real(1, 2),
                                               "Alpha": m.draw.real(0, 1), "Beta": m.draw.one([0.5, 0.75, 1.0])})
