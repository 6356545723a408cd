"""Products of floats whose panels of weights are read in blocks of tiles, and in pieces of their depth."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw, reach

from nnx_convert.runtime.codegen import dense


def convolution(rng: np.random.Generator, cells: bool = False) -> Net | None:
    """A convolution (of every other cell, if `cells`), what follows it, and a sum of it with another image."""
    depth, channels, h, w = int(rng.choice([6, 24, 40, 64])), *draw(rng, 1, 60, 1), *draw(rng, 1, 16, 2)
    if cells:
        depth, channels, h, w = 128, 32, 13, 13
    kernel, stride = (1, 2) if cells else (draw(rng, 1, 4, 1)[0], draw(rng, 1, 3, 1)[0])
    dilation, pad = int(rng.random() < 0.2) + 1, draw(rng, 0, 2, 1)[0]
    oh, ow = (reach(n, kernel, stride, dilation, pad, pad) for n in (h, w))
    if oh < 1 or ow < 1:
        return None
    shape, net = (1, oh, ow, channels), Net()
    x, filters, bias = (rng.standard_normal(s) for s in (
        (1, h, w, depth), (channels, kernel, kernel, depth), (channels,)))
    filters /= kernel * np.sqrt(depth)               # sums are about as large as what activations cut them to
    y = net.op("CONV_2D", net.input(x), net.const(filters), net.const(bias),
               *map(net.scalar, (pad, pad, pad, pad, stride, stride, draw(rng, 0, 4, 1)[0], False, dilation, dilation)),
               shape=shape)
    if rng.random() < 0.5:
        y = net.op("ADD", y, net.input(rng.standard_normal(shape)), net.scalar(1), shape=shape)
    if rng.random() < 0.5:
        y = net.op("LOGISTIC", y, shape=shape)
    net.model = net.finish(y)
    return net


@pytest.mark.parametrize("machine", ["avx2", "baseline"])
def test_blocks_and_pieces_give_what_numpy_gives(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("READ", 0), ("STAYING", 6000), ("WHOLE", 1024), ("CUT", 2048)):
        monkeypatch.setattr(dense, name, size)
    real, ways = dense.near, Counter[str]()

    def near(*given: Any) -> dense.Dense:
        found = real(*given)
        ways.update(["blocks"] * (found.block > 0) + ["pieces"] * (found.pieces > 0) + ["coming"] * found.coming +
                    ["folded"] * (found.folded and found.block > 0) + ["both"] * (found.folded and found.pieces > 0))
        return found
    monkeypatch.setattr(dense, "near", near)
    rng = np.random.default_rng(3)
    for n in range(50):
        net = convolution(rng, n >= 40)
        if net is None:
            continue
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native and apart(got, want) <= NEAR, n
    assert min(ways[way] for way in ("blocks", "pieces", "coming", "folded", "both")) > 1, ways
