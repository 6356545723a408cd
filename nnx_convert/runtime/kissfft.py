"""Kiss FFT in fixed point (github.com/mborgerding/kissfft, kiss_fft.c and tools/kiss_fftr.c), bit for bit.

Numbers are integers of `bits` bits with all but the sign behind the point; every stage divides by its radix. Sums
wrap as they do in C. Lengths are powers of two, real transforms of `length` samples are complex ones of half of it.
"""
from __future__ import annotations

from functools import cached_property

import numpy as np

from ..frozen import frozen
from ..types import Array

I64 = np.int64


@frozen
class Fixed:
    """The arithmetic of one width: 16 or 32 bits."""

    bits: int

    @property
    def most(self) -> int:
        """What stands for one: the largest number."""
        return (1 << self.bits - 1) - 1

    def wrap(self, x: Array) -> Array:
        """What storing in this many bits leaves of a sum."""
        shift = 64 - self.bits
        return x << shift >> shift

    def round(self, x: Array) -> Array:
        """A product as a number again."""
        return self.wrap(x + (1 << self.bits - 2) >> self.bits - 1)

    def over(self, x: Array, by: int) -> Array:
        """x / by."""
        return self.round(x * (self.most // by))

    def times(self, a: Pair, b: Pair) -> Pair:
        """The complex product."""
        return self.round(a[0] * b[0] - a[1] * b[1]), self.round(a[0] * b[1] + a[1] * b[0])

    def plus(self, a: Pair, b: Pair) -> Pair:
        """The sum."""
        return self.wrap(a[0] + b[0]), self.wrap(a[1] + b[1])

    def minus(self, a: Pair, b: Pair) -> Pair:
        """The difference."""
        return self.wrap(a[0] - b[0]), self.wrap(a[1] - b[1])

    def turns(self, phases: Array) -> Pair:
        """The numbers of magnitude one at angles."""
        return (np.floor(0.5 + self.most * np.cos(phases)).astype(I64),
                np.floor(0.5 + self.most * np.sin(phases)).astype(I64))


#: Real and imaginary parts.
Pair = tuple[Array, Array]


@frozen
class Transform:
    """The transform of rows of `length` real samples, or back."""

    length: int
    bits: int
    inverse: bool = False

    @cached_property
    def fixed(self) -> Fixed:
        """Its arithmetic."""
        return Fixed(self.bits)

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """Fours while they divide, then a two, outermost first."""
        found, rest = [], self.length // 2
        while rest > 1:
            found.append(4 if rest % 4 == 0 else 2)
            rest //= found[-1]
        return tuple(found)

    @cached_property
    def twiddles(self) -> Pair:
        """exp(-2 pi i k / n), n being half the length."""
        n = self.length // 2
        return self.fixed.turns((2 if self.inverse else -2) * np.pi * np.arange(n) / n)

    @cached_property
    def halves(self) -> Pair:
        """What joins the two halves of a real transform."""
        n = self.length // 2
        return self.fixed.turns((np.pi if self.inverse else -np.pi) * (np.arange(1, n // 2 + 1) / n + 0.5))

    def complex(self, re: Array, im: Array) -> Pair:
        """The complex transform along the last axis."""
        shape, n = re.shape, self.length // 2
        split = (-1, *reversed(self.radices))
        order = (0, *range(len(self.radices), 0, -1))
        x: Pair = (re.reshape(split).transpose(order).reshape(-1, n), im.reshape(split).transpose(order).reshape(-1, n))
        m = 1
        for p in reversed(self.radices):
            x = self.stage(x, p, m)
            m *= p
        return x[0].reshape(shape), x[1].reshape(shape)

    def stage(self, x: Pair, p: int, m: int) -> Pair:
        """One level of butterflies: p transforms of m elements become one of p * m."""
        n, k, f = self.length // 2, np.arange(m), self.fixed
        parts = [(f.over(x[0].reshape(-1, p, m)[:, q], p), f.over(x[1].reshape(-1, p, m)[:, q], p)) for q in range(p)]
        step = n // (p * m)
        turned = [parts[0]] + [f.times(parts[q], (self.twiddles[0][q * k * step], self.twiddles[1][q * k * step]))
                               for q in range(1, p)]
        found = self.four(turned) if p == 4 else [f.plus(*turned), f.minus(*turned)]
        return np.stack([v[0] for v in found], 1).reshape(-1, n), np.stack([v[1] for v in found], 1).reshape(-1, n)

    def four(self, t: list[Pair]) -> list[Pair]:
        """The butterfly of radix four."""
        f = self.fixed
        down, up = f.minus(t[0], t[2]), f.plus(t[0], t[2])
        both, apart = f.plus(t[1], t[3]), f.minus(t[1], t[3])
        turned = (-apart[1], apart[0]) if self.inverse else (apart[1], -apart[0])
        return [f.plus(up, both), f.plus(down, turned), f.minus(up, both), f.minus(down, turned)]

    def forward(self, x: Array) -> Array:
        """Rows of `length` samples as rows of length / 2 + 1 pairs."""
        f, n, wide = self.fixed, self.length // 2, x.astype(I64)
        re, im = self.complex(wide[..., 0::2], wide[..., 1::2])
        out = np.zeros((*x.shape[:-1], n + 1, 2), I64)
        dc = f.over(re[..., 0], 2), f.over(im[..., 0], 2)
        out[..., 0, 0], out[..., n, 0] = f.wrap(dc[0] + dc[1]), f.wrap(dc[0] - dc[1])
        k = np.arange(1, n // 2 + 1)
        a = f.over(re[..., k], 2), f.over(im[..., k], 2)
        b = f.over(re[..., n - k], 2), f.over(f.wrap(-im[..., n - k]), 2)
        even, odd = f.plus(a, b), f.times(f.minus(a, b), self.halves)
        out[..., k, 0], out[..., k, 1] = even[0] + odd[0] >> 1, even[1] + odd[1] >> 1
        out[..., n - k, 0], out[..., n - k, 1] = even[0] - odd[0] >> 1, odd[1] - even[1] >> 1
        return out.reshape(*x.shape[:-1], self.length + 2).astype(x.dtype)

    def backward(self, x: Array) -> Array:
        """Rows of length / 2 + 1 pairs as rows of `length` samples."""
        f, n = self.fixed, self.length // 2
        pairs = x.astype(I64).reshape(*x.shape[:-1], n + 1, 2)
        re, im = pairs[..., 0], pairs[..., 1]
        joined = np.zeros((2, *x.shape[:-1], n), I64)
        first = f.wrap(re[..., 0] + re[..., n]), f.wrap(re[..., 0] - re[..., n])
        joined[0, ..., 0], joined[1, ..., 0] = f.over(first[0], 2), f.over(first[1], 2)
        k = np.arange(1, n // 2 + 1)
        a = f.over(re[..., k], 2), f.over(im[..., k], 2)
        b = f.over(re[..., n - k], 2), f.over(f.wrap(-im[..., n - k]), 2)
        even, odd = f.plus(a, b), f.times(f.minus(a, b), self.halves)
        joined[0][..., k], joined[1][..., k] = f.plus(even, odd)
        back = f.minus(even, odd)
        joined[0][..., n - k], joined[1][..., n - k] = back[0], f.wrap(-back[1])
        found = self.complex(joined[0], joined[1])
        return np.stack(found, -1).reshape(*x.shape[:-1], self.length).astype(x.dtype)
