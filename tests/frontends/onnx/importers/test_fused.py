"""The operators of com.microsoft that are made of others, against their formulas in NumPy."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from formulas import apart, attention, f, together
from onnx import helper, numpy_helper
from one_node import element, model

import nnx_convert
from nnx_convert.errors import Unsupported

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Fused:
    """A node: inputs (None: left out), attributes, answers (None: not asked for); which inputs are constants."""

    op: str
    inputs: tuple[Array | None, ...]
    want: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    fixed: tuple[int, ...] = ()

    def __str__(self) -> str:
        shapes = " ".join("-" if v is None else str(list(v.shape)) for v in self.inputs)
        return f"{self.op} {shapes} {self.attributes}"[:80]


def c(op: str, *inputs: Any, want: Any, fixed: tuple[int, ...] = (), **attributes: Any) -> Fused:
    return Fused(op, inputs, want if isinstance(want, tuple) else (want,), attributes, fixed)


def single(x: Array) -> Array:
    """What a formula gives in float64 is float32 in the model."""
    return x.astype(np.float32) if x.dtype == np.float64 else x


def run(case: Fused) -> list[Any]:
    """The answers that were asked for."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(case.inputs)]
    there = {f"x{i}": v for i, v in enumerate(case.inputs) if v is not None}
    constants = [numpy_helper.from_array(there[f"x{i}"], f"x{i}") for i in case.fixed]
    fed = {n: v for n, v in there.items() if n not in {p.name for p in constants}}
    outputs = ["" if v is None else f"y{i}" for i, v in enumerate(case.want)]
    domain = "" if case.op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(case.op, names, outputs, domain=domain, **case.attributes)
    made = model([node], [(n, element(v), v.shape) for n, v in fed.items()],
                 [(n, element(single(np.asarray(v))), None) for n, v in zip(outputs, case.want, strict=True) if n], 17,
                 initializer=constants)
    made.opset_import.add(domain="com.microsoft", version=1)
    return list(nnx_convert.compile(made.SerializeToString(), threads=1).run(list(fed.values())))


def erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf)(x))


def gelu(x: Array) -> Array:
    return np.asarray(x / 2 * (1 + erf(x / np.sqrt(2))))


def tanh_gelu(x: Array) -> Array:
    return np.asarray(x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))))


def logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def normed(x: Array, gamma: Array, beta: Array | float = 0.0) -> Array:
    apart_ = x - x.mean(-1, keepdims=True)
    return np.asarray(apart_ / np.sqrt((apart_ ** 2).mean(-1, keepdims=True) + EPS) * gamma + beta)


def rooted(x: Array, gamma: Array) -> Array:
    return np.asarray(x / np.sqrt((x ** 2).mean(-1, keepdims=True) + EPS) * gamma)


