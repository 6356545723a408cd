"""Trees of ai.onnx.ml, in each of the ways its versions write them."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import classical as c
from ....types import F32, F64, I64
from ..importer import Op
from ..registry import ML, imports
from .ml_linear import TRANSFORMS, above, labelled, labels_of, only, real, rows, transformed, two, way

#: Modes in the words of the older versions, and in the order of version 5, where MEMBER is the last.
WORDS = {"BRANCH_LEQ": "LEQ", "BRANCH_LT": "LT", "BRANCH_GTE": "GTE", "BRANCH_GT": "GT", "BRANCH_EQ": "EQ",
         "BRANCH_NEQ": "NEQ", "LEAF": "LEAF"}
MEMBER = 6
AGGREGATES = {"AVERAGE": c.AVERAGE, "SUM": c.SUM, "MIN": c.LEAST, "MAX": c.MOST}


@dataclass
class Forest:
    """Nodes as columns, and their leaves: those of node n are first[n] to first[n + 1]."""

    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    first: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    base: tuple[float, ...] = field(default=())

    def checked(self, columns: int, targets: int) -> Forest:
        """Itself; raises `FormatError` where a node leads nowhere, in circles, or asks what a row has not."""
        inner, count = self.mode != c.LEAF, len(self.mode)
        for name, at, size in (("way on", np.concatenate((self.yes[inner], self.no[inner])), count),
                               ("feature", self.feature[inner], columns), ("root", self.roots, count),
                               ("target", self.target, targets)):
            if at.size and (at.min() < 0 or at.max() >= size):
                raise FormatError(f"a {name} of a tree is {at.min()} to {at.max()}, of {size}")
        if not self.roots.size or targets < 1 or len(self.base) not in (0, targets):
            raise FormatError(f"has {self.roots.size} trees, {targets} targets and {len(self.base)} base values")
        if circular(self.yes[inner], self.no[inner], np.flatnonzero(inner)):
            raise FormatError("the nodes of a tree lead in circles")
        return self

    def emitted(self, g: Op, x: Value, aggregate: int, targets: int) -> Value:
        """The sums of the trees' leaves, of each row."""
        columns = x.shape[1] if isinstance(x.shape[1], int) else int(self.feature.max(initial=0)) + 1
        f = self.checked(columns, targets)
        ints = [g.const(v, I64) for v in (f.mode, f.yes, f.no, f.missing, f.roots, f.first, f.target)]
        found = g(c.TREES, x, g.const(f.feature, I64), g.const(f.split, F64), *ints, g.const(f.weight, F64),
                  aggregate=aggregate, targets=targets)
        return only(g, "Add", found, g.const(np.array(self.base), x.type)) if self.base else found


def circular(yes: np.ndarray, no: np.ndarray, nodes: np.ndarray) -> bool:
    """Whether some of these nodes come to themselves again, by the two ways on that each has."""
    if (np.minimum(yes, no) > nodes).all():
        return False
    ways = dict(zip(nodes.tolist(), zip(yes.tolist(), no.tolist(), strict=True), strict=True))
    into = Counter(n for pair in ways.values() for n in pair if n in ways)
    free = [n for n in ways if not into[n]]
    for node in free:                            # grows by nodes that nothing is left to lead to
        for n in ways[node]:
            if n in into:
                into[n] -= 1
                if not into[n]:
                    free.append(n)
    return len(free) < len(ways)


def integers(values: Sequence[int], name: str, count: int | None = None) -> np.ndarray:
    """A column; raises `FormatError` where it has another length."""
    if count is not None and len(values) != count:
        raise FormatError(f"has {len(values)} {name} for {count} nodes")
    return np.array(values, np.int64).reshape(-1)


def either(plain: Sequence[float], tensor: np.ndarray | None) -> np.ndarray:
    """Numbers from one of two attributes."""
    return np.array(plain, np.float32).astype(np.float64) if tensor is None else tensor.reshape(-1).astype(np.float64)


