"""Random graphs of images in the source's order, channels first, with what models do to them besides."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nnx_convert.graph import Build, Graph, Value
from nnx_convert.ops import conv, elementwise as e, gather, host, image, norm, reduce as r, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.symbols import symbol
from nnx_convert.types import F32, I32, Port, Rim, Tensor, known

#: The images that go in; the batch is free in every other graph.
BATCH, IMAGE = 2, (4, 6, 4)
LARGEST = 20000


@dataclass
class Draw:
    """What a kind of operation draws from."""

    rng: np.random.Generator
    g: Build
    pool: list[Value]

    def const(self, *sizes: int) -> Value:
        """Weights."""
        return self.g.const((self.rng.standard_normal(sizes) * 0.5).astype(np.float32), F32)

    def one(self, *items: Any) -> Any:
        """One of some things."""
        return items[int(self.rng.integers(len(items)))]

    def axis(self, x: Value) -> int:
        """An axis."""
        return int(self.rng.integers(len(x.shape)))

    def like(self, x: Value) -> Value:
        """A value of the same shape, perhaps the same."""
        same = [v for v in self.pool if v.type == x.type and [*map(str, v.shape)] == [*map(str, x.shape)]]
        return same[int(self.rng.integers(len(same)))]

    def order(self, n: int) -> list[int]:
        """A permutation."""
        return [int(i) for i in self.rng.permutation(n)]

    def reshape(self, x: Value, sizes: Sequence[int]) -> Value:
        """x in another shape, of which one size may be open."""
        return self.g(shape.RESHAPE, x, [n if known(n) else -1 for n in sizes], out=Tensor(x.type, tuple(sizes)))


Kind = Callable[[Draw, Value], Value | Sequence[Value] | None]
KINDS: dict[str, Kind] = {}
#: Kinds that take images alone, of known height and width.
IMAGES = set[str]()


def kind(fn: Kind) -> Kind:
    KINDS[fn.__name__] = fn
    return fn


def of_images(fn: Kind) -> Kind:
    IMAGES.add(fn.__name__)
    return kind(fn)


@of_images
def convolution(d: Draw, x: Value) -> Value | None:
    c = x.shape[1]
    if min(x.shape[2:]) < 2:
        return None
    pads: dict[str, Any] = {"pl": 1, "pr": 0, "pt": 0, "pb": 1}
    steps: dict[str, Any] = {"sw": 1, "sh": d.one(1, 2), "act": d.one(0, 1)}
    made: Value = d.one(
        lambda: d.g(conv.CONV_2D, x, d.const(4, 2, 2, c), d.const(4), **pads, **steps, nchw=True),
        lambda: d.g(conv.DEPTHWISE_CONV_2D, x, d.const(1, 2, 2, c), d.const(c), **pads, **steps, mult=1, nchw=True),
        lambda: d.g(conv.CONV_2D, x, d.const(6, 1, 1, c), d.const(6), scheme=1, **steps, nchw=True),
        lambda: d.g(conv.GROUPED_CONV_2D, x, d.const(2 * c, 1, 2, 1), d.const(2 * c), **pads, **steps, groups=c,
                    nchw=True),
        lambda: d.g(conv.TRANSPOSE_CONV_2D, x, d.const(3, 2, 2, c), d.const(3), pl=0, pr=0, pt=0, pb=0, sw=2, sh=1,
                    act=0, nchw=True))()
    return made


@of_images
def pool(d: Draw, x: Value) -> Value | None:
    window: dict[str, Any] = {"pl": 0, "pr": 1, "pt": 0, "pb": 0, "sw": 2, "sh": 1, "kw": 2, "kh": 2, "act": 0}
    return None if min(x.shape[2:]) < 2 else d.g(
        d.one(image.MAX_POOL_2D, image.AVERAGE_POOL_2D, image.L2_POOL_2D), x, **window, nchw=True)


@of_images
def blocks(d: Draw, x: Value) -> Value | None:
    if x.shape[1] % 4 == 0:
        return d.g(image.DEPTH_TO_SPACE, x, block=2, nchw=True)
    return None if x.shape[2] % 2 or x.shape[3] % 2 else d.g(image.SPACE_TO_DEPTH, x, block=2, nchw=True)


@of_images
def resize(d: Draw, x: Value) -> Value:
    return d.g(d.one(image.RESIZE_NEAREST_NEIGHBOR, image.RESIZE_BILINEAR), x, ow=x.shape[3] * 2, oh=x.shape[2] + 1,
               nchw=True)


@of_images
def normalised(d: Draw, x: Value) -> Value:
    return d.g(norm.INSTANCE_NORMALIZATION, x, gamma=1.5, beta=0.5, eps=0.01, nchw=True)


@of_images
def slope(d: Draw, x: Value) -> Value:
    return d.g(e.PRELU, x, d.one(d.const(x.shape[1], 1, 1), d.const(1, x.shape[1], 1, 1)))


@of_images
def group(d: Draw, x: Value) -> Value | None:
    """Group normalisation."""
    n, c, h, w = x.shape
    if c % 2:
        return None
    y = d.reshape(x, (n, 2, c // 2 * h * w))
    y = d.g(e.SUB, y, d.g(r.MEAN, y, [2], keep=1), act=0)
    y = d.g(e.MUL, y, d.const(1, 2, 1), act=0)
    return d.g(e.ADD, d.reshape(y, (n, c, h, w)), d.const(1, c, 1, 1), act=0)


@of_images
def shuffle(d: Draw, x: Value) -> Value | None:
    """Channels exchanged, or pixels made of them, spelt out."""
    n, c, h, w = x.shape
    if c % 4 or not known(n):
        return None
    if d.one(True, False):
        return d.reshape(d.g(shape.TRANSPOSE, d.reshape(x, (n, 2, c // 2, h, w)), [0, 2, 1, 3, 4]), x.shape)
    six, perm = d.one(((n, c // 4, 2, 2, h, w), [0, 1, 4, 2, 5, 3]), ((n, 2, 2, c // 4, h, w), [0, 3, 4, 1, 5, 2]))
    return d.reshape(d.g(shape.TRANSPOSE, d.reshape(x, six), perm), (n, c // 4, h * 2, w * 2))


@kind
def activation(d: Draw, x: Value) -> Value:
    return d.g(d.one(e.RELU, e.TANH, e.LOGISTIC), x)


@kind
def sum_of_two(d: Draw, x: Value) -> Value:
    return d.g(d.one(e.ADD, e.MUL, e.SUB), x, d.like(x), act=0)


@kind
def constant(d: Draw, x: Value) -> Value:
    sizes = [n if known(n) and d.one(True, False) else 1 for n in x.shape]
    return d.g(d.one(e.ADD, e.MUL), x, d.const(*sizes[d.axis(x):]), act=0)


@kind
def joined(d: Draw, x: Value) -> Value:
    return d.g(shape.CONCATENATION, xs=(x, d.g(e.RELU, x)), axis=d.axis(x))


@kind
def cut(d: Draw, x: Value) -> Value | Sequence[Value] | None:
    axis, rank = d.axis(x), len(x.shape)
    if not known(x.shape[axis]):
        return None
    begin = [0] * rank
    begin[axis] = min(1, x.shape[axis] - 1)
    if x.shape[axis] % 2 == 0 and d.one(True, False):
        return d.g.add(shape.SPLIT, x, axis=axis, count=2)
    if d.one(True, False):
        return d.g(shape.SLICE, x, begin, [-1] * rank)
    return d.g(shape.STRIDED_SLICE, x, begin, [100] * rank, [1] * (rank - 1) + [2], begin_mask=1 << (axis > 0) - 1
               if axis else 0, end_mask=(1 << rank) - 1, shrink_mask=0)


@kind
def padded(d: Draw, x: Value) -> Value:
    amounts = [[0, 0], *([int(d.rng.integers(2)), int(d.rng.integers(2))] for _ in x.shape[1:])]
    return d.g(shape.PAD_V2, x, np.array(amounts, np.int32), value=1.5)


@kind
def repeated(d: Draw, x: Value) -> Value:
    return d.g(shape.TILE, x, [1, *(d.one(1, 1, 2) for _ in x.shape[1:])])


@kind
def reduced(d: Draw, x: Value) -> Value:
    axes = d.order(len(x.shape))[:int(d.rng.integers(1, max(len(x.shape), 2)))]
    return d.g(d.one(r.MEAN, r.REDUCE_MAX, r.REDUCE_SUM), x, axes, keep=d.one(0, 1))


@kind
def softmax(d: Draw, x: Value) -> Value:
    made: Value = d.one(
        lambda: d.g(norm.SOFTMAX, x, beta=1.0, axis=d.axis(x)),
        lambda: d.g(norm.L2_NORMALIZATION, x, axis=d.axis(x)),
        lambda: d.g(norm.LOCAL_RESPONSE_NORMALIZATION, x, radius=1, bias=1.0, alpha=0.5, beta=0.5, axis=d.axis(x)))()
    return made


@kind
def transposed(d: Draw, x: Value) -> Value:
    return d.g(shape.TRANSPOSE, x, d.order(len(x.shape)))


@kind
def reshaped(d: Draw, x: Value) -> Value | None:
    """Into any factors; a free batch stays."""
    free = [i for i, n in enumerate(x.shape) if not known(n)]
    rest = prod(x.shape[1:] if free else x.shape)
    if free not in ([], [0]) or rest > 4096:
        return None
    sizes = list[int]()
    for _ in range(int(d.rng.integers(0, 3))):
        sizes.append(int(d.rng.choice([n for n in range(1, rest + 1) if rest % n == 0])))
        rest //= sizes[-1]
    return d.reshape(x, (*x.shape[:len(free)], *sizes, rest))


@kind
def flat(d: Draw, x: Value) -> Value | None:
    return None if len(x.shape) < 3 or not all(map(known, x.shape[1:])) else d.reshape(
        x, (x.shape[0], prod(x.shape[1:])))


@kind
def axes_of_one(d: Draw, x: Value) -> Value | None:
    if len(x.shape) == 4:
        return None
    axis = int(d.rng.integers(len(x.shape) + 1))
    y = d.g(shape.EXPAND_DIMS, x, axis=axis)
    return d.g(shape.SQUEEZE, d.g(e.RELU, y), [axis]) if d.one(True, False) else y


@kind
def tail(d: Draw, x: Value) -> Value | None:
    """Flattened, and a product with constants."""
    if len(x.shape) < 2 or not all(map(known, x.shape[1:])) or prod(x.shape[1:]) > 600:
        return None
    y = d.reshape(x, (x.shape[0], prod(x.shape[1:])))
    return d.g(d.one(conv.FULLY_CONNECTED, LINEAR), y, d.const(6, y.shape[1]), d.const(6), act=d.one(0, 1))


@kind
def matrix(d: Draw, x: Value) -> Value | None:
    if not known(x.shape[-1]):
        return None
    return d.g(host.MATMUL, x, d.const(x.shape[-1], 4), adj_x=False, adj_y=False)


@kind
def decoded(d: Draw, x: Value) -> Value | None:
    """A product with constants that becomes an image."""
    if len(x.shape) != 2 or not known(x.shape[1]):
        return None
    y = d.g(e.TANH, d.g(LINEAR, x, d.const(24, x.shape[1]), d.const(24)))
    return d.reshape(y, (x.shape[0], 4, 2, 3))


@kind
def matrices(d: Draw, x: Value) -> Value | None:
    rank = len(x.shape)
    if rank < 3:
        return None
    y = d.g(shape.TRANSPOSE, x, [*range(rank - 2), rank - 1, rank - 2])
    return d.g(d.one(conv.BATCH_MATMUL, host.MATMUL), x, y, adj_x=False, adj_y=False)


@kind
def picked(d: Draw, x: Value) -> Value | None:
    axis = d.axis(x)
    if not known(x.shape[axis]):
        return None
    sizes = d.one((1,), (2,), (2, 3)) if len(x.shape) < 4 else d.one((1,), (2,))
    return d.g(gather.GATHER, x, axis=axis, indices=d.g.const(d.rng.integers(0, x.shape[axis], sizes), I32))


@kind
def best(d: Draw, x: Value) -> Value:
    return d.g(d.one(r.ARGMAX, r.ARGMIN), x, axis=d.axis(x))


@kind
def largest(d: Draw, x: Value) -> Value | Sequence[Value] | None:
    return d.g.add(host.TOPK_FIRST, x, k=min(2, x.shape[-1])) if known(x.shape[-1]) else None


def graph(seed: int, free: bool, most: int = 22) -> Graph:
    """A graph of some operations, its batch open if it is `free`."""
    rng = np.random.default_rng(seed)
    sizes = (symbol("n") if free else BATCH, *IMAGE)
    x = Value("x", Tensor(F32, sizes))
    d = Draw(rng, Build("main"), [x])
    for _ in range(int(rng.integers(4, most))):
        v = d.pool[-1] if rng.random() < 0.7 else d.pool[int(rng.integers(len(d.pool)))]
        name = d.one(*KINDS)
        is_image = len(v.shape) == 4 and all(map(known, v.shape[1:]))
        if v.type != F32 or len(v.shape) < 2 or name in IMAGES and not is_image:
            continue
        made = KINDS[name](d, v)
        found = [] if made is None else [made] if isinstance(made, Value) else [*made]
        if all(w.tensor.dims is not None and prod(n if known(n) else BATCH for n in w.shape) <= LARGEST for w in found):
            d.pool += found
    read = {v for n in d.g.nodes for v in n.inputs}
    outputs = [v for n in d.g.nodes for v in n.outputs if v not in read][-3:] or [x]
    ports = tuple(Port(v.name, v.type.dtype.name, v.tensor.dims and tuple(n if known(n) else None for n in v.shape))
                  for v in (x, *outputs))
    return d.g.finish((x,), tuple(outputs), Rim(ports[:1], ports[1:]))
