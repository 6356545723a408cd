"""Trees, kernels of vectors, votes, labels. All rows at once."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...ops import classical as c
from ...types import Array, Tensor
from ..given import objects
from ..kernel import Compute, Run, Site, kernel, sized
from ..memory import affordable
from ..special import probit

#: Rows times trees that are on their way at once.
TOGETHER = 1 << 18


@kernel(c.LOOKUP)
def LOOKUP(site: Site, x: Tensor, keys: Tensor, values: Tensor, default: Tensor) -> Run:
    """By a table where keys are texts, by search where they are numbers; NaN is a key like others."""
    def run(out: Array, x: Array, keys: Array, values: Array, default: Array) -> None:
        if keys.dtype == object or not keys.size:
            table = dict(zip(keys.tolist(), values.tolist(), strict=True))
            out[...] = objects([table.get(v, default.item()) for v in x.reshape(-1).tolist()]).reshape(x.shape)
            return
        backwards = keys[::-1]
        found, where = np.unique(backwards, return_index=True)
        at = np.minimum(np.searchsorted(found, x), found.size - 1)
        hit = (found[at] == x) | (np.isnan(x) & np.isnan(found[at]) if x.dtype.kind == "f" else False)
        out[...] = np.where(hit, values[::-1][where[at]], default.reshape(()))
    return run


def parts(rows: int, trees: int) -> Iterator[slice]:
    """Rows in pieces that are on their way together."""
    step = max(1, TOGETHER // max(trees, 1))
    return (slice(at, at + step) for at in range(0, rows, step))


@kernel(c.TREES)
def TREES(site: Site, x: Tensor, feature: Tensor, split: Tensor, mode: Tensor, yes: Tensor, no: Tensor,
          missing: Tensor, roots: Tensor, first: Tensor, target: Tensor, weight: Tensor, aggregate: int,
          targets: int) -> Run:
    """Comparisons are in the type of x. A way that does not end at a leaf after as many turns as there are nodes goes
    in circles."""
    start = {c.LEAST: np.inf, c.MOST: -np.inf}.get(aggregate, 0.0)
    fold = {c.LEAST: np.minimum, c.MOST: np.maximum}.get(aggregate, np.add)

    def run(out: Array, x: Array, feature: Array, split: Array, mode: Array, yes: Array, no: Array, missing: Array,
            roots: Array, first: Array, target: Array, weight: Array) -> None:
        asked = int(feature[mode != c.LEAF].max(initial=-1))
        if asked >= x.shape[1]:
            raise RunError(f"a node asks for the feature {asked} of rows of {x.shape[1]}")
        nodes = Nodes(feature, split.astype(x.dtype), mode, yes, no, missing != 0)
        for part in parts(len(x), roots.size):
            leaves = nodes.leaves(x[part], roots)
            sums, given = np.full((len(leaves), targets), start), np.zeros((len(leaves), targets), bool)
            for i in range(int((first[1:] - first[:-1]).max(initial=0))):
                at = first[leaves] + i
                row, tree = np.nonzero(at < first[leaves + 1])
                entry = at[row, tree]
                fold.at(sums, (row, target[entry]), weight[entry])
                given[row, target[entry]] = True
            out[part] = np.where(given, sums, 0) / (roots.size if aggregate == c.AVERAGE else 1)
    return run


class Nodes:
    """The nodes of trees as columns."""

    def __init__(self, feature: Array, split: Array, mode: Array, yes: Array, no: Array, missing: Array) -> None:
        self.feature, self.split, self.mode, self.yes, self.no, self.missing = feature, split, mode, yes, no, missing

    def leaves(self, x: Array, roots: Array) -> Array:
        """The leaf that each row comes to in each tree."""
        here = np.repeat(roots[None], len(x), 0)
        for _ in range(len(self.mode) + 1):
            going = np.nonzero(self.mode[here] != c.LEAF)
            if not going[0].size:
                return here
            n = here[going]
            here[going] = np.where(self.asked(n, x[going[0], self.feature[n]]), self.yes[n], self.no[n])
        raise RunError("the nodes of a tree lead in circles")

    def asked(self, n: Array, value: Array) -> Array:
        """What nodes answer to values."""
        split = self.split[n]
        answers = (value <= split, value < split, value >= split, value > split, value == split, value != split)
        return np.choose(self.mode[n], answers) | self.missing[n] & np.isnan(value)


@kernel(c.KERNEL)
def KERNEL(site: Site, x: Tensor, vectors: Tensor, kind: int, gamma: float, offset: float, degree: float) -> Run:
    def run(out: Array, x: Array, vectors: Array) -> None:
        if kind == c.RBF:
            for i, v in enumerate(vectors):
                out[:, i] = np.exp(-gamma * np.square(x - v).sum(-1))
            return
        dot = x @ vectors.T
        if kind == c.POLY:
            dot = (gamma * dot + offset) ** degree
        elif kind == c.SIGMOID:
            dot = np.tanh(gamma * dot + offset)
        out[...] = dot
    return run


def pairs(classes: int) -> tuple[Array, Array]:
    """The first and the second class of each pair."""
    return np.triu_indices(classes, 1)


@kernel(c.VOTES)
def VOTES(site: Site, x: Tensor, classes: int) -> Run:
    first, second = pairs(classes)

    def run(out: Array, x: Array) -> None:
        won = x > 0
        out[...] = won @ np.eye(classes)[first] + ~won @ np.eye(classes)[second]
    return run


@kernel(c.COUPLED)
def COUPLED(site: Site, x: Tensor, classes: int) -> Run:
    """The second way of Wu, Lin and Weng (2004), as libsvm iterates it."""
    first, second = pairs(classes)
    near, most = 0.005 / classes, max(100, classes)

    def run(out: Array, x: Array) -> None:
        against = np.zeros((len(x), classes, classes))
        against[:, first, second], against[:, second, first] = x, 1 - x
        q = -against.transpose(0, 2, 1) * against
        diagonal = np.arange(classes)
        q[:, diagonal, diagonal] = np.square(against.transpose(0, 2, 1)).sum(-1)
        p = np.full((len(x), classes), 1 / classes)
        for _ in range(most):
            qp = np.einsum("nij,nj->ni", q, p)
            whole = np.einsum("ni,ni->n", p, qp)
            moving = np.abs(qp - whole[:, None]).max(-1, initial=0) >= near
            if not moving.any():
                break
            _step(p, qp, whole, q, moving)
        out[...] = p
    return run


def _step(p: Array, qp: Array, whole: Array, q: Array, moving: Array) -> None:
    """One turn over the classes, for the rows that have not settled."""
    for t in range(p.shape[1]):
        by = np.where(moving, (whole - qp[:, t]) / q[:, t, t], 0)
        p[:, t] += by
        whole[:] = (whole + by * (by * q[:, t, t] + 2 * qp[:, t])) / (1 + by) ** 2
        qp[:] = (qp + by[:, None] * q[:, t]) / (1 + by)[:, None]
        p /= (1 + by)[:, None]


@kernel(c.PROBIT)
def PROBIT(site: Site, x: Tensor) -> Run:
    def run(out: Array, x: Array) -> None:
        out[...] = probit(x)
    return run


@sized(c.ZIP_MAP)
def ZIP_MAP(site: Site, x: Tensor, labels: Tensor) -> Compute:
    def run(x: Array, labels: Array) -> Sequence[Array]:
        keys = labels.tolist()
        return [objects([objects([dict(zip(keys, map(np.asarray, row), strict=True))]) for row in x])]
    return run


@sized(c.MAP_VALUES)
def MAP_VALUES(site: Site, x: Tensor, vocabulary: Tensor, default: Tensor) -> Compute:
    def run(x: Array, vocabulary: Array, default: Array) -> Sequence[Array]:
        found = [_element(x[0].get(k, default)) for k in vocabulary.tolist()]
        return [_row(found, default)]
    return run


@sized(c.MAP_DENSE)
def MAP_DENSE(site: Site, x: Tensor, default: Tensor, size: int, sparse: bool) -> Compute:
    def run(x: Array, default: Array) -> Sequence[Array]:
        there = {int(k): _element(v) for k, v in x[0].items()}
        keys = sorted(there)
        values = _row([there[k] for k in keys], default)
        if not sparse:
            return [values]
        if keys and keys[0] < 0:
            raise RunError(f"the map has the key {keys[0]}")
        wide = max(size, keys[-1] + 1 if keys else 0)
        affordable(wide * 8, "the values of a map")
        found = np.full((1, wide), _element(default), default.dtype)
        found[:, keys] = values
        return [found]
    return run


def _element(value: Any) -> Any:
    """The one element of an array."""
    return np.asarray(value).reshape(-1)[0]


def _row(values: list[Any], like: Array) -> Array:
    """Values as one row of the type of an array."""
    return objects(values).astype(like.dtype).reshape(1, -1)
