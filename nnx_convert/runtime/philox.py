"""Philox 4x32-10, the counter-based generator that TensorFlow's random operations draw from.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""
from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from ..types import Array

ROUNDS = 10
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEPS = 0x9E3779B9, 0xBB67AE85
LOW = 0xFFFFFFFF
SHIFT = np.uint64(32)


def words(count: int, seed: int, seed2: int) -> Array:
    """`count` words of 32 bits, four per step of the counter: the seed is the key, seed2 the counter's upper half.

    Seeds of 0 and 0 stand for others by chance.
    """
    if not (seed or seed2):
        seed, seed2 = secrets.randbits(64), secrets.randbits(64)
    steps = np.arange(-(-count // 4), dtype=np.uint64)
    zeros = np.zeros_like(steps)
    counter = [steps & np.uint64(LOW), steps >> SHIFT, zeros + np.uint64(seed2 & LOW),
               zeros + np.uint64(seed2 >> 32 & LOW)]
    key = [seed & LOW, seed >> 32 & LOW]
    for _ in range(ROUNDS):
        counter = turned(counter, key)
        key = [(k + s) & LOW for k, s in zip(key, STEPS, strict=True)]
    return np.stack(counter, -1).reshape(-1)[:count].astype(np.uint32)


def turned(counter: Sequence[Array], key: Sequence[int]) -> list[Array]:
    """One round: four words of 32 bits, each in a uint64."""
    one, two = (f * c for f, c in zip(FACTORS, (counter[0], counter[2]), strict=True))
    low = np.uint64(LOW)
    return [two >> SHIFT ^ counter[1] ^ np.uint64(key[0]), two & low,
            one >> SHIFT ^ counter[3] ^ np.uint64(key[1]), one & low]


def fractions(bits: Array) -> Array:
    """Words as float32 in [0, 1): 23 bits of each are the mantissa of a number in [1, 2), less 1."""
    mantissa = bits & np.uint32(0x7FFFFF) | np.uint32(127 << 23)
    return np.asarray(mantissa.view(np.float32) - np.float32(1))


def normal(bits: Array) -> Array:
    """An even number of words as normally distributed float32, by Box and Muller's rule, two from two."""
    first, second = fractions(bits[0::2]), fractions(bits[1::2])
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(first, np.float32(1e-7))))
    angle = np.float32(2 * np.pi) * second
    return np.stack((np.sin(angle) * radius, np.cos(angle) * radius), -1).reshape(-1)
