"""Arithmetic, comparison, logic and activation against ONNX's reference: all types, fed, fixed and of open sizes."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, n

from nnx_convert.errors import FormatError

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTS = (np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64)
X, Y = (RNG.normal(size=s).astype(np.float32) for s in ((2, 3, 4), (3, 1)))
IMAGE = RNG.normal(size=(2, 3, 2, 2)).astype(np.float32)
CHANNEL = np.array([0.5, -2, 3], np.float32)
ONE, TWO = np.array(1.5, np.float32), np.array([-2.5], np.float32)
INSIDE = RNG.uniform(-0.9, 0.9, (2, 5)).astype(np.float32)
ABOVE = RNG.uniform(1.1, 5, (2, 5)).astype(np.float32)
ODD = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 2.5, -2.5, 3.5, 0.5], np.float32)
BITS = RNG.random((2, 3)) < 0.5
TEXTS = np.array([["a", "b"], ["", "ab"]], object)
ANYWHERE = ("Abs", "Neg", "Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Tanh", "Sigmoid", "Floor",
"Ceil",
            "Round", "Erf", "Softplus", "Mish", "HardSwish", "Relu", "Sign", "Softsign", "Elu", "Celu", "Selu", "Gelu",
            "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Shrink", "Swish")
#: Versions that the newest operators begin with.
SINCE = {"Gelu": 20, "Swish": 24, "Mish": 22}


def small(kind: Any) -> Array:
    """Numbers that every type has."""
    return np.array([[1, 2, 3], [4, 7, 100]], kind)


def pair(kind: Any) -> tuple[Array, Array]:
    """Two of a type, which broadcast; negative ones where it has them."""
    x, y = small(kind), np.array([3, 2, 5], kind)
    return (x - np.array(50, kind), y * np.array([-1, 1, -1], kind)) if np.dtype(kind).kind != "u" else (x, y)


CASES: list[Node] = [
    *(n(op, X, opset=SINCE.get(op, 22)) for op in ANYWHERE), *(n(op, ONE, opset=SINCE.get(op, 22)) for op in ANYWHERE
                                                           if op != "Softsign"),
    *(n(op, INSIDE) for op in ("Asin", "Acos", "Atanh")), *(n(op, ABOVE) for op in ("Acosh", "Log", "Sqrt",
    "Reciprocal")),
    *(n(op, X.astype(k)) for op in ("Abs", "Neg", "Exp", "Tanh", "Sigmoid", "Floor", "Round",
    "Sign") for k in FLOATS[1:3]),
    *(n(op, small(k)) for op in ("Abs", "Sign") for k in INTS), n("Sign", ODD),
    *(n("Relu", pair(k)[0]) for k in INTS if np.dtype(k).kind == "i"), *(n("Neg", small(k)) for k in INTS[:4]),
    *(n(op, *pair(k)) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "GreaterOrEqual")
      for k in (*FLOATS[:3], *INTS)),
    *(n("Mod", *pair(k), opset=13) for k in INTS),
    *(n("Mod", *pair(k), opset=13, fmod=1) for k in (*INTS, *FLOATS[:3])),
    *(n(op, X, Y) for op in ("Add", "Sub", "Mul", "Div", "Greater", "LessOrEqual")),
    *(n("Add", a, b) for a, b in ((X, ONE), (ONE, X), (ONE, ONE), (ONE, TWO), (TWO, X))),
    n("Max", X, Y, ONE), n("Min", X), n("Sum", X, Y, ONE), n("Mean", X, Y, ONE), n("Mean", X, X), n("Max", ODD, TWO),
    n("Add", X, CHANNEL, opset=6, axis=1, broadcast=1, want=[X + CHANNEL[:, None]]),
    n("Mul", IMAGE, CHANNEL, opset=6, axis=1, broadcast=1, want=[IMAGE * CHANNEL[:, None, None]]),
    n("Sub", X, Y[:1, 0], opset=6, broadcast=1, want=[X - Y[0, 0]]), n("Add", X, X, opset=1, want=[X + X]),
    n("And", BITS, BITS[:1]), n("Or", BITS, BITS[:1]), n("Xor", BITS, BITS[:1]), n("Not", BITS),
    n("Equal", BITS, BITS[:1]),
    n("Equal", TEXTS, TEXTS[:1]), n("IsNaN", ODD), n("IsInf", ODD), n("IsInf", ODD, detect_negative=0),
    n("IsInf", ODD, detect_positive=0), n("IsInf", ODD, detect_positive=0, detect_negative=0),
    n("IsNaN", ODD.astype(float)),
    *(n(op, *pair(k)) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor") for k in INTS),
    *(n("BitwiseNot", pair(k)[0]) for k in INTS),
    *(n("BitShift", small(k), np.array([1, 2, 3], k), direction=d) for d in ("LEFT", "RIGHT") for k in INTS[4:]),
    *(n("Pow", ABOVE, np.array(p, np.float32)) for p in (1, 2, 3, 0.5, -1, -0.5, 1.5)),
    n("Pow", small(np.int64), np.array([2, 1, 0], np.int64)), n("Pow", ABOVE[:, :3], np.array([1, 2, 3], np.int64)),
    n("Pow", small(np.int32), np.array([0.5, 2, 1], np.float32)), n("Pow", ONE, np.array([[2], [3]], np.float32)),
    n("Pow", ABOVE, CHANNEL[:1], opset=6, broadcast=1, want=[np.sqrt(ABOVE)]),
    n("Clip", X, np.array(-0.5, np.float32), np.array(0.25, np.float32)), n("Clip", X, None, ONE), n("Clip", X, ONE),
    n("Clip", X), n("Clip", X, ONE, TWO[0], want=[np.full_like(X, -2.5)]),
    *(n("Clip", X * 4, np.array(a, np.float32), np.array(b, np.float32)) for a, b in ((0, 6), (-1, 1), (0, 1))),
    *(n("Clip", pair(k)[0], np.array(2, k), np.array(60, k)) for k in (*INTS, *FLOATS[1:3])),
    n("Clip", X, opset=6, min=-0.5, max=0.5), n("Clip", X, opset=6, max=0.5), n("Clip", X, opset=1, min=0.0, want=[
        np.maximum(X, 0)]),
    n("PRelu", IMAGE, CHANNEL[:, None, None]), n("PRelu", X, Y), n("PRelu", X, TWO), n("PRelu", X, X[0, 0]),
    n("PRelu", IMAGE, CHANNEL, opset=6, want=[np.where(IMAGE > 0, IMAGE, CHANNEL[:, None, None] * IMAGE)]),
    n("PRelu", X, TWO, opset=6, want=[np.where(X > 0, X, X * -2.5)]),
    n("Celu", X, alpha=0.5), n("Elu", X, alpha=0.5), n("Selu", X, alpha=2.0, gamma=0.5), n("LeakyRelu", X, alpha=3.0),
    n("Gelu", X, opset=20, approximate="tanh"), n("HardSigmoid", X, alpha=0.5, beta=0.25),
    n("Swish", X, opset=24, alpha=2.0),
    n("Shrink", X, bias=0.5, lambd=0.25), n("ThresholdedRelu", X, alpha=0.25), n("SwiGLU", X, X[::-1], opset=28, want=[
        X / (1 + np.exp(-X)) * X[::-1]]),
    *(n(op, X, axis=a) for op in ("Softmax", "LogSoftmax") for a in (0, 1, 2, -1)),
    *(n(op, X.astype(np.float64)) for op in ("Softmax", "LogSoftmax")),
]


def shares(x: Array, axis: int) -> Array:
    """The softmax of all axes from one on."""
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    raised = np.exp(flat - flat.max(1, keepdims=True))
    return np.asarray((raised / raised.sum(1, keepdims=True)).reshape(x.shape))


CASES += [n("Softmax", X, opset=11, axis=a, want=[shares(X, a)]) for a in (0, 1, 2)]
CASES += [n("Softmax", X, opset=11, want=[shares(X, 1)]), n("LogSoftmax", X, opset=11, want=[np.log(shares(X, 1))])]


@pytest.mark.parametrize("way", WAYS[:2])
def test_slopes_that_fit_the_channels_alone_are_of_these(way: str) -> None:
    check(n("PRelu", IMAGE, CHANNEL, want=[np.where(IMAGE > 0, IMAGE, CHANNEL[:, None, None] * IMAGE)]), way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("node", CASES, ids=str)
def test_as_the_reference(node: Node, way: str) -> None:
    kinds = {v.dtype for v in node.inputs if v is not None}
    check(node, way, 3e-3 if np.dtype(np.float16) in kinds else 1e-5)


#: What a file may say and not mean, and the words it is refused with.
REFUSED: list[tuple[Node, str]] = [
    (n("Not", X, want=[X]), "does not take TENSOR_FLOAT32"), (n("And", X, X, want=[X]), "does not take TENSOR_FLOAT32"),
    (n("Add", X, X.astype(float), want=[X]), "must have one type"),
    (n("Max", X, BITS, want=[X]), "does not take TENSOR_BOOL8"),
    (n("Sub", BITS, BITS, want=[BITS]), "does not take TENSOR_BOOL8"),
    (n("BitShift", small(np.uint8), small(np.uint8), direction="UP", want=[X]), "the direction 'UP'"),
    (n("BitShift", small(np.uint8), small(np.uint8), want=[X]), "lacks the attribute 'direction'"),
    (n("Softmax", X, axis=3, want=[X]), "axis"), (n("Softmax", X, axis=-4, opset=11, want=[X]), "the axis -4"),
    (n("Gelu", X, approximate="sinh", want=[X]), "approximated by 'sinh'"),
    (n("Add", X, X[:, :2], want=[X]), "broadcast"), (n("Elu", X, beta=1.0, want=[X]), "no attribute 'beta'"),
    (n("Div", X, want=[X]), "is left out"), (n("Abs", X, X, want=[X]), "has 2 inputs")]


@pytest.mark.parametrize(("node", "why"), REFUSED, ids=[f"{c.op} {w}" for c, w in REFUSED])
def test_what_is_refused(node: Node, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        converted(built(node, "fed")[0])
