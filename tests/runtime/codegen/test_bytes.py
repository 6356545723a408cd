"""Native code on bytes against NumPy, to the bit: random shapes, grids and tails, on this machine and with less."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from natively import EVERY, Net as Small, both, draw, reach
from stacks import spilt

from nnx_convert import Model, ModelBuilder, OperandCode
from nnx_convert.runtime.codegen.bytes import Micro, fitting
from nnx_convert.runtime.codegen.ir import SHARED, Function, Module
from nnx_convert.runtime.codegen.machine import AVX2, BASELINE, Machine
from nnx_convert.runtime.codegen.objects import assembly
from nnx_convert.runtime.codegen.rooms import DEEPEST, Pairs, Room
from nnx_convert.schema import OPS

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Q8, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
QPC, INT32 = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL, OperandCode.TENSOR_INT32


class Net:
    """A model of bytes in the making."""

    def __init__(self, rng: Rng) -> None:
        self.rng, self.builder = rng, ModelBuilder()
        self.kind, self.scales = (Q8, Q8S)[int(rng.integers(0, 2))], dict[int, float]()
        self.zeros: dict[int, int] = {}
        self.inputs: list[int] = []
        self.given: list[Array] = []
        self.model: Model

    def tensor(self, shape: tuple[int, ...], scale: float = 0.02, grid: int | None = None) -> int:
        """An operand on a grid of about that scale, or on another operand's."""
        low = -128 if self.kind == Q8S else 0
        zero = low if self.rng.random() < 0.3 else low + int(self.rng.integers(0, 256))
        made = float(np.float32(scale * self.rng.uniform(0.5, 2)))
        if grid is not None:
            made, zero = self.scales[grid], self.zeros[grid]
        index = self.builder.add_operand(self.kind, shape, made, zero)
        self.scales[index], self.zeros[index] = made, zero
        return index

    def raw(self, shape: tuple[int, ...]) -> Array:
        """Bytes, the ends of their range more often than others."""
        info = np.iinfo(self.kind.dtype)
        found = np.clip(self.rng.normal(self.rng.integers(info.min, info.max), 60, shape), info.min, info.max)
        return found.astype(self.kind.dtype)

    def input(self, shape: tuple[int, ...]) -> int:
        """A model input."""
        index = self.tensor(shape)
        self.inputs.append(index)
        self.given.append(self.raw(shape))
        return index

    def const(self, value: Any, kind: OperandCode, scale: float = 0.0) -> int:
        """A constant tensor."""
        array = np.asarray(value, kind.dtype)
        index = self.builder.add_operand(kind, array.shape, scale)
        self.builder.set_operand_value(index, array)
        return index

    def weights(self, x: int, shape: tuple[int, ...], axis: int, whole: bool = False) -> tuple[int, int]:
        """Filters, with a scale for each channel or with one in all and a zero point, and the bias they go with."""
        rng, n = self.rng, shape[axis]
        spread = int(rng.choice([5, 30, 90]))   # of the last, some are beyond a signed byte
        if whole or self.kind == Q8 and rng.random() < 0.6:
            zero = int(rng.integers(90, 160) if self.kind == Q8 else rng.integers(-40, 40))
            scale, info = float(np.float32(0.005 * rng.uniform(0.5, 2))), np.iinfo(self.kind.dtype)
            w = self.builder.add_operand(self.kind, shape, scale, zero)
            drawn = np.clip(rng.normal(zero, spread, shape), info.min, info.max)
            self.builder.set_operand_value(w, drawn.astype(self.kind.dtype))
            b = self.const(rng.integers(-2000, 2000, n), INT32, self.scales[x] * scale)
            return w, b
        w = self.builder.add_operand(QPC, shape)
        scales = (0.005 * rng.uniform(0.1, 2, n)).astype(np.float32)
        self.builder.set_operand_symm_per_channel_quant_params(w, axis, scales.tolist())
        self.builder.set_operand_value(w, np.clip(rng.normal(0, spread, shape), -127, 127).astype(np.int8))
        return w, self.const(rng.integers(-2000, 2000, n), INT32)

    def scalar(self, value: int | bool) -> int:
        """A scalar."""
        index = self.builder.add_operand(OperandCode.BOOL if isinstance(value, bool) else OperandCode.INT32, ())
        self.builder.set_operand_value(index, value)
        return index

    def op(self, name: str, *operands: int, shape: tuple[int, ...], like: int | None = None) -> int:
        """An operation with one output of a shape, on a grid of its own or on another operand's."""
        index = self.tensor(shape, grid=like)
        self.builder.add(OPS[name], list(operands), [index])
        return index

    def finish(self, *outputs: int) -> None:
        """The model, of these outputs."""
        self.builder.identify_inputs_and_outputs(self.inputs, list(outputs))
        self.model = self.builder.finish()


