"""What each operation means on real numbers: one small function each, in float64, apart from the kernels.

`a` has the canonical arguments by name: tensors as real values, indices and numbers as they are. `MOVED` functions
get stored values instead, `a.zero` being the one that stands for 0.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from row_case import FLOATS, QUANTISED, Array, Instance

from nnx_convert.types import I32, QPC, ChannelQuant, Quant, Tensor

Oracle = Callable[[Any], Any]


def acted(v: Array, a: Any) -> Array:
    """A fused activation."""
    low, high = [(-np.inf, np.inf), (0, np.inf), (-1, 1), (0, 6)][a.act]
    return np.clip(v, low, high)


# Images: everything is computed in NHWC.
def last(x: Array, a: Any) -> Array:
    """The image with its channels last."""
    return x.transpose(0, 2, 3, 1) if a.nchw else x


def back(x: Array, a: Any) -> Array:
    """The image in the layout of the case."""
    return x.transpose(0, 3, 1, 2) if a.nchw else x


def windows(x: Array, a: Any, size: tuple[int, int], fill: float, dil: tuple[int, int] = (1, 1)) -> Array:
    """Every window of an image: [n, rows, columns, channels, kh, kw]."""
    x = np.pad(x, ((0, 0), (a.pt, a.pb), (a.pl, a.pr), (0, 0)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dil, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))
    return found[:, ::a.sh, ::a.sw, :, ::dil[0], ::dil[1]]


def conv(a: Any, groups: int = 1) -> Array:
    """CONV_2D in groups."""
    w, dil = a.w, (getattr(a, "dh", 1), getattr(a, "dw", 1))
    wide = windows(last(a.x, a), a, w.shape[1:3], 0.0, dil)
    parts = [np.einsum("nhwcij,oijc->nhwo", part, filters) for part, filters in
             zip(np.split(wide, groups, 3), np.split(w, groups, 0), strict=True)]
    return back(acted(np.concatenate(parts, -1) + a.b, a), a)


def depthwise(a: Any) -> Array:
    wide = np.repeat(windows(last(a.x, a), a, a.w.shape[1:3], 0.0, (a.dh, a.dw)), a.mult, 3)
    return back(acted(np.einsum("nhwcij,ijc->nhwc", wide, a.w[0]) + a.b, a), a)


def scattered(x: Array, w: Array, strides: tuple[int, int]) -> Array:
    """Each x times w, added up where it falls."""
    n, h, wd, _ = x.shape
    units, kh, kw, _ = w.shape
    full = np.zeros((n, (h - 1) * strides[0] + kh, (wd - 1) * strides[1] + kw, units))
    for i, j in product(range(h), range(wd)):
        y, z = i * strides[0], j * strides[1]
        full[:, y:y + kh, z:z + kw] += np.einsum("nc,oijc->nijo", x[:, i, j], w)
    return full


def cut(full: Array, head: int, size: int, axis: int) -> Array:
    """`size` positions from `head` on, zeros beyond the end."""
    room = [(0, max(0, head + size - full.shape[axis])) if i == axis else (0, 0) for i in range(full.ndim)]
    return np.take(np.pad(full, room), np.arange(head, head + size), axis)


def transposed(a: Any) -> Array:
    full = scattered(last(a.x, a), a.w, (a.sh, a.sw))
    rows, columns = full.shape[1] - a.pt - a.pb, full.shape[2] - a.pl - a.pr
    return back(acted(cut(cut(full, a.pt, rows, 1), a.pl, columns, 2) + a.b, a), a)


def transposed_to(a: Any) -> Array:
    full, found = scattered(a.x, a.w, (a.sh, a.sw)), []
    for out, k, stride in zip(a.shape[1:3], a.w.shape[1:3], (a.sh, a.sw), strict=True):
        total = max((-(-out // stride) - 1) * stride + k - out, 0) if a.scheme == 1 else 0
        found.append((total // 2, out))
    return cut(cut(full, *found[0], 1), *found[1], 2)


def pool(mean: Callable[[Array], Array]) -> Oracle:
    """A pool; what is padding is NaN."""
    def over(a: Any) -> Array:
        found = windows(last(a.x, a), a, (a.kh, a.kw), np.nan)
        return back(acted(mean(found.reshape(*found.shape[:4], a.kh * a.kw)), a), a)
    return over


def spots(size: int, out: int, a: Any) -> Array:
    """Where the centres of `out` cells lie among `size`."""
    at = np.arange(out, dtype=np.float64)
    if a.align and out > 1:
        return at * (size - 1) / (out - 1)
    return (at + 0.5) * size / out - 0.5 if a.half else at * size / out


def bilinear(a: Any) -> Array:
    x = last(a.x, a)
    for axis, out in ((1, a.oh), (2, a.ow)):
        at = np.clip(spots(x.shape[axis], out, a), 0, None)
        low = np.minimum(np.floor(at).astype(int), x.shape[axis] - 1)
        part = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        high = np.minimum(low + 1, x.shape[axis] - 1)
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return back(x, a)


def nearest(a: Any) -> Array:
    x = last(a.x, a)
    for axis, out in ((1, a.oh), (2, a.ow)):
        at = spots(x.shape[axis], out, a)
        at = np.floor(at + 0.5) if a.align or a.half else np.floor(at)
        x = np.take(x, np.clip(at.astype(int), 0, x.shape[axis] - 1), axis)
    return back(x, a)


def to_space(a: Any) -> Array:
    x, b = last(a.x, a), a.block
    n, h, w, c = x.shape
    found = np.zeros((n, h * b, w * b, c // b // b), x.dtype)
    for i, j in product(range(b), range(b)):
        found[:, i::b, j::b] = np.split(x, b * b, 3)[i * b + j]
    return back(found, a)


def to_depth(a: Any) -> Array:
    x, b = last(a.x, a), a.block
    return back(np.concatenate([x[:, i::b, j::b] for i, j in product(range(b), range(b))], 3), a)


def from_batch(a: Any) -> Array:
    x, (bh, bw) = last(a.x, a), a.blocks
    n, h, w, c = x.shape
    found = np.zeros((n // bh // bw, h * bh, w * bw, c), x.dtype)
    for k, (i, j) in enumerate(product(range(bh), range(bw))):
        found[:, i::bh, j::bw] = np.split(x, bh * bw, 0)[k]
    return back(found, a)


def to_batch(a: Any) -> Array:
    bh, bw = a.blocks
    x = np.pad(last(a.x, a), ((0, 0), *map(tuple, a.pads), (0, 0)), constant_values=a.zero)
    return back(np.concatenate([x[:, i::bh, j::bw] for i, j in product(range(bh), range(bw))], 0), a)


# Norms.
def soft(a: Any) -> Array:
    e = np.exp(a.beta * (a.x - a.x.max(a.axis, keepdims=True, initial=-np.inf)))
    return e / e.sum(a.axis, keepdims=True)


def log_soft(a: Any) -> Array:
    v = a.beta * (a.x - a.x.max(a.axis, keepdims=True))
    return v - np.log(np.exp(v).sum(a.axis, keepdims=True))


def local(a: Any) -> Array:
    x, near = np.moveaxis(a.x, a.axis, -1), range(a.x.shape[a.axis])
    sums = np.stack([(x[..., max(0, i - a.radius):i + a.radius + 1] ** 2).sum(-1) for i in near], -1)
    return np.moveaxis(x * (a.bias + a.alpha * sums) ** -a.beta, -1, a.axis)


def instance(a: Any) -> Array:
    x = last(a.x, a)
    mean, spread = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    return back((x - mean) * a.gamma / np.sqrt(spread + a.eps) + a.beta, a)


def product_of(a: Any) -> Array:
    x, y = (v.swapaxes(-1, -2) if adjoint else v for v, adjoint in ((a.x, a.adj_x), (a.y, a.adj_y)))
    return x @ y


# Reductions and searches.
def reduced(function: Callable[..., Any], dropped: bool = False) -> Oracle:
    """A reduction; [1] where nothing is left."""
    def over(a: Any) -> Array:
        keep = not dropped and bool(a.keep)
        axes = tuple({int(i) % a.x.ndim for i in np.ravel(a.axes)})
        return np.atleast_1d(function(a.x, axis=axes, keepdims=keep))
    return over


def searched(function: Callable[..., Any]) -> Oracle:
    return lambda a: np.atleast_1d(function(a.x, axis=a.axis))


def top(a: Any) -> list[Array]:
    place = np.broadcast_to(np.arange(a.x.shape[-1]), a.x.shape)
    order = np.lexsort((-place, -a.x.astype(np.float64)), -1)[..., :a.k]
    return [np.take_along_axis(a.x, order, -1), order]


# What moves.
def strided(a: Any) -> Array:
    cuts: list[Any] = []
    for i, (b, e, s) in enumerate(zip(a.begin, a.end, a.strides, strict=True)):
        cuts.append(slice(None if a.begin_mask >> i & 1 else int(b), None if a.end_mask >> i & 1 else int(e), int(s)))
    found = a.x[tuple(cuts)]
    return found.reshape([n for i, n in enumerate(found.shape) if not a.shrink_mask >> i & 1] or [1])


def looked_up(a: Any) -> list[Array]:
    where = {int(k): i for i, k in enumerate(a.keys)}
    rows = [a.values[where[int(k)]] if int(k) in where else np.zeros_like(a.values[0]) for k in a.lookups]
    return [np.stack(rows), np.array([int(k) in where for k in a.lookups])]


def shuffled(a: Any) -> Array:
    axis, n = a.axis % a.x.ndim, a.x.shape[a.axis]
    return np.take(a.x, [g * (n // a.groups) + i for i in range(n // a.groups) for g in range(a.groups)], axis)


def hot(a: Any) -> Array:
    axis = -1 if a.axis is None else a.axis
    axis = axis + a.indices.ndim + 1 if axis < 0 else axis
    steps = np.arange(a.depth).reshape([-1 if i == axis else 1 for i in range(a.indices.ndim + 1)])
    return np.where(np.expand_dims(a.indices, axis) == steps, a.on, a.off)


def cast(a: Any) -> Array:
    if a.to.dtype.kind == "f":
        return a.x.astype(a.to.dtype)
    info = np.iinfo(a.to.dtype) if a.to.dtype.kind in "iu" else None
    return np.clip(np.trunc(a.x.astype(np.float64)), info.min, info.max) if info else a.x


def squeezed(a: Any) -> Array:
    axes = [i for i, n in enumerate(a.x.shape) if n == 1] if a.dims is None else [int(d) for d in a.dims]
    return np.atleast_1d(a.x.squeeze(tuple(axes)))


COMPARED = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal,
            "LESS": np.less, "LESS_EQUAL": np.less_equal, "EQUAL_EX": np.equal, "NOT_EQUAL_EX": np.not_equal,
            "GREATER_EQUAL_EX": np.greater_equal, "LESS_EX": np.less}
UNARY: dict[str, Callable[[Any], Any]] = {
    "ABS": np.abs, "NEG": np.negative, "EXP": np.exp, "LOG": np.log, "SIN": np.sin, "SQRT": np.sqrt,
    "RSQRT": lambda x: 1 / np.sqrt(x), "FLOOR": np.floor, "TANH": np.tanh, "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "RELU": lambda x: np.clip(x, 0, np.inf), "RELU1": lambda x: np.clip(x, -1, 1), "RELU6": lambda x: np.clip(x, 0, 6),
    "HARD_SWISH": lambda x: x * (np.clip(x + 3, 0, 6) / 6), "LOGICAL_NOT": np.logical_not}


def _unary(function: Callable[[Any], Any]) -> Oracle:
    return lambda a: function(a.x)


def _binary(function: Callable[[Any, Any], Any]) -> Oracle:
    return lambda a: function(a.x, a.y)


#: Of real numbers.
REAL: dict[str, Oracle] = {
    "ADD": lambda a: acted(a.x + a.y, a), "SUB": lambda a: acted(a.x - a.y, a), "MUL": lambda a: acted(a.x * a.y, a),
    "DIV": lambda a: acted(np.floor(a.x / a.y) if a.key == I32 else a.x / a.y, a),
    "MAXIMUM": _binary(np.maximum), "MINIMUM": _binary(np.minimum), "POW": _binary(np.power),
    "PRELU": lambda a: np.where(a.x >= 0, a.x, a.x * a.y), "PRELU_EX": lambda a: np.where(a.x >= 0, a.x, a.x * a.y),
    "SQUARED_DIFFERENCE_EX": lambda a: (a.x - a.y) ** 2,
    "LOGICAL_AND": _binary(np.logical_and), "LOGICAL_OR": _binary(np.logical_or),
    "LOGICAL_AND_EX": _binary(np.logical_and), "LOGICAL_OR_EX": _binary(np.logical_or),
    "SELECT": lambda a: np.where(a.cond, a.x, a.y),
    "ELU": lambda a: np.maximum(a.x, 0) + np.minimum(0, a.alpha * np.expm1(a.x)),
    **{name: _binary(f) for name, f in COMPARED.items()}, **{name: _unary(f) for name, f in UNARY.items()},
    **{f"{name}_EX": _unary(UNARY[name]) for name in ("ABS", "NEG", "EXP", "SQRT", "RSQRT", "LOGICAL_NOT")},
    "CONV_2D": conv, "GROUPED_CONV_2D": lambda a: conv(a, a.groups), "DEPTHWISE_CONV_2D": depthwise,
    "TRANSPOSE_CONV_2D": transposed, "TRANSPOSE_CONV_EX": transposed_to,
    "FULLY_CONNECTED": lambda a: acted(a.x.reshape(-1, a.w.shape[1]) @ a.w.T + a.b, a), "BATCH_MATMUL": product_of,
    "AVERAGE_POOL_2D": pool(lambda v: np.nanmean(v, -1)), "MAX_POOL_2D": pool(lambda v: np.nanmax(v, -1)),
    "L2_POOL_2D": pool(lambda v: np.sqrt(np.nanmean(v * v, -1))), "RESIZE_BILINEAR": bilinear,
    # What has no length has no direction: TFLite takes a length of 1e-6.
    "L2_NORMALIZATION": lambda a: a.x / np.maximum(np.sqrt((a.x ** 2).sum(a.axis, keepdims=True)), 1e-6),
    "LOCAL_RESPONSE_NORMALIZATION": local, "INSTANCE_NORMALIZATION": instance, "SOFTMAX": soft, "LOG_SOFTMAX": log_soft,
    "MEAN": reduced(np.mean), "REDUCE_SUM": reduced(np.sum), "REDUCE_PROD": reduced(np.prod),
    "REDUCE_SUM_EX": reduced(np.sum, True), "REDUCE_ALL": reduced(np.all), "REDUCE_ANY": reduced(np.any),
    "ARGMAX": searched(np.argmax), "ARGMIN": searched(np.argmin), "ARGMAX_EX": searched(np.argmax),
    "CONCATENATION": lambda a: np.concatenate(a.xs, a.axis), "QUANTIZE": lambda a: a.x, "DEQUANTIZE": lambda a: a.x,
    "RANK": lambda a: a.x.ndim, "FILL": lambda a: np.full(tuple(a.dims), a.value), "ONE_HOT_EX": hot}
#: Of stored values, which are the results' too.
MOVED: dict[str, Oracle] = {
    "REDUCE_MAX": reduced(lambda x, **how: np.max(x, **how, initial=_ends(x)[0])),
    "REDUCE_MIN": reduced(lambda x, **how: np.min(x, **how, initial=_ends(x)[1])),
    "REDUCE_MAX_EX": reduced(lambda x, **how: np.max(x, **how, initial=_ends(x)[0]), True),
    "REDUCE_MIN_EX": reduced(lambda x, **how: np.min(x, **how, initial=_ends(x)[1]), True),
    "TOPK_V2": top, "TOPK_V2_EX": top, "RESIZE_NEAREST_NEIGHBOR": nearest, "DEPTH_TO_SPACE": to_space,
    "SPACE_TO_DEPTH": to_depth, "BATCH_TO_SPACE_ND": from_batch, "SPACE_TO_BATCH_ND": to_batch,
    "RESHAPE": lambda a: a.x.reshape(tuple(a.shape)), "SQUEEZE": squeezed,
    "TRANSPOSE": lambda a: a.x.transpose(None if a.perm is None else tuple(a.perm)),
    "EXPAND_DIMS": lambda a: np.expand_dims(a.x, a.axis), "PACK": lambda a: np.stack(a.xs, a.axis),
    "PACK_EX": lambda a: np.stack(a.xs, a.axis), "SPLIT": lambda a: np.split(a.x, a.count, a.axis),
    "SPLIT_EX": lambda a: np.split(a.x, a.count, a.axis),
    "UNPACK_EX": lambda a: [np.atleast_1d(np.take(a.x, i, a.axis)) for i in range(a.count)],
    "SLICE": lambda a: a.x[tuple(slice(b, b + s if s >= 0 else None) for b, s in zip(a.begin, a.size, strict=True))],
    "STRIDED_SLICE": strided, "PAD": lambda a: np.pad(a.x, a.paddings, constant_values=a.zero),
    "PAD_V2": lambda a: np.pad(a.x, a.paddings, constant_values=a.value),
    "MIRROR_PAD": lambda a: np.pad(a.x, a.paddings, mode=("reflect", "symmetric")[a.mode]),
    "TILE": lambda a: np.tile(a.x, a.multiples), "REVERSE": lambda a: np.flip(a.x, int(a.axis[0])),
    "CHANNEL_SHUFFLE": shuffled, "GATHER": lambda a: np.take(a.x, a.indices, a.axis),
    "GATHER_EX": lambda a: np.take(a.x, a.indices, a.axis), "EMBEDDING_LOOKUP": lambda a: a.values[a.lookups],
    "HASHTABLE_LOOKUP": looked_up, "CAST": cast, "CAST_EX": cast}


def _ends(x: Array) -> tuple[Any, Any]:
    """The least and the greatest value there is."""
    info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    return (info.min, info.max) if info else (-np.inf, np.inf)


def real(t: Tensor) -> Array:
    """The real values of a tensor; of one without a grid, its elements."""
    assert t.data is not None
    if isinstance(t.quant, Quant) and (t.type in QUANTISED or t.scale):
        return (t.data.astype(np.float64) - t.quant.zero) * t.quant.scale
    if isinstance(t.quant, ChannelQuant):
        size = [-1 if i == t.quant.axis else 1 for i in range(t.rank)]
        return t.data.astype(np.float64) * np.reshape(t.quant.scales, size)
    return t.data.astype(np.float64) if t.type in FLOATS else t.data


def arguments(i: Instance, stored: bool, act: int | None = None) -> SimpleNamespace:
    """The canonical arguments, as an oracle takes them; `act` in the place of the case's."""
    def plain(v: Any) -> Any:
        if isinstance(v, tuple):
            return [plain(each) for each in v]
        return (v.data if stored else real(v)) if isinstance(v, Tensor) else v
    found = {name: plain(v) for name, v in i.args.items()}
    x, w, b = (i.args.get(n) for n in "xwb")
    if w is not None and w.type == QPC and b is not None:
        found["b"] = b.data * x.scale * np.array(w.quant.scales)
    if act is not None and "act" in found:
        found["act"] = act
    zero = x.quant.zero if isinstance(getattr(x, "quant", None), Quant) else 0
    return SimpleNamespace(**found, key=i.key, zero=zero)


