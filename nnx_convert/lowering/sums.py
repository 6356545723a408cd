"""MEAN and REDUCE_SUM of bytes where NNAPI's own row does not do: as convolutions or pools with the same answers."""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import frexp, prod

import numpy as np

from ..graph import Build, Node, Value
from ..ops import conv, image, reduce as r, shape
from ..ops.host import host_twin
from ..types import BYTES, Array, I32, Q8, Quant, Tensor, known
from .axes import as_written
from .exact import computed, grid, near, per_channel, same_steps
from .legalize import LEGALIZE
from .rewrite import Refusal, Result, Rewriter

#: So many elements at most go into a proof.
MOST = 1 << 24
#: So many weights and biases are tried.
TRIES = 16


@LEGALIZE.on(*(o for op in (r.MEAN, r.REDUCE_SUM) for o in (op, host_twin(op))))
def sum_of_bytes(g: Rewriter, node: Node) -> Result:
    """The first way that gives the same answer for every sum there can be."""
    x, out = node.args["x"], node.outputs[0]
    if not (node.op.host or g.fault(node)) or x.type not in BYTES or out.type not in BYTES or there(g, node):
        return None
    images = shaped(g, x, node.args["axes"].tensor)
    if images is None:
        return Refusal("the summed axes are apart or computed, or a size is open")
    points = steps(node, *images.shape[1:3])
    if prod(images.shape[1:3]) * points.size > MOST:
        return Refusal("more is summed than can be proven exact")
    trial = samples(images, points)
    want = computed(g.evaluate, lambda b: b(host_twin(node.op.plain), trial, axes=(1, 2), keep=1, out=out_like(node)))
    if want is None:
        return Refusal("there is no kernel to compare with")
    for way in ways(node, images, points, want.ravel()):
        if same_steps(points, want.ravel(), flat(computed(g.evaluate, partial(way, x=trial)))):
            made = g.attempt(partial(way, x=images))
            if isinstance(made, Value):
                g.why = f"as {way.func.__name__.replace('_', ' ')}, the same for every sum there can be"
                same = images is x and node.args["keep"]
                return made if same else g(shape.RESHAPE, made, as_written(out.shape))
    return Refusal("no convolution or pool gives the same answer for every sum")


def there(g: Rewriter, node: Node) -> bool:
    """Whether this machine has it, with no proof to find and no weights to read: the mean along known axes of which
    none is the last."""
    over, rank = node.args["axes"].tensor, len(node.args["x"].shape)
    return g.target.here and node.op.plain is r.MEAN and over.data is not None and rank - 1 not in {
        a % rank for a in over.ints()}


def out_like(node: Node) -> Tensor:
    """The output's type and grid."""
    return Tensor(node.outputs[0].type, None, node.outputs[0].tensor.quant)


def flat(found: Array | None) -> Array | None:
    """The answers in one row."""
    return None if found is None else found.ravel()


def shaped(g: Rewriter, x: Value, over: Tensor) -> Value | None:
    """x as images whose height and width are summed; None where that is no reshape. Their number may be open."""
    if over.data is None or not all(map(known, x.shape[1:])) or not prod(x.shape[1:]):
        return None
    axes = sorted({a % len(x.shape) for a in over.ints()})
    if axes == [1, 2] and len(x.shape) == 4:
        return x
    if not axes or axes != list(range(axes[0], axes[-1] + 1)) or not known(x.shape[0]) or not x.shape[0]:
        return None
    first, last = axes[0], axes[-1] + 1
    return g(shape.RESHAPE, x, (prod(x.shape[:first]), prod(x.shape[first:last]), 1, prod(x.shape[last:])))


def steps(node: Node, height: int, width: int) -> Array:
    """Sums of bytes, counted from 0, near which the answer changes, and the least and the largest."""
    x, out, n = node.args["x"], node.outputs[0], height * width
    (sx, zx), (so, zo) = ((q.scale, q.zero) for q in map(grid, (x.tensor, out.tensor)))
    low, high = np.iinfo(out.type.dtype).min, np.iinfo(out.type.dtype).max
    per = so / sx * (n if node.op.plain is r.MEAN else 1)
    middle = (np.arange(low + 1, high + 1) - 0.5 - zo) * per + n * (zx - np.iinfo(x.type.dtype).min)
    return near(middle, 0, 255 * n)


