"""TFLite files that several tests begin with."""
from __future__ import annotations

from tflite_writer import TFLiteWriter


def two_entries() -> bytes:
    """A graph that doubles and one that negates [?, 2], each under a signature."""
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (1, 2)), w.tensor("y", "float32", (1, 2))
    w.op("ADD", [x, x], [y], "AddOptions")
    w.entry("double", {"a": x}, {"b": y})
    other = w.subgraph("negate")
    p, q = (w.tensor(n, "float32", (1, 2), signature=(-1, 2)) for n in "pq")
    w.op("NEG", [p], [q])
    w.ends([p], [q])
    w.entry("negate", {"a": p}, {"b": q}, other)
    return w.finish([x], [y])