def results(i: Instance, act: int | None = None) -> list[Array] | None:
    """The outputs by definition: real, or stored where the operation moves values; None where no oracle knows."""
    stored = i.op.name in MOVED
    oracle = MOVED.get(i.op.name) or REAL.get(i.op.name)
    if oracle is None:
        return None
    with np.errstate(all="ignore"):
        found = oracle(arguments(i, stored, act))
    return [np.asarray(v) for v in (found if isinstance(found, list) else [found])]


#: Sums of products: what they round is as large as the sum of what they add.
SUMS = {"CONV_2D", "GROUPED_CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV_2D", "TRANSPOSE_CONV_EX", "FULLY_CONNECTED",
        "BATCH_MATMUL", "REDUCE_SUM", "REDUCE_SUM_EX", "MEAN", "AVERAGE_POOL_2D", "RESIZE_BILINEAR", "ADD", "SUB",
        "SQUARED_DIFFERENCE_EX"}


def magnitude(i: Instance) -> Any:
    """How large the numbers are that round to each result."""
    a = arguments(i, False, 0)
    if i.op.name in ("SUB", "SQUARED_DIFFERENCE_EX"):
        return np.maximum(np.abs(a.x), np.abs(a.y)) ** (2 if "SQUARED" in i.op.name else 1)
    if i.op.name in SUMS:
        for name in ("x", "y", "w", "b"):
            if hasattr(a, name):
                setattr(a, name, np.abs(getattr(a, name)))
        return REAL[i.op.name](a)
    x = np.abs(a.x) if hasattr(a, "x") else np.ones(1)
    return x[np.isfinite(x)].max(initial=1.0)
