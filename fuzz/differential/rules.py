"""Differences that are known: what an operator gives here and there, and why.

`docs/reliability.md` lists them, `docs/decisions/whose-numbers.md` says more of each. A rule holds for one operator,
run alone on the inputs that the reference runtime had.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw import Array
from .engines import OPTIMISED, Model, litert


@dataclass(frozen=True)
class Single:
    """One operator run alone, as a model with its inputs, and what both gave for an output."""

    model: Model
    ours: Array
    theirs: Array

    @property
    def operator(self) -> str:
        """Its name."""
        return self.model.operators[-1]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Its options."""
        return self.model.attributes

    @property
    def inputs(self) -> list[Array]:
        """The inputs that are computed, in order."""
        return [self.model.given[n] for n in self.model.inputs]

    @property
    def apart(self) -> Array:
        """How far each number is from the other's."""
        found: Array = np.abs(self.ours.astype(np.float64) - self.theirs)
        return found


@dataclass(frozen=True)
class Rule:
    """A known difference of some operators of a format, of all without any: when it is one, and why."""

    name: str
    form: str
    operators: tuple[str, ...]
    holds: Callable[[Single], bool]
    reason: str

    def explains(self, single: Single) -> bool:
        """Whether a difference is this one."""
        return (single.model.form == self.form and single.operator in (self.operators or (single.operator,))
                and self.holds(single))


def near(single: Single) -> bool:
    """Whether codes are one step apart at most."""
    return single.ours.dtype.kind in "iu" and bool(
        (np.abs(single.ours.astype(np.int64) - single.theirs.astype(np.int64)) <= 1).all())


def scales(single: Single, place: int) -> Array:
    """The scales of a TFLite operator's input."""
    net = single.model.net                       # type: ignore[attr-defined]
    return np.atleast_1d(net.tensors[net.operators[-1].inputs[place]].scale or 0.0)


def of_channels(single: Single) -> bool:
    """Codes one step apart, of weights with several scales."""
    return near(single) and scales(single, 1).size > 1


def others_agree(single: Single) -> bool:
    """Whether LiteRT's optimised kernels give ours, codes at most a step off."""
    found = litert(single.model, OPTIMISED)[single.model.outputs[0]]
    if found.dtype.kind == "f":
        return bool(np.allclose(single.ours, found, rtol=1e-5, atol=1e-6))
    return near(Single(single.model, single.ours, found))


def coarse(single: Single) -> bool:
    """Codes on a grid whose step is 1 or more."""
    return max(float(scales(single, k)[0]) for k in (0, 1)) >= 1


def exact_sums(single: Single) -> bool:
    """Whether ours are the sums of products of whole numbers, by NumPy's integers."""
    x, w = whole(single, 0) - whole(single, 2), whole(single, 1) - whole(single, 3)
    found = np.matmul(x, w) if single.operator == "MatMulInteger" else correlated(x, w)
    return bool((found == single.ours).all())


def exact_codes(single: Single) -> bool:
    """Whether ours are such sums on the output's grid, to a step."""
    sums = correlated(whole(single, 0) - whole(single, 2), whole(single, 3) - whole(single, 5))
    bias = whole(single, 8).reshape(1, -1, 1, 1)
    factor = operand(single, 1) * operand(single, 4) / operand(single, 6)
    info = np.iinfo(single.ours.dtype)
    real = np.clip((sums + bias) * float(factor) + whole(single, 7), info.min, info.max)
    return bool((np.abs(single.ours - real) <= 1).all())


def operand(single: Single, place: int) -> Array:
    """An ONNX operator's input, 0 where it is left out."""
    model: Any = single.model
    name = model.nodes[-1].input[place] if len(model.nodes[-1].input) > place else ""
    return np.asarray(model.given.get(name, model.constants.get(name)) if name else 0)


def whole(single: Single, place: int) -> Array:
    """The same in 64 bits."""
    return operand(single, place).astype(np.int64)


def correlated(x: Array, w: Array) -> Array:
    """A convolution of whole numbers without pads, with strides of 1."""
    taps = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], tuple(range(2, x.ndim)))
    found: Array = np.einsum("nchwij,ocij->nohw", taps, w)
    return found


def without_grid(single: Single) -> bool:
    """Whether an operator computes with small integers that have no scale."""
    net = single.model.net                       # type: ignore[attr-defined]
    given = [net.tensors[i] for i in net.operators[-1].inputs if i >= 0]
    return any(t.dtype in ("int8", "uint8", "int16") and t.scale is None for t in given)


def of_nothing(single: Single) -> bool:
    """0 for the least float, and no other difference."""
    differ = single.ours != single.theirs
    least = np.finfo(single.theirs.dtype).min
    return bool((single.ours[differ] == 0).all() and (single.theirs[differ] == least).all())


def without_spread(single: Single) -> bool:
    """NaN for 0, and no other difference."""
    with np.errstate(invalid="ignore"):
        differ = ~(np.abs(single.ours - single.theirs) <= 1e-5 * np.nanmax(np.abs(single.theirs), initial=1.0))
    return bool((single.ours[differ] == 0).all() and np.isnan(single.theirs[differ]).all())


def between_sizes(single: Single) -> bool:
    """Corners aligned by scales, whose products with sizes are no sizes."""
    if single.attributes.get("coordinate_transformation_mode") != b"align_corners" or len(single.inputs) != 1:
        return False
    model: Any = single.model
    scales_given = model.constants.get(model.nodes[-1].input[2]) if len(model.nodes[-1].input) == 3 else None
    if scales_given is None:
        return False
    exact = np.array(single.inputs[0].shape) * scales_given
    return bool((exact != np.floor(exact)).any())


