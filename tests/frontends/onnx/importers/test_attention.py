"""Attention and what goes with it, against NumPy in float64; open sizes too."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from formulas import apart, attention, f, together
from one_node import run
from three_ways import WAYS, Node, built, check, expected, n

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)
BATCH, HEADS, LENGTH, TOTAL, WIDTH = 2, 4, 3, 5, 6
Q, K, V = f(BATCH, HEADS, LENGTH, WIDTH), f(BATCH, HEADS, TOTAL, WIDTH), f(BATCH, HEADS, TOTAL, 7)
FEW = f(BATCH, 2, TOTAL, WIDTH), f(BATCH, 2, TOTAL, 7)
FLAT = f(BATCH, LENGTH, HEADS * WIDTH), f(BATCH, TOTAL, HEADS * WIDTH), f(BATCH, TOTAL, HEADS * 7)
SEEN = RNG.random((LENGTH, TOTAL)) < 0.6
SEEN[1] = False
MASK = f(BATCH, 1, LENGTH, TOTAL)
PAST = f(BATCH, HEADS, 2, WIDTH), f(BATCH, HEADS, 2, 7)
CAUSAL = np.where(np.tri(LENGTH, TOTAL, dtype=bool), 0, -np.inf)
LATER = np.where(np.tri(LENGTH, TOTAL + 2, 2, dtype=bool), 0, -np.inf)
COUNTS = np.array([4, 2], np.int64)
AT = np.arange(TOTAL)
COUNTED = np.where(AT < COUNTS[:, None, None, None], 0, -np.inf)
HIDDEN = np.where(SEEN, 0, -np.inf)


def tapped(want: Sequence[Array], tap: int) -> list[Array]:
    """The outputs with the fourth, that `tap` chooses."""
    return [want[0], K, V, want[1 + tap]]


def with_past() -> Node:
    k, v = (np.concatenate(p, 2) for p in ((PAST[0], K), (PAST[1], V)))
    return n("Attention", Q, K, V, None, *PAST, outputs=3, is_causal=1, want=[attention(Q, k, v, LATER)[0], k, v])


CASES: list[Node] = [
    n("Attention", Q, K, V, want=attention(Q, K, V)[:1]), n("Attention", Q, *FEW, want=attention(Q, *FEW)[:1]),
    n("Attention", *FLAT, q_num_heads=HEADS, kv_num_heads=HEADS, scale=0.3,
      want=[together(attention(*(apart(x, HEADS) for x in FLAT), scale=0.3)[0])]),
    n("Attention", Q, K, V, MASK, softcap=0.5, want=attention(Q, K, V, MASK, cap=0.5)[:1]),
    n("Attention", Q, K, V, SEEN, want=attention(Q, K, V, HIDDEN)[:1]),
    *(n("Attention", Q, K, V, MASK, outputs=4, qk_matmul_output_mode=m, softcap=2.0,
        want=tapped(attention(Q, K, V, MASK, cap=2.0), m)) for m in range(4)),
    n("RotaryEmbedding", f(BATCH, HEADS, LENGTH, WIDTH), f(9, 3), f(9, 3), np.array([[0, 1, 2], [8, 7, 6]], np.int64)),
    n("RotaryEmbedding", f(BATCH, LENGTH, HEADS * WIDTH), f(BATCH, LENGTH, 2), f(BATCH, LENGTH, 2), num_heads=HEADS,
      rotary_embedding_dim=4),
    n("RotaryEmbedding", f(BATCH, HEADS, LENGTH, WIDTH), f(BATCH, LENGTH, 3), f(BATCH, LENGTH, 3), interleaved=1)]
SHORT = n("Attention", Q, K, V, MASK[..., :3], want=attention(Q, K, V, np.pad(MASK[..., :3], [(0, 0)] * 3 + [(
    0, 2)], constant_values=-np.inf))[:1])
CASES += [
    n("Attention", Q, K, V, is_causal=1, want=attention(Q, K, V, CAUSAL)[:1]), with_past(),
    n("Attention", Q, K, V, SEEN, is_causal=1, want=attention(Q, K, V, HIDDEN + CAUSAL)[:1]),
    n("Attention", Q, K, V, None, None, None, COUNTS, want=attention(Q, K, V, COUNTED)[:1])]


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("node", [*CASES, SHORT], ids=str)
def test_as_numpy(node: Node, way: str) -> None:
    check(node, way, 1e-4)


@pytest.mark.parametrize("node", CASES, ids=str)
def test_batch_and_lengths_may_be_open(node: Node) -> None:
    made, fed = built(node, "fed")
    for p in made.graph.input:
        for axis in (0, 1 if len(p.type.tensor_type.shape.dim) == 3 else 2):
            if axis < len(p.type.tensor_type.shape.dim) and p.name not in ("x3", "x6"):
                p.type.tensor_type.shape.dim[axis].dim_param = (
                    "batch" if axis == 0 and fed[p.name].shape[0] == BATCH else f"{p.name}_{axis}")
    for want, got in zip(expected(node), run(made, *fed.values()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
