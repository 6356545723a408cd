"""Tensors of no elements and of rank 0, from a file through model and artifact to a run."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert.artifact import from_bytes, to_bytes

Ends = tuple[list[int], list[int]]
NONE = np.zeros((0, 3), np.float32)


def relu(shape: tuple[int, ...], signature: tuple[int, ...] | None = None) -> Callable[[TFLiteWriter], Ends]:
    """relu(x)."""
    def build(w: TFLiteWriter) -> Ends:
        x, y = (w.tensor(n, "float32", shape, signature=signature) for n in "xy")
        w.op("RELU", [x], [y])
        return [x], [y]
    return build


def joined(w: TFLiteWriter) -> Ends:
    """x and nothing behind it; nothing is an output, too."""
    x, y = (w.tensor(n, "float32", (2, 3)) for n in "xy")
    c = w.tensor("c", "float32", (0, 3), NONE)
    w.op("CONCATENATION", [x, c], [y], "ConcatenationOptions")
    return [x], [y, c]


def summed(w: TFLiteWriter) -> Ends:
    """The sums of columns without rows."""
    x, y = w.tensor("x", "float32", (0, 3)), w.tensor("y", "float32", (3,))
    a = w.tensor("a", "int32", (1,), np.array([0]))
    w.op("SUM", [x, a], [y], "ReducerOptions")
    return [x], [y]


def counted(w: TFLiteWriter) -> Ends:
    """x + 2 until it is 9 at least, all of rank 0."""
    x, y = w.tensor("x", "int32", ()), w.tensor("y", "int32", ())
    w.op("WHILE", [x], [y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    for name, op, limit, kind, options in (("cond", "LESS", 9, "bool", None),
                                           ("body", "ADD", 2, "int32", "AddOptions")):
        w.subgraph(name)
        a, k, b = w.tensor("a", "int32", ()), w.tensor("k", "int32", (), np.array(limit)), w.tensor("b", kind, ())
        w.op(op, [a, k], [b], options)
        w.ends([a], [b])
    return [x], [y]


CASES: list[tuple[str, Callable[[TFLiteWriter], Ends], Any, list[Any]]] = [
    ("no rows", relu((0, 3)), NONE, [NONE]), ("no rows, open", relu((1, 3), (-1, 3)), NONE, [NONE]),
    ("rank 0", relu(()), np.float32(-3), [np.float32(0)]), ("a number", relu(()), 2.5, [np.float32(2.5)]),
    ("nothing joined", joined, np.ones((2, 3), np.float32), [np.ones((2, 3), np.float32), NONE]),
    ("nothing summed", summed, NONE, [np.zeros(3, np.float32)]), ("a loop", counted, np.int32(2), [np.int32(10)])]


@pytest.mark.parametrize(("build", "given", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_shape_goes_all_the_way(build: Callable[[TFLiteWriter], Ends], given: Any, want: list[Any]) -> None:
    w = TFLiteWriter()
    made = nnx_convert.convert(w.finish(*build(w)))
    for model in (made, from_bytes(to_bytes(made))):
        for found, wanted in zip(nnx_convert.compile(model).run([given]), want, strict=True):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_array_equal(found, wanted)
