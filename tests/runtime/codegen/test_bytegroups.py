"""Convolutions of bytes in groups, and transposed ones, natively: what NumPy gives, to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import EVERY, both, draw, reach, runs
from test_bytes import Net, Rng

from nnx_convert.runtime.codegen.bytegroups import MOST_PHASES


def grouped(rng: Rng) -> Net | None:
    """Groups of any number of channels, from one to the next those of other weights."""
    net = Net(rng)
    n, h, w, groups, depth, each = *draw(rng, 1, 3, 1), *draw(rng, 1, 14, 2), *draw(rng, 2, 6, 1), *draw(rng, 1, 20, 2)
    (kh, kw), (sh, sw), (pt, pb, pl, pr) = draw(rng, 1, 4, 2), draw(rng, 1, 3, 2), draw(rng, 0, 3, 4)
    oh, ow = reach(h, kh, sh, 1, pt, pb), reach(w, kw, sw, 1, pl, pr)
    if oh < 1 or ow < 1:
        return None
    x = net.input((n, h, w, groups * depth))
    args = *net.weights(x, (groups * each, kh, kw, depth), 0), *map(
        net.scalar, (pl, pr, pt, pb, sw, sh, groups, draw(rng, 0, 4, 1)[0], False))
    y = net.op("GROUPED_CONV_2D", x, *args, shape=(n, oh, ow, groups * each))
    net.finish(net.op("RELU", y, shape=(n, oh, ow, groups * each), like=y))
    return net


def transposed(rng: Rng) -> Net | None:
    """Filters at least as large as the strides, borders of any size, and a convolution that reads it all."""
    net = Net(rng)
    n, h, w, depth, units = *draw(rng, 1, 3, 1), *draw(rng, 1, 9, 2), *draw(rng, 1, 40, 2)
    (sh, sw), (more, wider), (pt, pb, pl, pr) = draw(rng, 1, 4, 2), draw(rng, 0, 3, 2), draw(rng, 0, 2, 4)
    kh, kw = sh + more, sw + wider
    oh, ow = (h - 1) * sh + kh - pt - pb, (w - 1) * sw + kw - pl - pr
    if oh < 1 or ow < 1:
        return None
    x, shape = net.input((n, h, w, depth)), (n, oh, ow, units)
    args = *net.weights(x, (units, kh, kw, depth), 0), *map(
        net.scalar, (pl, pr, pt, pb, sw, sh, draw(rng, 0, 4, 1)[0], False))
    y = net.op("TRANSPOSE_CONV_2D", x, *args, shape=shape)
    last = net.weights(y, (3, 2, 2, units), 0)
    z = net.op("CONV_2D", y, *last, *map(net.scalar, (0, 1, 1, 0, 1, 1, 0)), shape=(n, oh, ow, 3))
    net.finish(*((y, z) if rng.random() < 0.5 else (z,)))
    return net


def several(rng: Rng) -> Net | None:
    """Several filters a channel, with any padding, stride and dilation."""
    net = Net(rng)
    n, h, w, c, each = *draw(rng, 1, 3, 1), *draw(rng, 1, 14, 2), *draw(rng, 2, 40, 1), *draw(rng, 2, 9, 1)
    (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr) = draw(rng, 1, 4, 2), draw(rng, 1, 3, 2), draw(rng, 1, 3, 2), draw(
        rng, 0, 3, 4)
    oh, ow = reach(h, kh, sh, dh, pt, pb), reach(w, kw, sw, dw, pl, pr)
    if oh < 1 or ow < 1:
        return None
    x = net.input((n, h, w, c))
    args = *net.weights(x, (1, kh, kw, c * each), 3), *map(
        net.scalar, (pl, pr, pt, pb, sw, sh, each, draw(rng, 0, 4, 1)[0], False, dw, dh))
    net.finish(net.op("DEPTHWISE_CONV_2D", x, *args, shape=(n, oh, ow, c * each)))
    return net


MAKES = {"grouped": grouped, "transposed": transposed, "several": several}


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    for n, (_, want, got) in enumerate(runs(MAKES[family], machine, 3, 8, 4)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, err_msg=f"{n}")


@pytest.mark.parametrize(("stride", "there"), [(8, True), (9, False)])
def test_code_for_each_part_is_bounded(stride: int, there: bool) -> None:
    assert there == (stride ** 2 <= MOST_PHASES)
    net = Net(np.random.default_rng(0))
    x, size = net.input((1, 2, 2, 3)), 2 * stride
    y = net.op("TRANSPOSE_CONV_2D", x, *net.weights(x, (2, stride, stride, 3), 0),
               *map(net.scalar, (0, 0, 0, 0, stride, stride, 0, False)), shape=(1, size, size, 2))
    net.finish(y)
    want, got, native = both(net.model, net.given, EVERY["host"], 1)
    assert native == there
    np.testing.assert_array_equal(got[0], want[0])
