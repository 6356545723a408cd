"""Proofs by trying: whether two ways to compute something agree on everything they can be given."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..graph import Evaluate, Build, Value
from ..target import Target
from ..types import Array, ChannelQuant, Quant, Rim, Tensor, Type
from .fold import folding

#: Emits operations on constants.
Emit = Callable[[Build], Value]
#: Two roundings of one real number jump no farther from each other than this many integers.
NEAR = 2


def computed(evaluate: Evaluate, emit: Emit) -> Array | None:
    """What operations on constants give; None where there is no kernel."""
    build = Build()
    graph = build.finish((), (emit(build),), Rim())
    return folding(evaluate)(graph, Target(), []).outputs[0].tensor.data


def codes(type_: Type) -> Array:
    """The 256 bytes of a type, ascending."""
    low = np.iinfo(type_.dtype).min
    return np.arange(low, low + 256).astype(type_.dtype)


def bytes_like(x: Value, data: Array) -> Value:
    """A constant of other elements on the grid of x."""
    return Value("codes", Tensor(x.type, data.shape, x.tensor.quant, data))


def near(steps: Array, low: int, high: int) -> Array:
    """The integers in [low, high] that are close to a step, and both ends; ascending."""
    inside = np.clip(np.nan_to_num(np.floor(steps)), low, high).astype(np.int64)
    around = inside[:, None] + np.arange(-NEAR, NEAR + 2)
    found = np.sort(np.clip(np.append(around.ravel(), (low, high)), low, high))
    first: Array = found[np.append(True, np.diff(found) > 0)]
    return first


def same_steps(points: Array, first: Array | None, second: Array | None) -> bool:
    """Whether two functions of an integer that never fall agree from points[0] to points[-1].

    Their values are given at the points. They agree at those, and between two that are not neighbours both stand
    still: so they agree everywhere.
    """
    if first is None or second is None or not np.array_equal(first, second):
        return False
    apart = np.diff(points) > 1
    return bool((first[1:] == first[:-1])[apart].all())


def grid(t: Tensor) -> Quant:
    """The grid of a tensor that has one scale."""
    assert isinstance(t.quant, Quant)
    return t.quant


def per_channel(values: Array, scale: float, axis: int, name: str) -> Value:
    """int8 weights with the same scale for every channel."""
    quant = ChannelQuant((scale,) * values.shape[axis], axis)
    return Value(name, Tensor(Type.TENSOR_QUANT8_SYMM_PER_CHANNEL, values.shape, quant, values.astype(np.int8)))
