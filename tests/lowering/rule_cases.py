"""One small graph for every rule of lowering: how it is made, of which inputs, and which numbers to feed it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnx_convert.graph import Build, Graph, Value
from nnx_convert.ops import conv, convert, elementwise as e, ex, gather, host, image, norm, reduce as r, shape
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, Q8, Q8S, QPC, ChannelQuant, Port, Quant, Rim, Tensor, Type

#: Level, EX, experimental.
TARGETS = [Target(*t) for t in ((28, False, False), (27, False, False), (27, True, False), (29, False, False),
                                (29, True, False), (30, True, True), (30, False, False), (8, False, False))]
Made = Callable[[Build, Sequence[Value]], Value | Sequence[Value]]
Kind = tuple[Type, tuple[int, ...]]
F, I, B, Y, S = ((t, (2, 3, 4)) for t in (F32, I32, B8, Q8, Q8S))  # noqa: E741
IMAGE = (F32, (2, 3, 4, 5))
#: The grid of quantised inputs.
GRIDS = {Q8: Quant(0.5, 3), Q8S: Quant(0.5, -3)}


def of(op: OpDef, *, out: Tensor | None = None, **named: Any) -> Made:
    """The operation on the inputs, in its order; `out` is what is known of its output."""
    return lambda g, xs: g.add(op, *xs, outs=(out,) if out else (), **named)


def grid(type_: Type, scale: float, zero: int) -> Tensor:
    return Tensor(type_, None, Quant(scale, zero))


def per_channel(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """FULLY_CONNECTED with scales per channel, which NNAPI has for convolutions only."""
    w = np.random.default_rng(0).integers(-127, 128, (3, 4)).astype(np.int8)
    weights = Value("w", Tensor(QPC, (3, 4), ChannelQuant((0.5, 0.25, 0.125), 0), w))
    bias = g.const([100, -5, 3], I32)
    return g.add(conv.FULLY_CONNECTED, xs[0], weights, bias, act=1, outs=(grid(Q8S, 64.0, 3),))


def scatter(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """TRANSPOSE_CONV_2D by scheme, without bias, as a file has it."""
    w = g.const(np.arange(2 * 3 * 3 * 5).reshape(2, 3, 3, 5) - 40, F32)
    return g.add(conv.TRANSPOSE_CONV_2D, x=xs[0], w=w, b=g.const([0, 0], F32), shape=[2, 6, 8, 2], scheme=1, sw=2, sh=2,
                 act=0, nchw=False)


def matrices(y: Any, adj_x: bool = False, adj_y: bool = False) -> Made:
    return lambda g, xs: g.add(host.MATMUL, xs[0], g.const(y, F32), adj_x=adj_x, adj_y=adj_y)


#: MEAN onto another grid, as importers say it.
MEAN = host.host_twin(r.MEAN)
PADDINGS = [[0, 1], [2, 0], [1, 1]]
SLICED = {"begin": (0, 1, 0), "end": (2, 3, 4), "strides": (1, 1, 1), "begin_mask": 1, "end_mask": 4, "shrink_mask": 0}
CASES: dict[str, tuple[Made, list[Kind]]] = {
    **{o.name.lower(): (of(o), [F]) for o in (
        host.SQUARE, host.CEIL, host.ROUND, host.COS, host.RELU_0_TO_1, e.EXP, e.HARD_SWISH)},
    **{f"{o.name.lower()}_{t[0].name[7:]}": (of(o), [t, t]) for o in (
        e.EQUAL, e.NOT_EQUAL, e.LESS, e.LESS_EQUAL, e.GREATER, e.GREATER_EQUAL) for t in (F, I)},
    **{o.name.lower(): (of(o), [B, B]) for o in (e.LOGICAL_AND, e.LOGICAL_OR)},
    **{f"{o.name.lower()}_int": (of(o), [I, I]) for o in (host.FLOOR_DIV, host.FLOOR_MOD, host.TRUNC_DIV)},
    "floor_div": (of(host.FLOOR_DIV), [F, (F32, (4,))]),
    **{f"{o.name.lower()}_keep{k}": (of(o, axes=(1, 2), keep=k), [F]) for o in (
        r.REDUCE_MAX, r.REDUCE_MIN, r.REDUCE_SUM) for k in (False, True)},
    **{f"{o.name.lower()}_keep{k}": (of(o, axes=(1,), keep=k), [B]) for o in (r.REDUCE_ANY, r.REDUCE_ALL)
       for k in (False, True)},
    "leaky": (of(host.LEAKY_RELU, alpha=1.5), [F]), "prelu": (of(e.PRELU), [F, (F32, (4,))]),
    "squared_difference": (of(host.SQUARED_DIFFERENCE), [F, (F32, (3, 1))]),
    "topk": (of(host.TOPK_FIRST, k=3), [F]), "topk_int": (of(host.TOPK_FIRST, k=2), [I]),
    "broadcast": (of(host.BROADCAST_TO, shape=(5, 2, 3, 4)), [(F32, (2, 1, 4))]),
    "broadcast_bool": (of(host.BROADCAST_TO, shape=(2, 3, 4)), [(B8, (3, 1))]),
    "where": (of(host.WHERE), [(B8, (3, 1)), F, (F32, (4,))]),
    "where_rows": (of(host.WHERE), [(B8, (2,)), (F32, (2, 3)), (F32, (2, 3))]),
    "gather": (of(gather.GATHER, axis=1, indices=[[2, 0], [1, 1]]), [F]),
    "gather_batched": (of(host.GATHER_BATCHED, indices=np.array([[0, 2, 1], [1, 1, 0]]), axis=1, batch=1), [F]),
    "gather_nd": (of(host.GATHER_ND, indices=np.array([[0, 2], [1, 1]])), [F]),
    "gather_nd_rows": (of(host.GATHER_ND, indices=np.array([[1], [0], [1]])), [F]),
    "matmul": (matrices(np.arange(20).reshape(4, 5)), [F]),
    "matmul_adj": (matrices(np.arange(20).reshape(1, 5, 4), adj_y=True), [F]),
    "matmul_batched": (matrices(np.arange(40).reshape(2, 4, 5)), [F]),
    "pack": (lambda g, xs: g.add(ex.PACK_EX, xs=tuple(xs), count=2, axis=1), [F, F]),
    "unpack": (of(ex.UNPACK_EX, count=3, axis=1), [F]), "split_int": (of(shape.SPLIT, axis=2, count=2), [I]),
    "expand_dims": (of(shape.EXPAND_DIMS, axis=1), [F]), "squeeze": (of(shape.SQUEEZE, dims=(1,)), [(F32, (2, 1, 3))]),
    "one_hot": (of(ex.ONE_HOT_EX, depth=4, on=2.0, off=-1.0, axis=-1, to=F32), [(I32, (2, 3))]),
    "one_hot_0": (of(ex.ONE_HOT_EX, depth=4, on=2.0, off=-1.0, axis=0, to=F32), [(I32, (2, 3))]),
    "cast_bool": (of(convert.CAST, to=F32), [B]), "cast_to_bool": (of(convert.CAST, to=B8), [F]),
    "cast_int": (of(convert.CAST, to=I32), [F]),
    "reshape_int": (of(shape.RESHAPE, shape=(2, 1, 3)), [(I32, (6,))]),
    "reshape_int_ones": (of(shape.RESHAPE, shape=(1, 6, 1, 2)), [(I32, (6, 1, 2))]),
    "mean_pool": (of(r.MEAN, axes=(1, 2), keep=0), [IMAGE]),
    "mean_pool_keep": (of(r.MEAN, axes=(1, 2), keep=1), [IMAGE]),
    "strided_int": (of(shape.STRIDED_SLICE, **SLICED), [I]),
    "pad": (of(shape.PAD, paddings=PADDINGS), [F]), "pad_byte": (of(shape.PAD, paddings=PADDINGS), [Y]),
    "sub": (of(e.SUB, act=0), [F, F]), "neg_int": (of(e.NEG), [I]),
    "square_byte": (of(host.SQUARED_DIFFERENCE, out=grid(Q8, 1.0, 0)), [Y, Y]),
    "exp_byte": (of(e.EXP, out=grid(Q8, 8.0, 0)), [Y]), "abs_byte": (of(e.ABS, out=grid(Q8, 0.5, 3)), [Y]),
    "leaky_byte": (of(host.LEAKY_RELU, alpha=0.125, out=grid(Q8, 0.5, 3)), [Y]),
    "requantize_byte": (of(host.REQUANTIZE, to=Q8S, out=grid(Q8S, 0.5, -125)), [Y]),
    "requantize_coarse": (of(host.REQUANTIZE, to=Q8S, out=grid(Q8S, 1.0, 5)), [S]),
    "div_byte": (of(e.DIV, act=0, out=grid(Q8, 0.25, 100)), [Y, Y]),
    "mean_byte": (of(r.MEAN, axes=(1, 2), keep=0), [(Q8, (2, 5, 7, 3))]),
    "mean_byte_regrid": (of(MEAN, axes=(1, 2), keep=1, out=grid(Q8, 0.3, 11)), [(Q8, (2, 5, 7, 3))]),
    "mean_signed_regrid": (of(MEAN, axes=(1, 2), keep=1, out=grid(Q8S, 0.2, -7)), [(Q8S, (2, 7, 7, 3))]),
    "mean_last_regrid": (of(MEAN, axes=(-1,), keep=0, out=grid(Q8S, 0.2, -7)), [(Q8S, (4, 5, 64))]),
    "relu_regrid": (of(host.host_twin(e.RELU6), out=grid(Q8S, 0.025, -128)), [S]),
    "sum_signed": (of(r.REDUCE_SUM, axes=(1, 2), keep=False, out=grid(Q8S, 3.7, 4)), [(Q8S, (2, 5, 7, 3))]),
    "sum_apart": (of(r.REDUCE_SUM, axes=(0, 2), keep=False, out=grid(Q8S, 3.7, 4)), [(Q8S, (2, 5, 7, 3))]),
    "log_softmax_byte": (of(norm.LOG_SOFTMAX, beta=1.0, axis=-1, out=grid(Q8, 0.0625, 255)), [Y]),
    "dense_per_channel": (per_channel, [(Q8S, (2, 4))]), "scatter": (scatter, [(F32, (2, 3, 4, 5))]),
    "nearest_half": (of(image.RESIZE_NEAREST_NEIGHBOR, ow=7, oh=2, nchw=False, half=True), [IMAGE]),
    "nearest_align": (of(image.RESIZE_NEAREST_NEIGHBOR, ow=7, oh=5, nchw=False, align=True), [IMAGE]),
    "reshape_bool": (of(shape.RESHAPE, shape=(4, 6)), [B]),
    "transpose_bool": (of(shape.TRANSPOSE, perm=(2, 0, 1)), [B]),
    "gather_bool": (of(gather.GATHER, axis=1, indices=[2, 0]), [B]),
    "concat_bool": (lambda g, xs: g.add(shape.CONCATENATION, xs=tuple(xs), axis=1), [B, B]),
    "add_relu6": (lambda g, xs: [g(e.RELU6, g(e.ADD, xs[0], xs[1], act=0))], [F, F]),
    "masks_cancel": (lambda g, xs: [g(e.LOGICAL_NOT, g(e.LOGICAL_AND, g(e.LESS, xs[0], xs[1]), g(
        e.EQUAL, xs[0], xs[1])))], [F, F]),
}


def graph_of(make: Made, kinds: list[Kind]) -> Graph:
    """The case as a graph."""
    g = Build("case")
    xs = tuple(Value(f"x{i}", Tensor(t, dims, GRIDS.get(t))) for i, (t, dims) in enumerate(kinds))
    made = make(g, xs)
    outs = (made,) if isinstance(made, Value) else tuple(made)
    return g.finish(xs, outs, Rim(tuple(map(port, xs)), tuple(map(port, outs))))


def port(v: Value) -> Port:
    """How a user sees a value: as it is before a target changes it."""
    return Port(v.name, v.type.dtype.name, v.shape, v.tensor.quant)


def numbers(name: str, graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Inputs of a case: small integers (ties for TOPK, exact sums), no zero divisors."""
    rng = np.random.default_rng(1)
    found = []
    for v in graph.inputs:
        t = v.type
        if t == B8:
            found.append(rng.random(v.shape) < .5)
        elif t in GRIDS:
            found.append(rng.integers(np.iinfo(t.dtype).min, np.iinfo(t.dtype).max, v.shape, t.dtype, endpoint=True))
        elif name.startswith("one_hot"):
            found.append(rng.integers(0, 5, v.shape).astype(np.int32))
        else:
            found.append((rng.integers(-3, 4, v.shape) * 2 + (t == I32 or "div" in name)).astype(t.dtype))
    return found
