"""Detections natively: the boxes, classes and scores that NumPy finds, in its order."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import OperandCode

INT32, FLOAT32 = OperandCode.TENSOR_INT32, OperandCode.TENSOR_FLOAT32


def detections(rng: np.random.Generator, regular: bool) -> Net:
    """Boxes of every number around a vector's, scores of a few steps; some of both are no numbers, or infinite."""
    images, count, classes = int(rng.integers(1, 3)), int(rng.choice([1, 5, 16, 33, 100])), int(rng.integers(2, 8))
    most, labels, each = (int(rng.integers(1, n)) for n in (12, 4, 6))
    scores = rng.integers(-3, 6, (images, count, classes)) / 4
    scores[rng.random(scores.shape) < 0.03] = rng.choice([np.nan, np.inf, -np.inf])
    moves = rng.integers(-8, 9, (images, count, int(rng.integers(4, 7)))) / 4
    moves[rng.random(moves.shape) < 0.01] = rng.choice([np.nan, np.inf, -np.inf, 1000])
    net = Net()
    given = [net.input(scores), net.input(moves),
             net.input(rng.integers(1, 9, (count, 4)) / 8)]
    more = [10.0, 10.0, 5.0, 5.0, regular, most, labels, each, float(rng.choice([0.0, 0.25, 0.5])),
            float(rng.choice([0.0, 0.3, 0.5, 1.5])), bool(rng.random() < 0.5)]
    size = most if regular else most * labels
    outs = net.ops("DETECTION_POSTPROCESSING", *given, *map(net.scalar, more), outs=[
        ((images, size), FLOAT32), ((images, size, 4), FLOAT32), ((images, size), INT32), ((images,), INT32)])
    net.model = net.finish(*outs)
    return net


MAKES = {"regular": lambda rng: detections(rng, True), "fast": lambda rng: detections(rng, False)}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("regular", [False, True])
def test_detections_are_those_of_numpy(regular: bool, machine: str) -> None:
    rng, found = np.random.default_rng(5), 0
    for n in range(24 if machine == "host" else 8):
        net = detections(rng, regular)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1
        np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-6)
        for i in (0, 2, 3):
            np.testing.assert_array_equal(got[i], want[i])
        found += int(want[3].sum())
    assert found > 20


def test_what_is_no_number_overlaps_nothing() -> None:
    """A box of a move that is none stays, and suppresses none."""
    net = Net()
    moves = np.zeros((1, 3, 4))
    moves[0, 0, 2] = np.nan
    given = [net.input(np.array([[[0, 0.9], [0, 0.8], [0, 0.7]]])), net.input(moves), net.input(np.ones((3, 4)))]
    more = [10.0, 10.0, 5.0, 5.0, False, 4, 1, 4, 0.0, 0.5, False]
    outs = net.ops("DETECTION_POSTPROCESSING", *given, *map(net.scalar, more), outs=[
        ((1, 4), FLOAT32), ((1, 4, 4), FLOAT32), ((1, 4), INT32), ((1,), INT32)])
    want, got, _ = both(net.finish(*outs), net.given, MACHINES["host"], 1)
    assert want[3].tolist() == got[3].tolist() == [2]
    np.testing.assert_array_equal(got[0], want[0])
    assert np.isnan(got[1][0, 0, [0, 2]]).all()
