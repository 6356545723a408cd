"""Support vector machines of ai.onnx.ml."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import classical as c
from ..importer import Op
from ..registry import ML, imports
from .ml_linear import above, labelled, labels_of, matrix, only, real, scores_of, transformed, two, width

KERNELS = {"LINEAR": c.LINEAR, "POLY": c.POLY, "RBF": c.RBF, "SIGMOID": c.SIGMOID}
#: Numbers that pairs of classes may weigh support vectors by.
MOST = 1 << 28


def compared(g: Op, x: Value, vectors: np.ndarray, kind: str, params: Sequence[float]) -> Value:
    """How near rows are to support vectors."""
    if kind not in KERNELS:
        raise FormatError(f"has the kernel_type {kind!r}")
    gamma, offset, degree = (*params, *[0.0] * 3)[:3]
    return g(c.KERNEL, x, g.const(vectors), kind=KERNELS[kind], gamma=gamma, offset=offset, degree=degree)


@imports(domain=ML)
def SVMRegressor(g: Op, x: Value, *, coefficients: tuple[float, ...] = (), kernel_params: tuple[float, ...] = (),
                 kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0, post_transform: str = "NONE",
                 rho: tuple[float, ...] = (), support_vectors: tuple[float, ...] = ()) -> Value:
    x = real(g, x)
    if n_supports:
        vectors = matrix(support_vectors, width(g, x), "support_vectors")
        x, size = compared(g, x, vectors, kernel_type, kernel_params), len(vectors)
    else:
        size = width(g, x)
    found = scores_of(g, x, matrix(coefficients, size, "coefficients")[:1], rho[:1])
    if one_class:
        over = only(g, "Greater", found, g.const(np.float32(0)))
        return only(g, "Where", over, g.const(np.float32(1)), g.const(np.float32(-1)))
    return transformed(g, found, post_transform)


@imports(domain=ML)
def SVMClassifier(g: Op, x: Value, *, classlabels_ints: tuple[int, ...] = (),
                  classlabels_strings: tuple[str, ...] = (), coefficients: tuple[float, ...] = (),
                  kernel_params: tuple[float, ...] = (), kernel_type: str = "LINEAR",
                  post_transform: str = "NONE", prob_a: tuple[float, ...] = (), prob_b: tuple[float, ...] = (),
                  rho: tuple[float, ...] = (), support_vectors: tuple[float, ...] = (),
                  vectors_per_class: tuple[int, ...] = ()) -> list[Value]:
    """Without support vectors a row of coefficients for each class; with them, each pair of classes is decided."""
    x, count = real(g, x), max(len(classlabels_ints or classlabels_strings), 1)
    labels = labels_of(g, classlabels_ints, classlabels_strings, count)
    positive = min(coefficients, default=0.0) >= 0
    if not sum(vectors_per_class):
        rows = matrix(coefficients, width(g, x), "coefficients")
        if len(rows) != count:
            raise FormatError(f"has coefficients of {len(rows)} classes and labels of {count}")
        scores = scores_of(g, x, rows, rho[:1] * count)
        return finished(g, scores, scores, labels, post_transform, positive, bool(prob_a))
    vectors = matrix(support_vectors, width(g, x), "support_vectors")
    if len(vectors) != sum(vectors_per_class) or len(vectors_per_class) != count or min(vectors_per_class) < 0:
        raise FormatError(f"has {len(vectors)} support vectors and {list(vectors_per_class)} of the classes")
    pairs = count * (count - 1) // 2
    if len(rho) < pairs:
        raise FormatError(f"has {len(rho)} rho for {pairs} pairs of classes")
    if pairs * len(vectors) > MOST:
        g.unsupported(f"has {pairs} pairs of classes and {len(vectors)} support vectors")
    weights = between(matrix(coefficients, len(vectors), "coefficients"), vectors_per_class)
    sides = scores_of(g, compared(g, x, vectors, kernel_type, kernel_params), weights, rho[:pairs])
    votes = g(c.VOTES, sides, classes=count)
    scores = probabilities(g, sides, prob_a, prob_b, count) if prob_a else sides
    return finished(g, scores, votes, labels, post_transform, positive, bool(prob_a), len(rho) == 1)


def between(rows: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The weights of support vectors for each pair of classes: each class has a row for every other one."""
    ends = np.cumsum((0, *sizes))
    found = []
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            row = np.zeros(rows.shape[1], np.float32)
            row[ends[i]:ends[i + 1]] = rows[j - 1, ends[i]:ends[i + 1]]
            row[ends[j]:ends[j + 1]] = rows[i, ends[j]:ends[j + 1]]
            found.append(row)
    return np.array(found, np.float32).reshape(-1, rows.shape[1])


def probabilities(g: Op, pairs: Value, a: Sequence[float], b: Sequence[float], count: int) -> Value:
    """The probabilities of classes: each pair's by a logistic function of its own, then those that agree best."""
    if not len(a) == len(b) == count * (count - 1) // 2:
        raise FormatError(f"has {len(a)} prob_a and {len(b)} prob_b for {count} classes")
    slope, offset = (g.const(np.array(v, np.float32)) for v in (a, b))
    each = only(g, "Sigmoid", only(g, "Neg", only(g, "Add", only(g, "Mul", pairs, slope), offset)))
    near = only(g, "Clip", each, g.const(np.float32(1e-7)), g.const(np.float32(1 - 1e-7)))
    return g(c.COUPLED, near, classes=count)


def finished(g: Op, scores: Value, votes: Value, labels: Value, transform: str, positive: bool, sure: bool,
             single: bool = False) -> list[Value]:
    """Labels by votes, and scores: those of two classes where there is one number for them.

    As in ONNX Runtime, it is the second of two classes where no coefficient is negative.
    """
    if not single or scores.shape[1] > 1:
        return [labelled(g, votes, labels), transformed(g, scores, transform)]
    label = above(g, votes_of_second(g, votes), -1, labels) if positive and not sure else labelled(g, votes, labels)
    return [label, two(g, scores, transform, False)]


def votes_of_second(g: Op, votes: Value) -> Value:
    """The last column."""
    return only(g, "Slice", votes, g.const([1]), g.const([2]), g.const([1]))
