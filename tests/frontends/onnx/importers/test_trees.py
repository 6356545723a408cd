"""Trees of ai.onnx.ml in the ways its versions write them, against walks node by node and ONNX Runtime's answers."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from learners import TRANSFORMS, WAYS, answers, made, texts
from onnx import helper

import nnx_convert
from nnx_convert.errors import FormatError, RunError

F = np.float32
WORDS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
ASKS: list[Any] = [lambda a, b: a <= b, lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a > b,
                   lambda a, b: a == b, lambda a, b: a != b]
FOLDS: dict[str, Any] = {"SUM": sum, "AVERAGE": sum, "MIN": lambda v: min(v, default=0),
                         "MAX": lambda v: max(v, default=0)}


@dataclass
class Node:
    """A node of a tree: a leaf has weights by target."""

    feature: int = 0
    split: float = 0.0
    mode: int = 0
    missing: int = 0
    weights: dict[int, float] = field(default_factory=dict)
    ways: tuple[Node, Node] | None = None

    def leaf(self, row: Any) -> Node:
        """Where a row comes to."""
        if self.ways is None:
            return self
        value = row[self.feature]
        yes = ASKS[self.mode](value, self.split) or bool(self.missing and np.isnan(value))
        return self.ways[not yes].leaf(row)

    def listed(self) -> list[Node]:
        """All of the tree, this one first."""
        return [self, *(self.ways[0].listed() + self.ways[1].listed() if self.ways else [])]


def grown(rng: Any, depth: int, targets: int) -> Node:
    """A tree by chance; some of its branches are short."""
    if depth == 0 or rng.random() < 0.15:
        chosen = rng.choice(targets, rng.integers(1, targets + 1), replace=False)
        return Node(weights={int(t): float(F(rng.normal())) for t in chosen})
    return Node(int(rng.integers(3)), float(rng.integers(-2, 3)) / 2, int(rng.integers(6)), int(rng.integers(2)),
                ways=(grown(rng, depth - 1, targets), grown(rng, depth - 1, targets)))


def named(trees: list[Node], of: str) -> dict[str, Any]:
    """As versions 1 to 3 write them: columns of nodes named by tree and number, and of leaves."""
    nodes = [(t, i, n, tree.listed()) for t, tree in enumerate(trees) for i, n in enumerate(tree.listed())]

    def way(n: Node, there: list[Node], which: int) -> int:
        return next(i for i, m in enumerate(there) if m is n.ways[which]) if n.ways else 0
    leaves = [(t, i, k, w) for t, i, n, _ in nodes for k, w in n.weights.items()]
    return {
        "nodes_treeids": [t for t, *_ in nodes], "nodes_nodeids": [i for _, i, *_ in nodes],
        "nodes_featureids": [n.feature for _, _, n, _ in nodes], "nodes_values": [n.split for _, _, n, _ in nodes],
        "nodes_modes": [WORDS[n.mode] if n.ways else "LEAF" for _, _, n, _ in nodes],
        "nodes_truenodeids": [way(n, a, 0) for _, _, n, a in nodes],
        "nodes_falsenodeids": [way(n, a, 1) for _, _, n, a in nodes],
        "nodes_missing_value_tracks_true": [n.missing for _, _, n, _ in nodes],
        f"{of}_treeids": [v[0] for v in leaves], f"{of}_nodeids": [v[1] for v in leaves],
        f"{of}_ids": [v[2] for v in leaves], f"{of}_weights": [v[3] for v in leaves]}


def folded(trees: list[Node], x: Any, targets: int, how: str) -> Any:
    """What is made of the weights of the leaves that rows come to."""
    found = [[FOLDS[how]([w for t in trees for k, w in t.leaf(row).weights.items() if k == target])
              for target in range(targets)] for row in x]
    return np.array(found) / (len(trees) if how == "AVERAGE" else 1)


def forest(seed: int, targets: int) -> tuple[list[Node], Any]:
    """Trees, and rows with values that are missing."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (40, 3)).astype(F) / 2
    x[rng.random(x.shape) < 0.15] = np.nan
    return [grown(rng, 4, targets) for _ in range(5)], x


def near(found: Any, want: Any, kind: Any = F) -> None:
    assert (found.dtype, found.shape) == (np.dtype(kind), np.shape(want))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("how", FOLDS)
def test_trees_are_regressed(how: str, targets: int, way: str) -> None:
    trees, x = forest(targets, targets)
    base = [0.25, -1.0, 2.0][:targets]
    (found,) = answers("TreeEnsembleRegressor", x, way=way, aggregate_function=how, n_targets=targets,
                       base_values=base, **named(trees, "target"))
    near(found, folded(trees, x, targets, how) + base)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32])
