"""Convolutions against their definitions: floats closely, integers to the bit, over every kind of window."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Slide, conv, depthwise, requantised, transposed
from one_op import run_op, tensor

from nnx_convert.ops import conv as ops
from nnx_convert.types import F16, F32, I32, Q8, Q8S, QPC, ChannelQuant, Quant, Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An image, a filter, the numbers of outputs, and how it slides."""

    image: tuple[int, int, int, int]
    units: int
    slide: Slide


CASES = [
    Case((1, 5, 6, 3), 4, Slide((1, 1))), Case((2, 5, 6, 3), 4, Slide((3, 3))),
    Case((1, 7, 5, 2), 3, Slide((3, 3), (2, 2), (1, 1), (0, 1, 0, 1))),
    Case((1, 8, 9, 1), 5, Slide((2, 3), (1, 2), (2, 1), (1, 0, 2, 1))),
    Case((3, 4, 4, 8), 2, Slide((4, 4))), Case((1, 9, 9, 4), 4, Slide((1, 1), (3, 2))),
    Case((1, 1, 1, 16), 7, Slide((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))), Case((1, 130, 140, 4), 6, Slide((3, 3)))]


def slid(s: Slide, **more: Any) -> dict[str, Any]:
    """A slide as the op table's arguments."""
    (top, bottom, left, right), (sh, sw) = s.pads, s.strides
    return {"pl": left, "pr": right, "pt": top, "pb": bottom, "sw": sw, "sh": sh, "nchw": False} | more


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("code", [F32, F16], ids=lambda c: c.name)
@pytest.mark.parametrize("nchw", [False, True])
def test_a_float_convolution(case: Case, code: Any, nchw: bool) -> None:
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal(case.image), rng.standard_normal((case.units, *case.slide.size, case.image[3]))
    x, w = (a.astype(code.dtype).astype(np.float64) for a in (x, w))
    b = rng.standard_normal(case.units).astype(code.dtype)
    image = x.transpose(0, 3, 1, 2) if nchw else x
    dh, dw = case.slide.dilations
    args = slid(case.slide, x=tensor(image, code), w=tensor(w, code), b=tensor(b, code), act=3, dw=dw, dh=dh)
    args |= {"nchw": nchw}
    (found,) = run_op(ops.CONV_2D, args)
    want = np.clip(conv(x, w, case.slide) + b, 0, 6)
    close = {"rtol": 1e-5, "atol": 1e-5} if code is F32 else {"rtol": 2e-3, "atol": 2e-3}
    np.testing.assert_allclose(found.transpose(0, 2, 3, 1) if nchw else found, want, **close)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mult", [1, 3])