def shares(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


EPS = 1e-5
X, BIAS, SKIP = f(2, 3, 8), f(8), f(2, 3, 8)
A, B, W = f(3, 4), f(4, 5), f(5)
IMAGE, FILTER, RESIDUE = f(1, 3, 6, 6), f(4, 3, 1, 1), f(1, 4, 6, 6)
CONV = np.einsum("nchw,oc->nohw", IMAGE, FILTER[:, :, 0, 0])
IDS, KINDS = np.array([[1, 0, 3], [2, 2, 1]], np.int32), np.array([[0, 1, 1], [0, 0, 1]], np.int32)
WORDS, PLACES, SORTS = f(5, 8), f(4, 8), f(2, 8)
SET = np.array([[1, 1, 0], [1, 0, 0]], np.int32)
EMBEDDED = WORDS[IDS] + PLACES[:3] + SORTS[KINDS]
MATRICES = f(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)

W_, LAST = f(8), f(2, 3, 3, 8)
PARTS = LAST.reshape(2, 9, 2, 4) - LAST.reshape(2, 9, 2, 4).mean((1, 3), keepdims=True)
NORMED = (PARTS / np.sqrt((PARTS ** 2).mean((1, 3), keepdims=True) + EPS)).reshape(LAST.shape) * BIAS + W_

CASES: list[Fused] = [
    c("Gelu", X, want=gelu(X)), c("BiasGelu", X, BIAS, want=gelu(X + BIAS)), c("FastGelu", X, want=tanh_gelu(X)),
    c("FastGelu", X, BIAS, want=tanh_gelu(X + BIAS)), c("QuickGelu", X, want=X * logistic(1.702 * X)),
    c("QuickGelu", X, alpha=1.5, want=X * logistic(1.5 * X)), c("BiasAdd", X, BIAS, SKIP, want=X + BIAS + SKIP),
    c("BiasSplitGelu", X, BIAS, want=(X + BIAS)[..., :4] * gelu((X + BIAS)[..., 4:])),
    c("BiasSoftmax", X, f(2, 1, 8) * 0, axis=2, is_inner_broadcast=1, want=shares(X)),
    c("FusedGemm", A, B, W, activation="Relu", fixed=(1, 2), want=np.maximum(A @ B + W, 0)),
    c("FusedGemm", A.T.copy(), B.T.copy(), activation="LeakyRelu", activation_alpha=0.25, transA=1, transB=1, alpha=0.5,
      want=np.where(A @ B > 0, A @ B, A @ B / 4) / 2),
    c("FusedMatMul", A, B, alpha=0.5, want=A @ B / 2), c("FusedMatMul", A, B.T.copy(), transB=1, want=A @ B),
    c("FusedMatMul", f(3, 2, 4) * 0, f(2, 4, 5), transBatchA=1, want=np.zeros((2, 3, 5), np.float32)),
    c("TransposeMatMul", A.T.copy(), B, transA=1, want=A @ B), c("FusedMatMul", A[0], B, want=A[0] @ B),
    c("FusedMatMulActivation", A, B, activation="Tanh", want=np.tanh(A @ B)),
    c("FusedConv", IMAGE, FILTER, activation="Relu", fixed=(1,), want=np.maximum(CONV, 0)),
    c("FusedConv", IMAGE, FILTER, None, RESIDUE, activation="Sigmoid", fixed=(1,), want=logistic(CONV + RESIDUE)),
    c("FusedConv", IMAGE, FILTER, activation="Clip", activation_params=[-0.5, 0.5], fixed=(1,), want=CONV.clip(
        -0.5, 0.5)),
    c("FusedConv", IMAGE, FILTER, activation="HardSigmoid", activation_params=[0.3, 0.4], fixed=(1,),
      want=(0.3 * CONV + 0.4).clip(0, 1)),
    c("NhwcFusedConv", IMAGE.transpose(0, 2, 3, 1).copy(), FILTER, activation="Relu", fixed=(1,),
      want=np.maximum(CONV, 0).transpose(0, 2, 3, 1)),
    c("NhwcConv", IMAGE.transpose(0, 2, 3, 1).copy(), FILTER, fixed=(1,), want=CONV.transpose(0, 2, 3, 1)),
    c("SkipLayerNormalization", X, SKIP, BIAS, W_, V_ := f(8), epsilon=EPS,
      want=(normed(X + V_ + SKIP, BIAS, W_), None, None, X + V_ + SKIP)),
    c("SkipLayerNormalization", X, SKIP, BIAS, epsilon=EPS, want=normed(X + SKIP, BIAS)),
    c("SkipSimplifiedLayerNormalization", X, SKIP, BIAS, epsilon=EPS,
      want=(rooted(X + SKIP, BIAS), None, None, X + SKIP)),
    c("SimplifiedLayerNormalization", X, BIAS, epsilon=EPS, want=rooted(X, BIAS)),
    c("GatedRMSNorm", X, BIAS[:4], SKIP, epsilon=EPS,
      want=rooted(X.reshape(2, 3, 2, 4), BIAS[:4]).reshape(X.shape) * SKIP * logistic(SKIP)),
    c("EmbedLayerNormalization", IDS, KINDS, WORDS, PLACES, SORTS, BIAS, W_, SET, epsilon=EPS, fixed=(2, 3, 4, 5, 6),
      want=(normed(EMBEDDED, BIAS, W_), np.array([2, 1], np.int32), EMBEDDED)),
    c("EmbedLayerNormalization", IDS, None, WORDS, PLACES, None, BIAS, W_, epsilon=EPS,
      want=(normed(WORDS[IDS] + PLACES[:3], BIAS, W_), np.zeros(2, np.int32))),
    c("EmbedLayerNormalization", IDS, None, WORDS, PLACES, None, BIAS, W_, None, KINDS, epsilon=EPS,
      want=normed(WORDS[IDS] + PLACES[KINDS], BIAS, W_)),
    c("ComplexMul", A[:, :2].copy(), A[:, 2:].copy(), want=np.stack([
        A[:, 0] * A[:, 2] - A[:, 1] * A[:, 3], A[:, 0] * A[:, 3] + A[:, 1] * A[:, 2]], 1)),
    c("ComplexMulConj", A[:, :2].copy(), A[:, 2:].copy(), want=np.stack([
        A[:, 0] * A[:, 2] + A[:, 1] * A[:, 3], A[:, 1] * A[:, 2] - A[:, 0] * A[:, 3]], 1)),
    *(c("GroupNorm", x, BIAS, W_, activation=a, groups=2, epsilon=EPS, channels_last=last,
        want=w * logistic(w) if a else w)
      for a in (0, 1) for x, w, last in ((LAST, NORMED, 1), (LAST.transpose(0, 3, 1, 2).copy(), NORMED.transpose(
          0, 3, 1, 2), 0))),
    c("SkipGroupNorm", LAST - 1, BIAS, W_, np.full((2, 8), 0.5, np.float32), np.full(8, 0.5, np.float32), activation=0,
      groups=2, epsilon=EPS, want=(NORMED, LAST)),
    c("ScaledSiLU", X, alpha=2.0, want=2 * X * logistic(X)),
    c("ScaledSiLU", X, np.array(0.5, np.float32), want=X * logistic(X) / 2),
    c("GemmFastGelu", A, B, W, want=tanh_gelu(A @ B + W)), c("GemmFastGelu", X, f(8, 4) * 0, want=np.zeros((
        2, 3, 4), np.float32)),
    c("UnfoldTensor", X, dim=2, size=3, step=2, want=np.lib.stride_tricks.sliding_window_view(X, 3, 2)[:, :, ::2]),
    c("UnfoldTensor", X, dim=1, size=2, want=np.lib.stride_tricks.sliding_window_view(X, 2, 1)),
    c("GridSample", IMAGE, np.stack(np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6)), -1).astype(
        np.float32)[None], align_corners=1, want=IMAGE),
    c("CDist", A, A[:2] + 1, metric="euclidean", want=np.linalg.norm(A[:, None] - A[:2] - 1, axis=-1)),
    c("CDist", A, A[:2] + 1, want=((A[:, None] - A[:2] - 1) ** 2).sum(-1)),
    c("Inverse", MATRICES, want=np.linalg.inv(MATRICES)), c("ExpandDims", A, np.array(-1, np.int32), fixed=(1,),
                                                            want=A[..., None]),
    c("Trilu", A, upper=0, want=np.tril(A)), c("GatherND", A, np.array([[0, 1]]), want=A[[0], [1]]),
    c("Pad", A, np.array([0, 1, 1, 0]), np.array([1.5], np.float32), fixed=(1,),
      want=np.pad(A, [(0, 1), (1, 0)], constant_values=1.5)),
    c("Range", *(np.array(v, np.float32) for v in (1, 7, 2)), want=np.float32([1, 3, 5])),
    c("Unique", np.float32([3, 1, 3, 2]), want=(np.float32([3, 1, 2]), np.array([0, 1, 0, 2]), np.array([2, 1, 1])))]

