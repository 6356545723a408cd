"""What stands between two convolutions needs no transpose: a case for each rule."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_layout import Array, run, same

from nnx_convert.graph import Build, Graph, Node, Value
from nnx_convert.lowering.layout import layout
from nnx_convert.ops import control, conv, convert, cutting, elementwise as e, ex, folds, gather, host, host_arrays, \
    host_math, image, norm, reduce as r, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, QPC, ChannelQuant, Port, Rim, Tensor, known, symbol

#: Where the batch is open.
N = symbol("n")
SIZES = (2, 4, 6, 4)
Middle = Callable[[Build, Value], Value | Sequence[Value]]


def convolved(g: Build, x: Value, units: int = 4) -> Value:
    """A convolution of an image in the source's order, whose weights are its own."""
    rng = np.random.default_rng(len(g.nodes))
    w = rng.standard_normal((units, 2, 2, x.shape[1])).astype(np.float32)
    return g(conv.CONV_2D, x, g.const(w, F32), g.const(np.arange(units), F32), scheme=1, sw=1, sh=1, act=0, nchw=True)


def between(middle: Middle, sizes: tuple[int, ...] = SIZES) -> Graph:
    """Something between two convolutions, in front of each output that is an image."""
    g = Build("main")
    x = Value("x", Tensor(F32, sizes))
    made = middle(g, convolved(g, x))
    outs = [convolved(g, v) if len(v.shape) == 4 and v.type == F32 else v
            for v in ([made] if isinstance(made, Value) else made)]
    ports = [Port(v.name, v.type.dtype.name, tuple(n if known(n) else None for n in v.shape)) for v in (x, *outs)]
    return g.finish((x,), tuple(outs), Rim(tuple(ports[:1]), tuple(ports[1:])))


def of(op: OpDef, **args: Any) -> Middle:
    """An operation on it."""
    return lambda g, x: g.add(op, x, **args)


def turns(graph: Graph) -> list[Node]:
    """The transposes of a graph."""
    return [n for n in graph.nodes if n.op is shape.TRANSPOSE]


def channels(g: Build, n: int = 4, *more: int) -> Value:
    """A constant for each channel."""
    return g.const(np.arange(1, n + 1, dtype=np.float32).reshape(n, 1, 1, *more), F32)


def per_axis(g: Build, x: Value) -> Value:
    """A constant with scales of its own for each channel."""
    w = Value("w", Tensor(QPC, (1, 4, 1, 1), ChannelQuant((0.5, 0.25, 1.0, 2.0), 1),
                          np.array([1, -2, 3, 4], np.int8).reshape(1, 4, 1, 1)))
    return g(e.MUL, x, g(convert.DEQUANTIZE, w, to=F32), act=0)


def grouped(g: Build, x: Value) -> Value:
    """Group normalisation."""
    y = g(shape.RESHAPE, x, [2, 2, 48])
    y = g(e.SUB, y, g(r.MEAN, y, [2], keep=1), act=0)
    y = g(e.MUL, y, g(e.RSQRT, g(r.MEAN, g(host.SQUARE, y), [2], keep=1)), act=0)
    return g(shape.RESHAPE, y, list(SIZES))


def flattened(g: Build, x: Value) -> Value:
    """Flattened, multiplied, and an image again."""
    rng = np.random.default_rng(0)
    w = g.const(rng.standard_normal((96, 96)).astype(np.float32), F32)
    y = g(LINEAR, g(shape.RESHAPE, x, [2, 96]), w, g.const(np.arange(96), F32))
    return g(shape.RESHAPE, g(e.TANH, y), list(SIZES))


def shuffled(g: Build, x: Value) -> Value:
    """Halves of the channels exchanged one by one."""
    y = g(shape.TRANSPOSE, g(shape.RESHAPE, x, [2, 2, 2, 6, 4]), [0, 2, 1, 3, 4])
    return g(shape.RESHAPE, y, list(SIZES))


