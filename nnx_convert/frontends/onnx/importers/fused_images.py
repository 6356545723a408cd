"""What ONNX Runtime fuses of image generators and signals: norms in groups, complex products, windows."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e
from ....ops.gather import GATHER
from ....ops.shape import CONCATENATION, SPLIT, TRANSPOSE
from ....types import known, product
from ..importer import Op
from ..registry import MICROSOFT, imports
from .elementwise import add, mul, same, sub, times
from .fused import channels, gelu
from .matmul import gemm
from .norm import deviations, inverse


@imports(domain=MICROSOFT, arithmetic=True)
def GroupNorm(g: Op, x: Value, gamma: Value, beta: Value, *, activation: int, groups: int, channels_last: int = 1,
              epsilon: float = 1e-5) -> Value:
    """Images whose channels are normalised in groups, then times their own logistic if `activation` says so."""
    image = x if channels_last else channels(g, x, last=True)
    y = in_groups(g, image, gamma, beta, groups, epsilon)
    y = mul(g, y, same(g, e.LOGISTIC, y)) if activation else y
    return y if channels_last else channels(g, y, last=False)


def in_groups(g: Op, x: Value, gamma: Value, beta: Value, groups: int, epsilon: float) -> Value:
    """The channels, which are last, with mean 0 and deviation 1 group by group; scaled and moved."""
    shape = g.shape(x)
    if not groups or known(shape[-1]) and shape[-1] % groups:
        raise FormatError(f"{shape[-1]} channels are no {groups} groups")
    flat = g.reshape(x, (shape[0], product(shape[1:-1]), groups, shape[-1] // groups))
    _, apart, variance = deviations(g, flat, [1, 3])
    y = g.reshape(mul(g, apart, inverse(g, variance, epsilon)), shape)
    return add(g, mul(g, y, g.cast(gamma, x.type)), g.cast(beta, x.type))


@imports(domain=MICROSOFT, arithmetic=True)
def SkipGroupNorm(g: Op, x: Value, gamma: Value, beta: Value, skip: Value, bias: Value | None = None, *,
                  activation: int, groups: int, channels_last: int = 1, epsilon: float = 1e-5) -> Sequence[Value]:
    """GroupNorm of a sum, and the sum."""
    if not channels_last:
        g.unsupported("has its channels first")
    if g.rank(skip) == 2:
        n, c = g.shape(skip)
        skip = g.reshape(skip, (n, 1, 1, c))
    total = add(g, x, skip) if bias is None else add(g, add(g, x, skip), bias)
    return GroupNorm(g, total, gamma, beta, activation=activation, groups=groups, epsilon=epsilon), total


@imports(domain=MICROSOFT, arithmetic=True)
def ScaledSiLU(g: Op, x: Value, scale: Value | None = None, *, alpha: float = 1.0) -> Value:
    y = mul(g, x, same(g, e.LOGISTIC, x))
    return times(g, y, alpha) if scale is None else mul(g, y, scale)


@imports(domain=MICROSOFT, arithmetic=True)
def GemmFastGelu(g: Op, x: Value, w: Value, bias: Value | None = None) -> Value:
    if g.rank(x) == 2:
        return gelu(g, gemm(g, x, w, bias), approximate=True)
    y: Value = g.call("MatMul", x, w)[0]
    return gelu(g, y if bias is None else add(g, y, bias), approximate=True)


@imports(domain=MICROSOFT, arithmetic=True)
def ComplexMul(g: Op, a: Value, b: Value) -> Value:
    """Products of complex numbers, each a pair along the last axis."""
    return complex_product(g, a, b, conjugate=False)


@imports(domain=MICROSOFT, arithmetic=True)
def ComplexMulConj(g: Op, a: Value, b: Value) -> Value:
    """The first times the second's conjugate."""
    return complex_product(g, a, b, conjugate=True)


def complex_product(g: Op, a: Value, b: Value, conjugate: bool) -> Value:
    """a * b, or a times the conjugate of b."""
    (x, y), (u, v) = (g.add(SPLIT, z, axis=g.rank(z) - 1, count=2) for z in (a, b))
    plus, minus = (sub, add) if conjugate else (add, sub)
    parts = minus(g, mul(g, x, u), mul(g, y, v)), plus(g, mul(g, y, u), mul(g, x, v))
    return g(CONCATENATION, xs=parts, axis=max(g.rank(a), g.rank(b)) - 1)


@imports(domain=MICROSOFT)
def UnfoldTensor(g: Op, x: Value, *, size: int, dim: int = -1, step: int = 1) -> Value:
    """Windows along an axis, `step` apart, their elements along a new last one."""
    axis, n = dim % g.rank(x), g.shape(x)[dim % g.rank(x)]
    if not known(n) or not 0 < size <= n or step < 1:
        g.unsupported("has windows that do not fit, or an axis of open size")
    at = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    windows = g(GATHER, x, axis=axis, indices=g.const(at.astype(np.int32)))
    order = [i for i in range(g.rank(x) + 1) if i != axis + 1]
    return g(TRANSPOSE, windows, [*order, axis + 1])


@imports("GridSample", domain=MICROSOFT)
def grid_sample(g: Op, x: Value, grid: Value, *, align_corners: int = 0, mode: str = "bilinear",
                padding_mode: str = "zeros") -> Value:
    """ONNX's, which has other words for the modes since version 20."""
    newer = g.scope.versions.get("", 0) >= 20
    words = {"bilinear": "linear", "bicubic": "cubic"} if newer else {}
    found: Value = g.call("GridSample", x, grid, align_corners=align_corners, mode=words.get(mode, mode),
                          padding_mode=padding_mode)[0]
    return found
