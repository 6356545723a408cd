"""Integer recurrent cells by their definitions, in Python integers, one element at a time."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from nnx_convert.runtime.fixedmath import Fixed, inv_sqrt
from nnx_convert.runtime.fixedpoint import multiplier
from nnx_convert.types import Quant, Tensor

Array = np.ndarray[Any, Any]
Q12 = 2.0**-12
FIXED = Fixed(16)


def scaled(x: int, m: int, s: int) -> int:
    """x * m * 2 ** (s - 31), rounded twice."""
    y = (x * (1 << max(s, 0)) * m + (1 << 30)) >> 31
    return divided(y, max(-s, 0))


def divided(y: int, n: int) -> int:
    """y / 2 ** n, halves away from zero."""
    return (y + (1 << n >> 1) - (1 if y < 0 and n else 0)) >> n


def wrapped(x: int) -> int:
    """What an int32 keeps of a sum."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def clamp(x: int, bits: int = 16) -> int:
    return max(-1 << bits - 1, min((1 << bits - 1) - 1, x))


def by(*factors: float, over: float) -> tuple[int, int]:
    """The multiplier of a product of scales over another, in float32."""
    product = np.float32(factors[0])
    for f in factors[1:]:
        product = np.float32(product * np.float32(f))
    return multiplier(float(np.float32(product / np.float32(over))))


def logistic(x: int, bits: int = 3) -> int:
    return int(FIXED.logistic(x, bits))


def tanh(x: int, bits: int = 3) -> int:
    return int(FIXED.tanh(x, bits))


def numbers(t: Tensor) -> Array:
    """A constant's elements, as Python integers."""
    assert t.data is not None
    return np.array(t.data.tolist(), object)


@dataclass(frozen=True)
class Cell:
    """LiteRT's 8x8 -> 16 LSTM for one batch; `rows`: the sequence is batch major."""

    w: Any                              # records of constants
    norm: Any
    x: Quant
    h: Quant
    c: Quant
    grids: tuple[float, float, float, float]
    hidden: Quant
    clips: tuple[int, int] = (0, 0)
    rows: bool = False

    @property
    def exponent(self) -> int:
        return round(log2(self.c.scale))

    def sums(self, i: int, x: list[int], h: list[int], c: Array, n: int) -> Iterator[int]:
        """The sums of gate i (of i f c o) for sample n, before its layer norm."""
        w, r, p = self.w[i], self.w[4 + i], (self.w.pi, self.w.pf, None, self.w.po)[i]
        width = r.shape[1]
        first, second = by(w.scale, self.x.scale, over=self.grids[i]), by(r.scale, self.h.scale, over=self.grids[i])
        for u, (wide, back) in enumerate(zip(numbers(w), numbers(r), strict=True)):
            bias = 0 if self.norm.f is not None else int(numbers(self.w[11 + i])[u])
            a = clamp(scaled(bias + sum(k * (v - self.x.zero) for k, v in zip(wide, x, strict=True)), *first))
            a = clamp(scaled(sum(k * (v - self.h.zero) for k, v in zip(back, h, strict=True)), *second) + a)
            at = u if self.rows else n * w.shape[0] + u
            if p is not None and at < (width if self.rows else len(c) * width):
                real = np.float32(2.0**self.exponent * float(np.float32(p.scale)) / float(np.float32(self.grids[i])))
                a = clamp(a + scaled(int(numbers(p)[at % width]) * int(c[n][u]), *multiplier(float(real))))
            yield a

    def normed(self, i: int, a: list[int]) -> list[int]:
        """Layer norm of a gate's sums."""
        weight = self.norm[i]
        if weight is None:
            return a
        count, total = len(a), sum(a) * 1024
        mean = abs(total) // count * (1 if total >= 0 else -1)
        variance = sum(v * v for v in a) * ((1 << 20) // count) - mean * mean
        variance = abs(variance) // (1 << 20) * (1 if variance >= 0 else -1)
        guard = max(1, int(np.float32(10000) * np.float32(weight.scale)))
        m, s = (int(v) for v in inv_sqrt(variance if variance >= 1 else guard))
        last = multiplier(float(np.float32(weight.scale)))
        found = []
        for v, k, b in zip(a, numbers(weight), numbers(self.w[11 + i]), strict=True):
            t = scaled(1024 * v - mean, m, s) * k + b
            t = (abs(t) + 512) // 1024 * (1 if t > 0 else -1)
            found.append(clamp(scaled(int(t), last[0], last[1] + 12)))
        return found

    def gate(self, i: int, x: list[int], h: list[int], c: Array, n: int) -> list[int]:
        return [tanh(v) if i == 2 else logistic(v) for v in self.normed(i, list(self.sums(i, x, h, c, n)))]

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """The states (h, c) after one step of all samples; the sequence's outputs are its h."""
        cells, outs = [], []
        for n in range(len(x)):
            row, back = [int(v) for v in x[n]], [int(v) for v in h[n]]
            f, g = (self.gate(i, row, back, c, n) for i in (1, 2))
            let = [32767 - v for v in f] if self.w.wi is None else self.gate(0, row, back, c, n)
            new = [clamp(divided(a * int(b), 15) + divided(d * e, 30 + self.exponent))
                   for a, b, d, e in zip(f, c[n], let, g, strict=True)]
            cells.append([max(-self.clips[0], min(self.clips[0], v)) for v in new] if self.clips[0] else new)
        for n in range(len(x)):
            o = self.gate(3, [int(v) for v in x[n]], [int(v) for v in h[n]], np.array(cells, object), n)
            outs.append(self.output([a * tanh(b, 15 + self.exponent) for a, b in zip(o, cells[n], strict=True)]))
        return np.array(outs), np.array(cells)

    def output(self, hidden: list[int]) -> list[int]:
        m, s = multiplier(float(np.float32(2.0**-15 / float(np.float32(self.hidden.scale)) * 2.0**-15)))
        if self.w.wp is None:
            return [clamp(scaled(v, m, s) + self.hidden.zero, 8) for v in hidden]
        u = [clamp(scaled(v, m, s) - self.hidden.zero, 8) for v in hidden]
        last = by(self.w.wp.scale, self.hidden.scale, over=self.h.scale)
        bias = [0] * len(numbers(self.w.wp)) if self.w.bp is None else numbers(self.w.bp)
        found = [clamp(scaled(int(sum(k * (v + self.hidden.zero) for k, v in zip(row, u, strict=True)) + b), *last)
                       + self.h.zero, 8) for row, b in zip(numbers(self.w.wp), bias, strict=True)]
        return [max(-self.clips[1], min(self.clips[1], v)) for v in found] if self.clips[1] else found
