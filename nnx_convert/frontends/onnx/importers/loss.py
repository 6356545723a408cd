"""Losses: what a sample's class was given, weighted and averaged."""
from __future__ import annotations

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, gather, norm, reduce as r
from ....types import product
from ..importer import Op
from ..registry import imports
from .elementwise import div, mul, number, same, where


@imports(arithmetic=True)
def NegativeLogLikelihoodLoss(g: Op, x: Value, target: Value, weight: Value | None = None, *,
                              ignore_index: int | None = None, reduction: str = "mean") -> Value:
    """Minus x at each sample's class times the class's weight; 0 for those of the class `ignore_index`."""
    if g.rank(x) < 2 or g.rank(target) != g.rank(x) - 1:
        raise FormatError(f"a class for each of rank {g.rank(x) - 1}, not {g.rank(target)}")
    if reduction not in ("none", "sum", "mean"):
        raise FormatError(f"has the reduction {reduction!r}")
    shape = g.shape(target)
    if len(shape) > 3:                           # the places of a sample in one row: NNAPI has four axes
        x, target = g.reshape(x, (*g.shape(x)[:2], product(shape[1:]))), g.reshape(target, (
            shape[0], product(shape[1:])))
    ignored = None
    if ignore_index is not None:
        ignored = g.elementwise(e.EQUAL, target, number(g, target, ignore_index))
        target = where(g, ignored, number(g, target, 0), target)
    rows = g.shape(target)
    at = g.reshape(target, (rows[0], 1, *rows[1:]))
    loss = same(g, e.NEG, g.reshape(g.call("GatherElements", x, at, axis=1)[0], rows))
    factor = None if weight is None else g(gather.GATHER, weight, axis=0, indices=g.index(target, g.shape(weight)[0]))
    if ignored is not None:
        one = number(g, x, 1) if factor is None else factor
        factor = where(g, ignored, number(g, x, 0), one)
    weighted = loss if factor is None else mul(g, loss, factor)
    if reduction == "none":
        return g.reshape(weighted, shape)
    total = summed(g, weighted)
    if reduction == "sum":
        return total
    if factor is None:
        return mean(g, weighted)
    return div(g, total, summed(g, factor))


@imports(arithmetic=True)
def SoftmaxCrossEntropyLoss(g: Op, scores: Value, labels: Value, weights: Value | None = None, *,
                            ignore_index: int | None = None, reduction: str = "mean") -> tuple[Value, Value]:
    """The loss, and the logarithms of the shares it is of."""
    shares = g(norm.LOG_SOFTMAX, scores, beta=1.0, axis=1)
    return NegativeLogLikelihoodLoss(g, shares, labels, weights, ignore_index=ignore_index, reduction=reduction), shares


def summed(g: Op, x: Value) -> Value:
    """The sum of all elements, a scalar."""
    return g.scalar(g(r.REDUCE_SUM, g.reshape(x, (product(g.shape(x)),)), [0], keep=False))


def mean(g: Op, x: Value) -> Value:
    """The mean of all elements, a scalar."""
    return g.scalar(g(r.MEAN, g.reshape(x, (product(g.shape(x)),)), [0], keep=0))
