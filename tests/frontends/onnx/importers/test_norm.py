"""Normalisation against ONNX's reference or the formula, whatever is constant, fed or of an open size."""
from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, n

import nnx_convert
from nnx_convert.errors import NnxError

R = np.random.default_rng(7)


def f(*shape: int) -> np.ndarray:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


IMAGE, ROW, CUBE, TABLE = f(2, 4, 3, 5), f(2, 4, 6), f(2, 4, 2, 3, 2), f(5, 4)
STATS = (f(4), f(4), f(4), np.abs(f(4)))


def along(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A vector along the channels."""
    return np.reshape(v, (1, -1, *(1,) * (x.ndim - 2)))


def normal(x: np.ndarray, axes: Any, eps: float) -> np.ndarray:
    """x with mean 0 and variance 1 over axes."""
    x = x.astype(np.float64)
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps))


def batch(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """BatchNormalization by its formula."""
    s, b, m, v = (along(a.astype(np.float64), x) for a in STATS)
    return np.asarray((x - m) / np.sqrt(v + eps) * s + b)


def trained(x: np.ndarray, momentum: float) -> list[np.ndarray]:
    """BatchNormalization in training: y and the running statistics."""
    axes = tuple(i for i in range(x.ndim) if i != 1)
    s, b, m, v = (a.astype(np.float64) for a in STATS)
    running = [old * momentum + new * (1 - momentum) for old, new in ((m, x.mean(axes)), (v, x.var(axes)))]
    return [normal(x, axes, 1e-5) * along(s, x) + along(b, x), *running]


def instance(x: np.ndarray) -> Node:
    """A case of InstanceNormalization with its answer."""
    want = normal(x, tuple(range(2, x.ndim)), 0.1) * along(STATS[0], x) + along(STATS[1], x)
    return n("InstanceNormalization", x, *(v.astype(x.dtype) for v in STATS[:2]), epsilon=0.1, want=[want])


def group(x: np.ndarray, groups: int, opset: int) -> Node:
    """A case of GroupNormalization with its answer."""
    parts = x.reshape(x.shape[0], groups, -1)
    size = groups if opset < 21 else x.shape[1]
    scale, bias = f(size), f(size)
    s, b = (np.repeat(v, x.shape[1] // size) for v in (scale, bias))
    want = normal(parts, 2, 0.1).reshape(x.shape) * along(s, x) + along(b, x)
    return n("GroupNormalization", x, scale, bias, epsilon=0.1, num_groups=groups, opset=opset, want=[want])


def layer(x: np.ndarray, axis: int, outputs: int = 1, biased: bool = True, **more: Any) -> Node:
    """A case of LayerNormalization with its answers."""
    shape = x.shape[axis:]
    axes = tuple(range(axis % x.ndim, x.ndim))
    scale, bias = R.normal(size=shape).astype(x.dtype), R.normal(size=shape).astype(x.dtype) if biased else None
    wide = x.astype(np.float64)
    y = normal(wide, axes, 0.1) * scale.astype(np.float64) + (0 if bias is None else bias.astype(np.float64))
    inverse = 1 / np.sqrt(wide.var(axes, keepdims=True) + 0.1)
    want = [y, wide.mean(axes, keepdims=True).astype(np.float32), inverse.astype(np.float32)][:outputs]
    rest = [bias] if biased else []
    return n("LayerNormalization", x, scale, *rest, axis=axis, epsilon=0.1, outputs=outputs, want=want, **more)


def rms(x: np.ndarray, axis: int) -> Node:
    """A case of RMSNormalization with its answer."""
    scale, axes = R.normal(size=x.shape[axis:]).astype(x.dtype), tuple(range(axis % x.ndim, x.ndim))
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide ** 2).mean(axes, keepdims=True) + 0.1) * scale.astype(np.float64)
    return n("RMSNormalization", x, scale, axis=axis, epsilon=0.1, want=[want])


def lrn(x: np.ndarray, size: int, beta: float = 0.75) -> Node:
    """A case of LRN with its answer: the reference has not as many channels as images."""
    c = x.shape[1]
    squares = x.astype(np.float64) ** 2
    sums = np.stack([squares[:, max(0, i - (size - 1) // 2):min(c, i + size // 2 + 1)].sum(1) for i in range(c)], 1)
    return n("LRN", x, size=size, alpha=0.5, beta=beta, bias=1.5, want=[x / (1.5 + 0.5 / size * sums) ** beta])


def lp(x: np.ndarray, p: int, axis: int) -> Node:
    """A case of LpNormalization with its answer."""
    total = (np.abs(x.astype(np.float64)) ** p).sum(axis, keepdims=True) ** (1 / p)
    return n("LpNormalization", x, p=p, axis=axis, want=[x / np.where(total == 0, 1, total)])


ZEROS = np.where(np.arange(5)[:, None] == 2, 0, TABLE)
CASES: list[Node] = [
    *(n("BatchNormalization", x, *STATS, want=[batch(x)]) for x in (IMAGE, ROW, CUBE, TABLE)),
    n("BatchNormalization", IMAGE, *STATS, epsilon=0.1, opset=9, want=[batch(IMAGE, 0.1)]),
    n("BatchNormalization", IMAGE, *STATS, is_test=1, opset=6, want=[batch(IMAGE)]),
    n("BatchNormalization", IMAGE, *STATS, opset=7, spatial=1, want=[batch(IMAGE)]),
    *(n("BatchNormalization", x, *STATS, training_mode=1, momentum=0.7, outputs=3, want=trained(x, 0.7))
      for x in (IMAGE, TABLE)),
    n("BatchNormalization", IMAGE.astype(np.float64), *STATS, want=[batch(IMAGE)]),
    *map(instance, (IMAGE, ROW, CUBE, IMAGE.astype(np.float64))),
    *(group(x, g, opset) for x in (IMAGE, ROW) for g in (1, 2, 4) for opset in (18, 21)), group(CUBE, 2, 21),
    *(layer(IMAGE, axis, 3) for axis in (-1, 1, 0)), layer(TABLE, 1, biased=False), layer(TABLE.astype(np.float16), -1),
    layer(TABLE.astype(ml_dtypes.bfloat16), -1), layer(CUBE, 2), layer(IMAGE, -2, stash_type=1, opset=17),
    *(rms(x, axis) for x in (IMAGE, TABLE, TABLE.astype(np.float16)) for axis in (-1, 1)),
    n("MeanVarianceNormalization", IMAGE, want=[normal(IMAGE, (0, 2, 3), 0)]),
    n("MeanVarianceNormalization", IMAGE, axes=[1, -1], want=[normal(IMAGE, (1, 3), 0)]),
    *(lrn(IMAGE, size, beta) for size in (1, 2, 3, 4, 9) for beta in (0.5, 0.75)), lrn(ROW, 3), lrn(CUBE, 2),
    lrn(IMAGE.astype(np.float64), 4), *(lp(x, p, a) for x in (IMAGE, ZEROS) for p in (1, 2) for a in (-1, 0)),
    n("Dropout", IMAGE, want=[IMAGE]), n("Dropout", IMAGE, opset=6, is_test=1, want=[IMAGE]),
    n("Dropout", IMAGE, np.array(0.5, np.float32), np.array(False), want=[IMAGE]),
    n("Dropout", IMAGE, outputs=2, want=[IMAGE, np.ones(IMAGE.shape, bool)]),
    n("Dropout", IMAGE, opset=10, outputs=2, want=[IMAGE, np.ones(IMAGE.shape, bool)]),
    n("Dropout", IMAGE, np.array(0.75, np.float32), np.array(True), seed=3, outputs=2)]


def as_typed(case: Node) -> Node:
    """The case, its answers in the type that they have."""
    x = case.inputs[0]
    assert x is not None
    want = case.want and [w if w.dtype == bool or i and case.op == "LayerNormalization" else np.asarray(
        w, STATS[0].dtype if i else x.dtype) for i, w in enumerate(case.want)]
    return Node(case.op, case.inputs, case.attributes, case.opset, case.outputs, want, case.fixed)


def told_by_sizes(case: Node) -> bool:
    """Whether it takes sizes that have to be known: more than one of a reshape, or the number of channels."""
    x = case.inputs[0]
    assert x is not None
    even = case.attributes.get("size", 1) % 2 == 0
    return case.op == "LRN" and (x.ndim > 4 or even)


@pytest.mark.parametrize(("case", "way"), [(as_typed(c), w) for c, w in product(CASES, WAYS) if w != "open" or
                                           not told_by_sizes(c)], ids=str)
def test_against_the_formula(case: Node, way: str) -> None:
    narrow = case.inputs[0] is not None and case.inputs[0].dtype.itemsize == 2
    check(case, way, 0.05 if narrow else 1e-4)


@pytest.mark.parametrize("case", [c for c in CASES if told_by_sizes(c)], ids=str)
def test_what_only_open_sizes_would_tell(case: Node) -> None:
    with pytest.raises(NnxError, match=r"open size|reshape|that are open"):
        nnx_convert.convert(built(as_typed(case), "open")[0].SerializeToString())


#: An operator with constant weights, and the operations it becomes.
NATIVE: list[tuple[Node, list[str]]] = [
    (CASES[0], ["MUL", "ADD"]), (instance(IMAGE), ["INSTANCE_NORMALIZATION", "MUL", "ADD"]),
    (layer(TABLE, -1), ["MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD"]),
    (rms(TABLE, -1), ["MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL"]), (lrn(IMAGE, 3), ["LOCAL_RESPONSE_NORMALIZATION"]),
    (lrn(IMAGE, 4), ["MUL", "CONV_2D", "POW", "MUL"]), (lp(TABLE, 2, 1), ["L2_NORMALIZATION"])]


@pytest.mark.parametrize(("case", "ops"), NATIVE, ids=str)
def test_what_it_becomes(case: Node, ops: list[str]) -> None:
    found = [o.op.name for o in converted(built(as_typed(case), "fixed")[0]).operations]
    assert [o.removesuffix("_EX") for o in found if o not in ("TRANSPOSE", "RESHAPE")] == ops


#: What is refused, and with which words.
WRONG: list[tuple[Node, str]] = [
    (n("LayerNormalization", TABLE, f(4), axis=2, want=[TABLE]), "axis 2 of a tensor of rank 2"),
    (n("LayerNormalization", TABLE, f(4), stash_type=7, want=[TABLE]), "stash_type is 7"),
    (n("InstanceNormalization", TABLE, *STATS[:2], want=[TABLE]), "has no axes to normalise"),
    (n("GroupNormalization", IMAGE, f(4), f(4), num_groups=3, want=[IMAGE]), "4 channels in 3 groups"),
    (n("LpNormalization", TABLE, p=3, want=[TABLE]), "p is 3, not 1 or 2"),
    (n("LRN", IMAGE, size=0, want=[IMAGE]), "a window of 0"),
    (n("BatchNormalization", IMAGE, *STATS, opset=7, spatial=0, outputs=3, want=[IMAGE, f(4), f(4)]), "is in training")]


@pytest.mark.parametrize(("case", "said"), WRONG, ids=[w for _, w in WRONG])
def test_what_does_not_fit_is_refused(case: Node, said: str) -> None:
    with pytest.raises(NnxError) as found:
        nnx_convert.convert(built(case, "fixed")[0].SerializeToString())
    assert said in str(found.value)