HEADS, WIDTH = 2, 4
LAYER, SHIFT = f(8, 24), f(24)
Q, K, V = (apart(p, HEADS) for p in np.split(X @ LAYER + SHIFT, 3, -1))
OTHER = f(2, 5, 8), f(2, 5, 8)
KEYS, VALUES = (apart(x, HEADS) for x in OTHER)
MQ = apart(X, HEADS)
FAR, LEAST = -10000.0, np.finfo(np.float32).min
TRIANGLE = np.where(np.tri(3, dtype=bool), 0, LEAST)
SEEN = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
EACH = np.maximum(SEEN[:, None] * SEEN[:, :, None], np.eye(3, dtype=np.int32))
SOME = np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32)
PAST = f(2, 2, HEADS, 4, WIDTH)
EARLIER = [np.concatenate(p, 2) for p in ((PAST[0], K), (PAST[1], V))]
ANGLES, TURNS = f(9, 2), f(9, 2)


def turned(x: Array, at: Array) -> Array:
    """The halves of each head of [batch, length, heads, width] turned as pairs."""
    a, b = np.split(x, 2, -1)
    cos, sin = (t[at][:, :, None] for t in (ANGLES, TURNS))
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attends(*inputs: Any, want: Array, **attributes: Any) -> Fused:
    return c("Attention", X, LAYER, SHIFT, *inputs, want=together(want), num_heads=HEADS, fixed=(1, 2), **attributes)