def pixels(six: Sequence[int], perm: Sequence[int]) -> Middle:
    """Channels laid out as pixels."""
    return lambda g, x: g(shape.RESHAPE, g(shape.TRANSPOSE, g(shape.RESHAPE, x, six), perm), [2, 1, 12, 8])


def stacked(g: Build, x: Value) -> Value:
    """Taken apart along the channels and put together again."""
    parts = g.add(ex.UNPACK_EX, x, count=4, axis=1)
    return g(ex.PACK_EX, xs=parts[::-1], count=4, axis=1)


def squeezed(g: Build, x: Value) -> Value:
    """An axis that goes and comes."""
    y = g(shape.SQUEEZE, g(r.REDUCE_MAX, x, [3], keep=True), [3])
    return g(shape.EXPAND_DIMS, y, axis=2)


def excited(g: Build, x: Value) -> Value:
    """Squeeze and excitation by products."""
    y = g(LINEAR, g(r.MEAN, x, [2, 3], keep=0), g.const(np.eye(4), F32), g.const(np.zeros(4), F32), act=1)
    return g(e.MUL, x, g(shape.RESHAPE, g(e.LOGISTIC, y), [2, 4, 1, 1]), act=0)


def scaled(g: Build, x: Value) -> Value:
    """By the largest of it all, which is a number for a while."""
    most = g(shape.RESHAPE, g(r.REDUCE_MAX, x, [0, 1, 2, 3], keep=True), [1])
    most = g(e.MAXIMUM, g(e.ADD, most, g.const([0.5], F32), act=0), g.const([1.0], F32))
    return g(e.DIV, x, g(shape.RESHAPE, most, [1, 1, 1, 1]), act=0)


def chosen_rows(g: Build, x: Value) -> Value:
    """Truth values, and a choice."""
    return g(host.WHERE, g(e.LESS, x, channels(g)), x, g(e.NEG, x))


CASES: dict[str, Middle] = {
    "relu": of(e.RELU), "prelu": lambda g, x: g(e.PRELU, x, channels(g)),
    "add": lambda g, x: g(e.ADD, x, channels(g, 4), act=0),
    "number": lambda g, x: g(e.MUL, g.const([2.0], F32), x, act=0),
    "select": chosen_rows, "per_axis": per_axis, "gelu": of(host_math.GELU, approximate=False),
    "concatenation": lambda g, x: g(shape.CONCATENATION, xs=(x, g(e.RELU, x)), axis=1),
    "softmax": of(norm.SOFTMAX, beta=1.0, axis=1), "log_softmax": of(norm.LOG_SOFTMAX, beta=1.0, axis=-3),
    "l2": of(norm.L2_NORMALIZATION, axis=1), "instance": of(norm.INSTANCE_NORMALIZATION, gamma=1.0, beta=0.5, eps=0.1,
                                                            nchw=True),
    "lrn": of(norm.LOCAL_RESPONSE_NORMALIZATION, radius=1, bias=1.0, alpha=0.5, beta=0.5, axis=1),
    "split": of(shape.SPLIT, axis=1, count=2), "cumsum": of(host_math.CUMSUM, axis=2, exclusive=False, reverse=False),
    "shuffle": of(shape.CHANNEL_SHUFFLE, groups=2, axis=1), "mean": of(r.MEAN, axes=[2, 3], keep=1),
    "max": of(r.REDUCE_MAX, axes=[1], keep=True), "mean_dropped": of(r.MEAN, axes=[-1, -2], keep=0),
    "pad": of(shape.PAD_V2, paddings=np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32), value=1.0),
    "slice": of(shape.SLICE, begin=[0, 1, 2, 0], size=[-1, 2, -1, 3]), "tile": of(shape.TILE, multiples=[1, 2, 1, 1]),
    "strided": of(shape.STRIDED_SLICE, begin=[0, 3, 9, 9], end=[2, 0, 9, 9], strides=[1, -1, 2, 1], begin_mask=12,
                  end_mask=12, shrink_mask=0),
    "shrunk": of(shape.STRIDED_SLICE, begin=[0, 1, 0, 0], end=[2, 2, 9, 9], strides=[1, 1, 1, 1], begin_mask=13,
                 end_mask=13, shrink_mask=2),
    "broadcast": lambda g, x: g(host.BROADCAST_TO, g(r.MEAN, x, [2, 3], keep=1), [2, 4, 3, 5]),
    "reverse": of(shape.REVERSE, axis=[1]), "topk": of(host.TOPK_FIRST, k=2),
    "argmax": of(r.ARGMAX, axis=1), "argmin_last": of(folds.ARGMIN_LAST, axis=1), "stacked": stacked,
    "squeezed": squeezed, "gather": of(gather.GATHER, axis=1, indices=[2, 0, 1]),
    "gather_rows": of(gather.GATHER, axis=3, indices=[2, 0, 1]), "excited": excited,
    "cut": of(cutting.CUT, begin=[3, 1], end=[-9, 5], axes=[1, -2], strides=[-1, 2]),
    "pixels": pixels((2, 1, 2, 2, 6, 4), (0, 1, 4, 2, 5, 3)),
    "pixels_dcr": pixels((2, 2, 2, 1, 6, 4), (0, 3, 4, 1, 5, 2)),
    "blocks": of(image.DEPTH_TO_SPACE, block=2, nchw=True), "resize": of(image.RESIZE_BILINEAR, ow=7, oh=5, nchw=True),
    "pool": of(image.AVERAGE_POOL_2D, scheme=1, sw=2, sh=1, kw=2, kh=2, act=0, nchw=True),
    "scaled": scaled, "grouped": grouped, "flattened": flattened, "shuffled": shuffled,
    "sizes": lambda g, x: (x, g(host_arrays.SHAPE, x)),
}
#: Transposes beside those of the input and of the image that comes out.
MORE = {"topk": 1}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_turned_on_the_way(name: str) -> None:
    before = between(CASES[name])
    after = layout(before, Target(8), [])
    images = sum(len(v.shape) == 4 for v in before.outputs)
    assert len(turns(after)) <= 1 + images + MORE.get(name, 0), [str(n) for n in turns(after)]
    assert not any(n.args.get("nchw") is True for n in after.nodes)
    x = np.random.default_rng(0).standard_normal(SIZES).astype(np.float32)
    same(run(after, [x]), run(before, [x]))


