"""Between types as ONNX has it: what wraps, what saturates, and the types that NNAPI has not."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import casts as c
from ...types import (
    B8, C64, C128, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, NARROW_FLOATS, NARROW_INTS, STR, Array, Tensor,
    Type)
from ..given import objects
from ..kernel import Run, Site, kernel
from .convert import modular

#: The largest number of the types that saturate.
LARGEST = {F8E4M3FN: 448.0, F8E4M3FNUZ: 240.0, F8E5M2: 57344.0, F8E5M2FNUZ: 57344.0}
#: Of a float32, where the exponent begins, and the bits below it.
EXPONENT, FRACTION = 23, 0x7FFFFF


@kernel(c.CONVERT)
def CONVERT(site: Site, x: Tensor, to: Type, saturate: bool, rounding: int) -> Run:
    source = x.type

    def run(out: Array, x: Array) -> None:
        found = converted(x, source, to, saturate, rounding)
        np.copyto(out, found.reshape(out.shape), casting="unsafe")
    return run


def converted(x: Array, source: Type, to: Type, saturate: bool, rounding: int) -> Array:
    """x as another type."""
    if STR in (source, to):
        return texts(x, source) if to == STR else numbers(x, to)
    if source in (C64, C128) and to not in (C64, C128):
        x = x.real
    if source in NARROW_INTS:                    # which know of no casts to each other
        x = x.astype(np.int8)
    if to == F8E8M0:
        return powers(x.astype(np.float32), saturate, rounding)
    if saturate and to in LARGEST:
        x = np.clip(x.astype(np.float32), -LARGEST[to], LARGEST[to])
    if to in NARROW_INTS or to.dtype.kind in "iu":
        x = x.astype(np.float32) if source in NARROW_FLOATS else x
        if x.dtype.kind == "f":
            x = modular(x, np.dtype(np.int8) if to in NARROW_INTS else to.dtype)
    found: Array = x.astype(to.dtype)
    return found


def powers(x: Array, saturate: bool, rounding: int) -> Array:
    """float32 as powers of two, by the bits: the exponent is the code; 0 is the least, what is infinite no number."""
    bits = x.reshape(-1).view(np.uint32)
    exponent, fraction = bits >> EXPONENT & 0xFF, bits & FRACTION
    half = 1 << EXPONENT - 1
    more = {c.UP: fraction > 0, c.DOWN: np.zeros(bits.shape, bool),
            c.NEAREST: (fraction > half) | (fraction == half) & (exponent > 0)}[rounding]
    more &= (exponent < 0xFF) & ~(saturate & (exponent == 0xFE))
    codes: Array = (exponent + more).astype(np.uint8)
    return codes.view(F8E8M0.dtype).reshape(x.shape)


def texts(x: Array, source: Type) -> Array:
    """Numbers in decimal: integers whole, floats to eight digits, truth values 1 and 0."""
    return objects([_text(v).encode() for v in _plain(x, source).reshape(-1).tolist()]).reshape(x.shape)


def _plain(x: Array, source: Type) -> Array:
    """The elements as Python knows them."""
    if source == B8:
        return x.astype(np.int64)
    if x.dtype.kind in "iufc" and source not in NARROW_FLOATS:
        return x
    return x.astype(np.float32 if source in NARROW_FLOATS else np.int64)


def _text(v: Any) -> str:
    if not isinstance(v, float):
        return str(v)
    return "NaN" if np.isnan(v) else f"{v:.8g}".replace("inf", "INF")


def numbers(x: Array, to: Type) -> Array:
    """Texts as numbers; an integer of a fraction is cut off. Raises `ValueError` on what is no number."""
    words = [bytes(t).decode("utf-8", "replace").strip() for t in x.reshape(-1).tolist()]
    if to in (C64, C128):
        return np.array([complex(w) for w in words], to.dtype).reshape(x.shape)
    if to.dtype.kind == "f" or to in NARROW_FLOATS:
        return np.array([float(w) for w in words], np.float64).astype(to.dtype).reshape(x.shape)
    whole = [_whole(w) & (1 << 64) - 1 for w in words]
    return np.array(whole, np.uint64).astype(np.int64 if to != B8 else np.bool_).astype(to.dtype).reshape(x.shape)


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        return int(float(word))
