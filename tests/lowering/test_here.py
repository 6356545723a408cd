"""What stays as it is where the target is this machine: it is faster, or rounds as the file's own runtime does."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from gated_cases import SEQUENCE, gru
from rule_cases import Made, graph_of

from nnx_convert import CompiledModel
from nnx_convert.convert import HERE, evaluate
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import recurrent
from nnx_convert.ops.conv import FULLY_CONNECTED
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, Q8S, QPC, ChannelQuant, Quant, Tensor


def rnn(act: int) -> Made:
    """SEQUENCE_RNN that begins with the last step."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        r = np.random.default_rng(3)
        given = [g.const(r.normal(size=s), F32) for s in ((3, 4), (3, 3), (3,), (2, 3))]
        return g.add(recurrent.SEQUENCE_RNN, xs[0], *given, act=act, time_major=True, asymmetric=False, backward=True,
                     outs=(None, None))
    return make


@pytest.mark.parametrize("made", [gru(linear=True), gru(2), rnn(1), rnn(4)])
def test_a_sequence_stays_whole(made: Made) -> None:
    graph = graph_of(made, [SEQUENCE])
    whole, steps = (lower(graph, target, evaluate)[0] for target in (HERE, Target(HERE.level)))
    assert [n.op for n in whole.nodes] == [n.op for n in graph.nodes] != [n.op for n in steps.nodes]
    x = np.random.default_rng(0).standard_normal(SEQUENCE[1]).astype(np.float32)
    got, want = (CompiledModel(flatten(g, ())).run([x]) for g in (whole, steps))
    assert all(np.abs(a - b).max() < 1e-6 for a, b in zip(got, want, strict=True))


def test_a_dense_product_with_scales_per_channel_is_rounded_once() -> None:
    scales, rows = (3.1e-3, 7.7e-4, 1.9e-3), 256
    w = np.random.default_rng(1).integers(-127, 128, (3, 40)).astype(np.int8)

    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        weights = Value("w", Tensor(QPC, w.shape, ChannelQuant(scales, 0), w))
        return g.add(FULLY_CONNECTED, xs[0], weights, g.const([0, 0, 0], I32), act=0,
                     outs=(Tensor(Q8S, None, Quant(1.0, 3)),))
    graph = graph_of(make, [(Q8S, (rows, 40))])
    x = np.random.default_rng(2).integers(-128, 128, (rows, 40)).astype(np.int8)
    here, device = (CompiledModel(flatten(lower(graph, target, evaluate)[0], ())).run([x])[0]
                    for target in (HERE, Target()))
    sums = (x.astype(np.int64) + 3) @ w.T.astype(np.int64) * (0.5 * np.float32(scales).astype(np.float64))
    want = np.clip(np.copysign(np.floor(np.abs(sums) + 0.5), sums) + 3, -128, 127)
    assert (here == want).all() and np.abs(device - want).max() <= 1
