"""Steps on images: convolutions, pooling, resizing, normalisation, blocks of places. Images have one to three axes."""
from __future__ import annotations

import math
from typing import Any

from ..draw import Unfit
from .growing import Growing, Value, step

IMAGES = range(3, 6)


@step("f", IMAGES, weight=6)
def conv(m: Growing, x: Value) -> None:
    """Conv: groups, dilations, strides beyond the kernel, uneven pads or those that a name stands for."""
    x = m.tamed(x)
    space = x.shape[2:]
    channels = x.shape[1]
    if 0 in x.shape:
        raise Unfit
    group = m.draw.one([1, 1, 1, channels, *(g for g in (2, 3) if channels % g == 0)])
    outputs = group * m.draw.between(1, 4 if group == 1 else 2)
    kernel = [m.draw.between(1, 4) for _ in space]
    dilations = [m.draw.one([1, 1, 1, 2, 3]) for _ in space]
    strides = [m.draw.one([1, 1, 2, 3, 5]) for _ in space]
    pads, said = padded(m, space, kernel, dilations, strides)
    sizes = [(n + a + b - (k - 1) * d - 1) // s + 1
             for n, (a, b), k, d, s in zip(space, pads, kernel, dilations, strides, strict=True)]
    # ONNX Runtime takes no dilations with pads that a name stands for.
    if min(sizes) < 1 or set(dilations) != {1} and said.get("auto_pad", "").startswith("SAME"):
        raise Unfit
    fan = channels // group * math.prod(kernel)
    weight = m.floats((outputs, channels // group, *kernel), -1 / math.sqrt(fan), 1 / math.sqrt(fan))
    bias = [m.floats((outputs,), -1, 1)] if m.draw.chance(0.6) else []
    bound = x.bound * math.sqrt(fan) + 1
    if group > 1:
        said["group"] = group
    if m.draw.chance(0.5):
        said["kernel_shape"] = kernel
    m.op("Conv", [x, weight, *bias], [m.made("float32", (x.shape[0], outputs, *sizes), -bound, bound)],
         dilations=dilations, strides=strides, **said)


def padded(m: Growing, space: tuple[int, ...], kernel: list[int], dilations: list[int], strides: list[int]
           ) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    """The pads before and after each axis, and the attributes that say them."""
    how = m.draw.one(["none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how in ("none", "VALID"):
        return [(0, 0)] * len(space), {"auto_pad": how} if how == "VALID" else {}
    if how == "pads":
        pads = [(m.draw.between(0, k * d // 2 + 1), m.draw.between(0, k * d // 2 + 1))
                for k, d in zip(kernel, dilations, strict=True)]
        return pads, {"pads": [a for a, _ in pads] + [b for _, b in pads]}
    pads = []
    for n, k, d, s in zip(space, kernel, dilations, strides, strict=True):
        more = (-(-n // s) - 1) * s + (k - 1) * d + 1 - n
        if more < 0:                             # ONNX Runtime pads by less than nothing, or refuses it
            raise Unfit
        small, large = more // 2, more - more // 2
        pads.append((small, large) if how == "SAME_UPPER" else (large, small))
    return pads, {"auto_pad": how}


@step("f", IMAGES, weight=2)
def transposed(m: Growing, x: Value) -> None:
    """ConvTranspose with dilations, pads, output padding and groups."""
    x = m.tamed(x)
    channels, space = x.shape[1], x.shape[2:]
    if 0 in x.shape:
        raise Unfit
    group = m.draw.one([1, 1, *(g for g in (2, 3) if channels % g == 0)])
    each = m.draw.between(1, 3)
    kernel = [m.draw.between(1, 3) for _ in space]
    strides = [m.draw.between(1, 3) for _ in space]
    dilations = [m.draw.one([1, 1, 2]) for _ in space]
    pads = [(m.draw.between(0, 1), m.draw.between(0, 1)) for _ in space]
    more = [m.draw.between(0, s - 1) for s in strides]
    sizes = [(n - 1) * s + (k - 1) * d + 1 - a - b + o for n, k, s, d, (a, b), o in zip(
        space, kernel, strides, dilations, pads, more, strict=True)]
    if min(sizes) < 1:
        raise Unfit
    weight = m.floats((channels, each, *kernel), -0.5, 0.5)
    bias = [m.floats((each * group,), -1, 1)] if m.draw.chance(0.5) else []
    bound = x.bound * channels * math.prod(kernel) + 1
    m.op("ConvTranspose", [x, weight, *bias], [m.made("float32", (x.shape[0], each * group, *sizes), -bound, bound)],
         strides=strides, dilations=dilations, pads=[a for a, _ in pads] + [b for _, b in pads], output_padding=more,
         group=group)


@step("f", IMAGES, weight=4)
def pool(m: Growing, x: Value) -> None:
    """MaxPool, AveragePool, LpPool with ceil, counted pads and dilations where the version has them."""
    x = m.tamed(x)
    space = x.shape[2:]
    if 0 in x.shape:
        raise Unfit
    name = m.draw.one(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    kernel = [m.draw.between(1, min(4, n + 1)) for n in space]
    strides = [m.draw.one([1, 1, 2, 3, 4]) for _ in space]
    stretch = name == "MaxPool" and m.version >= 10 or name != "MaxPool" and m.version >= 19
    dilations = [m.draw.one([1, 1, 2]) if stretch and name != "LpPool" else 1 for _ in space]
    ceil = name != "LpPool" and m.version >= 10 and m.draw.chance(0.3)
    pads, said = padded(m, space, kernel, dilations, strides)
    pads = [(min(a, (k - 1)), min(b, (k - 1))) for (a, b), k in zip(pads, kernel, strict=True)]
    if "pads" in said:
        said["pads"] = [a for a, _ in pads] + [b for _, b in pads]
    elif said.get("auto_pad", "").startswith("SAME") and (ceil or set(dilations) != {1}):
        raise Unfit
    sizes = []
    for n, (a, b), k, d, s in zip(space, pads, kernel, dilations, strides, strict=True):
        left = n + a + b - (k - 1) * d - 1
        size = (-(-left // s) if ceil else left // s) + 1
        if ceil and (size - 1) * s >= n + a:
            size -= 1
        sizes.append(size)
    if min(sizes) < 1:
        raise Unfit
    if ceil:
        said["ceil_mode"] = 1
    if set(dilations) != {1}:
        said["dilations"] = dilations
    if name == "AveragePool" and m.draw.chance(0.5):
        said["count_include_pad"] = 1
    if name == "LpPool":
        said["p"] = m.draw.one([1, 2, 3])
    bound = x.bound * (math.prod(kernel) if name == "LpPool" else 1)
    m.op(name, [x], [m.made("float32", (*x.shape[:2], *sizes), -bound, bound)], kernel_shape=kernel, strides=strides,
         **said)


@step("f", IMAGES)
def whole_image(m: Growing, x: Value) -> None:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool."""
    if 0 in x.shape:
        raise Unfit
    m.op(m.draw.one(["GlobalAveragePool", "GlobalMaxPool"]), [x],
         [m.like(x, (*x.shape[:2], *[1] * (x.rank - 2)))])


@step("f", IMAGES, weight=2)
def normalisation(m: Growing, x: Value) -> None:
    """BatchNormalization, InstanceNormalization, LRN."""
    x, c = m.tamed(x), x.shape[1]
    if 0 in x.shape:
        raise Unfit
    name = m.draw.one(["BatchNormalization", "InstanceNormalization", "LRN"])
    y = m.made("float32", x.shape, -20 * x.bound - 5, 20 * x.bound + 5)
    if name == "LRN":
        if x.rank != 4:
            raise Unfit
        m.op(name, [x], [y], size=m.draw.one([1, 3, 5]), alpha=m.draw.real(0.1, 1), beta=m.draw.one([0.5, 0.75]),
             bias=1.0)
    elif name == "InstanceNormalization":
        m.op(name, [x, m.floats((c,)), m.floats((c,))], [y], epsilon=m.draw.one([1e-5, 1e-2]))
    else:
        m.op(name, [x, m.floats((c,)), m.floats((c,)), m.floats((c,)), m.floats((c,), 0.5, 2)], [y])


#: What a resize may be by version: coordinates, rounding.
COORDINATES = {11: ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"],
               19: ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]}
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@step("f", range(4, 5), weight=3)
def resize(m: Growing, x: Value) -> None:
    """Upsample, and Resize by scales and by sizes in each mode."""
    if 0 in x.shape:
        raise Unfit
    factors = [1.0, 1.0, *(m.draw.one([0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0]) for _ in range(2))]
    if m.version < 11:
        factors = [max(1.0, f) for f in factors]
    sizes = [math.floor(n * f) for n, f in zip(x.shape, factors, strict=True)]
    if min(sizes) < 1:
        raise Unfit
    mode = m.draw.one(["nearest", "linear", *["cubic"] * (m.version >= 11)])
    y = m.made("float32", sizes, -2 * x.bound, 2 * x.bound)
    scales = m.constant(factors, "float32")
    if m.version < 9:
        m.op("Upsample", [x], [y], scales=factors, mode=mode)
    elif m.version == 9:
        m.op("Upsample", [x, scales], [y], mode=mode)
    elif m.version == 10:
        m.op("Resize", [x, scales], [y], mode=mode)
    else:
        said: dict[str, Any] = {
            "coordinate_transformation_mode": m.draw.one(COORDINATES[19 if m.version >= 19 else 11])}
        if mode == "nearest":
            said["nearest_mode"] = m.draw.one(NEAREST)
        if mode == "cubic" and m.draw.chance(0.5):
            said |= {"cubic_coeff_a": m.draw.one([-0.5, -0.75]), "exclude_outside": m.draw.one([0, 1])}
        if m.draw.chance(0.4):
            sizes = [*x.shape[:2], m.draw.between(1, 10), m.draw.between(1, 10)]
            y = m.made("float32", sizes, -2 * x.bound, 2 * x.bound)
            empty = "" if m.version >= 13 else m.constant([], "float32")
            m.op("Resize", [x, m.constant([], "float32") if m.version < 13 else "", empty, m.ints(sizes)], [y],
                 mode=mode, **said)
        else:
            m.op("Resize", [x, m.constant([], "float32") if m.version < 13 else "", scales], [y], mode=mode, **said)


@step("f", range(4, 5), weight=2)
def blocks(m: Growing, x: Value) -> None:
    """SpaceToDepth and DepthToSpace, in both orders of channels."""
    n, c, h, w = x.shape
    block = m.draw.between(1, 3)
    if h % block == 0 and w % block == 0 and m.draw.chance(0.5):
        m.op("SpaceToDepth", [x], [m.like(x, (n, c * block * block, h // block, w // block))], blocksize=block)
    elif c % (block * block) == 0:
        more = {"mode": m.draw.one(["DCR", "CRD"])} if m.version >= 11 else {}
        m.op("DepthToSpace", [x], [m.like(x, (n, c // block // block, h * block, w * block))], blocksize=block, **more)
    else:
        raise Unfit


@step("f", range(4, 5), since=16)
def sampling(m: Growing, x: Value) -> None:
    """GridSample in each mode."""
    if 0 in x.shape:
        raise Unfit
    h, w = m.draw.between(1, 6), m.draw.between(1, 6)
    names = ("bilinear", "nearest", "bicubic") if m.version < 20 else ("linear", "nearest", "cubic")
    m.op("GridSample", [x, m.floats((x.shape[0], h, w, 2), -1.3, 1.3)],
         [m.made("float32", (*x.shape[:2], h, w), -2 * x.bound, 2 * x.bound)], mode=m.draw.one(names),
         padding_mode=m.draw.one(["zeros", "border", "reflection"]), align_corners=m.draw.one([0, 1]))
