"""Gated recurrent units, for `test_rules`: either way, the reset gate at either place, with and without parts."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rule_cases import Kind, Made

from nnx_convert.graph import Build, Value
from nnx_convert.ops.rnn_nd import GRU_SEQUENCE
from nnx_convert.types import F32, I32

UNITS, WIDTH = 3, 4
SEQUENCE = (F32, (5, 2, WIDTH))


def gru(count: int = 1, linear: bool = False, backward: bool = False, parts: bool = True,
        lengths: bool = False) -> Made:
    """GRU_SEQUENCE with `count` directions; with a bias and a state before the first step, or without."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        r = np.random.default_rng(3)

        def drawn(*shape: int) -> Value:
            return g.const(r.normal(size=shape), F32)
        return g.add(
            GRU_SEQUENCE, xs[0], drawn(count, 3 * UNITS, WIDTH), drawn(count, 3 * UNITS, UNITS),
            drawn(count, 6 * UNITS) if parts else None, g.const([5, 2], I32) if lengths else None,
            drawn(count, 2, UNITS) if parts else None, acts=[2, 1] * count, alpha=g.const([0] * 2 * count, F32),
            beta=g.const([0] * 2 * count, F32), clip=0.0, backward=backward, linear=linear, outs=(None, None))
    return make


GATED: dict[str, tuple[Made, list[Kind]]] = {
    "gru": (gru(), [SEQUENCE]), "gru_linear": (gru(linear=True), [SEQUENCE]),
    "gru_bare": (gru(parts=False), [SEQUENCE]),
    "gru_backward": (gru(backward=True), [SEQUENCE]), "gru_both": (gru(2, linear=True), [SEQUENCE]),
    "gru_step": (gru(), [(F32, (1, 2, WIDTH))]), "gru_lengths": (gru(lengths=True), [SEQUENCE])}
#: The cases that need a host operation, by the targets on which they do.
GATED_HOSTED = dict.fromkeys(GATED, (0, 1, 2)) | {"gru_lengths": tuple(range(8))}
