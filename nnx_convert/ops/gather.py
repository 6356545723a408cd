"""Picking rows and elements by index."""
from __future__ import annotations

from typing import Annotated

from ..kinds import AXIS, FROM29I, Int, Ints, Ints1, Mask, T, rank
from ..schema import Rule, op
from ..types import F16, F32, I32, Q8, Q8S, Quant, Tensor


@op(FROM29I, AXIS)
def GATHER(x: T, axis: Int, indices: Ints) -> T:
    """x[..., indices, ...], the indices standing in the place of axis."""
    at = axis % x.rank
    return x.like(x.shape[:at] + indices.shape + x.shape[at + 1:])


@op({F32: 27, I32: 29, Q8: 29, F16: 30, Q8S: 30})
def EMBEDDING_LOOKUP(lookups: Ints1, values: Annotated[T, rank(2, 8)]) -> T:
    """values[lookups]."""
    return values.like((lookups.shape[0], *values.shape[1:]))


@op({F32: 27, I32: 27, Q8: 27}, Rule("keys and values have one length",
                                         lambda keys, values: keys.shape[0] == values.shape[0]),
    outs=("out", "hits"))
def HASHTABLE_LOOKUP(lookups: Ints1, keys: Ints1, values: T) -> tuple[T, Mask]:
    """values[i] where keys[i] is looked up, zero bytes and no hit where no key is."""
    n = lookups.shape[0]
    return values.like((n, *values.shape[1:])), Tensor(Q8, (n,), Quant(1.0, 0))
