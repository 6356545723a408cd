"""Fingerprint64 of FarmHash (`farmhashna::Hash64`), over many keys of one length at a time."""
from __future__ import annotations

import numpy as np

from ..types import Array

U64 = np.uint64
K0, K1, K2 = U64(0xC3A5C85C97CB3127), U64(0xB492B66FBE98F273), U64(0x9AE16A3B2F90404F)
SEED = 81
Pair = tuple[Array, Array]


def fingerprint64(keys: Array) -> Array:
    """The fingerprint (uint64 [n]) of each row of bytes: keys uint8 [n, length]."""
    keys = np.ascontiguousarray(keys, np.uint8)
    with np.errstate(over="ignore"):                       # 64-bit sums and products wrap
        for most, short in ((16, _to16), (32, _to32), (64, _to64)):
            if keys.shape[1] <= most:
                return short(keys)
        return _long(keys)


def _fetch(keys: Array, at: int, width: int = 8) -> Array:
    """Little-endian integers of `width` bytes at an offset of every key."""
    part = np.ascontiguousarray(keys[:, at:at + width])
    return part.view(np.dtype(f"<u{width}"))[:, 0].astype(U64)


def _rotate(x: Array, by: int) -> Array:
    found: Array = x >> U64(by) | x << U64(64 - by)
    return found


def _mix(x: Array) -> Array:
    found: Array = x ^ x >> U64(47)
    return found


def _pair(u: Array, v: Array, mul: Array | np.uint64) -> Array:
    """Two numbers to one (`HashLen16`)."""
    a = _mix((u ^ v) * mul)
    return _mix((v ^ a) * mul) * mul


def _to16(keys: Array) -> Array:
    n, length = keys.shape
    mul = K2 + U64(2 * length)
    if length >= 8:
        a, b = _fetch(keys, 0) + K2, _fetch(keys, length - 8)
        return _pair(_rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul, mul)
    if length >= 4:
        return _pair(U64(length) + (_fetch(keys, 0, 4) << U64(3)), _fetch(keys, length - 4, 4), mul)
    if not length:
        return np.full(n, K2)
    first, middle, last = (keys[:, at].astype(U64) for at in (0, length >> 1, length - 1))
    return _mix((first + (middle << U64(8))) * K2 ^ (U64(length) + (last << U64(2))) * K0) * K2


def _ends(keys: Array, factor: np.uint64, mul: np.uint64) -> Pair:
    """What the first and the last 16 bytes add to a key of 17 to 64."""
    length = keys.shape[1]
    a, b = _fetch(keys, 0) * factor, _fetch(keys, 8)
    c, d = _fetch(keys, length - 8) * mul, _fetch(keys, length - 16) * K2
    return _rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + K2, 18) + c


def _to32(keys: Array) -> Array:
    mul = K2 + U64(2 * keys.shape[1])
    return _pair(*_ends(keys, K1, mul), mul)


def _to64(keys: Array) -> Array:
    length = keys.shape[1]
    mul = K2 + U64(2 * length)
    y, rest = _ends(keys, K2, mul)
    z = _pair(y, rest, mul)
    e, f = _fetch(keys, 16) * mul, _fetch(keys, 24)
    g, h = (y + _fetch(keys, length - 32)) * mul, (z + _fetch(keys, length - 24)) * mul
    return _pair(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + _fetch(keys, 0) * K2, 18) + g, mul)


def _weak(keys: Array, at: int, a: Array, b: Array) -> Pair:
    """32 bytes into two numbers (`WeakHashLen32WithSeeds`)."""
    w, x, y, z = (_fetch(keys, at + 8 * i) for i in range(4))
    a = a + w
    b, c = _rotate(b + a + z, 21), a
    a = a + x + y
    return a + z, b + _rotate(a, 44) + c


def _long(keys: Array) -> Array:
    n, length = keys.shape
    seed = np.full(n, SEED, U64)
    y = seed * K1 + U64(113)
    z = _mix(y * K2 + U64(113)) * K2
    x = seed * K2 + _fetch(keys, 0)
    zero = np.zeros(n, U64)
    v, w = (zero, zero), (zero, zero)
    for at in range(0, (length - 1) // 64 * 64, 64):
        x = _rotate(x + y + v[0] + _fetch(keys, at + 8), 37) * K1 ^ w[1]
        y = _rotate(y + v[1] + _fetch(keys, at + 48), 42) * K1 + v[0] + _fetch(keys, at + 40)
        z = _rotate(z + w[0], 33) * K1
        v = _weak(keys, at, v[1] * K1, x + w[0])
        w = _weak(keys, at + 32, z + w[1], y + _fetch(keys, at + 16))
        z, x = x, z
    return _finish(keys, (x, y, z), v, w)


def _finish(keys: Array, state: tuple[Array, Array, Array], v: Pair, w: Pair) -> Array:
    """The last 64 bytes, which overlap those before, under a multiplier of their own."""
    (x, y, z), length = state, keys.shape[1]
    at, nine = length - 64, U64(9)
    mul = K1 + ((z & U64(0xFF)) << U64(1))
    w = w[0] + U64((length - 1) & 63), w[1]
    v = v[0] + w[0], v[1]
    w = w[0] + v[0], w[1]
    x = _rotate(x + y + v[0] + _fetch(keys, at + 8), 37) * mul ^ w[1] * nine
    y = _rotate(y + v[1] + _fetch(keys, at + 48), 42) * mul + v[0] * nine + _fetch(keys, at + 40)
    z = _rotate(z + w[0], 33) * mul
    v = _weak(keys, at, v[1] * mul, x + w[0])
    w = _weak(keys, at + 32, z + w[1], y + _fetch(keys, at + 16))
    z, x = x, z
    return _pair(_pair(v[0], w[0], mul) + _mix(y) * K0 + z, _pair(v[1], w[1], mul) + x, mul)
