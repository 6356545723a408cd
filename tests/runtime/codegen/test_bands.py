"""Convolutions done in bands of rows: what NumPy gives, and the same to the bit as one after the other."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from natively import MACHINES, Net, apart, draw, left_to, reach, tensors
from test_bytes import Net as Bytes

from nnx_convert import Model, OperandCode
from nnx_convert.runtime.bind import Options, bind
from nnx_convert.runtime.codegen import bands
from nnx_convert.runtime.codegen.bands import Banded
from nnx_convert.runtime.codegen.program import NativeProgram
from nnx_convert.runtime.runner import Compiled, call

Rng = np.random.Generator
Q8, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED


class Floats(Net):
    """A network of floats, its values drawn."""

    def __init__(self, rng: Rng) -> None:
        super().__init__()
        self.rng = rng

    def drawn(self, shape: tuple[int, ...]) -> int:
        """An input."""
        return self.input(self.rng.standard_normal(shape))

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[int, int]:
        """Filters and their bias."""
        return self.const(self.rng.standard_normal(shape)), self.const(self.rng.standard_normal(shape[axis]))


def block(rng: Rng, expands: bool, quantised: OperandCode | None) -> tuple[Model, list[Any]] | None:
    """Expand, depthwise, project, and a sum with the input or with another; then a convolution that wants a border."""
    net: Any = Floats(rng) if quantised is None else Bytes(rng)
    c, e, h, w = draw(rng, 1, 5, 1)[0] * 8, draw(rng, 5, 40, 1)[0], *draw(rng, 4, 25, 2)
    (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr) = draw(rng, 2, 5, 2), draw(rng, 1, 3, 2), draw(rng, 1, 3, 2), draw(
        rng, 0, 3, 4)
    e = e if expands else c
    oh, ow = reach(h, kh, sh, dh, pt, pb), reach(w, kw, sw, dw, pl, pr)
    if oh < 2 or ow < 1:
        return None

    def conv(name: str, x: int, filters: tuple[int, ...], axis: int, numbers: tuple[int, ...], shape: tuple[int, ...]
             ) -> int:
        pair = net.weights(filters, axis) if quantised is None else net.weights(x, filters, axis)
        return int(net.op(name, x, *pair, *map(net.scalar, numbers), shape=shape))
    if quantised is not None:
        net.kind = quantised
    x = y = net.drawn((1, h, w, c)) if quantised is None else net.input((1, h, w, c))
    act = draw(rng, 0, 4, 3)
    if expands:
        y = conv("CONV_2D", y, (e, 1, 1, c), 0, (0, 0, 0, 0, 1, 1, act[0]), (1, h, w, e))
    y = conv("DEPTHWISE_CONV_2D", y, (1, kh, kw, e), 3, (pl, pr, pt, pb, sw, sh, 1, act[1], False, dw, dh),
             (1, oh, ow, e))
    y = conv("CONV_2D", y, (c, 1, 1, e), 0, (0, 0, 0, 0, 1, 1, 0), (1, oh, ow, c))
    if rng.random() < 0.7:
        shape = (1, oh, ow, c)
        other = x if (oh, ow) == (h, w) else net.drawn(shape) if quantised is None else net.input(shape)
        y = int(net.op("ADD", y, other, net.scalar(act[2]), shape=shape))
    y = conv("CONV_2D", y, (3, 3, 3, c), 0, (1, 1, 1, 1, 1, 1, 0), (1, oh, ow, 3))
    found = net.finish(y)
    return found or net.model, net.given


def run(model: Model, given: list[Any], machine: str, worth: int, monkeypatch: pytest.MonkeyPatch
        ) -> tuple[list[Any], int]:
    """What native code gives, where bands are worth it from so many bytes, and how many units are banded."""
    monkeypatch.setattr(bands, "WORTH", worth)
    monkeypatch.setattr(bands, "KEPT", 1 << 14)
    here = MACHINES[machine]
    native = NativeProgram(left_to(model, given, here), here, 2)
    native.run(given)                            # the second run meets what the first one left in the arena
    return native.run(given), sum(isinstance(u, Banded) for u in native.layout.units)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", [None, Q8, Q8S], ids=["float32", "uint8", "int8"])
@pytest.mark.parametrize("expands", [True, False], ids=["expanded", "plain"])
def test_bands_give_what_whole_images_give(expands: bool, kind: OperandCode | None, machine: str,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    count = 0
    for made in filter(None, (block(rng, expands, kind) for _ in range(14))):
        model, given = made
        got, units = run(model, given, machine, 0, monkeypatch)
        plain, none = run(model, given, machine, 1 << 40, monkeypatch)
        want = Compiled(bind(model, tensors(model, given), Options(1, call))).run(given)
        assert not none and all(map(np.array_equal, got, plain))
        assert apart(got, want) <= (1e-5 if kind is None else 0)
        count += units
    assert count > 5
