"""The quantised operators of com.microsoft: those of ONNX Runtime's quantiser, and weights in blocks of few bits."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, grids
from ....types import F32, I32, Array, known, product
from ..importer import Op
from ..registry import MICROSOFT, imports
from .fused import channels
from .quant import convolution, products

#: The bits of packed weights, and how many elements a byte holds.
BITS = (2, 4, 8)
#: The numbers of bitsandbytes' codes: floats of 4 bits, and quantiles of the normal distribution.
FOUR_BITS = (
    (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25, -0.0, -1 / 192, -2 / 3, -1.0, -1 / 3, -0.5, -1 / 6, -0.25),
    (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0))
#: The activations that DYNAMIC_QUANTIZE_LSTM has, by direction.
USUAL = ("sigmoid", "tanh", "tanh")


def real(g: Op, x: Value, scale: Value, zero: Value | None = None, axis: int = 1) -> Value:
    """Codes as floats."""
    found: Value = g.call("DequantizeLinear", x, scale, zero, axis=axis)[0]
    return found


def codes(g: Op, y: Value, scale: Value, zero: Value | None, like: Value) -> Value:
    """Floats as codes of the zero point's type, or of another's."""
    zero = zero if zero is not None else g.const(np.zeros((), like.type.dtype), like.type)
    found: Value = g.call("QuantizeLinear", y, scale, zero)[0]
    return found


@imports(domain=MICROSOFT)
def QuantizeLinear(g: Op, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Any:
    return g.call("QuantizeLinear", x, scale, zero, axis=axis)


@imports(domain=MICROSOFT, folds=False)
def DequantizeLinear(g: Op, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    return real(g, x, scale, zero, axis)


def binary(name: str, operator: str) -> None:
    """Register an operator of two quantised tensors."""
    @imports(name, domain=MICROSOFT)
    def importer(g: Op, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value,
                 b_zero: Value | None, scale: Value, zero: Value | None = None) -> Value:
        y = g.call(operator, real(g, a, a_scale, a_zero), real(g, b, b_scale, b_zero))[0]
        return codes(g, y, scale, zero, a)


binary("QLinearAdd", "Add")
binary("QLinearMul", "Mul")


@imports(domain=MICROSOFT)
def QLinearSigmoid(g: Op, x: Value, x_scale: Value, x_zero: Value | None, scale: Value,
                   zero: Value | None = None) -> Value:
    return codes(g, g.call("Sigmoid", real(g, x, x_scale, x_zero))[0], scale, zero, x)


@imports(domain=MICROSOFT)
def QLinearLeakyRelu(g: Op, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None,
                     *, alpha: float = 0.01) -> Value:
    return codes(g, g.call("LeakyRelu", real(g, x, x_scale, x_zero), alpha=alpha)[0], scale, zero, x)


@imports(domain=MICROSOFT)
def QLinearSoftmax(g: Op, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None, *,
                   axis: int = -1, opset: int) -> Value:
    """Before version 13 of Softmax the axes from `axis` on are one."""
    y, dims = real(g, x, x_scale, x_zero), g.shape(x)
    if opset < 13:
        if not all(map(known, dims)):
            g.unsupported("flattens axes of open sizes", "give the input sizes")
        head = axis % len(dims)
        y = g.reshape(y, (product(dims[:head]), product(dims[head:])))
    y = g.call("Softmax", y, axis=-1 if opset < 13 else axis)[0]
    return codes(g, g.reshape(y, dims), scale, zero, x)


@imports(domain=MICROSOFT)
def QLinearReduceMean(g: Op, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None,
                      *, axes: tuple[int, ...], keepdims: int) -> Value:
    along = g.const(np.array(axes, np.int64))
    y = g.call("ReduceMean", real(g, x, x_scale, x_zero), along, keepdims=keepdims, version=18)[0]
    return codes(g, y, scale, zero, x)


@imports(domain=MICROSOFT)
def QLinearWhere(g: Op, cond: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
                 scale: Value, zero: Value) -> Value:
    found = g.call("Where", cond, real(g, x, x_scale, x_zero), real(g, y, y_scale, y_zero))[0]
    return codes(g, found, scale, zero, x)


@imports(domain=MICROSOFT)
def QLinearConcat(g: Op, scale: Value, zero: Value, *inputs: Value, axis: int) -> Value:
    """Each tensor is followed by its scale and its zero point."""
    if len(inputs) % 3 or not inputs:
        raise FormatError(f"has {len(inputs)} inputs after the first two, which are no triples")
    parts = [real(g, *triple) for triple in zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)]
    return codes(g, g.call("Concat", *parts, axis=axis)[0], scale, zero, inputs[0])


# Images, whose channels may come last.
@imports(domain=MICROSOFT)
def QLinearAveragePool(g: Op, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None,
                       *, auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
                       count_include_pad: int = 0, kernel_shape: tuple[int, ...], pads: tuple[int, ...] = (),
                       strides: tuple[int, ...] = ()) -> Value:
    named: dict[str, Any] = {n: v for n, v in {"pads": pads, "strides": strides}.items() if v}
    named |= {"ceil_mode": ceil_mode} if ceil_mode else {}
    image = channels(g, x, last=False) if channels_last else x
    y = g.call("AveragePool", real(g, image, x_scale, x_zero), auto_pad=auto_pad, kernel_shape=kernel_shape,
               count_include_pad=count_include_pad, **named)[0]
    found = codes(g, y, scale, zero, x)
    return channels(g, found, last=True) if channels_last else found


@imports(domain=MICROSOFT)
def QLinearGlobalAveragePool(g: Op, x: Value, x_scale: Value, x_zero: Value, scale: Value, zero: Value, *,
                             channels_last: int = 0) -> Value:
    image = channels(g, x, last=False) if channels_last else x
    found = codes(g, g.call("GlobalAveragePool", real(g, image, x_scale, x_zero))[0], scale, zero, x)
    return channels(g, found, last=True) if channels_last else found


@imports(domain=MICROSOFT)
def NhwcMaxPool(g: Op, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: tuple[int, ...] = (),
                kernel_shape: tuple[int, ...], pads: tuple[int, ...] = (), strides: tuple[int, ...] = ()) -> Value:
    given: dict[str, Any] = {"pads": pads, "strides": strides, "dilations": dilations}
    named = {n: v for n, v in given.items() if v}
    y = g.call("MaxPool", channels(g, x, last=False), auto_pad=auto_pad, ceil_mode=ceil_mode,
               kernel_shape=kernel_shape, **named)[0]
    return channels(g, y, last=True)


@imports(domain=MICROSOFT)
def QLinearConv(g: Op, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
                scale: Value, zero: Value, b: Value | None = None, *, auto_pad: str = "NOTSET", channels_last: int = 0,
                dilations: tuple[int, ...] = (), group: int = 1, kernel_shape: tuple[int, ...] = (),
                pads: tuple[int, ...] = (), strides: tuple[int, ...] = ()) -> Value:
    """The image may have its channels last, the filters never have."""
    named = convolution(auto_pad, dilations, group, kernel_shape, pads, strides)
    image = channels(g, x, last=False) if channels_last else x
    found: Value = g.call("QLinearConv", image, x_scale, x_zero, w, w_scale, w_zero, scale, zero, b, **named)[0]
    return channels(g, found, last=True) if channels_last else found


# Products.
@imports(domain=MICROSOFT)
def QGemm(g: Op, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
          c: Value | None = None, scale: Value | None = None, zero: Value | None = None, *, alpha: float = 1.0,
          transA: int = 0, transB: int = 0) -> Value:
    """c is on the grid of the products, alpha included; without a scale the result is float."""
    step = products(g, a_scale, b_scale)
    if c is not None:
        factor = step if alpha == 1 else products(g, step, g.const(np.float32(alpha)))
        c = real(g, c, factor, axis=g.rank(c) - 1)
    y = g.call("Gemm", real(g, a, a_scale, a_zero), real(g, b, b_scale, b_zero, 0 if transB else 1), c,
               alpha=alpha, transA=transA, transB=transB)[0]
    return y if scale is None else codes(g, y, scale, zero, a)


@imports(domain=MICROSOFT)
def MatMulIntegerToFloat(g: Op, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None,
                         b_zero: Value | None = None, bias: Value | None = None) -> Value:
    """Sums of whole numbers, then the scales, then the bias."""
    sums = g.cast(g.call("MatMulInteger", a, b, a_zero, b_zero)[0], F32)
    factor = products(g, a_scale, b_scale)
    y = g.elementwise(e.MUL, sums, g.cast(factor, F32), act=0)
    y = y if bias is None else g.elementwise(e.ADD, y, g.cast(bias, F32), act=0)
    return g.cast(y, a_scale.type)


@imports(domain=MICROSOFT)
def DynamicQuantizeMatMul(g: Op, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None,
                          bias: Value | None = None) -> Value:
    x, scale, zero = g.call("DynamicQuantizeLinear", a, outputs=3)
    return MatMulIntegerToFloat(g, x, b, scale, b_scale, zero, b_zero, bias)


@imports(domain=MICROSOFT)
def MatMulInteger16(g: Op, a: Value, b: Value) -> Any:
    return g.call("MatMul", g.cast(a, I32), g.cast(b, I32))


# Weights in blocks of few bits.
def unpacked(packed: Array, bits: int) -> Array:
    """The elements of bytes, the lower bits first, along the last axis."""
    if bits not in BITS or packed.dtype != np.uint8:
        raise FormatError(f"has weights of {bits} bits in {packed.dtype}")
    parts = [packed >> np.uint8(shift) & np.uint8((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def weights(g: Op, b: Value, scales: Value, zeros: Value | None, groups: Array | None, bits: int, block: int,
            n: int, k: int) -> Array:
    """Weights [n, k] as floats; raises `FormatError` where the parts do not fit."""
    count = -(-k // block) if block > 0 else 0
    packed, steps = g.constant(b, "B"), g.constant(scales, "scales").astype(np.float32)
    if count < 1 or packed.size * 8 != n * count * block * bits or steps.size != n * count:
        raise FormatError(f"has {packed.size} bytes and {steps.size} scales for weights [{n}, {k}], blocks of {block}")
    found = unpacked(packed.reshape(n, -1), bits)[:, :k].astype(np.float32)
    points = np.full((n, count), 1 << (bits - 1), np.float32)
    if zeros is not None:
        given = g.constant(zeros, "zero_points").reshape(n, -1)
        points = (unpacked(given, bits)[:, :count] if given.dtype == np.uint8 else given).astype(np.float32)
    at = np.arange(k) // block if groups is None else groups.astype(np.int64)
    if points.shape != (n, count) or at.shape != (k,) or at.min() < 0 or at.max() >= count:
        raise FormatError("has zero points or groups that do not fit its weights")
    return np.asarray((found - points[:, at]) * steps.reshape(n, count)[:, at])


@imports(domain=MICROSOFT)
def MatMulNBits(g: Op, a: Value, b: Value, scales: Value, zeros: Value | None = None, groups: Value | None = None,
                bias: Value | None = None, *, K: int, N: int, block_size: int, bits: int = 4, accuracy_level: int = 0,
                weight_prepacked: int = 0) -> Value:
    """Weights dequantised beforehand; `accuracy_level` allows less than is done here."""
    if weight_prepacked:
        g.unsupported("has weights packed for one processor")
    order = None if groups is None or 0 in groups.shape else g.constant(groups, "g_idx")
    made = weights(g, b, scales, zeros, order, bits, block_size, N, K) if 0 not in b.shape else np.zeros((N, K))
    y = g.call("MatMul", a, g.const(made.T.astype(a.type.dtype), a.type))[0]
    return y if bias is None else g.elementwise(e.ADD, y, bias, act=0)


@imports(domain=MICROSOFT)
def MatMulBnb4(g: Op, a: Value, b: Value, absmax: Value, *, K: int, N: int, block_size: int, quant_type: int,
               training_mode: int = 0, transB: int = 1) -> Any:
    """Weights that are one of 16 numbers times the largest of their block, the upper bits first, dequantised."""
    packed, scales = g.constant(b, "B").reshape(-1), g.constant(absmax, "absmax").reshape(-1)
    if quant_type not in (0, 1) or packed.dtype != np.uint8 or block_size < 1 or packed.size != (N * K + 1) // 2 \
            or scales.size != -(-N * K // block_size):
        raise FormatError(f"has {packed.size} bytes and {scales.size} scales for weights [{N}, {K}] of 4 bits")
    at = np.stack([packed >> np.uint8(4), packed & np.uint8(15)], -1).reshape(-1)[:N * K]
    found = np.array(FOUR_BITS[quant_type], np.float32)[at] * scales[np.arange(N * K) // block_size].astype(np.float32)
    w = found.reshape(N, K).T if transB else found.reshape(K, N)
    return g.call("MatMul", a, g.const(w.astype(a.type.dtype), a.type))


@imports(domain=MICROSOFT)
def GatherBlockQuantized(g: Op, data: Value, indices: Value, scales: Value, zeros: Value | None = None, *,
                         gather_axis: int = 0, quantize_axis: int = 1, block_size: int = 128, bits: int = 4) -> Any:
    """The table dequantised, then Gather; uint8 holds several elements along the last axis."""
    table, points = g.constant(data, "data"), None if zeros is None else g.constant(zeros, "zero_points")
    middle = 0
    if table.dtype == np.uint8:
        table, middle = unpacked(table, bits), 1 << (bits - 1)
        points = None if points is None else unpacked(points, bits)
    steps, axis = g.constant(scales, "scales"), quantize_axis % table.ndim
    block = block_size or table.shape[axis]
    if steps.ndim != table.ndim or steps.shape[axis] != -(-table.shape[axis] // block):
        raise FormatError(f"has scales {list(steps.shape)} for a table {list(table.shape)} in blocks of {block}")
    at = np.arange(table.shape[axis]) // block
    offset = np.float32(middle) if points is None else points.take(at, axis).astype(np.float32)
    real_ = (table.astype(np.float32) - offset) * steps.astype(np.float32).take(at, axis)
    return g.call("Gather", g.const(real_.astype(steps.dtype), scales.type), indices, axis=gather_axis)


# Recurrence and attention.
@imports(domain=MICROSOFT)
def DynamicQuantizeLSTM(g: Op, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None, h: Value | None,
                        c: Value | None, p: Value | None, w_scale: Value, w_zero: Value, r_scale: Value,
                        r_zero: Value, *, direction: str = "forward", hidden_size: int = 0,
                        activations: tuple[str, ...] = (), activation_alpha: tuple[float, ...] = (),
                        activation_beta: tuple[float, ...] = (), clip: float = 0.0,
                        input_forget: int = 0) -> list[Value]:
    """Only with the usual activations."""
    kinds = {"forward": 1, "reverse": 1, "bidirectional": 2}
    if direction not in kinds or kinds[direction] != w.shape[0]:
        raise FormatError(f"has the direction {direction!r} and weights for {w.shape[0]}")
    if tuple(a.lower() for a in activations) not in ((), USUAL * kinds[direction]):
        g.unsupported(f"has the activations {', '.join(activations)}")
    return list(g.add(grids.DYNAMIC_QUANTIZE_LSTM, x, w, r, b, None if lengths is None else g.index(lengths), h, c, p,
                      w_scale, w_zero, r_scale, r_zero, backward=direction == "reverse", coupled=bool(input_forget),
                      clip=clip))


@imports(domain=MICROSOFT)
def QAttention(g: Op, x: Value, w: Value, bias: Value, x_scale: Value, w_scale: Value, mask: Value | None = None,
               x_zero: Value | None = None, w_zero: Value | None = None, past: Value | None = None, *, num_heads: int,
               unidirectional: int = 0, scale: float = 0.0, mask_filter_value: float = -10000.0, do_rotary: int = 0,
               past_present_share_buffer: int = 0) -> Any:
    """Attention on what the codes stand for."""
    if do_rotary or past_present_share_buffer:
        g.unsupported("rotates its inputs, or shares a buffer with its past")
    named: dict[str, Any] = {"num_heads": num_heads, "unidirectional": unidirectional,
                             "mask_filter_value": mask_filter_value}
    return g.call("Attention", real(g, x, x_scale, x_zero), real(g, w, w_scale, w_zero, 1), bias, mask, past,
                  domain=MICROSOFT, outputs=g.count, **named | ({"scale": scale} if scale else {}))


@imports(domain=MICROSOFT)
def QEmbedLayerNormalization(
        g: Op, ids: Value, segments: Value | None, word: Value, position: Value, segment: Value | None, gamma: Value,
        beta: Value, mask: Value | None, word_scale: Value, position_scale: Value, segment_scale: Value | None,
        gamma_scale: Value, beta_scale: Value, word_zero: Value, position_zero: Value, segment_zero: Value | None,
        gamma_zero: Value, beta_zero: Value, *, epsilon: float = 1e-12) -> Any:
    """EmbedLayerNormalization on what the codes stand for."""
    third = None if segment is None or segment_scale is None else real(g, segment, segment_scale, segment_zero)
    return g.call("EmbedLayerNormalization", ids, segments, real(g, word, word_scale, word_zero),
                  real(g, position, position_scale, position_zero), third, real(g, gamma, gamma_scale, gamma_zero),
                  real(g, beta, beta_scale, beta_zero), mask, domain=MICROSOFT, outputs=g.count, epsilon=epsilon)