def convolution(rng: Rng, depthwise: bool, few: bool = False) -> Net | None:
    """A convolution with any padding, stride and dilation, a sum, and a second convolution.

    Of `few` channels, more than one, with rows that are mostly even.
    """
    net = Net(rng)
    n, c, h, w = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 90 if depthwise else 40, 1), *draw(rng, 1, 20, 2)
    (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr) = draw(rng, 1, 5, 2), draw(rng, 1, 3, 2), draw(rng, 1, 3, 2), draw(
        rng, 0, 3, 4)
    c = c if rng.random() < 0.5 else c // 4 * 4 + 4
    c = 1 if depthwise and rng.random() < 0.3 else c
    each = draw(rng, 1, 9, 1)[0] if depthwise and c == 1 else 1
    if few:
        c, each, sw = draw(rng, 2, 15, 1)[0], 1, 1
        w += reach(w, kw, sw, dw, pl, pr) % 2 * (rng.random() < 0.8)
    oh, ow = reach(h, kh, sh, dh, pt, pb), reach(w, kw, sw, dw, pl, pr)
    if oh < 1 or ow < 1:
        return None
    out = c * each if depthwise else draw(rng, 1, 70, 1)[0]
    shape = (n, oh, ow, out)
    x = net.input((n, h, w, c))
    filt, bias = net.weights(x, (1, kh, kw, out) if depthwise else (out, kh, kw, c), 3 if depthwise else 0)
    more = [each] if depthwise else []
    act = draw(rng, 0, 4, 1)[0]
    args = [*map(net.scalar, (pl, pr, pt, pb, sw, sh, *more, act, False, dw, dh))]
    y = net.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", x, filt, bias, *args, shape=shape)
    z = net.op("ADD", *((y, net.input(shape)) if rng.random() < 0.5 else (net.input(shape), y)),
               net.scalar(draw(rng, 0, 4, 1)[0]), shape=shape)
    last, none = net.weights(z, (5, 2, 1, out), 0)
    u = net.op("CONV_2D", z, last, none, *map(net.scalar, (0, 1, 1, 0, 1, 1, 0)), shape=(n, oh, ow + 1, 5))
    net.finish(z, u) if rng.random() < 0.5 else net.finish(u)
    return net


def product(rng: Rng, size: tuple[int, int, int] | None = None) -> Net:
    """Rows by a constant matrix, with an activation, and a sum; of a size [rows, depth, units] where that is given."""
    net = Net(rng)
    rows, depth, units = size or (draw(rng, 1, 20, 1)[0], *draw(rng, 1, 100, 2))
    x = net.input((rows, depth))
    y = net.op("FULLY_CONNECTED", x, *net.weights(x, (units, depth), 0, whole=True), net.scalar(draw(rng, 0, 4, 1)[0]),
               shape=(rows, units))
    net.finish(net.op("ADD", y, net.input((rows, units)), net.scalar(0), shape=(rows, units)))
    return net


def addition(rng: Rng) -> Net:
    """Sums and differences of arrays that broadcast."""
    net, shape = Net(rng), (*draw(rng, 1, 6, draw(rng, 0, 3, 1)[0]), int(rng.choice([1, 3, 16, 17, 40, 70])))
    y = net.input(shape)
    for _ in range(draw(rng, 1, 4, 1)[0]):
        z = net.input(tuple(1 if rng.random() < 0.3 else n for n in shape))
        name = str(rng.choice(["ADD", "SUB", "MUL"]))
        y = net.op(name, *((z, y) if rng.random() < 0.5 else (y, z)), net.scalar(draw(rng, 0, 4, 1)[0]), shape=shape)
    net.finish(y)
    return net


