"""Decision trees natively: every question, every way to aggregate, values that are no numbers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import CompiledModel, OperandCode, RunError
from nnx_convert.ops.classical import LEAF, MODES

INT64, FLOAT64 = OperandCode.TENSOR_INT64, OperandCode.TENSOR_FLOAT64
KINDS = {"split": FLOAT64, "weight": FLOAT64}
ORDER = ("feature", "split", "mode", "yes", "no", "missing", "roots", "first", "target", "weight")


def forest(rng: np.random.Generator, modes: list[int], trees: int, features: int, targets: int) -> dict[str, Any]:
    """Trees of up to 15 nodes each, as columns; leaves have up to three weights, some none."""
    rows: list[list[float]] = []
    roots = []
    for _ in range(trees):
        roots.append(len(rows))
        grow(rng, rows, modes, features, 4)
    columns = dict(zip(("feature", "split", "mode", "yes", "no", "missing"), np.array(rows).T, strict=True))
    counts = np.where(columns["mode"] == LEAF, rng.integers(0, 4, len(rows)), 0)
    total = int(counts.sum())
    return columns | {"roots": roots, "first": np.concatenate([[0], counts.cumsum()]),
                      "target": rng.integers(0, targets, total), "weight": rng.integers(-8, 9, total) / 4}


def grow(rng: np.random.Generator, rows: list[list[float]], modes: list[int], features: int, deep: int) -> int:
    at = len(rows)
    rows.append([0, 0, LEAF, 0, 0, 0])
    if deep and rng.random() < 0.8:
        split = rng.choice([*(rng.integers(-3, 4, 8) / 2), np.inf, -np.inf])
        yes, no = (grow(rng, rows, modes, features, deep - 1) for _ in range(2))
        rows[at] = [rng.integers(0, features), split, rng.choice(modes), yes, no, rng.random() < 0.3]
    return at


def net(columns: dict[str, Any], x: np.ndarray, aggregate: int, targets: int) -> Net:
    made = Net()
    given = made.input(x)
    tables = [made.const(np.asarray(columns[n]), KINDS.get(n, INT64)) for n in ORDER]
    made.model = made.finish(made.op("TREES", given, *tables, made.scalar(aggregate), made.scalar(targets),
                                     shape=(len(x), targets)))
    return made


def trees(rng: np.random.Generator) -> Net:
    """Trees of all questions."""
    features, targets, count = (int(v) for v in rng.integers(1, 5, 3))
    x = rng.integers(-3, 4, (int(rng.integers(1, 20)), features)) / 2
    x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    return net(forest(rng, list(range(len(MODES) - 1)), 4 * count, features, targets), x, count % 4, targets)


MAKES = {"trees": trees}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("modes", [[0], [1], [0, 1, 2, 3], list(range(len(MODES) - 1))], ids=str)
def test_trees_lead_where_numpy_comes_to(modes: list[int], machine: str) -> None:
    rng = np.random.default_rng(2)
    for n in range(16 if machine == "host" else 8):
        features, targets = (int(v) for v in rng.integers(1, 5, 2))
        x = rng.integers(-3, 4, (int(rng.integers(1, 20)), features)) / 2
        x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        made = net(forest(rng, modes, int(rng.integers(1, 20)), features, targets), x, n % 4, targets)
        want, got, native = both(made.model, made.given, MACHINES[machine], 1 + n % 2)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(("change", "text"), [({"yes": [0, 0, 0]}, "circles"), ({"feature": [9, 0, 0]}, "feature 9")])
def test_trees_that_are_none_are_refused(change: dict[str, Any], text: str) -> None:
    columns = {"feature": [0, 0, 0], "split": [0.5, 0, 0], "mode": [0, LEAF, LEAF], "yes": [1, 0, 0],
               "no": [2, 0, 0], "missing": [0, 0, 0], "roots": [0], "first": [0, 0, 1, 2], "target": [0, 0],
               "weight": [1.0, 2.0]}
    made = net(columns | change, np.zeros((2, 1)), 1, 1)
    with pytest.raises(RunError, match=text):
        CompiledModel(made.model, backend="native").run(made.given)
