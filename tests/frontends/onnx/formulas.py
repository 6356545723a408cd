"""What attention is, in NumPy's float64."""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def f(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def shares(x: Array) -> Array:
    """The softmax of the last axis; 0 where all are -inf."""
    raised = np.exp(x - np.where(np.isinf(x.max(-1, keepdims=True)), 0, x.max(-1, keepdims=True)))
    return np.asarray(raised / np.where(raised.sum(-1, keepdims=True) == 0, 1, raised.sum(-1, keepdims=True)))


def attention(q: Array, k: Array, v: Array, bias: Array | float = 0.0, scale: float | None = None, cap: float = 0.0
              ) -> list[Array]:
    """The context, and the scores, capped ones, masked ones and shares on the way."""
    k, v = (np.repeat(a.astype(np.float64), q.shape[1] // a.shape[1], 1) for a in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    capped = np.tanh(scores / cap) * cap if cap else scores
    share = shares(capped + bias)
    return [np.asarray(a, np.float32) for a in (share @ v, scores, capped, capped + bias, share)]


def apart(x: Array, heads: int) -> Array:
    """The heads of each row."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def together(x: Array) -> Array:
    """Undoes `apart`."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)