def pool(rng: Rng) -> Net | None:
    """Windows of images."""
    n, h, w, c = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 20, 2), *draw(rng, 1, 90, 1)
    (kh, kw), (sh, sw) = draw(rng, 2, 5, 2), draw(rng, 1, 4, 2)
    pt, pb, pl, pr = (int(rng.integers(0, k)) for k in (kh, kh, kw, kw))
    oh, ow = reach(h, kh, sh, 1, pt, pb), reach(w, kw, sw, 1, pl, pr)
    if oh < 1 or ow < 1 or (oh - 1) * sh - pt >= h or (ow - 1) * sw - pl >= w:
        return None
    net = Net(rng)
    x = net.input((n, h, w, c))
    net.finish(net.op(str(rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])), x,
                      *map(net.scalar, (pl, pr, pt, pb, sw, sh, kw, kh, draw(rng, 0, 4, 1)[0])),
                      shape=(n, oh, ow, c), like=x))
    return net


def mean(rng: Rng) -> Net:
    """A mean over axes before the last."""
    net, shape = Net(rng), (*draw(rng, 2, 12, 3), draw(rng, 2, 90, 1)[0])
    low = draw(rng, 0, 3, 1)[0]
    axes = list(range(low, min(3, low + draw(rng, 1, 3, 1)[0])))
    x = net.input(shape)
    net.finish(net.op("MEAN", x, net.const(axes, INT32), net.scalar(1),
                      shape=tuple(1 if i in axes else n for i, n in enumerate(shape)), like=x))
    return net


def resized(rng: Rng) -> Net:
    """An image of another size, by all rules."""
    net, (n, h, w, oh, ow), c = Net(rng), draw(rng, 1, 14, 5), draw(rng, 1, 40, 1)[0]
    x = net.input((n, h, w, c))
    align = bool(rng.random() < 0.4)
    rules = (align, not align and bool(rng.random() < 0.5))
    net.finish(net.op("RESIZE_BILINEAR", x, *map(net.scalar, (ow, oh, False, *rules)), shape=(n, oh, ow, c), like=x))
    return net


def functions(rng: Rng) -> Net:
    """Functions of single bytes, and reals turned into bytes and back."""
    net, shape = Net(rng), tuple(draw(rng, 1, 30, 2))
    x = net.builder.add_operand(OperandCode.TENSOR_FLOAT32, shape)
    net.inputs.append(x)
    net.given.append((2 * rng.standard_normal(shape)).astype(np.float32))
    net.given[0].reshape(-1)[:1] = rng.choice([np.nan, np.inf, -np.inf, 3e9, 0.25])
    y = net.op("QUANTIZE", x, shape=shape)
    for name in ("RELU6", "RELU", "HARD_SWISH"):
        y = net.op(name, y, shape=shape, like=None if name == "HARD_SWISH" else y)
    z = net.builder.add_operand(OperandCode.TENSOR_FLOAT32, shape)
    net.builder.add(OPS["DEQUANTIZE"], [y], [z])
    net.finish(y, z)
    return net


def softmax(rng: Rng) -> Net:
    """Rows of bytes, some of them one value throughout, softened by any factor."""
    net, shape = Net(rng), tuple(draw(rng, 1, 300, 2)) if rng.random() < 0.7 else (1, 1 + draw(rng, 0, 3, 1)[0] * 1300)
    low = -128 if net.kind == Q8S else 0
    x = net.input(shape)
    net.given[0][::3] = net.given[0].reshape(-1)[0]
    out = net.builder.add_operand(net.kind, shape, 1 / 256, low)
    beta = net.builder.add_operand(OperandCode.FLOAT32, ())
    net.builder.set_operand_value(beta, float(np.float32(rng.choice([0.1, 1, 1, 20]))))
    net.builder.add(OPS["SOFTMAX"], [x, beta], [out])
    net.finish(out)
    return net


