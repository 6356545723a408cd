"""What ONNX Runtime's optimisers make of several operators: products and activations with their additions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....graph import Value
from ....ops import elementwise as e, functions as f, host_math, reduce as r
from ....ops.norm import SOFTMAX
from ....ops.shape import SPLIT, TRANSPOSE
from ....types import F32, I32, known
from ..importer import Op
from ..registry import MICROSOFT, imports
from .activation import HardSigmoid, LeakyRelu, Swish
from .attention import rows
from .elementwise import add, clipped, flattened, mul, number, same, sub, times
from .matmul import gemm, product
from .norm import deviations, inverse

#: The activations that a fused operator names, given its numbers where the file has them.
ACTIVATIONS: dict[str, Callable[[Op, Value, Sequence[float]], Value]] = {
    "": lambda g, x, p: x, "Relu": lambda g, x, p: same(g, e.RELU, x), "Tanh": lambda g, x, p: same(g, e.TANH, x),
    "Sigmoid": lambda g, x, p: same(g, e.LOGISTIC, x),
    "LeakyRelu": lambda g, x, p: LeakyRelu(g, x, alpha=p[0]) if p else LeakyRelu(g, x),
    "HardSigmoid": lambda g, x, p: HardSigmoid(g, x, alpha=p[0], beta=p[1]) if len(p) > 1 else HardSigmoid(g, x),
    "HardSwish": lambda g, x, p: same(g, e.HARD_SWISH, x), "Gelu": lambda g, x, p: gelu(g, x),
    "Softplus": lambda g, x, p: same(g, f.SOFTPLUS, x),
    "Clip": lambda g, x, p: clipped(g, x, *(number(g, x, v) for v in p[:2]))}


def activated(g: Op, x: Value, name: str, numbers: Sequence[float | None] = ()) -> Value:
    """The activation of a name; raises `Unsupported`."""
    if name not in ACTIVATIONS:
        g.unsupported(f"has the activation {name!r}")
    return ACTIVATIONS[name](g, x, [v for v in numbers if v is not None])


def gelu(g: Op, x: Value, approximate: bool = False) -> Value:
    """The exact one, or that by TANH."""
    return same(g, host_math.GELU, x, approximate=approximate)


def convolved(g: Op, x: Value, w: Value, b: Value | None, **attributes: Any) -> Value:
    """A Conv with the attributes that the file has."""
    found: Value = g.call("Conv", x, w, b, **{n: v for n, v in attributes.items() if v is not None})[0]
    return found


@imports(domain=MICROSOFT)
def FusedConv(g: Op, x: Value, w: Value, b: Value | None = None, z: Value | None = None, *, activation: str = "",
              activation_params: tuple[float, ...] = (), auto_pad: str | None = None,
              dilations: tuple[int, ...] | None = None, group: int | None = None,
              kernel_shape: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None,
              strides: tuple[int, ...] | None = None) -> Value:
    y = convolved(g, x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
                  pads=pads, strides=strides)
    return activated(g, y if z is None else add(g, y, z), activation, activation_params)


@imports(domain=MICROSOFT)
def NhwcFusedConv(g: Op, x: Value, w: Value, b: Value | None = None, z: Value | None = None, *, activation: str = "",
                  activation_params: tuple[float, ...] = (), auto_pad: str | None = None,
                  dilations: tuple[int, ...] | None = None, group: int | None = None,
                  kernel_shape: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None,
                  strides: tuple[int, ...] | None = None) -> Value:
    """FusedConv, the channels last."""
    z = None if z is None else channels(g, z, last=False)
    y = FusedConv(g, channels(g, x, last=False), w, b, z, activation=activation, activation_params=activation_params,
                  auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
                  strides=strides)
    return channels(g, y, last=True)


@imports(domain=MICROSOFT)
def NhwcConv(g: Op, x: Value, w: Value, b: Value | None = None, *, auto_pad: str | None = None,
             dilations: tuple[int, ...] | None = None, group: int | None = None,
             kernel_shape: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None,
             strides: tuple[int, ...] | None = None) -> Value:
    return channels(g, convolved(g, channels(g, x, last=False), w, b, auto_pad=auto_pad, dilations=dilations,
                                 group=group, kernel_shape=kernel_shape, pads=pads, strides=strides), last=True)


def channels(g: Op, x: Value, last: bool) -> Value:
    """x with its channels moved from the second axis to the last, or back."""
    n = g.rank(x)
    return g(TRANSPOSE, x, [0, *range(2, n), 1] if last else [0, n - 1, *range(1, n - 1)])


@imports(domain=MICROSOFT, arithmetic=True)
def FusedGemm(g: Op, a: Value, b: Value, c: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
              transA: int = 0, transB: int = 0, activation: str = "", activation_alpha: float | None = None,
              activation_beta: float | None = None, activation_gamma: float | None = None) -> Value:
    y = gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activated(g, y, activation, (activation_alpha, activation_beta, activation_gamma))


@imports("TransposeMatMul", domain=MICROSOFT, arithmetic=True)
@imports(domain=MICROSOFT, arithmetic=True)
def FusedMatMul(g: Op, a: Value, b: Value, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                transBatchA: int = 0, transBatchB: int = 0) -> Value:
    """alpha * a @ b, either with its last axes exchanged, after its first axis went before the last."""
    a, b = (first_inward(g, v) if moved else v for v, moved in ((a, transBatchA), (b, transBatchB)))
    if g.rank(a) > 1 and g.rank(b) > 1:
        return times(g, product(g, a, b, bool(transA), bool(transB)), alpha)
    found: Value = g.call("MatMul", a, b)[0]
    return times(g, found, alpha)


def first_inward(g: Op, x: Value) -> Value:
    """x with its first axis moved to the place before the last."""
    n = g.rank(x)
    return g(TRANSPOSE, x, [*range(1, n - 1), 0, n - 1])


@imports(domain=MICROSOFT, arithmetic=True)
def FusedMatMulActivation(g: Op, a: Value, b: Value, *, activation: str, activation_alpha: float | None = None,
                          activation_beta: float | None = None, activation_gamma: float | None = None,
                          activation_axis: int | None = None, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                          transBatchA: int = 0, transBatchB: int = 0) -> Value:
    y = FusedMatMul(g, a, b, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA,
                    transBatchB=transBatchB)
    return activated(g, y, activation, (activation_alpha, activation_beta, activation_gamma))


# Activations.
@imports("Gelu", domain=MICROSOFT, arithmetic=True)
def exact_gelu(g: Op, x: Value) -> Value:
    return gelu(g, x)


@imports(domain=MICROSOFT, arithmetic=True)
def BiasGelu(g: Op, x: Value, bias: Value) -> Value:
    return gelu(g, add(g, x, bias))


@imports(domain=MICROSOFT, arithmetic=True)
def FastGelu(g: Op, x: Value, bias: Value | None = None) -> Value:
    return gelu(g, x if bias is None else add(g, x, bias), approximate=True)


@imports(domain=MICROSOFT, arithmetic=True)
def QuickGelu(g: Op, x: Value, *, alpha: float = 1.702) -> Value:
    return Swish(g, x, alpha=alpha)


@imports(domain=MICROSOFT, arithmetic=True)
def BiasSplitGelu(g: Op, x: Value, bias: Value) -> Value:
    """The first half of the last axis times the other's GELU."""
    left, right = g.add(SPLIT, add(g, x, bias), axis=g.rank(x) - 1, count=2)
    return mul(g, left, gelu(g, right))