def test_rows_of_other_numbers(kind: Any) -> None:
    trees, x = forest(4, 2)
    x = np.nan_to_num(x).astype(kind)
    (found,) = answers("TreeEnsembleRegressor", x, n_targets=2, **named(trees, "target"))
    near(found, folded(trees, x, 2, "SUM"))
    near(answers("TreeEnsembleRegressor", x[0], n_targets=2, **named(trees, "target"))[0],
         folded(trees, x[:1], 2, "SUM"))


def test_doubles_are_compared_as_doubles() -> None:
    x = np.array([[1.0], [1 + 1e-12]])
    tensors = {n: helper.make_tensor(n, 11, [len(v)], v) for n, v in (
        ("nodes_values_as_tensor", [1, 0, 0.0]), ("target_weights_as_tensor", [1, 2.0]))}
    (found,) = answers("TreeEnsembleRegressor", x, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], target_ids=[0, 0],
                       nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], target_treeids=[0, 0],
                       nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_nodeids=[1, 2], **tensors)
    assert found.tolist() == [[1], [2]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_three_classes(transform: str, way: str) -> None:
    trees, x = forest(5, 3)
    label, scores = answers("TreeEnsembleClassifier", x, outputs=2, way=way, post_transform=transform,
                            classlabels_strings=["a", "b", "c"], **named(trees, "class"))
    want = folded(trees, x, 3, "SUM")
    assert label.tolist() == [["a", "b", "c"][i] for i in want.argmax(1)]
    near(scores, TRANSFORMS[transform](want))


def stump(*leaves: tuple[int, int, float]) -> dict[str, Any]:
    """x0 <= 0 ? node 1 : node 2; of leaves the node, the class and the weight."""
    return {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3, "nodes_values": [0.0] * 3,
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0] * len(leaves), "class_nodeids": [n for n, _, _ in leaves],
        "class_ids": [k for _, k, _ in leaves], "class_weights": [w for _, _, w in leaves]}


ONE, BOTH = ((1, 0, 0.7), (2, 0, 0.3)), ((1, 0, 0.7), (1, 1, 0.3), (2, 0, 0.2), (2, 1, 0.8))
#: Leaves, base values, post_transform; ONNX Runtime's labels of the rows [-1] and [1], and their scores.
TWO: list[tuple[Any, Any, str, list[int], list[list[float]]]] = [
    (ONE, None, "NONE", [1, 0], [[0.3, 0.7], [0.7, 0.3]]),
    (ONE, None, "SOFTMAX", [1, 0], [[0.3, 0.7], [0.7, 0.3]]),
    (ONE, None, "LOGISTIC", [1, 0], [[0.3318, 0.6682], [0.4256, 0.5744]]),
    (ONE, [0.5], "NONE", [1, 1], [[-0.2, 1.2], [0.2, 0.8]]),
    (ONE, [0.5], "LOGISTIC", [1, 1], [[0.2315, 0.7685], [0.31, 0.69]]),
    (((1, 0, 0.7), (2, 0, -0.3)), None, "NONE", [1, 0], [[-0.7, 0.7], [0.3, -0.3]]),
    (((1, 0, 0.7), (2, 0, -0.3)), [0.5], "LOGISTIC", [1, 1], [[0.2315, 0.7685], [0.4502, 0.5498]]),
    (((1, 1, 0.7), (2, 1, 0.3)), None, "NONE", [1, 0], [[0, 0.7], [0, 0.3]]),
    (((1, 1, 0.7), (2, 1, -0.3)), None, "NONE", [1, 0], [[0, 0.7], [0, -0.3]]),
    (BOTH, None, "NONE", [1, 1], [[0.7, 0.3], [0.2, 0.8]]),
    (BOTH, [0.1], "NONE", [1, 1], [[0.8, 0.3], [0.3, 0.8]]),
    (BOTH, [0.1, 0.2], "NONE", [1, 1], [[-0.9, 0.9], [-0.4, 0.4]]),
    (((1, 0, -0.7), (1, 1, -0.3), (2, 0, -0.2), (2, 1, -0.8)), None, "NONE", [0, 0], [[-0.7, -0.3], [-0.2, -0.8]])]


@pytest.mark.parametrize(("leaves", "base", "transform", "labels", "want"), TWO)
def test_two_classes_are_decided_as_in_onnx_runtime(leaves: Any, base: Any, transform: str, labels: list[int],
                                                    want: list[list[float]]) -> None:
    label, scores = answers("TreeEnsembleClassifier", np.array([[-1], [1]], F), outputs=2, base_values=base,
                            classlabels_int64s=[0, 1], post_transform=transform, **stump(*leaves))
    assert label.tolist() == labels
    np.testing.assert_allclose(scores, want, atol=6e-5)


