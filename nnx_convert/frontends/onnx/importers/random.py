"""Random draws: the same in each run where the file gives a seed, new ones in each run where it gives none."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import control, elementwise as e, host_math as h
from ....schema import OpDef
from ....types import BF16, F16, F32, F64, I32, I64, Type, known
from ..constants import type_of
from ..importer import Op
from ..registry import imports
from .axes import lengths, ranked
from .elementwise import add, number, times

#: The types that numbers are drawn in, and those that classes are counted in.
REAL, COUNTED = (F32, F16, F64, BF16), (I32, I64)


def seeds(seed: float | None) -> tuple[int, int]:
    """The bits of a seed and a 1, since two zeros ask for a new draw each time."""
    return (0, 0) if seed is None else (int(np.float32(seed).view(np.int32)), 1)


def chosen(element: int, there: Sequence[Type]) -> Type:
    """One of the types that an operator may draw; raises `FormatError`."""
    found = type_of(element)
    if found not in there:
        raise FormatError(f"draws elements of the type {found.dtype}")
    return found


def drawn(g: Op, op: OpDef, shape: Value, seed: float | None, rank: int) -> Value:
    """Numbers of a shape, which is held by a value."""
    return ranked(g, g(op, shape, *seeds(seed)), rank)


def spread(g: Op, x: Value, factor: float, offset: float, to: Type) -> Value:
    """x * factor + offset in another type."""
    moved = times(g, x, factor)
    return g.cast(moved if offset == 0 else add(g, moved, number(g, x, offset)), to)


def given(g: Op, shape: Sequence[int]) -> Value:
    """A shape that an attribute says; raises `FormatError` where it is none."""
    if any(not 0 <= n < 1 << 31 for n in shape):
        raise FormatError(f"draws the shape {list(shape)}")
    return g.const(np.array(shape or (1,), np.int32))


def like(x: Value, element: int | None) -> Type:
    """The type of a draw that is shaped as x: its own where the file says none; raises `FormatError`."""
    if element is None and x.type not in REAL:
        raise FormatError(f"draws elements of the type {x.type.dtype}, since it has no dtype")
    return x.type if element is None else chosen(element, REAL)


@imports()
def RandomUniform(g: Op, *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None,
                  shape: tuple[int, ...]) -> Value:
    to = chosen(dtype, REAL)
    return spread(g, drawn(g, h.RANDOM_UNIFORM, given(g, shape), seed, len(shape)), high - low, low, to)


@imports()
def RandomNormal(g: Op, *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                 shape: tuple[int, ...]) -> Value:
    to = chosen(dtype, REAL)
    return spread(g, drawn(g, h.RANDOM_STANDARD_NORMAL, given(g, shape), seed, len(shape)), scale, mean, to)


@imports()
def RandomUniformLike(g: Op, x: Value, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                      seed: float | None = None) -> Value:
    to = like(x, dtype)
    return spread(g, drawn(g, h.RANDOM_UNIFORM, lengths(g, x), seed, g.rank(x)), high - low, low, to)


@imports()
def RandomNormalLike(g: Op, x: Value, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                     seed: float | None = None) -> Value:
    to = like(x, dtype)
    return spread(g, drawn(g, h.RANDOM_STANDARD_NORMAL, lengths(g, x), seed, g.rank(x)), scale, mean, to)


@imports()
def Bernoulli(g: Op, x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """1 with the probability x. The operator's function body draws 1 with the probability 1 - x."""
    number_ = drawn(g, h.RANDOM_UNIFORM, lengths(g, x), seed, g.rank(x))
    return g.cast(g.elementwise(e.LESS, number_, g.cast(x, F32)), x.type if dtype is None else type_of(dtype))


@imports()
def Multinomial(g: Op, x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Value:
    """Classes with the odds exp(x)."""
    to = chosen(dtype, COUNTED)
    if not 0 < sample_size < 1 << 31:
        raise FormatError(f"has the sample_size {sample_size}")
    if g.rank(x) != 2 or known(x.shape[1]) and x.shape[1] == 0:
        raise FormatError(f"draws from classes of the shape {list(g.shape(x))}")
    odds = x if x.type in (F32, F16) else g.cast(x, F32)
    return g.cast(g(control.RANDOM_MULTINOMIAL, odds, samples=sample_size, seeds=list(seeds(seed))), to)