def several(*inputs: Any, want: Any, **attributes: Any) -> Fused:
    return c("MultiHeadAttention", X, *inputs, want=want, num_heads=HEADS, **attributes)


ATTENTION: list[Fused] = [
    attends(want=attention(Q, K, V)[0]), attends(scale=0.3, want=attention(Q, K, V, scale=0.3)[0]),
    attends(unidirectional=1, want=attention(Q, K, V, TRIANGLE)[0]),
    attends(np.array([2, 3], np.int32), want=attention(Q, K, V, np.where(np.arange(3) < np.reshape([2, 3], (
        2, 1, 1, 1)), 0, FAR))[0]),
    attends(np.array([2, 3, 1, 0], np.int32), want=attention(Q, K, V, np.where(
        (np.arange(3) < np.reshape([2, 3], (2, 1, 1, 1))) & (np.arange(3) >= np.reshape([1, 0], (2, 1, 1, 1))),
        0, FAR))[0]),
    attends(SEEN, want=attention(Q, K, V, np.where(SEEN, 0, FAR)[:, None, None])[0]),
    attends(EACH, want=attention(Q, K, V, np.where(EACH, 0, FAR)[:, None])[0]),
    attends(None, None, BIAS_ := f(1, HEADS, 3, 3), want=attention(Q, K, V, BIAS_)[0]),
    c("Attention", X, LAYER, SHIFT, None, PAST, num_heads=HEADS, fixed=(1, 2),
      want=(together(attention(Q, *EARLIER)[0]), np.stack(EARLIER))),
    several(*OTHER, want=together(attention(MQ, KEYS, VALUES)[0])),
    several(KEYS.copy(), VALUES.copy(), want=together(attention(MQ, KEYS, VALUES)[0])),
    several(*OTHER, SHIFT, want=together(attention(*(apart(x + b, HEADS) for x, b in zip(
        (X, *OTHER), np.split(SHIFT, 3), strict=True)))[0])),
    several(*OTHER, None, SOME, want=together(attention(MQ, KEYS, VALUES, np.where(SOME, 0, FAR)[:, None, None])[0])),
    several(*OTHER, None, None, TABLE := f(1, HEADS, 3, 5), want=together(attention(MQ, KEYS, VALUES, TABLE)[0])),
    several(X, X, None, None, None, PAST[0], PAST[1], want=(
        together(attention(MQ, *(K_ := [np.concatenate((p, MQ), 2) for p in PAST]))[0]), *K_)),
    c("MultiHeadAttention", np.stack([apart(x, HEADS).swapaxes(1, 2) for x in (X, X, X)], 3), num_heads=HEADS,
      want=together(attention(MQ, MQ, MQ)[0])),
    several(np.stack([apart(x, HEADS).swapaxes(1, 2)
      for x in OTHER], 3), want=together(attention(MQ, KEYS, VALUES)[0])),
    c("RotaryEmbedding", X, np.array([2]), ANGLES, TURNS,
      want=turned(X.reshape(2, 3, 2, 4), np.array([[2, 3, 4]])).reshape(X.shape)),
    c("RotaryEmbedding", MQ.copy(), AT_ := np.array([[0, 1, 2], [5, 8, 7]]), ANGLES, TURNS,
      want=turned(MQ.swapaxes(1, 2), AT_).swapaxes(1, 2))]