#: The instruction that multiplies and adds so many bytes.
DOT = {2: "vpmaddwd", 4: "vpdpbusd"}
MAKES: dict[str, Callable[[Rng], Net | None]] = {
    "convolution": lambda rng: convolution(rng, False), "depthwise": lambda rng: convolution(rng, True),
    "narrow": lambda rng: convolution(rng, True, few=True), "product": product, "addition": addition,
    "pool": pool, "mean": mean, "resized": resized,
    "functions": functions, "softmax": softmax}


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng, ran = np.random.default_rng(11), 0
    for n in range(24 if machine == "host" else 10):
        net = MAKES[family](rng)
        if net is None:
            continue
        want, got, native = both(net.model, net.given, EVERY[machine], 1 + n % 2)
        assert native == len(net.model.operations), n
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w, err_msg=f"{n}")
        ran += 1
    assert ran > 3


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("size", [(61, 1100, 301), (7, 20001, 3), (1, 60001, 2)])
def test_matrices_beyond_a_cache_and_rows_beyond_a_room(size: tuple[int, int, int], machine: str) -> None:
    for n in range(2):
        net = product(np.random.default_rng(n), size)
        want, got, native = both(net.model, net.given, EVERY[machine], 1 + n)
        assert native == len(net.model.operations)
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(("depth", "there"), [(DEEPEST, 1), (DEEPEST + 1, 0), (1 << 23, 0)])
def test_rows_too_deep_for_a_stack_are_left_out(depth: int, there: int) -> None:
    net, rng, kind = Small(), np.random.default_rng(0), OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
    weights = np.zeros((1, depth))
    weights[0, ::1000] = 5                           # so small that no sum overflows
    y = net.op("FULLY_CONNECTED", net.input(rng.integers(-128, 128, (1, depth)), kind, (0.5, 0)),
               net.const(weights, kind, (0.1, 0)), net.const([0], OperandCode.TENSOR_INT32, (0.05, 0)), net.scalar(0),
               shape=(1, 1), kind=kind, grid=(2.0, 0))
    net.model = net.finish(y)
    want, got, native = both(net.model, net.given, EVERY["avx2"], 2)
    assert native == there
    np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(("more", "makes", "never"), [((), "vpmaddwd", "vpdpwssd"),
                                                      (("avxvnni",), "vpdpwssd", "vpadd")])
@pytest.mark.parametrize("narrow", [False, True])
def test_pairs_are_summed_by_what_there_is(more: tuple[str, ...], makes: str, never: str, narrow: bool) -> None:
    m = Module(Machine("x86_64-unknown-linux-gnu", AVX2 | BASELINE | {*more}))
    Pairs(Room(64, 1, 0, ((0, 64),), True).walk(6, 2, narrow), 64).emit(m)
    text = assembly(m.text().replace("define internal", "define"), m.machine)
    assert text.count(makes) == 12 and never not in text and not spilt(m)


@pytest.mark.parametrize(("machine", "narrow"), [("vnni", False), ("avx512", False), ("avx2", False), ("avx2", True)])
@pytest.mark.parametrize("shift", [0, 3])
def test_no_micro_kernel_spills(machine: str, shift: int, narrow: bool) -> None:
    at = EVERY[machine]
    together, stack = 4 if at.vnni else 2, re.compile(r"[xyz]mm\d+, *-?\d*\(%rsp|\(%rsp\), *%[xyz]mm")
    for vectors, pixels in fitting(at, together, shift > 0).items():
        if shift and not at.vnni:
            continue
        m = Module(at)
        signed, runs = not shift, ((0, 64),)
        places = tuple(64 * i for i in range(pixels))
        name = (Micro(places, vectors, 1, 0, runs, signed, 64, shift) if together == 4 else
                Pairs(Room(64, 1, 0, runs, signed).walk(pixels, vectors, narrow), 64)).emit(m)
        f = Function(m, "f", SHARED, exported=True)
        f.do(f"call void @{name}(ptr %arena, ptr %weights, ptr %arena, ptr %weights)")
        f.finish()
        text = assembly(m.text(), at)
        loop = text[text.rfind(":", 0, text.find(DOT[together])):text.rfind(DOT[together])]
        assert loop and not stack.findall(loop), (vectors, pixels)