def test_a_float_depthwise_convolution(case: Case, mult: int) -> None:
    rng = np.random.default_rng(8)
    x, w = rng.standard_normal(case.image), rng.standard_normal((1, *case.slide.size, case.image[3] * mult))
    b = rng.standard_normal(w.shape[3])
    dh, dw = case.slide.dilations
    (found,) = run_op(ops.DEPTHWISE_CONV_2D, slid(case.slide, x=tensor(x, F32), w=tensor(w, F32), b=tensor(b, F32),
                                                  mult=mult, act=1, dw=dw, dh=dh))
    want = np.maximum(depthwise(x, w, case.slide, mult) + b, 0)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def quantised(code: Any, channels: int, shape: tuple[int, ...], axis: int, seed: int) -> dict[str, Tensor]:
    """x, w and b of a quantised convolution with extreme values; b [channels]."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(code.dtype)
    zero = int(rng.integers(info.min, info.max + 1))
    x = rng.choice([info.min, info.max, zero, *rng.integers(info.min, info.max + 1, 8)], shape)
    return {"x": tensor(x, code, Quant(0.0235, zero))}


@pytest.mark.parametrize("case", CASES[:7], ids=str)
@pytest.mark.parametrize("code", [Q8, Q8S], ids=lambda c: c.name)
@pytest.mark.parametrize("act", [0, 1, 3])
def test_an_integer_convolution_is_exact(case: Case, code: Any, act: int) -> None:
    rng = np.random.default_rng(9)
    x = quantised(code, case.units, case.image, 0, act)["x"]
    w = rng.integers(-127, 128, (case.units, *case.slide.size, case.image[3]))
    scales = tuple(float(s) for s in rng.uniform(1e-3, 3e-2, case.units).astype(np.float32))
    b = rng.integers(-2000, 2000, case.units)
    dh, dw = case.slide.dilations
    out = Tensor(code, None, Quant(0.31, 5))
    (found,) = run_op(ops.CONV_2D, slid(case.slide, x=x, w=tensor(w, QPC, ChannelQuant(scales, 0)),
                                        b=tensor(b, I32), act=act, dw=dw, dh=dh), out)
    assert x.data is not None and isinstance(x.quant, Quant)
    total = conv(x.data.astype(np.int64) - x.quant.zero, w, case.slide) + b
    real = [float(np.float32(0.0235)) * float(np.float32(s)) / float(np.float32(0.31)) for s in scales]
    low, high = bounds(code, act)
    assert np.array_equal(found, requantised(total, real, 5, low, high))


def bounds(code: Any, act: int) -> tuple[int, int]:
    """The clamp of a fused activation on the grid of scale 0.31 and zero point 5."""
    info = np.iinfo(code.dtype)
    return {0: (info.min, info.max), 1: (5, info.max), 3: (5, min(info.max, 5 + 19))}[act]


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3),
       st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.integers(0, 10**6))
def test_integer_depthwise_over_random_windows(h: int, w: int, c: int, k: int, stride: int, mult: int, dilation: int,
                                               pad: int, seed: int) -> None:
    slide = Slide((k, k), (stride, 1), (1, dilation), (pad, pad, pad, 0))
    if min(slide.out((1, h, w, c))) < 1:
        return
    rng = np.random.default_rng(seed)
    x = quantised(Q8, c * mult, (1, h, w, c), 3, seed)["x"]
    wt, zero = rng.integers(0, 256, (1, k, k, c * mult)), int(rng.integers(0, 256))
    b = rng.integers(-500, 500, c * mult)
    args = slid(slide, x=x, w=tensor(wt, Q8, Quant(0.011, zero)), b=tensor(b, I32), mult=mult, act=0, dw=dilation, dh=1)
    (found,) = run_op(ops.DEPTHWISE_CONV_2D, args, Tensor(Q8, None, Quant(0.17, 3)))
    assert x.data is not None and isinstance(x.quant, Quant)
    total = depthwise(x.data.astype(np.int64) - x.quant.zero, wt - zero, slide, mult) + b
    real = float(np.float32(0.0235) * np.float32(0.011)) / float(np.float32(0.17))
    assert np.array_equal(found, requantised(total, [real] * (c * mult), 3, 0, 255))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_grouped_convolution(groups: int) -> None:
    rng, slide = np.random.default_rng(3), Slide((3, 2), (2, 1), (1, 1), (1, 1, 0, 1))
    x, w, b = rng.standard_normal((2, 6, 5, 8)), rng.standard_normal((12, 3, 2, 8 // groups)), rng.standard_normal(12)
    (found,) = run_op(ops.GROUPED_CONV_2D, slid(slide, x=tensor(x, F32), w=tensor(w, F32), b=tensor(b, F32),
                                                groups=groups, act=0))
    np.testing.assert_allclose(found, conv(x, w, slide, groups) + b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 1, 1), (1, -1, 0, -2)])
def test_a_transposed_convolution(strides: tuple[int, int], pads: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(4)
    x, w, b = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 3, 3, 5)), rng.standard_normal(3)
    (found,) = run_op(ops.TRANSPOSE_CONV_2D, slid(Slide((3, 3), strides, pads=pads), x=tensor(x, F32),
                                                  w=tensor(w, F32), b=tensor(b, F32), act=0))
    grown = np.pad(transposed(x, w, strides, (max(pads[0], 0), max(pads[1], 0), max(pads[2], 0), max(pads[3], 0))),
                   ((0, 0), (0, max(-pads[1], 0)), (0, max(-pads[3], 0)), (0, 0)))
    np.testing.assert_allclose(found, grown + b, rtol=1e-5, atol=1e-5)


def test_a_transposed_integer_convolution_is_exact() -> None:
    rng = np.random.default_rng(5)
    x, w, b = rng.integers(-128, 128, (1, 4, 3, 6)), rng.integers(-127, 128, (4, 3, 3, 6)), rng.integers(-99, 99, 4)
    (found,) = run_op(ops.TRANSPOSE_CONV_2D, slid(Slide((3, 3), (2, 2), pads=(0, 1, 1, 0)), act=0,
                      x=tensor(x, Q8S, Quant(0.02, -7)), w=tensor(w, QPC, ChannelQuant((0.01,) * 4, 0)),
                      b=tensor(b, I32)), Tensor(Q8S, None, Quant(0.5, 1)))
    total = transposed(x + 7, w, (2, 2), (0, 1, 1, 0)) + b
    real = float(np.float32(0.02)) * float(np.float32(0.01)) / 0.5
    assert np.array_equal(found, requantised(total, [real] * 4, 1, -128, 127))


def test_fully_connected_rounds_halves_away_from_zero() -> None:
    x = tensor([[1], [3], [-1], [-3]], Q8S, Quant(1.0, 0))
    args = {"x": x, "w": tensor([[1]], Q8S, Quant(1.0, 0)), "b": tensor([0], I32), "act": 0}
    (found,) = run_op(ops.FULLY_CONNECTED, args, Tensor(Q8S, None, Quant(2.0, 0)))
    assert found.tolist() == [[1], [2], [-1], [-2]]


@pytest.mark.parametrize("code", [Q8, Q8S], ids=lambda c: c.name)
def test_fully_connected_multiplies_the_scales_in_float64(code: Any) -> None:
    """1 * sx * sw is 0.49999996 steps of the output; as a float32 the scales' product would make it a half."""
    zero = 128 if code is Q8 else 0
    sx, sw = np.float32(0.05), np.float32(0.00312)
    args = {"x": tensor([[zero + 1]], code, Quant(float(sx), zero)),
            "w": tensor([[zero + 1]], code, Quant(float(sw), zero)), "b": tensor([0], I32), "act": 0}
    (found,) = run_op(ops.FULLY_CONNECTED, args, Tensor(code, None, Quant(float(2 * sx * sw), zero)))
    assert found.tolist() == [[zero]]


