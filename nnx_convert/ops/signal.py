"""Transforms of signals that NNAPI has no operation for. A complex number is two neighbours: real, imaginary."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, T, put, rank
from ..schema import Rule, host
from ..signature import Kind
from ..types import F32, UNKNOWN, Tensor, known
from .host import ALL, AnyT

NUMBERS = Rule("the last axis of x holds real numbers (1) or complex ones (2)", lambda x: x.shape[-1] in (1, 2))
ONE = Rule("length is one number", lambda length: length is None or length.size == 1)


@host(60670, ALL, NUMBERS, ONE, Rule("axis is one axis of x, and not its last", lambda x, axis: axis.size == 1 and
                                     -x.rank <= axis.ints()[0] < x.rank and axis.ints()[0] % x.rank < x.rank - 1))
def DFT(x: T, length: AnyT | None, axis: AnyT, inverse: Bool, onesided: Bool) -> T:
    """x transformed along axis, cut or filled to length; onesided: its first half, or the real signal that has it."""
    numbers = 1 if onesided and inverse else 2
    if not known(axis.ints()[0]):
        return x.like((*(UNKNOWN,) * (x.rank - 1), numbers))
    at = axis.ints()[0] % x.rank
    n = length.ints()[0] if length is not None else 2 * (x.shape[at] - 1) if numbers == 1 else x.shape[at]
    return x.like((*put(x.shape[:-1], at, n // 2 + 1 if onesided and not inverse else n), numbers))


@host(60671, ALL, Rule("step and size are one positive number each", lambda step, size: all(
               v.size == 1 and all(n > 0 for n in v.ints()) for v in (step, size))))
def FRAMES(x: Annotated[T, rank(3)], step: AnyT, size: AnyT) -> T:
    """Pieces of size rows of x [n, rows, c], each starting step rows after the one before: [n, pieces, size, c]."""
    n, rows, c = x.shape
    (by,), (k,) = step.ints(), size.ints()
    return x.like((n, (rows - k) // by + 1, k, c))


@host(60672, ALL, Rule("bins, length and rate are one number each", lambda bins, length, rate:
                       bins.size == length.size == rate.size == 1))
def MEL_WEIGHTS(bins: AnyT, length: AnyT, rate: AnyT, low: AnyT, high: AnyT) -> Annotated[Tensor, Kind({F32: 27})]:
    """Triangles that are evenly spaced in mel from low to high hertz, over the bins of a transform of length."""
    (columns,), (n,) = bins.ints(), length.ints()
    return Tensor(F32, (n // 2 + 1, columns))