def overflows(single: Single) -> bool:
    """Whether the largest code's exponential is infinite in single precision."""
    return single.inputs[0].dtype == np.int16 and 32767 * float(scales(single, 0)[0]) > np.log(np.finfo(np.float32).max)


def of_one(single: Single) -> bool:
    """Apart by a few roundings of 1."""
    return bool(np.nanmax(single.apart, initial=0.0) <= 5e-7)


def long_axes(single: Single) -> bool:
    """Apart by a few roundings of a place on the longest axis, times the steepest slope there may be."""
    x = single.inputs[0].astype(np.float64)
    slope = float(x.max() - x.min()) * max(*x.shape, *single.theirs.shape)
    allowed = 8 * np.finfo(np.float32).eps * slope
    return single.attributes.get("mode") in (b"linear", b"cubic") and bool((single.apart <= allowed).all())


def of_nan(single: Single) -> bool:
    """Whether a NaN stands where they differ, in an input of the same shape; elsewhere, whether there is one."""
    nan = [np.isnan(a) for a in single.inputs if a.dtype.kind == "f"]
    for each in nan:
        if each.shape == single.ours.shape == single.theirs.shape:
            differ = (single.ours != single.theirs) & ~(
                (single.ours != single.ours) & (single.theirs != single.theirs))
            return bool(each[differ].all())
    return any(each.any() for each in nan)


def cancelled(single: Single) -> bool:
    """Apart by a few roundings of what the mean becomes when it is scaled before it is taken off."""
    x = single.inputs[0].astype(np.float64)
    axes = tuple(range(2, x.ndim))
    scale = np.abs(operand(single, 1).astype(np.float64)).reshape(1, -1, *[1] * len(axes))
    step = scale / np.sqrt(x.var(axes, keepdims=True) + single.attributes.get("epsilon", 1e-5))
    allowed = 4 * np.finfo(np.float32).eps * step * np.abs(x).max(axes, keepdims=True)
    return bool((single.apart <= allowed).all())


#: The rules, the first that holds is told.
RULES = (
    Rule("one rounding of scales per channel", "tflite", ("FULLY_CONNECTED",), of_channels,
         "NNAPI has scales per channel in convolutions alone; as one of them it rounds twice, LiteRT's once"),
    Rule("sums of int8 by the reference", "tflite", ("SUM",), others_agree,
         "the reference kernel's sums of int8 are no sums; the optimised kernel's are, and ours"),
    Rule("windows of channels", "tflite", ("LOCAL_RESPONSE_NORMALIZATION",), others_agree,
         "the reference kernel's windows lack their last channel; the optimised kernel's do not, nor ours"),
    Rule("comparisons on coarse grids", "tflite",
         ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"), coarse,
         "LiteRT takes scales for less than 1 and shifts by a negative number of bits"),
    Rule("exponentials beyond single precision", "tflite", ("EXP",), overflows,
         "LiteRT makes int16's table of infinities, whose conversion to integers C leaves open"),
    Rule("functions of range 1", "onnx", ("RNN", "LSTM", "GRU", "Tanh", "Sigmoid", "Erf", "Gelu", "FastGelu"), of_one,
         "ONNX Runtime's polynomials are off by a rounding of 1 near 0, where their values are small"),
    Rule("1 and an error function", "tflite", ("GELU",), of_one,
         "their sum is rounded where it cancels, in another place by each of both"),
    Rule("places in single precision", "onnx", ("Resize", "Upsample"), long_axes,
         "ONNX Runtime computes places on an axis in single precision, which is coarse on long ones"),
    Rule("codes and integers of a NaN", "onnx", ("QuantizeLinear", "DynamicQuantizeLinear", "Cast"), of_nan,
         "nothing says what a NaN is as an integer: the largest here, the least or 0 in ONNX Runtime"),
    Rule("comparisons with a NaN", "onnx", ("ArgMax", "ArgMin", "TopK", "ReduceMax", "ReduceMin", "Max", "Min",
                                            "MaxPool", "GlobalMaxPool", "Sign", "Clip", "Hardmax", "Unique"), of_nan,
         "the standard leaves open whether a NaN is the largest, is passed over or stays"),
    Rule("codes of a NaN", "tflite", ("QUANTIZE", "CAST"), of_nan,
         "a conversion of NaN has no defined result in C, which LiteRT leaves it to"),
    Rule("bytes without a grid", "tflite", (), without_grid,
         "LiteRT takes small integers without a scale for codes of scale 0; here they are integers"),
    Rule("the largest of nothing", "onnx", ("MaxPool",), of_nothing,
         "a window that holds no cell gives 0 here, the least float in ONNX Runtime; the standard says nothing"),
    Rule("numbers that are all the same, normalised", "onnx", ("MeanVarianceNormalization",), without_spread,
         "the function that the standard defines gives 0, ONNX Runtime divides 0 by 0"),
    Rule("corners aligned by scales", "onnx", ("Resize",), between_sizes,
         "ONNX's suite measures up to size * scale, ONNX Runtime up to the whole size"),
    Rule("a mean that is scaled first", "onnx", ("InstanceNormalization",), cancelled,
         "ONNX Runtime scales x and its mean apart, so that what is left of both is rounded where it cancels"),
    Rule("sums of pairs in 16 bits", "onnx", ("MatMulInteger", "ConvInteger"), exact_sums,
         "ONNX Runtime adds products of unsigned by signed bytes in pairs that saturate where there is no VNNI"),
    Rule("codes of sums of pairs in 16 bits", "onnx", ("QLinearConv",), exact_codes, "the same, brought to a grid"),
)


def explaining(single: Single) -> Rule | None:
    """The rule that explains a difference; None where there is none."""
    return next((r for r in RULES if r.explains(single)), None)