@pytest.mark.parametrize("depth", [5, 700, 3000])
def test_fully_connected_sums_are_exact_however_deep(depth: int) -> None:
    x, w = np.full((2, depth), -128), np.full((3, depth), 127)
    (found,) = run_op(ops.FULLY_CONNECTED, {"x": tensor(x, Q8S, Quant(1.0, 127)), "w": tensor(w, Q8S, Quant(1.0, 0)),
                                            "b": tensor([depth, 0, -1], I32), "act": 0},
                      Tensor(Q8S, None, Quant(float(depth * 300), 0)))
    want = [round((-255 * 127 * depth + b) / (depth * 300)) for b in (depth, 0, -1)]
    assert found.tolist() == [want, want]


@pytest.mark.parametrize(("adj_x", "adj_y"), [(False, False), (True, False), (False, True), (True, True)])
def test_batch_matmul(adj_x: bool, adj_y: bool) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.integers(-128, 128, (2, 3, 4)), rng.integers(-128, 128, (2, 4, 5))
    given_x, given_y = x.swapaxes(1, 2) if adj_x else x, y.swapaxes(1, 2) if adj_y else y
    args = {"adj_x": adj_x, "adj_y": adj_y}
    (found,) = run_op(ops.BATCH_MATMUL, args | {"x": tensor(given_x, F32), "y": tensor(given_y, F32)})
    assert np.array_equal(found, x @ y)
    args |= {"x": tensor(given_x, Q8S, Quant(0.1, 3)), "y": tensor(given_y, Q8S, Quant(0.2, -4))}
    (found,) = run_op(ops.BATCH_MATMUL, args, Tensor(Q8S, None, Quant(9.0, 1)))
    real = float(np.float32(0.1) * np.float32(0.2)) / 9.0
    assert np.array_equal(found, requantised((x - 3) @ (y + 4), [real] * 5, 1, -128, 127))
