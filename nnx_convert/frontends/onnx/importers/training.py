"""Steps of training: what gradients make of weights. Each tensor is one of a group with its gradient and its state."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, host
from ..importer import Op
from ..registry import TRAINING, imports
from .elementwise import add, div, mul, number, same, sub, times, where

#: What one tensor, its gradient and its state become: the tensor first.
Step = Callable[..., Sequence[Value]]


def stepped(g: Op, xs: Sequence[Value], size: int, step: Step) -> list[Value]:
    """The results of groups of `size` tensors, which a node lists by their place in the group: all first ones, all
    second ones and so on. Raises `FormatError` where they are no groups."""
    count = len(xs) // size
    if not xs or len(xs) % size:
        raise FormatError(f"has {len(xs)} tensors in groups of {size}")
    found = [step(*group(g, xs[i::count])) for i in range(count)]
    return [made for place in zip(*found, strict=True) for made in place]


def group(g: Op, xs: Sequence[Value]) -> Sequence[Value]:
    """Tensors of one type and shape; raises `FormatError` where they are not."""
    if len({(x.type, g.rank(x)) for x in xs}) > 1:
        raise FormatError("has a tensor, a gradient and a state of several types or ranks")
    return xs


def regular(g: Op, x: Value, gradient: Value, coefficient: float) -> Value:
    """The gradient of the loss and of half the coefficient times the square of x."""
    return gradient if coefficient == 0 else add(g, times(g, x, coefficient), gradient)


@imports(domain=TRAINING)
def Adagrad(g: Op, rate: Value, updates: Value, *xs: Value, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0) -> list[Value]:
    def step(x: Value, gradient: Value, squares: Value) -> Sequence[Value]:
        slower = add(g, times(g, g.cast(updates, x.type), decay_factor), number(g, x, 1))
        slope = regular(g, x, gradient, norm_coefficient)
        sums = add(g, squares, same(g, host.SQUARE, slope))
        way = div(g, slope, add(g, same(g, e.SQRT, sums), number(g, x, epsilon)))
        return sub(g, x, mul(g, div(g, g.cast(rate, x.type), slower), way)), sums
    return stepped(g, xs, 3, step)


@imports(domain=TRAINING)
def Adam(g: Op, rate: Value, updates: Value, *xs: Value, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> list[Value]:
    def step(x: Value, gradient: Value, means: Value, squares: Value) -> Sequence[Value]:
        slope = regular(g, x, gradient, norm_coefficient)
        mean = mixed(g, means, slope, alpha)
        square = mixed(g, squares, same(g, host.SQUARE, slope), beta)
        way = div(g, mean, add(g, same(g, e.SQRT, square), number(g, x, epsilon)))
        moved = sub(g, x, mul(g, corrected(g, g.cast(rate, x.type), g.cast(updates, x.type), alpha, beta), way))
        return times(g, moved, 1 - norm_coefficient_post), mean, square
    return stepped(g, xs, 4, step)


def mixed(g: Op, old: Value, new: Value, share: float) -> Value:
    """share * old + (1 - share) * new."""
    return add(g, times(g, old, share), times(g, new, 1 - share))


def corrected(g: Op, rate: Value, updates: Value, alpha: float, beta: float) -> Value:
    """The rate of Adam after so many updates: means over few are too small."""
    left, right = (sub(g, number(g, rate, 1), g.elementwise(e.POW, number(g, rate, v), updates)) for v in (beta, alpha))
    later = g.elementwise(e.GREATER, updates, number(g, rate, 0))
    return where(g, later, div(g, mul(g, rate, same(g, e.SQRT, left)), right), rate)


@imports(domain=TRAINING)
def Momentum(g: Op, rate: Value, updates: Value, *xs: Value, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> list[Value]:
    """The first update takes the whole gradient."""
    if mode not in ("standard", "nesterov"):
        raise FormatError(f"has the mode {mode!r:.40}")

    def step(x: Value, gradient: Value, momentum: Value) -> Sequence[Value]:
        slope = regular(g, x, gradient, norm_coefficient)
        later = g.elementwise(e.GREATER, g.cast(updates, x.type), number(g, x, 0))
        share = where(g, later, number(g, x, beta), number(g, x, 1))
        speed = add(g, times(g, momentum, alpha), mul(g, share, slope))
        way = add(g, slope, times(g, speed, alpha)) if mode == "nesterov" else speed
        return sub(g, x, mul(g, g.cast(rate, x.type), way)), speed
    return stepped(g, xs, 3, step)