@imports(domain=MICROSOFT, arithmetic=True)
def BiasAdd(g: Op, x: Value, bias: Value, skip: Value) -> Value:
    return add(g, add(g, x, bias), skip)


@imports(domain=MICROSOFT, arithmetic=True)
def BiasSoftmax(g: Op, x: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int) -> Value:
    """The softmax over all axes from `axis` on, the bias having been broadcast as its axes of size 1 say."""
    return flattened(SOFTMAX, axis, g, add(g, x, bias))


@imports(domain=MICROSOFT, arithmetic=True)
def CDist(g: Op, a: Value, b: Value, *, metric: str = "sqeuclidean") -> Value:
    """How far each row of a is from each of b."""
    if metric not in ("euclidean", "sqeuclidean"):
        g.unsupported(f"has the metric {metric!r}")
    (m, n), (k, _) = g.shape(a), g.shape(b)
    apart = sub(g, g.reshape(a, (m, 1, n)), g.reshape(b, (1, k, n)))
    squares = g.reshape(g(r.REDUCE_SUM, mul(g, apart, apart), [2], keep=True), (m, k))
    return same(g, e.SQRT, squares) if metric == "euclidean" else squares


@imports(domain=MICROSOFT, arithmetic=True)
def Inverse(g: Op, x: Value) -> Value:
    return g(f.MATRIX_INVERSE, x)


# Norms.
@imports(domain=MICROSOFT, arithmetic=True)
@imports(arithmetic=True)
def SimplifiedLayerNormalization(g: Op, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5,
                                 stash_type: int = 1) -> tuple[Value, Value]:
    y, deviation = by_root(g, x, range(axis % g.rank(x), g.rank(x)), epsilon)
    return mul(g, y, scale), deviation


def by_root(g: Op, x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value]:
    """x / sqrt(mean of x ** 2 + epsilon), and the inverse of that root."""
    deviation = inverse(g, g(r.MEAN, mul(g, x, x), list(axes), keep=1), epsilon)
    return mul(g, x, deviation), deviation


def by_deviation(g: Op, x: Value, gamma: Value, beta: Value | None, epsilon: float) -> tuple[Value, Value, Value]:
    """The last axis with mean 0 and deviation 1, scaled and moved; the mean, and the inverse of the deviation."""
    mean, apart, variance = deviations(g, x, [g.rank(x) - 1])
    deviation = inverse(g, variance, epsilon)
    y = mul(g, mul(g, apart, deviation), gamma)
    return y if beta is None else add(g, y, beta), mean, deviation