#: Queries in four heads of 16, keys and values in two.
MANY, SOME_K, SOME_V = f(2, 3, 64), f(2, 3, 32), f(2, 3, 32)
GQ, GK, GV = apart(MANY, 4), apart(SOME_K, 2), apart(SOME_V, 2)
KEPT, ENDS = f(2, 2, 4, 16), (np.array([2, 2], np.int32), np.array(3, np.int32))
COS, SIN = f(9, 8), f(9, 8)
LOWER = np.where(np.tri(3, dtype=bool), 0, -np.inf)
BAND = np.where(np.tri(3, dtype=bool) & ~np.tri(3, k=-2, dtype=bool), 0, -np.inf)
ONE, ONE_K, ONE_V = MANY[:, :1].copy(), SOME_K[:, :1].copy(), SOME_V[:, :1].copy()


def spun(x: Array, first: int = 0) -> Array:
    """The halves of heads of 16 turned by their places."""
    (a, b), at = np.split(x, 2, -1), slice(first, first + x.shape[2])
    return np.concatenate([a * COS[at] - b * SIN[at], b * COS[at] + a * SIN[at]], -1)


def group(*inputs: Any, want: tuple[Array, ...], **attributes: Any) -> Fused:
    return c("GroupQueryAttention", *inputs, want=want, num_heads=4, kv_num_heads=2, **attributes)


def follows() -> Fused:
    """One token after four."""
    k, v = (np.concatenate([KEPT, apart(x, 2)], 2) for x in (ONE_K, ONE_V))
    return group(ONE, ONE_K, ONE_V, KEPT, KEPT, np.array([4, 4], np.int32), np.array(5, np.int32), want=(
        together(attention(apart(ONE, 4), k, v)[0]), k, v))


GROUPS: list[Fused] = [
    group(MANY, SOME_K, SOME_V, None, None, *ENDS, want=(together(attention(GQ, GK, GV, LOWER)[0]), GK, GV)),
    group(np.concatenate([MANY, SOME_K, SOME_V], -1), None, None, None, None, *ENDS, scale=0.3, softcap=0.7,
          want=(together(attention(GQ, GK, GV, LOWER, 0.3, 0.7)[0]), GK, GV)),
    group(MANY, SOME_K, SOME_V, None, None, *ENDS, COS, SIN, do_rotary=1,
          want=(together(attention(spun(GQ), spun(GK), GV, LOWER)[0]), spun(GK), GV)),
    group(MANY, SOME_K, SOME_V, None, None, *ENDS, local_window_size=2,
          want=(together(attention(GQ, GK, GV, BAND)[0]), GK, GV)),
    group(MANY, SOME_K, SOME_V, None, None, *ENDS, causal=0, want=(together(attention(GQ, GK, GV)[0]), GK, GV)),
    follows()]


@pytest.mark.parametrize("case", CASES + ATTENTION + GROUPS, ids=str)
def test_as_the_formula(case: Fused) -> None:
    for want, got in zip([v for v in case.want if v is not None], run(case), strict=True):
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


#: What is refused, and how.
REFUSED: list[tuple[Fused, str]] = [
    (c("FusedGemm", A, B, activation="Sine", want=A @ B), "the activation 'Sine'"),
    (c("CDist", A, A, metric="hamming", want=A), "the metric 'hamming'"),
    (attends(do_rotary=1, want=attention(Q, K, V)[0]), "turns its queries"),
    (attends(np.zeros(8, np.int32), want=attention(Q, K, V)[0]), "packed sequences"),
    (group(MANY, SOME_K, SOME_V, None, None, *ENDS, smooth_softmax=1, want=(MANY, GK, GV)), "a sink"),
    (c("RotaryEmbedding", X, np.array([2]), ANGLES, TURNS, scale=2.0, want=X), "scales them")]


@pytest.mark.parametrize(("case", "why"), REFUSED, ids=[w for _, w in REFUSED])
def test_what_is_refused(case: Fused, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        run(case)