#: Cases that say how large the batch is.
FIXED = ("grouped", "flattened", "shuffled", "pixels", "pixels_dcr", "broadcast", "excited")


@pytest.mark.parametrize("name", [n for n in CASES if n not in FIXED])
def test_nor_where_the_batch_is_open(name: str) -> None:
    before = between(CASES[name], (N, *SIZES[1:]))
    after = layout(before, Target(8), [])
    images = sum(len(v.shape) == 4 for v in before.outputs)
    assert len(turns(after)) <= 1 + images + MORE.get(name, 0)
    x = np.random.default_rng(0).standard_normal(SIZES).astype(np.float32)
    same(run(after, [x]), run(before, [x]))


def test_below_29_softmax_is_along_the_last_axis() -> None:
    after = layout(between(CASES["softmax"]), Target(28), [])
    (found,) = (n for n in after.nodes if n.op is norm.SOFTMAX)
    assert found.args["axis"] == -1 and len(turns(after)) == 2


def test_one_channel_is_reshaped() -> None:
    g = Build("main")
    x = Value("x", Tensor(F32, (2, 1, 6, 4)))
    y = convolved(g, x, 1)
    after = layout(g.finish((x,), (y,), Rim()), Target(), [])
    assert not turns(after) and sum(n.op is shape.RESHAPE for n in after.nodes) == 2


def test_of_open_sizes_an_axis_goes_and_comes() -> None:
    g = Build("main")
    x = Value("x", Tensor(F32, (N, 1, symbol("h"), symbol("w"))))
    before = g.finish((x,), (convolved(g, x, 1),), Rim((Port("x", "float32", (None, 1, None, None)),), (
        Port("y", "float32", (None, 1, None, None)),)))
    after = layout(before, Target(), [])
    assert [n.op.name for n in after.nodes] == ["SQUEEZE", "EXPAND_DIMS", "CONV_2D", "SQUEEZE", "EXPAND_DIMS"]
    assert turns(layout(before, Target(28), []))
    data = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    same(run(after, [data]), run(before, [data]))