def test_one_class_is_there_or_not() -> None:
    label, scores = answers("TreeEnsembleClassifier", np.array([[-1], [1]], F), outputs=2, classlabels_int64s=[7],
                            post_transform="LOGISTIC", **stump((1, 0, 0.7), (2, 0, -0.3)))
    assert label.tolist() == [1, 0]
    near(scores, [[0.7], [-0.3]])


# Version 5: trees as columns of numbers, leaves by themselves.
def columns(trees: list[Node], kind: Any) -> dict[str, Any]:
    """As version 5 writes them: a leaf has one weight of one target."""
    inner = [n for t in trees for n in t.listed() if n.ways]
    leaves = [n for t in trees for n in t.listed() if not n.ways]
    nodes, ends = ({id(n): i for i, n in enumerate(v)} for v in (inner, leaves))
    ways = [[n.ways[w] for n in inner if n.ways] for w in (0, 1)]
    places = [[ends[id(n)] if not n.ways else nodes[id(n)] for n in way] for way in ways]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    weights = [w for n in leaves for w in n.weights.values()]
    return {
        "nodes_featureids": [n.feature for n in inner], "nodes_truenodeids": places[0],
        "nodes_falsenodeids": places[1], "nodes_trueleafs": [int(not n.ways) for n in ways[0]],
        "nodes_falseleafs": [int(not n.ways) for n in ways[1]], "tree_roots": [nodes[id(t)] for t in trees],
        "nodes_missing_value_tracks_true": [n.missing for n in inner],
        "nodes_modes": helper.make_tensor("m", 2, [len(inner)], [n.mode for n in inner]),
        "nodes_splits": helper.make_tensor("s", element, [len(inner)], [n.split for n in inner]),
        "leaf_targetids": [next(iter(n.weights)) for n in leaves],
        "leaf_weights": helper.make_tensor("w", element, [len(leaves)], weights)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("how", FOLDS)
def test_trees_of_version_5(how: str, kind: Any, way: str) -> None:
    rng = np.random.default_rng(6)
    trees = [Node(0, 0.5, 1, 0, ways=(grown(rng, 3, 1), grown(rng, 3, 1))) for _ in range(4)]
    x = forest(6, 1)[1].astype(kind)
    code = ["AVERAGE", "SUM", "MIN", "MAX"].index(how)
    (found,) = answers("TreeEnsemble", x, version=5, way=way, aggregate_function=code, **columns(trees, kind))
    assert found.dtype == kind
    np.testing.assert_allclose(found, folded(trees, x, 1, how), rtol=2e-3 if kind == np.float16 else 1e-5, atol=1e-6)


def member(sets: list[float], **changes: Any) -> dict[str, Any]:
    """x0 in a set ? 1 : x1 <= 0 ? 2 : 3."""
    found = {
        "nodes_featureids": [0, 1], "nodes_truenodeids": [0, 1], "nodes_falsenodeids": [1, 2],
        "nodes_trueleafs": [1, 1], "nodes_falseleafs": [0, 1], "tree_roots": [0], "leaf_targetids": [0, 0, 0],
        "nodes_modes": helper.make_tensor("m", 2, [2], [6, 0]), "nodes_splits": helper.make_tensor("s", 1, [2], [0, 0]),
        "leaf_weights": helper.make_tensor("w", 1, [3], [1, 2, 3]),
        "membership_values": helper.make_tensor("v", 1, [len(sets)], sets)}
    return found | changes


@pytest.mark.parametrize("sets", [[1.0], [1.0, 4.0, 2.5], []])
def test_a_node_asks_for_members_of_a_set(sets: list[float]) -> None:
    x = np.array([[1, 0], [2.5, 1], [4, -1], [3, 0], [3, 1], [np.nan, 1]], F)
    (found,) = answers("TreeEnsemble", x, version=5, **member([*sets, np.nan]))
    assert found.reshape(-1).tolist() == [1 if v in sets else 2 if w <= 0 else 3 for v, w in x.tolist()]


def test_a_tree_that_is_a_leaf() -> None:
    alone = {"nodes_featureids": [0], "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "nodes_trueleafs": [1],
             "nodes_falseleafs": [1], "nodes_modes": helper.make_tensor("m", 2, [1], [0]),
             "nodes_splits": helper.make_tensor("s", 1, [1], [0]), "leaf_targetids": [0],
             "leaf_weights": helper.make_tensor("w", 1, [1], [1.5]), "membership_values": None}
    assert answers("TreeEnsemble", np.zeros((2, 1), F), version=5, **member([], **alone))[0].tolist() == [[1.5], [1.5]]


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a way to nowhere": ({"nodes_truenodeids": [9, 0, 0]}, "way on"),
    "a feature": ({"nodes_featureids": [7, 0, 0]}, "feature"),
    "a feature below 0": ({"nodes_featureids": [-1, 0, 0]}, "feature"), "a target": ({"class_ids": [5, 0]}, "target"),
    "a target far off": ({"class_ids": [2 ** 62, 0]}, "target"),
    "a leaf": ({"class_nodeids": [1, 9]}, "a leaf at a node"),
    "a mode": ({"nodes_modes": ["BRANCH_LEQ", "LEAF", "TWIG"]}, "TWIG"), "short": ({"nodes_values": [0.0]}, "lengths"),
    "short leaves": ({"class_weights": [1.0]}, "lengths"), "twice": ({"nodes_nodeids": [0, 1, 1]}, "twice"),
    "itself": ({"nodes_falsenodeids": [0, 0, 0]}, "circles"),
    "circles": ({"nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF"], "nodes_falsenodeids": [2, 2, 0]}, "circles"),
    "missing": ({"nodes_missing_value_tracks_true": [1]}, "1 nodes_missing"),
    "base": ({"base_values": [1.0] * 4}, "base"),
    "transform": ({"post_transform": "CUBE"}, "CUBE")}


