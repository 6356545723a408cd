"""ONNX Runtime's attention over lengths that are open: the answers of the same node whose sizes are known."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from one_node import element, model
from onnx import helper, numpy_helper

import nnx_convert

Array = np.ndarray[Any, Any]
R = np.random.default_rng(12)
WIDTH = 16


def f(*shape: int) -> Array:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A node: its inputs by name with sizes as the file has them, constants, attributes; what to run it on."""

    op: str
    sizes: dict[str, list[int | str]]
    runs: list[dict[str, Array]]
    constants: dict[str, Array] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    outputs: int = 1

    def __str__(self) -> str:
        return f"{self.op} {self.attributes}"[:70]

    @property
    def file(self) -> bytes:
        """The model."""
        names = self.order or (*self.sizes, *self.constants)
        node = helper.make_node(self.op, names, [f"y{i}" for i in range(self.outputs)], domain="com.microsoft",
                                **self.attributes)
        made = model([node], [(n, element(self.runs[0][n]), s) for n, s in self.sizes.items()],
                     [(f"y{i}", 1, None) for i in range(self.outputs)], 17,
                     initializer=[numpy_helper.from_array(v, n) for n, v in self.constants.items()])
        made.opset_import.add(domain="com.microsoft", version=1)
        return made.SerializeToString()


PACKED = {"w": f(WIDTH, 3 * WIDTH) * np.float32(0.3), "b": f(3 * WIDTH)}
ROWS: dict[str, list[int | str]] = {"x": ["n", "t", WIDTH]}
GROUPED: dict[str, list[int | str]] = {
    "q": ["n", "s", 64], "k": ["n", "s", 32], "v": ["n", "s", 32], "pk": ["n", 2, "p", 16], "pv": ["n", 2, "p", 16],
    "last": ["n"], "total": []}


def packed(n: int, t: int, **more: Array) -> dict[str, Array]:
    return {"x": f(n, t, WIDTH), **more}


def grouped(n: int, s: int, past: int) -> dict[str, Array]:
    return {"q": f(n, s, 64), "k": f(n, s, 32), "v": f(n, s, 32), "pk": f(n, 2, past, 16), "pv": f(n, 2, past, 16),
            "last": np.full(n, past + s - 1, np.int32), "total": np.array(past + s, np.int32)}


HEADS = {"num_heads": 4}
WORDS = {"words": f(9, 8), "places": f(12, 8), "kinds": f(2, 8), "gamma": f(8), "beta": f(8)}
IDS: dict[str, list[int | str]] = {"ids": ["n", "t"], "segments": ["n", "t"]}
PROMPTS = [grouped(1, 4, 0), grouped(2, 6, 0), grouped(1, 1, 5)]
CASES = [
    Case("Attention", ROWS, [packed(2, 4), packed(3, 7), packed(1, 1)], PACKED, {**HEADS, "unidirectional": 1}),
    Case("Attention", ROWS | {"counts": ["n"]}, [
        packed(2, 4, counts=np.int32([1, 4])), packed(3, 7, counts=np.int32([7, 2, 5]))], PACKED, HEADS,
        ("x", "w", "b", "counts")),
    Case("MultiHeadAttention", {n: ["n", "t", WIDTH] for n in "qkv"}, [
        {n: f(b, t, WIDTH) for n in "qkv"} for b, t in ((2, 4), (1, 7))], {}, {**HEADS, "unidirectional": 1}),
    Case("EmbedLayerNormalization", IDS, [
        {n: R.integers(0, 2, (b, t)).astype(np.int32) for n in IDS} for b, t in ((2, 4), (1, 7))], WORDS),
    *(Case("GroupQueryAttention", GROUPED, PROMPTS, {}, {**HEADS, "kv_num_heads": 2, **more}, outputs=3)
      for more in ({}, {"local_window_size": 3})),
    Case("GroupQueryAttention", GROUPED, PROMPTS, {"cos": f(30, 8), "sin": f(30, 8)},
         {**HEADS, "kv_num_heads": 2, "do_rotary": 1}, outputs=3)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_open_lengths_give_what_known_ones_do(case: Case) -> None:
    anywhere = nnx_convert.compile(case.file, threads=1)
    for given in case.runs:
        shapes = {n: v.shape for n, v in given.items()}
        there = nnx_convert.compile(nnx_convert.convert(case.file, shapes=shapes), threads=1)
        for found, want in zip(anywhere.run(given).values(), there.run(given).values(), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
