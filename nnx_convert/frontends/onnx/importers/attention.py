"""Attention and what goes with it: matrix products around a softmax, masks as sums."""
from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from ....errors import FormatError
from ....frozen import frozen
from ....graph import Value
from ....ops import elementwise as e, gather, host, norm, reduce as r
from ....ops.shape import CONCATENATION, PAD_V2, SLICE, SPLIT, TRANSPOSE
from ....types import B8, F16, F32, F64, I32, Type, known
from ..importer import Op
from ..registry import PREVIEW, imports
from ..scope import Region
from .elementwise import add, div, mul, number, same, sub, times, where

#: The type that `softmax_precision` names; of bfloat16, whose arithmetic is float32's, none.
PRECISION: dict[int, Type] = {1: F32, 10: F16, 11: F64}


@frozen
class Mask:
    """Which keys a query may see: what is known beforehand [queries, keys], what a run computes, what is added."""

    fixed: np.ndarray | None = None
    computed: tuple[Value, ...] = ()
    added: Value | None = None

    @property
    def empty(self) -> bool:
        """Whether it hides nothing."""
        return self.fixed is None and not self.computed and self.added is None


@frozen
class Steps:
    """What attention computes on its way: scores, those with the cap, those with the mask, their shares, the sum."""

    scores: Value
    capped: Value
    masked: Value
    shares: Value
    context: Value


def attended(g: Op, q: Value, k: Value, v: Value, mask: Mask, *, scale: float | None = None, softcap: float = 0.0,
             precision: Type | None = None, blind: bool = True) -> Steps:
    """softmax(scale * q @ k.T + mask) @ v of [batch, heads, length, width]; keys may have fewer heads than queries.

    `blind`: a query that sees no key has shares of 0.
    """
    scores = scored(g, q, k, 1 / math.sqrt(g.shape(q)[3]) if scale is None else scale)
    capped = scores
    if softcap > 0:
        cap = number(g, scores, softcap)
        capped = mul(g, same(g, e.TANH, div(g, scores, cap)), cap)
    bias = bias_of(g, mask, q.type)
    masked = capped if bias is None else add(g, capped, bias)
    wide = masked if precision is None else g.cast(masked, precision)
    shares = shared(g, wide)
    if blind and bias is not None and may_be_blind(mask):
        most = g(r.REDUCE_MAX, bias, [g.rank(bias) - 1], keep=True)
        nothing = g.elementwise(e.EQUAL, most, number(g, bias, -np.inf))
        shares = where(g, nothing, number(g, shares, 0), shares)
    shares = g.cast(shares, q.type)
    return Steps(scores, capped, masked, shares, product(g, shares, v, False))


def shared(g: Op, x: Value) -> Value:
    """The softmax of the last axis; of halves step by step, each rounded, as ONNX's own precision says."""
    if x.type != F16:
        return g(norm.SOFTMAX, x, beta=1.0, axis=3)
    raised = same(g, e.EXP, sub(g, x, g(r.REDUCE_MAX, x, [3], keep=True)))
    return div(g, raised, g(r.REDUCE_SUM, raised, [3], keep=True))


def scored(g: Op, q: Value, k: Value, scale: float) -> Value:
    """scale * q @ k.T; of halves both are scaled by its root, as ONNX says it, lest a product is out of their range."""
    if q.type == F16 and scale > 0:
        return product(g, times(g, q, math.sqrt(scale)), times(g, k, math.sqrt(scale)), True)
    return product(g, times(g, q, scale), k, True)