def forest(nodes: dict[str, Any], leaves: tuple[Sequence[int], Sequence[int], Sequence[int], np.ndarray],
           base: np.ndarray) -> Forest:
    """The trees of the older versions, whose nodes are named by tree and number."""
    trees, numbers = integers(nodes["treeids"], "nodes_treeids"), integers(nodes["nodeids"], "nodes_nodeids")
    count = len(trees)
    place = {key: i for i, key in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    if len(place) < count:
        raise FormatError("has a node twice")
    mode = np.array([_mode(m) for m in nodes["modes"]], np.int64)
    yes, no = (np.array([place.get((t, n), -1) for t, n in zip(trees.tolist(), nodes[w], strict=False)], np.int64)
               for w in ("truenodeids", "falsenodeids"))
    splits = nodes["values"]
    if not len(mode) == len(yes) == len(no) == len(splits) == len(nodes["featureids"]) == count:
        raise FormatError(f"has columns of other lengths than its {count} nodes")
    roots = np.unique(trees, return_index=True)[1]
    missing = integers(nodes["missing"], "nodes_missing_value_tracks_true", count) if nodes["missing"] else \
        np.zeros(count, np.int64)
    first, target, weight = grouped(place, leaves, count)
    return Forest(integers(nodes["featureids"], "nodes_featureids"), splits, mode, yes, no, missing,
                  np.sort(roots), first, target, weight, tuple(base.tolist()))


def _mode(word: str) -> int:
    if word not in WORDS:
        raise FormatError(f"has the mode {word!r:.40}")
    return c.MODES.index(WORDS[word])


def grouped(place: dict[tuple[int, int], int], leaves: tuple[Sequence[int], Sequence[int], Sequence[int], np.ndarray],
            count: int) -> Iterator[np.ndarray]:
    """Leaves by their nodes: where those of each begin, their targets, their weights."""
    trees, nodes, targets, weights = leaves
    if not len(trees) == len(nodes) == len(targets) == len(weights):
        raise FormatError("has columns of leaves of several lengths")
    at = np.array([place.get(key, -1) for key in zip(trees, nodes, strict=True)], np.int64)
    if at.min(initial=0) < 0:
        raise FormatError("has a leaf at a node that there is not")
    order = np.argsort(at, kind="stable")
    yield np.searchsorted(at[order], np.arange(count + 1))
    yield np.array(targets, np.int64)[order]
    yield weights[order]


@imports(domain=ML)
def TreeEnsembleRegressor(
        g: Op, x: Value, *, aggregate_function: str = "SUM", base_values: tuple[float, ...] = (),
        base_values_as_tensor: np.ndarray | None = None, n_targets: int = 1, post_transform: str = "NONE",
        nodes_falsenodeids: tuple[int, ...] = (), nodes_featureids: tuple[int, ...] = (),
        nodes_hitrates: tuple[float, ...] = (), nodes_hitrates_as_tensor: np.ndarray | None = None,
        nodes_missing_value_tracks_true: tuple[int, ...] = (), nodes_modes: tuple[str, ...] = (),
        nodes_nodeids: tuple[int, ...] = (), nodes_treeids: tuple[int, ...] = (),
        nodes_truenodeids: tuple[int, ...] = (), nodes_values: tuple[float, ...] = (),
        nodes_values_as_tensor: np.ndarray | None = None, target_ids: tuple[int, ...] = (),
        target_nodeids: tuple[int, ...] = (), target_treeids: tuple[int, ...] = (),
        target_weights: tuple[float, ...] = (), target_weights_as_tensor: np.ndarray | None = None) -> Value:
    if aggregate_function not in AGGREGATES:
        raise FormatError(f"has the aggregate_function {aggregate_function!r}")
    nodes = {"treeids": nodes_treeids, "nodeids": nodes_nodeids, "modes": nodes_modes,
             "featureids": nodes_featureids, "truenodeids": nodes_truenodeids, "falsenodeids": nodes_falsenodeids,
             "values": either(nodes_values, nodes_values_as_tensor), "missing": nodes_missing_value_tracks_true}
    leaves = target_treeids, target_nodeids, target_ids, either(target_weights, target_weights_as_tensor)
    trees = forest(nodes, leaves, either(base_values, base_values_as_tensor))
    x = rows(g, x) if x.type == F64 else real(g, x)
    found = trees.emitted(g, x, AGGREGATES[aggregate_function], n_targets)
    return single(g, g.cast(found, F32), post_transform, n_targets)


def single(g: Op, x: Value, transform: str, targets: int) -> Value:
    """Scores transformed; as in ONNX Runtime, one target is transformed by PROBIT alone."""
    return transformed(g, x, transform if targets > 1 or way(transform) == "PROBIT" else "NONE")


@imports(domain=ML)
def TreeEnsembleClassifier(
        g: Op, x: Value, *, base_values: tuple[float, ...] = (), base_values_as_tensor: np.ndarray | None = None,
        class_ids: tuple[int, ...] = (), class_nodeids: tuple[int, ...] = (), class_treeids: tuple[int, ...] = (),
        class_weights: tuple[float, ...] = (), class_weights_as_tensor: np.ndarray | None = None,
        classlabels_int64s: tuple[int, ...] = (), classlabels_strings: tuple[str, ...] = (),
        post_transform: str = "NONE", nodes_falsenodeids: tuple[int, ...] = (),
        nodes_featureids: tuple[int, ...] = (), nodes_hitrates: tuple[float, ...] = (),
        nodes_hitrates_as_tensor: np.ndarray | None = None,
        nodes_missing_value_tracks_true: tuple[int, ...] = (), nodes_modes: tuple[str, ...] = (),
        nodes_nodeids: tuple[int, ...] = (), nodes_treeids: tuple[int, ...] = (),
        nodes_truenodeids: tuple[int, ...] = (), nodes_values: tuple[float, ...] = (),
        nodes_values_as_tensor: np.ndarray | None = None) -> list[Value]:
    weights = either(class_weights, class_weights_as_tensor)
    nodes = {"treeids": nodes_treeids, "nodeids": nodes_nodeids, "modes": nodes_modes,
             "featureids": nodes_featureids, "truenodeids": nodes_truenodeids, "falsenodeids": nodes_falsenodeids,
             "values": either(nodes_values, nodes_values_as_tensor), "missing": nodes_missing_value_tracks_true}
    count = max(len(classlabels_int64s or classlabels_strings), 1)
    leaves = class_treeids, class_nodeids, class_ids, weights
    trees = forest(nodes, leaves, either(base_values, base_values_as_tensor))
    labels = labels_of(g, classlabels_int64s, classlabels_strings, count)
    x = rows(g, x) if x.type == F64 else real(g, x)
    if count > 2:
        scores = g.cast(trees.emitted(g, x, c.SUM, count), F32)
        return [labelled(g, scores, labels), transformed(g, scores, post_transform)]
    return decided(g, x, trees, labels, post_transform)


def decided(g: Op, x: Value, trees: Forest, labels: Value, transform: str) -> list[Value]:
    """One class or two, as ONNX Runtime decides: by the score of the second, or by the one score that there is. It is
    a probability, compared with 1/2, where no weight is negative and all leaves are of one class."""
    used, base = set(trees.target.tolist()), trees.base
    sure = trees.weight.min(initial=0.0) >= 0 and len(used) == 1
    bound = 0.5 if sure and labels.shape[0] == 2 else 0.0
    if labels.shape[0] == 1:
        scores = g.cast(trees.emitted(g, x, c.SUM, 1), F32)
        return [above(g, scores, 0.0, g.const([0, 1], I64)), single(g, scores, transform, 1)]
    if used == {0} and len(base) < 2:
        scores = g.cast(trees.emitted(g, x, c.SUM, 1), F32)
        return [above(g, scores, bound, labels), two(g, scores, transform, bool(sure))]
    if len(base) == 2 and used == {0, 1}:
        second = replace(trees, base=()).emitted(g, x, c.SUM, 2)
        first = only(g, "Slice", g.cast(second, F32), g.const([0]), g.const([1]), g.const([1]))
        scores = only(g, "Add", first, g.const(np.float32(base[1])))
        return [above(g, scores, 0.0, labels), transformed(g, two(g, scores, "NONE", False), transform)]
    if len(base) == 1:                           # it is the first class's, where that has leaves
        trees = replace(trees, base=(base[0] if 0 in used else 0.0, 0.0))
    scores = g.cast(trees.emitted(g, x, c.SUM, 2), F32)
    last = only(g, "Slice", scores, g.const([1]), g.const([2]), g.const([1]))
    return [above(g, last, bound, labels), transformed(g, scores, transform)]


@imports(domain=ML)
def TreeEnsemble(
        g: Op, x: Value, *, aggregate_function: int = 1, leaf_targetids: tuple[int, ...], leaf_weights: np.ndarray,
        membership_values: np.ndarray | None = None, n_targets: int = 1, nodes_falseleafs: tuple[int, ...],
        nodes_falsenodeids: tuple[int, ...], nodes_featureids: tuple[int, ...],
        nodes_hitrates: np.ndarray | None = None, nodes_missing_value_tracks_true: tuple[int, ...] = (),
        nodes_modes: np.ndarray, nodes_splits: np.ndarray, nodes_trueleafs: tuple[int, ...],
        nodes_truenodeids: tuple[int, ...], post_transform: int = 0, tree_roots: tuple[int, ...]) -> Value:
    """Leaves stand behind the nodes here; a node that asks for a member of a set is a chain of nodes."""
    count, leaves = len(nodes_featureids), len(leaf_targetids)
    modes = nodes_modes.reshape(-1).astype(np.int64)
    columns = [integers(v, "nodes", count) for v in (nodes_featureids, nodes_truenodeids, nodes_falsenodeids,
                                                     nodes_trueleafs, nodes_falseleafs)]
    feature, yes, no, yes_leaf, no_leaf = columns
    coded = 0 <= aggregate_function < 4 and 0 <= post_transform < len(TRANSFORMS) and np.isin(modes, range(7)).all()
    if not len(modes) == nodes_splits.size == count or leaf_weights.size != leaves or not coded:
        raise FormatError(f"has columns of other lengths than its {count} nodes and {leaves} leaves, or unknown codes")
    roots = integers(tree_roots, "tree_roots")
    if roots.size and not (0 <= roots.min() and roots.max() < count):
        raise FormatError(f"a root is {roots.min()} to {roots.max()}, of {count} nodes")
    yes, no = np.where(yes_leaf != 0, yes + count, yes), np.where(no_leaf != 0, no + count, no)
    alone = (yes_leaf[roots] != 0) & (no_leaf[roots] != 0) & (yes[roots] == no[roots])
    missing = integers(nodes_missing_value_tracks_true or (0,) * count, "nodes_missing_value_tracks_true", count)
    zeros = np.zeros(leaves, np.int64)
    trees = Forest(
        np.append(feature, zeros), np.append(nodes_splits.reshape(-1).astype(np.float64), zeros),
        np.append(modes, zeros + c.LEAF), np.append(yes, zeros), np.append(no, zeros), np.append(missing, zeros),
        np.where(alone, yes[roots], roots),
        np.append(np.zeros(count, np.int64), np.arange(leaves + 1)),
        integers(leaf_targetids, "leaf_targetids"), leaf_weights.reshape(-1).astype(np.float64))
    trees = members(trees, modes == MEMBER, membership_values)
    wide = rows(g, x) if x.type == F64 else real(g, x)
    found = trees.emitted(g, wide, aggregate_function, n_targets)
    return g.cast(single(g, found, TRANSFORMS[post_transform], n_targets), x.type)


def members(f: Forest, asks: np.ndarray, values: np.ndarray | None) -> Forest:
    """A node that asks whether a feature is in a set, as nodes that ask for one value each, behind all others."""
    where = np.flatnonzero(asks)
    if not where.size:
        return f
    flat = np.zeros(0) if values is None else values.reshape(-1).astype(np.float64)
    ends = np.flatnonzero(np.isnan(flat))
    if len(ends) != len(where):
        raise FormatError(f"has {len(ends)} sets of members for {len(where)} nodes")
    mode = f.mode.copy()
    mode[where] = c.MODES.index("EQ")
    split, no, made = f.split.copy(), f.no.copy(), list[tuple[int, float, int]]()
    for node, start, end in zip(where.tolist(), (0, *(ends[:-1] + 1)), ends.tolist(), strict=True):
        wanted = flat[start:end].tolist() or [np.nan]
        split[node] = wanted[0]
        if len(wanted) > 1:
            no[node] = len(f.mode) + len(made)
        made += [(node, value, int(f.no[node])) for value in wanted[1:]]
    own = np.array([m[0] for m in made], np.int64)
    more = len(made)
    chained = np.append(no, [m[2] for m in made]).astype(np.int64)
    for i in range(more - 1):
        if own[i] == own[i + 1]:
            chained[len(f.mode) + i] = len(f.mode) + i + 1
    return replace(
        f, feature=np.append(f.feature, f.feature[own]), split=np.append(split, [m[1] for m in made]),
        mode=np.append(mode, mode[own]), yes=np.append(f.yes, f.yes[own]), no=chained,
        missing=np.append(f.missing, f.missing[own]), first=np.append(f.first, np.full(more, f.first[-1])))
