"""Random small TFLite models for property tests: hypothesis draws the structure, a seeded generator the numbers."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tflite_writer import Array, OptionValue, TFLiteWriter, sparsify

Draw = Callable[..., Any]
SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
#: No activation has more elements than this.
LARGEST = 1500
#: The operator versions that take int8, where it is not 2.
INT8_VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESIZE_BILINEAR": 3,
                 "RESIZE_NEAREST_NEIGHBOR": 3, "RELU_N1_TO_1": 1, "RESHAPE": 1, "HARD_SWISH": 1}


@dataclass(frozen=True)
class RandomModel:
    """A file and one set of inputs for it, in the file's order."""

    data: bytes
    inputs: tuple[Array, ...]
    operators: tuple[str, ...]

    def __repr__(self) -> str:
        return f"RandomModel({' '.join(self.operators)}, {len(self.data)} bytes)"


@dataclass(frozen=True)
class Activation:
    """A tensor of rank 4 in the file; scale and zero are None in a float model."""

    index: int
    shape: tuple[int, ...]
    scale: float | None = None
    zero: int | None = None

    @property
    def step(self) -> float:
        """The scale, 1/64 in a float model (whose values then lie about -2..2 as well)."""
        return 1 / 64 if self.scale is None else self.scale


@dataclass
class _Model:
    """What is written so far."""

    draw: Draw
    dtype: str
    rng: np.random.Generator
    writer: TFLiteWriter = field(default_factory=TFLiteWriter)
    values: list[Activation] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)

    @property
    def quantised(self) -> bool:
        return self.dtype != "float32"

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest code of a quantised model."""
        return (-128, 127) if self.dtype == "int8" else (0, 255)

    def codes(self, shape: tuple[int, ...]) -> Array:
        """Any codes of a quantised model."""
        return self.rng.integers(*self.limits, shape, endpoint=True).astype(self.dtype)

    def activation(self, shape: tuple[int, ...], scale: float, zero: int | None = None) -> Activation:
        """A new activation of about this scale; its zero point is drawn where none is given."""
        name = f"t{len(self.values)}" if self.draw(st.booleans()) else None
        if not self.quantised:
            return Activation(self.writer.tensor(name, self.dtype, shape), shape)
        scale = float(np.float32(scale))
        zero = self.draw(st.integers(*self.limits)) if zero is None else zero
        return Activation(self.writer.tensor(name, self.dtype, shape, scale=scale, zero=zero), shape, scale, zero)

    def like(self, x: Activation, shape: tuple[int, ...]) -> Activation:
        """A new activation on the grid of another."""
        return self.activation(shape, x.step, x.zero)

    def int32(self, values: Any) -> int:
        """A constant int32 tensor."""
        array = np.array(values, np.int32)
        return self.writer.tensor(None, "int32", array.shape, array)

    def weights(self, shape: tuple[int, ...], axis: int | None) -> tuple[int, Array]:
        """A constant filter and its scales: int8 one per slice of `axis` (or one, if None), uint8 one.

        Some float and int8 filters are stored sparse with a DENSIFY behind them, some float ones as float16.
        """
        per_channel = axis is not None and self.dtype == "int8"
        scales = np.exp(self.rng.uniform(-1, 1, shape[axis or 0] if per_channel else 1)).astype(np.float32) / 100
        if self.dtype == "uint8":
            zero = int(self.rng.integers(0, 256))
            return self.writer.tensor(None, "uint8", shape, self.codes(shape), scale=scales.tolist(), zero=zero), scales
        if self.dtype == "int8":
            codes = self.rng.integers(-127, 128, shape).astype(np.int8)
            return self.stored(codes, {"scale": scales.tolist(), "zero": 0, "axis": axis or 0}), scales
        fan_in = math.prod(shape) // shape[axis or 0]
        return self.stored(self.rng.normal(0, fan_in ** -0.5, shape).astype(np.float32), {}), scales

    def stored(self, values: Array, grid: Mapping[str, Any]) -> int:
        """A constant as it is, sparse, or as float16."""
        how = self.draw(st.sampled_from(["plain", "plain", "sparse", *["float16"] * (not self.quantised)]))
        if how == "plain":
            return self.writer.tensor(None, self.dtype, values.shape, values, **grid)
        if how == "float16":
            half = self.writer.tensor(None, "float16", values.shape, values)
            return self.expanded("DEQUANTIZE", half, values.shape, grid)
        values = values * (self.rng.random(values.shape) < 0.5)
        formats = self.draw(st.text("ds", min_size=values.ndim, max_size=values.ndim))
        sparsity, kept = sparsify(values, self.draw(st.permutations(range(values.ndim))), formats)
        index = self.writer.tensor(None, self.dtype, values.shape, kept, sparsity=sparsity, **grid)
        return self.expanded("DENSIFY", index, values.shape, grid)

    def expanded(self, operator: str, index: int, shape: tuple[int, ...], grid: Mapping[str, Any]) -> int:
        """The constant behind an operator that unpacks it."""
        output = self.writer.tensor(None, self.dtype, shape, **grid)
        self.writer.op(operator, [index], [output], f"{operator.capitalize()}Options")
        return output

    def bias(self, size: int, x: Activation, scales: Array) -> int:
        """A constant bias; int32 on the grid of the products in a quantised model."""
        if not self.quantised:
            return self.writer.tensor(None, "float32", (size,), self.rng.normal(0, 0.5, size).astype(np.float32))
        steps = (np.float32(x.step) * scales).astype(np.float32)
        return self.writer.tensor(None, "int32", (size,), self.rng.integers(-5000, 5000, size), scale=steps.tolist(),
                                  zero=0)

    def op(self, name: str, inputs: list[int], output: Activation, table: str | None = None,
           values: Mapping[str, OptionValue] | None = None) -> Activation:
        """An operator whose output becomes a value of the model."""
        self.operators.append(name)
        version = INT8_VERSIONS.get(name, 2) if self.dtype == "int8" else 1
        self.writer.op(name, inputs, [output.index], table, values, version)
        self.values.append(output)
        return output

    def pick(self, fits: Callable[[Activation], bool] = lambda _: True) -> Activation | None:
        """One of the values that fit, the newest most of the time."""
        fitting = [v for v in reversed(self.values) if fits(v)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def gain(self) -> float:
        """How far an output's scale is from the one that just holds most values."""
        return float(np.exp(self.rng.uniform(-0.7, 0.7)))