def product(g: Op, x: Value, y: Value, turned: bool) -> Value:
    """x @ y head by head, y turned first: each head of y with a run of heads of x."""
    batch, heads, rows, depth = g.shape(x)
    fewer = g.shape(y)[1]
    if not known(heads) or not known(fewer) or heads == fewer:
        return g(host.MATMUL, x, y, adj_x=False, adj_y=turned)
    if not fewer or heads % fewer:
        raise FormatError(f"{heads} heads of queries do not go into {fewer} of keys")
    found = g(host.MATMUL, g.reshape(x, (batch, fewer, heads // fewer * rows, depth)), y, adj_x=False, adj_y=turned)
    return g.reshape(found, (batch, heads, rows, g.shape(found)[-1]))


def bias_of(g: Op, mask: Mask, kind: Type) -> Value | None:
    """The mask as numbers to add, -inf where a key is hidden; None where nothing is."""
    zero = g.const(np.zeros((), kind.dtype), kind)
    if mask.empty:
        return None
    seen = list(mask.computed)
    if mask.fixed is not None:
        if not seen and mask.added is None:
            return g.const(np.where(mask.fixed, 0, -np.inf).astype(kind.dtype), kind)
        seen.append(g.const(mask.fixed, B8))
    if not seen:
        return mask.added
    whole = reduce(lambda a, b: g.elementwise(e.LOGICAL_AND, a, b), seen)
    return where(g, whole, zero if mask.added is None else mask.added, number(g, zero, -np.inf))


def may_be_blind(mask: Mask) -> bool:
    """Whether a query may see nothing at all: its share of all keys is 0 then, by definition."""
    return bool(mask.computed) or mask.added is not None or mask.fixed is not None and not mask.fixed.any(-1).all()


def heads_apart(g: Op, x: Value, heads: int) -> Value:
    """[batch, length, heads * width] as [batch, heads, length, width]."""
    batch, length, full = g.shape(x)
    if not heads or known(full) and full % heads:
        raise FormatError(f"{full} numbers are no {heads} heads")
    return g(TRANSPOSE, g.reshape(x, (batch, length, heads, full // heads)), [0, 2, 1, 3])


def heads_together(g: Op, x: Value) -> Value:
    """[batch, heads, length, width] as [batch, length, heads * width]."""
    batch, heads, length, width = g.shape(x)
    return g.reshape(g(TRANSPOSE, x, [0, 2, 1, 3]), (batch, length, heads * width))


def joined(g: Op, past: Value | None, x: Value) -> Value:
    """What was kept, then what is new, along the axis of length."""
    return x if past is None else g(CONCATENATION, xs=(past, x), axis=2)


def visible(length: int, total: int, offset: int, right: int | None, left: int | None) -> np.ndarray:
    """Which keys a query at `offset` and after it sees, at most so many to either side of its own place."""
    apart = np.arange(total)[None, :] - (np.arange(length)[:, None] + offset)
    found = np.ones((length, total), bool)
    if right is not None:
        found &= apart <= right
    return found & (-apart <= left) if left is not None else found


def places(g: Op, x: Value, axis: int) -> tuple[Value, Value]:
    """The places along an axis of any size, and how many there are, as INT32."""
    size = g.call("Gather", g.call("Shape", x)[0], g.const(np.array(axis)), axis=0)[0]
    ramp = g.call("Range", g.const(np.array(0)), size, g.const(np.array(1)))[0]
    return g.cast(ramp, I32), g.cast(size, I32)


def visible_in_run(g: Op, q: Value, k: Value, left: int | None = None) -> Value:
    """`visible` for open sizes, right 0: queries are the last of the keys. Both [batch, heads, length, width]."""
    (queries, length), (keys, total) = places(g, q, 2), places(g, k, 2)
    own = add(g, queries, sub(g, total, length))
    own = g.reshape(own, (*g.shape(own), 1))
    seen = g.elementwise(e.LESS_EQUAL, keys, own)
    if left is None:
        return seen
    return g.elementwise(e.LOGICAL_AND, seen, g.elementwise(e.GREATER_EQUAL, keys, sub(g, own, number(g, own, left))))


def padded(g: Op, mask: Value, total: int) -> Value:
    """A mask of numbers with -inf for the keys it says nothing of."""
    n = g.shape(mask)[-1]
    if not known(n) or not known(total) or n == 1 or n >= total:
        return mask
    return g(PAD_V2, mask, [[0, 0]] * (g.rank(mask) - 1) + [[0, total - n]], value=-np.inf)


def given_mask(g: Op, mask: Value, total: int, kind: Type) -> tuple[tuple[Value, ...], Value | None]:
    """A mask of truth values or of numbers, as long as the keys are."""
    n = g.shape(mask)[-1]
    if mask.type != B8:
        return (), padded(g, mask, total)
    if not known(n) or not known(total) or n == 1 or n >= total:
        return (mask,), None
    zero = g.const(np.zeros((), kind.dtype), kind)
    return (), padded(g, where(g, mask, zero, number(g, zero, -np.inf)), total)


def counted(g: Op, counts: Value, length: int, total: int, right: int | None, left: int | None) -> list[Value]:
    """Which keys a query sees where each of a batch has a count of keys: those counted, near its place among them."""
    count = g.reshape(g.cast(counts, I32), (g.shape(counts)[0], 1, 1, 1))
    at = g.const(np.arange(total, dtype=np.int32).reshape(1, 1, 1, total))
    seen = [g.elementwise(e.LESS, at, count)]
    if right is None and left is None:
        return seen
    apart = sub(g, sub(g, at, g.const(np.arange(length, dtype=np.int32).reshape(1, 1, length, 1))),
                sub(g, count, number(g, count, length)))
    if right is not None:
        seen.append(g.elementwise(e.LESS_EQUAL, apart, number(g, count, right)))
    if left is not None:
        seen.append(g.elementwise(e.GREATER_EQUAL, apart, number(g, count, -left)))
    return seen


@imports(arithmetic=True)
def Attention(g: Op, q: Value, k: Value, v: Value, attn_mask: Value | None = None, past_key: Value | None = None,
              past_value: Value | None = None, nonpad_kv_seqlen: Value | None = None, *, is_causal: int = 0,
              kv_num_heads: int = 0, q_num_heads: int = 0, qk_matmul_output_mode: int = 0, scale: float | None = None,
              softcap: float = 0.0, softmax_precision: int = 0, left_window_size: int = -1,
              right_window_size: int = -1) -> Any:
    flat = g.rank(q) == 3
    if flat:
        q, k, v = heads_apart(g, q, q_num_heads), heads_apart(g, k, kv_num_heads), heads_apart(g, v, kv_num_heads)
    k, v = joined(g, past_key, k), joined(g, past_value, v)
    length, total = g.shape(q)[2], g.shape(k)[2]
    right = 0 if is_causal else right_window_size if right_window_size >= 0 else None
    left = left_window_size if left_window_size >= 0 else None
    near = right is not None or left is not None
    offset = 0 if past_key is None else g.shape(past_key)[2]
    if (near or nonpad_kv_seqlen is not None) and not all(map(known, (length, total, offset))):
        return NotImplemented
    seen, added = ((), None) if attn_mask is None else given_mask(g, attn_mask, total, q.type)
    if nonpad_kv_seqlen is not None:
        mask = Mask(None, (*seen, *counted(g, nonpad_kv_seqlen, length, total, right, left)), added)
    else:
        mask = Mask(visible(length, total, offset, right, left) if near else None, seen, added)
    steps = attended(g, q, k, v, mask, scale=scale, softcap=softcap, precision=PRECISION.get(softmax_precision))
    tap = (steps.scores, steps.capped, steps.masked, steps.shares)[qk_matmul_output_mode]
    return heads_together(g, steps.context) if flat else steps.context, k, v, tap


@imports(domain=PREVIEW, arithmetic=True)
def FlexAttention(g: Op, q: Value, k: Value, v: Value, *, scale: float | None = None, softmax_precision: int = 1,
                  score_mod: Region | None = None, prob_mod: Region | None = None) -> Value:
    """With graphs that change the scores and their shares."""
    width = g.shape(q)[3]
    scores = scored(g, q, k, 1 / math.sqrt(width) if scale is None else scale)
    scores = g.cast(scores, PRECISION.get(softmax_precision, F32) if q.type != F64 else F64)
    if score_mod is not None:
        scores = value(g.inline(score_mod, [scores]))
    shares = g(norm.SOFTMAX, scores, beta=1.0, axis=3)
    if prob_mod is not None:
        shares = value(g.inline(prob_mod, [shares]))
    return product(g, g.cast(shares, q.type), v, False)


def value(found: list[Any]) -> Value:
    """The one output of a graph; raises `FormatError` where it has others."""
    if len(found) != 1 or not isinstance(found[0], Value):
        raise FormatError("a modifier gives one tensor")
    return found[0]


@imports(arithmetic=True)
def RotaryEmbedding(g: Op, x: Value, cos_cache: Value, sin_cache: Value, position_ids: Value | None = None, *,
                    num_heads: int = 0, rotary_embedding_dim: int = 0, interleaved: int = 0) -> Value:
    cos, sin = rows(g, cos_cache, position_ids), rows(g, sin_cache, position_ids)
    return rotated(g, x, cos, sin, num_heads, rotary_embedding_dim, bool(interleaved))


def rows(g: Op, cache: Value, at: Value | None) -> Value:
    """The rows of a table at positions; all of it without these."""
    if at is None:
        return cache
    return g(gather.GATHER, cache, axis=0, indices=g.index(at))


def rotated(g: Op, x: Value, cos: Value, sin: Value, heads: int, width: int, interleaved: bool) -> Value:
    """x of rank 3 or 4, the first `width` numbers of each head turned as pairs by angles [batch, length, width / 2]."""
    flat, shape = g.rank(x) == 3, g.shape(x)
    if flat:
        if not heads:
            raise FormatError("the number of heads is not said")
        x = g.reshape(x, (*shape[:2], heads, shape[2] // heads))
    full, half = g.shape(x)[3], g.shape(cos)[-1]
    width = width or full
    if known(half) and known(width) and 2 * half != width:
        raise FormatError(f"{half} angles turn {2 * half} numbers, not {width}")
    batch, length = g.shape(cos)[:2]
    cos, sin = (g.reshape(c, (batch, length, 1, half) if flat else (batch, 1, length, half)) for c in (cos, sin))
    turned = part(g, x, 0, width)
    a, b = pairs(g, turned, interleaved)
    real, imaginary = sub(g, mul(g, cos, a), mul(g, sin, b)), add(g, mul(g, sin, a), mul(g, cos, b))
    found = together(g, real, imaginary, interleaved)
    if width != full:
        found = g(CONCATENATION, xs=(found, part(g, x, width, full)), axis=3)
    return g.reshape(found, shape) if flat else found


def part(g: Op, x: Value, first: int, last: int) -> Value:
    """Some of the last axis."""
    if first == 0 and last == g.shape(x)[3]:
        return x
    return g(SLICE, x, [0, 0, 0, first], [-1, -1, -1, last - first])


def pairs(g: Op, x: Value, interleaved: bool) -> tuple[Value, Value]:
    """The halves of the last axis, or what stands at its even and odd places."""
    if not interleaved:
        a, b = g.add(SPLIT, x, axis=3, count=2)
        return a, b
    *lead, n = g.shape(x)
    both = g.reshape(x, (*lead, n // 2, 2))
    a, b = g.add(SPLIT, both, axis=4, count=2)
    return g.reshape(a, (*lead, n // 2)), g.reshape(b, (*lead, n // 2))


def together(g: Op, a: Value, b: Value, interleaved: bool) -> Value:
    """Undoes `pairs`."""
    if not interleaved:
        return g(CONCATENATION, xs=(a, b), axis=3)
    *lead, n = g.shape(a)
    both = g(CONCATENATION, xs=tuple(g.reshape(v, (*lead, n, 1)) for v in (a, b)), axis=4)
    return g.reshape(both, (*lead, 2 * n))