@pytest.mark.parametrize("name", BROKEN)
def test_trees_that_lie_are_refused(name: str) -> None:
    changes, why = BROKEN[name]
    with pytest.raises(FormatError, match=why):
        answers("TreeEnsembleClassifier", np.zeros((2, 1), F), outputs=2, **({
            "classlabels_int64s": [0, 1]} | stump(*ONE) | changes))


@pytest.mark.parametrize(("changes", "why"), [
    ({"tree_roots": [4]}, "root"), ({"tree_roots": [-1]}, "root"), ({"n_targets": 0}, "target"),
    ({"nodes_modes": helper.make_tensor("m", 2, [2], [9, 0])}, "unknown codes"), ({"aggregate_function": 4}, "codes"),
    ({"post_transform": -1}, "codes"), ({"membership_values": None}, "0 sets"), ({"nodes_trueleafs": [1]}, "nodes"),
    ({"nodes_truenodeids": [8, 1]}, "way on"), ({"nodes_falsenodeids": [0, 2]}, "circles")])
def test_trees_of_version_5_that_lie_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(FormatError, match=why):
        answers("TreeEnsemble", np.zeros((2, 2), F), version=5, **member([1.0, np.nan], **changes))


def test_a_forest_of_no_trees_and_rows_that_are_none_are_refused() -> None:
    for x in (np.zeros((2, 2, 1), F), np.array(1, F)):
        with pytest.raises(FormatError, match="rows"):
            answers("TreeEnsembleClassifier", x, outputs=2, classlabels_int64s=[0, 1], **stump(*ONE))
    with pytest.raises(FormatError, match="0 trees"):
        answers("TreeEnsembleRegressor", np.zeros((2, 2), F))


def test_a_shared_branch_and_a_long_one_are_no_circle() -> None:
    count = 3000
    long = {"nodes_treeids": [0] * count, "nodes_nodeids": list(range(count)), "nodes_featureids": [0] * count,
            "nodes_values": [0.0] * count, "nodes_modes": ["LEAF", *["BRANCH_LEQ"] * (count - 1)],
            "nodes_truenodeids": [0, *range(count - 1)], "nodes_falsenodeids": [0] * count,
            "target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [2.5]}
    turned = {n: v[::-1] if n.startswith("nodes") else v for n, v in long.items()}
    assert answers("TreeEnsembleRegressor", np.zeros((1, 1), F), **turned)[0].tolist() == [[2.5]]


def test_rows_of_a_run_that_are_too_short_fail() -> None:
    trees, x = forest(1, 1)
    model = made("TreeEnsembleRegressor", [x], **named(trees, "target"))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "c"
    ready = nnx_convert.compile(model.SerializeToString())
    near(ready.run([x])[0], folded(trees, x, 1, "SUM"))
    with pytest.raises(RunError, match="feature 2 of rows of 2"):
        ready.run([x[:, :2]])


def test_labels_are_texts() -> None:
    label, _ = answers("TreeEnsembleClassifier", np.array([[-1], [1]], F), outputs=2, classlabels_strings=["no", "é"],
                       **stump(*ONE))
    assert label.tolist() == texts("é", "no").tolist()