def samples(images: Value, points: Array) -> Value:
    """An image [1, h, w, points], each channel's cells having one of the sums."""
    _, h, w, _ = images.shape
    cells = points // (h * w) + (np.arange(h * w)[:, None] < points % (h * w))
    raw = (cells + np.iinfo(images.type.dtype).min).astype(images.type.dtype)
    return Value("sums", Tensor(images.type, (1, h, w, points.size), images.tensor.quant, raw.reshape(1, h, w, -1)))


def ways(node: Node, images: Value, points: Array, want: Array) -> Iterator[partial[Value]]:
    """Ways to compute from images what gives `want` for sums; they are called with a build and images."""
    out, n, mean = out_like(node), prod(images.shape[1:3]), node.op.plain is r.MEAN
    if mean and images.tensor.quant == out.quant:
        yield partial(average_pool, out=out)
    many = n if mean else 1
    per = grid(out).scale / grid(images.tensor).scale * many
    for value, bias in [(1, 0), *fractions(per, *between(node, points, want, n, per))]:
        scale = float(np.float32(1 / (many * value)))
        for channels in (True, False)[:1 + (images.type == Q8)]:
            yield partial(convolution_of_ones, value=value, scale=scale, bias=bias, out=out, channels=channels)


def fractions(per: float, low: float, high: float) -> list[tuple[int, int]]:
    """Weights of int8 and biases whose quotient lies between, the most central first.

    `per`: sums per step. A convolution, too, rounds twice: as if it rounded once and half a step of its first
    rounding, 2 ** s of an output step, were added.
    """
    found = []
    for value in range(1, 128):
        middle = (low + high) / 2 - per * 2.0 ** (frexp(1 / (per * value))[1] - 1)
        bias = round(value * middle)
        found.append((abs(bias / value - middle), value, bias))
    return [(value, bias) for off, value, bias in sorted(found) if off <= (high - low) / 2][:TRIES]


def between(node: Node, points: Array, want: Array, n: int, per: float) -> tuple[float, float]:
    """What to add to a sum so that it, rounded once, is `want`: MEAN rounds twice, its steps are a little off.

    The least and the most; there is nothing between them where one bias does not do for all steps.
    """
    zx, zo = grid(node.args["x"].tensor).zero, grid(node.outputs[0].tensor).zero
    values = np.arange(int(want[0]) + 1, int(want[-1]) + 1)
    if not values.size:
        return 0.0, 0.0
    up = np.searchsorted(want, values)           # want may rise by more than one: then some have one place
    reached, below = (points[at] - n * (zx - np.iinfo(node.args["x"].type.dtype).min) for at in (up, up - 1))
    half = (values - 0.5 - zo) * per
    return float((half - reached).max()), float((half - below).min())


def average_pool(g: Build, x: Value, out: Tensor) -> Value:
    """The mean of whole images on their own grid."""
    _, h, w, _ = x.shape
    return g(image.AVERAGE_POOL_2D, x, scheme=2, sw=1, sh=1, kw=w, kh=h, act=0, out=out)


def convolution_of_ones(g: Build, x: Value, value: int, scale: float, bias: int, out: Tensor,
                        channels: bool) -> Value:
    """The sum of whole images, as a depthwise convolution whose weights are all `value`."""
    _, h, w, c = x.shape
    equal = np.full((1, h, w, c), value)
    weights = per_channel(equal, scale, 3, "ones") if channels else g.const(
        equal, Q8, Tensor(Q8, None, Quant(scale, 0)), "ones")
    added = Tensor(I32, None, None if channels else Quant(grid(x.tensor).scale * scale))
    return g(conv.DEPTHWISE_CONV_2D, x, weights, g.full((c,), bias, added), scheme=2, sw=1, sh=1, mult=1, act=0,
             out=out)
