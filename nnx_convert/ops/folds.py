"""Searches and running folds along an axis that NNAPI has no operation for."""
from __future__ import annotations

from ..kinds import AXIS, Bool, Int, Ints, T, without
from ..schema import Rule, composite, host
from ..types import I32, Tensor
from .host import ALL, AnyT


# Composites.
@composite(ALL, AXIS)
def ARGMAX_LAST(x: T, axis: Int) -> Ints:
    """The index of the largest along axis, the highest among equals."""
    return Tensor(I32, without(x.shape, axis))


@composite(ALL, AXIS)
def ARGMIN_LAST(x: T, axis: Int) -> Ints:
    """The index of the smallest along axis, the highest among equals."""
    return Tensor(I32, without(x.shape, axis))


# Host operations.
@host(60570, ALL, Rule("axis is one axis of x", lambda x, axis: axis.shape == (1,) and
                       -x.rank <= axis.ints()[0] < x.rank))
def CUMULATE(x: T, axis: AnyT, exclusive: Bool, reverse: Bool, product: Bool) -> T:
    """Running sums or products along axis, without the element itself if exclusive, from the end if reverse."""
    return x