@imports(domain=MICROSOFT, arithmetic=True)
def SkipLayerNormalization(g: Op, x: Value, skip: Value, gamma: Value, beta: Value | None = None,
                           bias: Value | None = None, *, epsilon: float = 1e-12) -> Sequence[Value]:
    total = skipped(g, x, skip, bias)
    return *by_deviation(g, total, gamma, beta, epsilon), total


@imports(domain=MICROSOFT, arithmetic=True)
def SkipSimplifiedLayerNormalization(g: Op, x: Value, skip: Value, gamma: Value, bias: Value | None = None, *,
                                     epsilon: float = 1e-12) -> Sequence[Value | None]:
    total = skipped(g, x, skip, bias)
    y, deviation = by_root(g, total, [g.rank(total) - 1], epsilon)
    return mul(g, y, gamma), None, deviation, total


def skipped(g: Op, x: Value, skip: Value, bias: Value | None) -> Value:
    """x + bias + skip, in this order."""
    return add(g, x if bias is None else add(g, x, bias), skip)


@imports(domain=MICROSOFT, arithmetic=True)
def GatedRMSNorm(g: Op, x: Value, scale: Value, gate: Value, *, activation: str = "silu", epsilon: float = 1e-5
                 ) -> Value:
    """Runs of the last axis as long as the scale, by their roots; then times the gate's activation."""
    shape, width = g.shape(x), g.shape(scale)[0]
    runs = g.reshape(x, (*shape[:-1], shape[-1] // width, width))
    y = g.reshape(mul(g, by_root(g, runs, [g.rank(runs) - 1], epsilon)[0], scale), shape)
    bent = same(g, e.LOGISTIC, gate)
    if activation not in ("silu", "swish", "sigmoid"):
        g.unsupported(f"has the activation {activation!r}")
    return mul(g, y, bent if activation == "sigmoid" else mul(g, gate, bent))


@imports(domain=MICROSOFT)
def EmbedLayerNormalization(g: Op, ids: Value, segments: Value | None, words: Value, positions: Value,
                            kinds: Value | None, gamma: Value, beta: Value, mask: Value | None = None,
                            at: Value | None = None, *, epsilon: float = 1e-12, mask_index_type: int = 0
                            ) -> Sequence[Value | None]:
    """Rows of tables summed and normalised; how many of each row of the mask are set."""
    total = add(g, rows(g, words, ids), placed(g, positions, ids, at))
    if segments is not None and kinds is not None:
        total = add(g, total, rows(g, kinds, segments))
    count = None
    if g.wanted(1):
        count = g.const(np.zeros(g.shape(ids)[:1], np.int32)) if mask is None else counted(g, mask)
    return by_deviation(g, total, gamma, beta, epsilon)[0], count, total


def placed(g: Op, positions: Value, ids: Value, at: Value | None) -> Value:
    """The rows of the positions: those asked for, or the first ones."""
    if at is not None:
        return rows(g, positions, at)
    length = g.shape(ids)[1]
    if known(length):
        return rows(g, positions, g.const(np.arange(length, dtype=np.int64).reshape(1, -1)))
    first, size = g.const(np.array([0])), g.call("Slice", g.call("Shape", ids)[0], *map(g.const, ([1], [2])))[0]
    found: Value = g.call("Slice", positions, first, size, first)[0]
    return found


def counted(g: Op, mask: Value) -> Value:
    """How many of each row are set, as INT32."""
    sums = g(r.REDUCE_SUM, g.cast(mask, F32), [1], keep=True)
    return g.cast(g.reshape(sums, g.shape(mask)[:1]), I32)


# Operators of the default domain under another name.
@imports(domain=MICROSOFT)
def ExpandDims(g: Op, x: Value, axis: Value) -> Value:
    at = int(g.constant(axis, "axis").item()) % (g.rank(x) + 1)
    return g.reshape(x, (*g.shape(x)[:at], 1, *g.shape(x)[at:]))


@imports(domain=MICROSOFT)
def Trilu(g: Op, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    found: Value = g.call("Trilu", x, k, upper=upper)[0]
    return found


@imports(domain=MICROSOFT)
def GatherND(g: Op, x: Value, indices: Value) -> Value:
    found: Value = g.call("GatherND", x, indices)[0]
    return found


@imports(domain=MICROSOFT)
def Pad(g: Op, x: Value, pads: Value, value: Value | None = None, *, mode: str = "constant") -> Value:
    if g.rank(pads) == 2:
        pads = g.reshape(pads, g.shape(pads)[1:])
    if value is not None:
        value = g.reshape(value, ())
    found: Value = g.call("Pad", x, pads, value, mode=mode)[0]
    return found


@imports(domain=MICROSOFT)
def Range(g: Op, start: Value, limit: Value, delta: Value | None = None) -> Value:
    step = number(g, start, 1) if delta is None else g.reshape(delta, ())
    found: Value = g.call("Range", g.reshape(start, ()), g.reshape(limit, ()), step)[0]
    return found


@imports("Unique", domain=MICROSOFT)
def unique_unsorted(g: Op, x: Value) -> Sequence[Value | None]:
    """In the order in which they come."""
    values, _, at, counts = g.call("Unique", x, outputs=4, sorted=0)
    return values, at, counts