def _windows(m: _Model, x: Activation, largest: int, dilate: bool) -> tuple[dict[str, int], tuple[int, ...]]:
    """Kernel size, stride, dilation and padding as TFLite options (kernel under "h", "w"), and the output's H, W."""
    options: dict[str, int] = {"Padding": m.draw(st.sampled_from([SAME, VALID]))}
    sizes = []
    for letter, extent in zip("HW", x.shape[1:3], strict=True):
        dilation = m.draw(st.integers(1, 2)) if dilate else 1
        limit = largest if options["Padding"] == SAME else min(largest, (extent - 1) // dilation + 1)
        kernel = m.draw(st.integers(1, limit))
        stride = m.draw(st.integers(1, 2)) if dilation == 1 else 1
        reach = 0 if options["Padding"] == SAME else (kernel - 1) * dilation
        sizes.append((extent - reach - 1) // stride + 1)
        options |= {letter: kernel, f"Stride{letter}": stride, f"Dilation{letter}Factor": dilation}
    # LiteRT's kernels take dilations with a stride of 1 only, in both directions.
    if any(options[f"Dilation{a}Factor"] != 1 for a in "HW") and any(options[f"Stride{a}"] != 1 for a in "HW"):
        return _windows(m, x, largest, False)
    return options, tuple(sizes)


def _fused(m: _Model) -> int:
    return int(m.draw(st.sampled_from([NONE, RELU, RELU_N1_TO_1, RELU6])))


def _conv(m: _Model, x: Activation) -> None:
    options, sizes = _windows(m, x, 3, dilate=True)
    outputs = m.draw(st.integers(1, 6))
    shape = (outputs, options.pop("H"), options.pop("W"), x.shape[3])
    weight, scales = m.weights(shape, 0)
    fan_in = math.prod(shape[1:])
    y = m.activation((x.shape[0], *sizes, outputs), x.step * float(scales.mean()) * math.sqrt(fan_in) * 100 * m.gain())
    m.op("CONV_2D", [x.index, weight, m.bias(outputs, x, scales)], y, "Conv2DOptions",
         {**options, "FusedActivationFunction": _fused(m)})


def _depthwise(m: _Model, x: Activation) -> None:
    options, sizes = _windows(m, x, 3, dilate=True)
    multiplier = m.draw(st.integers(1, 2))
    outputs = multiplier * x.shape[3]
    shape = (1, options.pop("H"), options.pop("W"), outputs)
    weight, scales = m.weights(shape, 3)
    y = m.activation((x.shape[0], *sizes, outputs),
                     x.step * float(scales.mean()) * math.sqrt(math.prod(shape[1:3])) * 100 * m.gain())
    m.op("DEPTHWISE_CONV_2D", [x.index, weight, m.bias(outputs, x, scales)], y, "DepthwiseConv2DOptions",
         {**options, "DepthMultiplier": multiplier, "FusedActivationFunction": _fused(m)})


def _pool(m: _Model, x: Activation) -> None:
    options, sizes = _windows(m, x, 3, dilate=False)
    fields = {"FilterHeight": options["H"], "FilterWidth": options["W"], "FusedActivationFunction": _fused(m),
              **{k: options[k] for k in ("Padding", "StrideH", "StrideW")}}
    name = m.draw(st.sampled_from(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
    m.op(name, [x.index], m.like(x, (x.shape[0], *sizes, x.shape[3])), "Pool2DOptions", fields)


def _arithmetic(m: _Model, x: Activation) -> None:
    name = m.draw(st.sampled_from(["ADD", "MUL", "SUB"]))
    other = m.pick(lambda v: v.shape == x.shape)
    if other is None or m.draw(st.booleans()):
        other = _constant_channels(m, x)
    scale = max(x.step, other.step) * 1.5 if name != "MUL" else x.step * other.step * 60
    pair = [x.index, other.index][::m.draw(st.sampled_from([1, -1]))]
    m.op(name, pair, m.activation(x.shape, scale * m.gain()), f"{name.capitalize()}Options",
         {"FusedActivationFunction": _fused(m)})


def _constant_channels(m: _Model, x: Activation) -> Activation:
    """A constant of x's channels, which broadcasts against it."""
    shape, scale = (x.shape[3],), float(np.float32(x.step * m.gain()))
    if not m.quantised:
        return Activation(m.writer.tensor(None, "float32", shape, m.rng.normal(0, 1, shape).astype(np.float32)), shape)
    zero = m.draw(st.integers(*m.limits))
    index = m.writer.tensor(None, m.dtype, shape, m.codes(shape), scale=scale, zero=zero)
    return Activation(index, shape, scale, zero)


def _concat(m: _Model, x: Activation) -> None:
    axis = m.draw(st.integers(0, 3))
    # Quantised parts are copied: their grids agree.
    parts = [x, m.pick(lambda v: (v.scale, v.zero) == (x.scale, x.zero) and all(
        a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis)) or x]
    shape = tuple(sum(p.shape[i] for p in parts) if i == axis else n for i, n in enumerate(x.shape))
    m.op("CONCATENATION", [p.index for p in parts], m.like(x, shape), "ConcatenationOptions",
         {"Axis": m.draw(st.sampled_from([axis, axis - 4]))})


def _reshape(m: _Model, x: Activation) -> None:
    n, h, w, c = x.shape
    shape = m.draw(st.sampled_from([(n, w, h, c), (n, 1, h * w, c), (n, h, 1, w * c), (1, n * h, w, c), (n, c, h, w)]))
    m.op("RESHAPE", [x.index, m.int32(shape)], m.like(x, shape), "ReshapeOptions", {"NewShape": shape})


def _pad(m: _Model, x: Activation) -> None:
    pads = [(0, 0), *(m.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(2)), (0, 0)]
    m.op("PAD", [x.index, m.int32(pads)], m.like(x, tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True))))


def _relu(m: _Model, x: Activation) -> None:
    name = m.draw(st.sampled_from(["RELU", "RELU6", "RELU_N1_TO_1"]))
    m.op(name, [x.index], m.like(x, x.shape) if m.draw(st.booleans()) else m.activation(x.shape, x.step * m.gain()))


#: Scale and how far the zero point is from the least code, as TFLite fixes them for these outputs.
FIXED = {"LOGISTIC": (1 / 256, 0), "SOFTMAX": (1 / 256, 0), "TANH": (1 / 128, 128)}


def _fixed(m: _Model, x: Activation) -> None:
    name = m.draw(st.sampled_from(list(FIXED)))
    scale, offset = FIXED[name]
    y = m.activation(x.shape, scale, m.limits[0] + offset)
    if name == "SOFTMAX":
        m.op(name, [x.index], y, "SoftmaxOptions", {"Beta": m.draw(st.sampled_from([1.0, 0.5]))})
    else:
        m.op(name, [x.index], y)


def _curved(m: _Model, x: Activation) -> None:
    y = m.activation(x.shape, x.step * m.gain())
    if m.draw(st.booleans()):
        m.op("HARD_SWISH", [x.index], y, "HardSwishOptions")
    else:
        m.op("LEAKY_RELU", [x.index], y, "LeakyReluOptions", {"Alpha": m.draw(st.sampled_from([0.125, 0.3]))})


def _extreme(m: _Model, x: Activation) -> None:
    other = m.pick(lambda v: (v.shape, v.scale, v.zero) == (x.shape, x.scale, x.zero)) or x
    m.op(m.draw(st.sampled_from(["MAXIMUM", "MINIMUM"])), [x.index, other.index], m.like(x, x.shape),
         "MaximumMinimumOptions")


def _mean(m: _Model, x: Activation) -> None:
    axes = m.draw(st.lists(st.integers(-3, 3), min_size=1, max_size=2, unique_by=lambda a: a % 4))
    shape = tuple(1 if i in {a % 4 for a in axes} else n for i, n in enumerate(x.shape))
    m.op("MEAN", [x.index, m.int32(axes)], m.activation(shape, x.step * m.gain()), "ReducerOptions", {"KeepDims": True})


def _transpose(m: _Model, x: Activation) -> None:
    order = m.draw(st.permutations(range(4)))
    m.op("TRANSPOSE", [x.index, m.int32(order)], m.like(x, tuple(x.shape[i] for i in order)), "TransposeOptions")


def _slice(m: _Model, x: Activation) -> None:
    begin = [m.draw(st.integers(0, n - 1)) for n in x.shape]
    shape = tuple(m.draw(st.integers(1, n - b)) for n, b in zip(x.shape, begin, strict=True))
    m.op("SLICE", [x.index, m.int32(begin), m.int32(shape)], m.like(x, shape), "SliceOptions")


def _resize(m: _Model, x: Activation) -> None:
    height, width = m.draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    mode = m.draw(st.sampled_from([{}, {"AlignCorners": True}, {"HalfPixelCenters": True}]))
    name, table = m.draw(st.sampled_from([("RESIZE_BILINEAR", "ResizeBilinearOptions"),
                                          ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")]))
    m.op(name, [x.index, m.int32([height, width])], m.like(x, (x.shape[0], height, width, x.shape[3])), table, mode)


def _fully_connected(m: _Model, x: Activation) -> None:
    batch, fan_in, units = x.shape[0], math.prod(x.shape[1:]), m.draw(st.integers(1, 8))
    weight, scales = m.weights((units, fan_in), None)
    y = m.activation((batch, units), x.step * float(scales[0]) * math.sqrt(fan_in) * 100 * m.gain())
    m.op("FULLY_CONNECTED", [x.index, weight, m.bias(units, x, scales)], y, "FullyConnectedOptions",
         {"FusedActivationFunction": _fused(m)})
    m.values.pop()
    shape = (batch, 1, 1, units)
    m.op("RESHAPE", [y.index, m.int32(shape)], m.like(y, shape), "ReshapeOptions", {"NewShape": shape})


STEPS: Mapping[str, Callable[[_Model, Activation], None]] = {
    "conv": _conv, "depthwise": _depthwise, "pool": _pool, "arithmetic": _arithmetic, "concat": _concat,
    "reshape": _reshape, "pad": _pad, "relu": _relu, "fully_connected": _fully_connected, "fixed": _fixed,
    "curved": _curved, "extreme": _extreme, "mean": _mean, "transpose": _transpose, "slice": _slice, "resize": _resize}


@st.composite
def models(draw: Draw, dtype: str, longest: int = 6) -> RandomModel:
    """Models of up to `longest` steps on one or two inputs.

    dtype: "float32", "int8" (filters per channel) or "uint8" (filters with a zero point).
    """
    m = _Model(draw, dtype, np.random.default_rng(draw(st.integers(0, 2 ** 32 - 1))))
    for _ in range(draw(st.integers(1, 2))):
        shape = tuple(draw(st.tuples(st.integers(1, 2), *[st.integers(1, 7)] * 2, st.integers(1, 5))))
        m.values.append(m.activation(shape, 1 / 40))
    inputs = list(m.values)
    for _ in range(draw(st.integers(1, longest))):
        x = m.pick(lambda v: math.prod(v.shape) <= LARGEST // 3)
        if x is not None:
            STEPS[draw(st.sampled_from(list(STEPS)))](m, x)
    outputs = [m.values[-1]]
    if draw(st.booleans()) and len(m.values) > len(inputs) + 1:
        outputs.append(draw(st.sampled_from(m.values[len(inputs):-1])))
    data = m.writer.finish([v.index for v in inputs], [v.index for v in outputs])
    return RandomModel(data, tuple(_numbers(m, v.shape) for v in inputs), tuple(m.operators))


def _numbers(m: _Model, shape: tuple[int, ...]) -> Array:
    if m.quantised:
        return m.codes(shape)
    return m.rng.normal(0, 1, shape).astype(np.float32)