def test_a_computed_shape_is_picked_in_order() -> None:
    """A reshape to sizes that are computed, of which several are open."""
    g = Build("main")
    x = Value("x", Tensor(F32, (N, 4, symbol("h"), symbol("w"))))
    y = convolved(g, x)
    sizes = g(host_arrays.SHAPE, y)
    whole = g(shape.RESHAPE, g(e.RELU, y), sizes, out=y.tensor)
    ports = (Port("x", "float32", (None, 4, None, None)),), (Port("y", "float32", (None, 4, None, None)),)
    before = g.finish((x,), (convolved(g, whole),), Rim(*ports))
    after = layout(before, Target(8), [])
    assert len(turns(after)) == 2
    data = np.arange(96, dtype=np.float32).reshape(2, 4, 3, 4)
    same(run(after, [data]), run(before, [data]))


def test_subgraphs_are_each_by_themselves() -> None:
    """Their inputs and outputs are in the source's order."""
    inner = Build("branch")
    v = Value("v", Tensor(F32, SIZES))
    branch = inner.finish((v,), (convolved(inner, v),), Rim())
    g = Build("main")
    x, cond = Value("x", Tensor(F32, SIZES)), Value("cond", Tensor(B8, (1,)))
    y = g(control.IF, cond, branch, branch, args=(convolved(g, x),))
    outer = g.finish((cond, x), (convolved(g, y),), Rim())
    after = layout(outer, Target(), [])
    assert len(turns(after)) == 4 and next(n for n in after.nodes if n.graphs).graphs == (branch, branch)
    assert len(turns(layout(branch, Target(), []))) == 2


def test_what_has_nothing_to_gain_is_the_same_object() -> None:
    g = Build("main")
    x = Value("x", Tensor(F32, (2, 6, 4, 4)))
    y = g(e.RELU, g(shape.TRANSPOSE, x, [0, 3, 1, 2]))
    graph = g.finish((x,), (y,), Rim())
    assert layout(graph, Target(), []) is graph
    g = Build("main")
    plain = g.finish((x,), (g(e.RELU, x),), Rim())
    assert layout(plain, Target(), []) is plain


def test_a_turned_matrix_is_a_flag() -> None:
    g = Build("main")
    x, y = Value("x", Tensor(F32, (2, 3, 4))), Value("y", Tensor(F32, (2, 5, 4)))
    z = g(host.MATMUL, x, g(shape.TRANSPOSE, y, [0, 2, 1]), adj_x=False, adj_y=False)
    ports = tuple(Port(v.name, "float32", v.shape) for v in (x, y, z))
    before = g.finish((x, y), (z,), Rim(ports[:2], ports[2:]))
    for target in (Target(8), Target(30)):
        after = layout(before, target, [])
        (found,) = after.nodes
        assert found.op is host.MATMUL and found.args["adj_y"]
        a: list[Array] = [np.random.default_rng(0).standard_normal(v.shape).astype(np.float32) for v in (x, y)]
        same(run(after, a), run(before, a))


def test_indices_keep_their_place() -> None:
    """A gather by indices of two axes from an image."""
    g = Build("main")
    x, at = Value("x", Tensor(F32, (1, 4, 6, 4))), Value("at", Tensor(I32, (2, 3)))
    flat = g(shape.RESHAPE, convolved(g, x), [4, 24])
    z = g(gather.GATHER, flat, axis=1, indices=at)
    ports = tuple(Port(v.name, v.type.dtype.name, v.shape) for v in (x, at, z))
    before = g.finish((x, at), (z,), Rim(ports[:2], ports[2:]))
    after = layout(before, Target(8), [])
    a: list[Array] = [np.random.default_rng(0).standard_normal(x.shape).astype(np.float32),
                      np.array([[0, 23, 5], [7, 7, 1]], np.int32)]
    same(run(after, a), run(before, a))
