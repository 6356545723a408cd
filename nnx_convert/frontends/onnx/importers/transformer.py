"""ONNX Runtime's operators of attention."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e
from ....ops.shape import CONCATENATION, SLICE, SPLIT
from ....symbols import same
from ....types import I32, known
from ..importer import Op
from ..registry import MICROSOFT, imports
from .attention import (
    Mask,
    attended,
    heads_apart,
    heads_together,
    joined,
    places,
    rotated,
    rows,
    visible,
    visible_in_run,
)
from .elementwise import add, number, sub, where
from .matmul import product

#: What hides a key for good.
LEAST = float(np.finfo(np.float32).min)


def hidden(g: Op, mask: Value, batch: int, k: Value, like: Value, value: float) -> Value:
    """A mask as numbers to add to [batch, heads, length, total]: `value` where a key is hidden.

    Of rank 1 it counts the keys of each row, and says after these counts where they begin if it is twice as long; of
    rank 2 to 4 it is 0 where a key is hidden. Raises `Unsupported`.
    """
    if g.rank(mask) == 1:
        seen = between(g, mask, batch, k)
    else:
        shape = g.shape(mask)
        full = (shape[0],) + (1,) * (4 - len(shape)) + shape[1:]
        seen = g.elementwise(e.GREATER, g.reshape(g.cast(mask, I32), full), g.const(np.zeros((), np.int32)))
    return where(g, seen, number(g, like, 0), number(g, like, value))


def between(g: Op, counts: Value, batch: int, k: Value) -> Value:
    """Whether a key is among those counted of each row; see `hidden`."""
    n = g.shape(counts)[0]
    double = known(n) and known(batch) and n == 2 * batch
    if not double and not same(n, batch):
        g.unsupported("has a mask of packed sequences, or of open sizes")
    at, _ = places(g, k, 2)
    ends = [g.reshape(v, (batch, 1, 1, 1)) for v in (
        g.add(SPLIT, g.cast(counts, I32), axis=0, count=2) if double else [g.cast(counts, I32)])]
    seen = g.elementwise(e.LESS, at, ends[0])
    if len(ends) == 1:
        return seen
    return g.elementwise(e.LOGICAL_AND, seen, g.elementwise(e.GREATER_EQUAL, at, ends[1]))


def masked(g: Op, q: Value, k: Value, batch: int, mask: Value | None, filter_: float, unidirectional: int,
           bias: Value | None) -> Mask:
    """All that is added to scores, as one sum."""
    length, total = g.shape(q)[2], g.shape(k)[2]
    parts = [] if mask is None else [hidden(g, mask, batch, k, q, filter_)]
    if unidirectional and known(length) and known(total):
        seen = visible(length, total, total - length, 0, None)
        parts.append(g.const(np.where(seen, 0, LEAST).astype(q.type.dtype), q.type))
    elif unidirectional:
        parts.append(where(g, visible_in_run(g, q, k), number(g, q, 0), number(g, q, LEAST)))
    parts += [] if bias is None else [bias]
    return Mask(added=reduce(lambda a, b: add(g, a, b), parts)) if parts else Mask()


@imports("Attention", domain=MICROSOFT, arithmetic=True)
def packed_attention(g: Op, x: Value, weights: Value, bias: Value | None = None, mask_index: Value | None = None,
                     past: Value | None = None, attention_bias: Value | None = None,
                     past_sequence_length: Value | None = None, *, num_heads: int, do_rotary: int = 0,
                     mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0,
                     qkv_hidden_sizes: tuple[int, ...] = (), rotary_embedding_dim: int = 0,
                     scale: float | None = None, unidirectional: int = 0) -> Sequence[Value | None]:
    """One product makes queries, keys and values; the past ones of both lie in one tensor."""
    if do_rotary or past_present_share_buffer:
        g.unsupported("turns its queries, or shares buffers")
    whole = product(g, x, weights)
    parts = cut(g, whole if bias is None else add(g, whole, bias), qkv_hidden_sizes)
    q, k, v = (heads_apart(g, p, num_heads) for p in parts)
    if past is not None:
        before = [g.reshape(p, g.shape(p)[1:]) for p in g.add(SPLIT, past, axis=0, count=2)]
        k, v = joined(g, before[0], k), joined(g, before[1], v)
    mask = masked(g, q, k, g.shape(x)[0], mask_index, mask_filter_value, unidirectional, attention_bias)
    y = heads_together(g, attended(g, q, k, v, mask, scale=scale or None, blind=False).context)
    if not g.wanted(1):
        return y, None
    return y, g(CONCATENATION, xs=tuple(g.reshape(p, (1, *g.shape(p))) for p in (k, v)), axis=0)


def cut(g: Op, x: Value, sizes: Sequence[int]) -> Sequence[Value]:
    """The last axis in three parts: as long as is said, or alike."""
    if not sizes or len(set(sizes)) == 1:
        return g.add(SPLIT, x, axis=2, count=3)
    starts = np.cumsum([0, *sizes]).tolist()
    return [g(SLICE, x, [0, 0, a], [-1, -1, n]) for a, n in zip(starts, sizes, strict=False)]


@imports(domain=MICROSOFT, arithmetic=True)
def MultiHeadAttention(g: Op, query: Value, key: Value | None = None, value: Value | None = None,
                       bias: Value | None = None, key_padding_mask: Value | None = None,
                       attention_bias: Value | None = None, past_key: Value | None = None,
                       past_value: Value | None = None, past_sequence_length: Value | None = None,
                       cache_indirection: Value | None = None, *, num_heads: int, mask_filter_value: float = -10000.0,
                       scale: float | None = None, unidirectional: int = 0) -> Sequence[Value | None]:
    if cache_indirection is not None or past_sequence_length is not None:
        g.unsupported("shares buffers")
    q, k, v = queries(g, query, key, value, bias, num_heads)
    k, v = joined(g, past_key, k), joined(g, past_value, v)
    mask = masked(g, q, k, g.shape(q)[0], key_padding_mask, mask_filter_value, unidirectional, attention_bias)
    steps = attended(g, q, k, v, mask, scale=scale or None, blind=False)
    return heads_together(g, steps.context), k, v, steps.scores


def queries(g: Op, query: Value, key: Value | None, value: Value | None, bias: Value | None, heads: int
            ) -> Sequence[Value]:
    """Queries, keys and values [batch, heads, length, width], out of one tensor, two, or three."""
    given = [query, key, value]
    if g.rank(query) == 5 or key is not None and g.rank(key) == 5:
        packed = query if key is None else key
        count = g.shape(packed)[3]
        batch, length, _, _, width = g.shape(packed)
        flat = [g.reshape(p, (batch, length, heads * width)) for p in g.add(SPLIT, packed, axis=3, count=count)]
        given = [*[query][:3 - count], *flat]
    if bias is not None:
        sizes = [g.shape(p)[-1] if p is not None and g.rank(p) == 3 else 0 for p in given]
        if sizes[1] == 0:
            sizes = [sizes[0]] * 3
        given = [p if p is None or g.rank(p) != 3 else add(g, p, b) for p, b in zip(
            given, pieces(g, bias, sizes), strict=True)]
    if any(p is None for p in given):
        raise FormatError("has queries without keys, or keys without values")
    return [p if g.rank(p) == 4 else heads_apart(g, p, heads) for p in given if p is not None]


def pieces(g: Op, x: Value, sizes: Sequence[int]) -> Sequence[Value]:
    """A vector in parts of these sizes."""
    starts = np.cumsum([0, *sizes]).tolist()
    return [g(SLICE, x, [a], [n]) if n else x for a, n in zip(starts, sizes, strict=False)]


@imports("RotaryEmbedding", domain=MICROSOFT, arithmetic=True)
def rotary_by_position(g: Op, x: Value, position_ids: Value, cos_cache: Value, sin_cache: Value, *,
                       interleaved: int = 0, is_packed_batching: int = 0, num_heads: int = 0,
                       rotary_embedding_dim: int = 0, scale: float = 1.0) -> Value:
    """Of one position only, that of the first: the others follow it."""
    if is_packed_batching or scale != 1:
        g.unsupported("turns packed rows, or scales them")
    flat, half = g.rank(x) == 3, g.shape(cos_cache)[1]
    heads = num_heads or (int(g.shape(x)[2]) // (2 * half) if flat else 0)
    if g.rank(position_ids) == 1:
        length = g.shape(x)[1 if flat else 2]
        if not known(length):
            g.unsupported("turns an open number of positions", "give the input sizes")
        ramp = g.const(np.arange(length, dtype=np.int32).reshape(1, length))
        position_ids = add(g, ramp, g.reshape(g.index(position_ids), (1, 1)))
    cos, sin = rows(g, cos_cache, position_ids), rows(g, sin_cache, position_ids)
    return rotated(g, x, cos, sin, heads, rotary_embedding_dim, bool(interleaved))


@imports(domain=MICROSOFT, arithmetic=True)
def GroupQueryAttention(g: Op, query: Value, key: Value | None, value: Value | None, past_key: Value | None,
                        past_value: Value | None, seqlens_k: Value, total_sequence_length: Value,
                        cos_cache: Value | None = None, sin_cache: Value | None = None,
                        position_ids: Value | None = None, attention_bias: Value | None = None,
                        head_sink: Value | None = None, *, num_heads: int, kv_num_heads: int,
                        scale: float | None = None,
                        softcap: float = 0.0, local_window_size: int = -1, do_rotary: int = 0,
                        rotary_interleaved: int = 0, smooth_softmax: int = 0, causal: int = 1,
                        qk_output: int = 0) -> Sequence[Value | None]:
    """What was kept is whole and the new follows it, for all of a batch alike: no room left over in the buffers."""
    if head_sink is not None or smooth_softmax > 0 or qk_output:
        g.unsupported("has a softmax with a sink, or shows its scores")
    parts = grouped(g, query, key, value, num_heads, kv_num_heads)
    past = 0 if past_key is None else g.shape(past_key)[2]
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise FormatError("turns its queries without angles")
        at = position_ids if position_ids is not None else following(g, seqlens_k, query, past)
        cos, sin = rows(g, cos_cache, at), rows(g, sin_cache, at)
        parts = [*(rotated(g, p, cos, sin, n, 2 * int(g.shape(cos)[-1]), bool(rotary_interleaved))
                   for p, n in zip(parts, (num_heads, kv_num_heads), strict=False)), parts[2]]
    q, k, v = (heads_apart(g, p, n) for p, n in zip(parts, (num_heads, kv_num_heads, kv_num_heads), strict=True))
    k, v = joined(g, past_key, k), joined(g, past_value, v)
    mask = Mask(*(backward(g, q, k, local_window_size) if causal else (None, ())), added=attention_bias)
    steps = attended(g, q, k, v, mask, scale=scale or None, softcap=softcap, blind=False)
    return heads_together(g, steps.context), k, v


def grouped(g: Op, query: Value, key: Value | None, value: Value | None, heads: int, fewer: int) -> list[Value]:
    """Queries, keys and values, which may come in one tensor."""
    if key is not None and value is not None:
        return [query, key, value]
    width = int(g.shape(query)[2]) // (heads + 2 * fewer)
    return list(cut(g, query, (heads * width, fewer * width, fewer * width)))


def following(g: Op, last: Value, query: Value, past: int) -> Value:
    """The places of what is new: after what was kept, up to the last of each row."""
    ramp, length = places(g, query, 1)
    ramp = g.reshape(ramp, (1, *g.shape(ramp)))
    if known(past):
        return add(g, ramp, number(g, ramp, past))
    first = add(g, g.cast(last, I32), sub(g, number(g, ramp, 1), length))
    return add(g, ramp, g.reshape(first, (g.shape(last)[0], 1)))


def backward(g: Op, q: Value, k: Value, window: int) -> tuple[np.ndarray | None, tuple[Value, ...]]:
    """Which keys a query sees, known or computed: those before it and its own, of these so many; None where all."""
    length, total, left = g.shape(q)[2], g.shape(k)[2], window - 1 if window >= 0 else None
    if known(length) and length == 1 and left is None:
        return None, ()
    if not known(length) or not known(total):
        return None, (visible_in_run(g, q, k, left),)
    return visible(length, total, total - length, 0, left), ()
