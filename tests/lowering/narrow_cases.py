"""Small graphs of five axes and more, and the targets on which the host is left with something."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rule_cases import GRIDS, Kind, Made, grid, of

from nnx_convert.graph import Build, Value
from nnx_convert.ops import convert, elementwise as e, ex, gather, host, host_arrays, norm, reduce as r, shape
from nnx_convert.types import F32, I32, Q8, Q8S, Tensor

DIMS = (2, 3, 1, 4, 5)
F, I, Y, S = ((t, DIMS) for t in (F32, I32, Q8, Q8S))  # noqa: E741
SIX: Kind = (F32, (2, 3, 4, 2, 3, 2))
FULL: Kind = (F32, (2, 3, 2, 4, 5))


def chain(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """Four axes become five, are computed with, and become four again."""
    x = g(shape.RESHAPE, xs[0], (2, 3, 2, 2, 5))
    y = g(e.MUL, g(e.ADD, x, x, act=1), g.const(np.arange(5).reshape(1, 1, 1, 1, 5), F32), act=0)
    return [g(shape.RESHAPE, g(shape.TRANSPOSE, y, [0, 2, 1, 3, 4]), (2, 2, 6, 5))]


def after_the_host(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """Five axes that the host made, and nothing to read them with fewer."""
    w = g.const(np.ones((1, 1, 1, 5, 2)), F32)
    y = g(host.CONV_3D, xs[0], w, None, scheme=1, sd=1, sh=1, sw=1, act=0)
    return [g(e.RELU, y)]


def joined(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    return g.add(shape.CONCATENATION, xs=tuple(xs), axis=3)


def stacked(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    return g.add(ex.PACK_EX, xs=tuple(xs), count=2, axis=2)


def cut(begin: Sequence[int], end: Sequence[int], strides: Sequence[int], shrink_mask: int = 0) -> Made:
    masks = {"begin_mask": 0, "end_mask": 0b10, "shrink_mask": shrink_mask}
    return of(shape.STRIDED_SLICE, begin=begin, end=end, strides=strides, **masks)


def compared(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    return [g(host.WHERE, g(e.LESS, xs[0], xs[1]), xs[0], xs[1])]


def like(kind: Kind, **named: Any) -> dict[str, Any]:
    """The grid of the input for the output."""
    return {"out": Tensor(kind[0], None, GRIDS[kind[0]])} | named


NARROWED: dict[str, tuple[Made, list[Kind]]] = {
    "chain": (chain, [(F32, (2, 3, 4, 5))]), "after_the_host": (after_the_host, [F]),
    "add": (of(e.ADD, act=1), [F, F]), "add_row": (of(e.ADD, act=0), [F, (F32, (5,))]),
    "add_bytes": (of(e.ADD, act=0, out=grid(Q8, 1.0, 7)), [Y, Y]),
    "add_signed": (of(e.ADD, act=0, out=grid(Q8S, 1.0, 7)), [S, (Q8S, (4, 5))]),
    "mul_image": (of(e.MUL, act=0), [FULL, (F32, (2, 1, 1, 4, 5))]),
    "mul_across": (of(e.MUL, act=0), [FULL, (F32, (1, 3, 1, 4, 1))]),
    "relu_wide": (of(e.RELU), [SIX]), "relu_byte": (of(e.RELU, **like(Y)), [Y]),
    "logistic_byte": (of(e.LOGISTIC), [Y]), "floor_wide": (of(e.FLOOR), [F]), "cos_wide": (of(host.COS), [F]),
    "dequantize": (of(convert.DEQUANTIZE, to=F32), [Y]), "compared": (compared, [F, F]),
    "less_wide": (of(e.LESS), [F, F]), "sub_int": (of(e.SUB, act=0), [I, I]),
    "prelu_wide": (of(e.PRELU), [F, (F32, (4, 1))]),
    "mean_wide": (of(r.MEAN, axes=(1, 2, 3), keep=1), [F]), "mean_last": (of(r.MEAN, axes=(-1,), keep=0), [FULL]),
    "mean_bytes": (of(r.MEAN, axes=(2, 3), keep=0), [Y]), "max_apart": (of(r.REDUCE_MAX, axes=(0, 3), keep=True), [F]),
    "sum_all": (of(r.REDUCE_SUM, axes=(0, 1, 2, 3, 4), keep=False), [F]),
    "mean_many": (of(r.MEAN, axes=(1, 3), keep=1), [FULL]),
    "add_across": (of(e.ADD, act=0, out=grid(Q8, 1.0, 7)), [(Q8, FULL[1]), (Q8, (1, 3, 1, 4, 1))]),
    "max_many": (of(r.REDUCE_MAX, axes=(1, 3), keep=True), [FULL]),
    "softmax_last": (of(norm.SOFTMAX, beta=1.0), [F]), "softmax_inner": (of(norm.SOFTMAX, beta=1.0, axis=1), [F]),
    "transpose_merged": (of(shape.TRANSPOSE, perm=(0, 3, 1, 2, 4)), [F]),
    "transpose_back": (of(shape.TRANSPOSE, perm=(4, 3, 2, 1, 0)), [FULL]),
    "transpose_six": (of(shape.TRANSPOSE, perm=(3, 0, 5, 1, 4, 2)), [SIX]),
    "transpose_windows": (of(shape.TRANSPOSE, perm=(0, 1, 3, 2, 4, 5)), [SIX]),
    "split_wide": (of(shape.SPLIT, axis=3, count=2), [F]), "concat_wide": (joined, [F, (F32, (2, 3, 1, 2, 5))]),
    "pack_wide": (stacked, [(F32, (2, 3, 4, 5))] * 2), "unpack_wide": (of(ex.UNPACK_EX, axis=1, count=3), [F]),
    "expand_wide": (of(shape.EXPAND_DIMS, axis=1), [F]), "squeeze_wide": (of(shape.SQUEEZE, dims=(2,)), [F]),
    "gather_wide": (of(gather.GATHER, axis=1, indices=[[2, 0], [1, 1]]), [F]),
    "pad_wide": (of(shape.PAD, paddings=[[0, 0], [0, 0], [0, 0], [1, 2], [0, 0]]), [F]),
    "pad_volume": (of(shape.PAD, paddings=[[0, 0], [1, 0], [2, 0], [0, 1], [0, 0]]), [FULL]),
    "pad_all": (of(shape.PAD, paddings=[[1, 0], [0, 1], [1, 1], [2, 0], [0, 2]]), [FULL]),
    "tile_wide": (of(shape.TILE, multiples=[1, 2, 3, 1, 2]), [F]),
    "slice_wide": (of(shape.SLICE, begin=[1, 0, 0, 1, 2], size=[1, -1, 1, 2, 3]), [F]),
    "strided_wide": (cut([0, 1, 0, 3, 0], [2, 1, 1, -9, 5], [1, 1, 1, -2, 2]), [F]),
    "strided_shrunk": (cut([0, 1, 0, 2, 0], [2, 1, 1, 3, 5], [1, 1, 1, 1, 1], 0b1100), [F]),
    "broadcast_wide": (of(host.BROADCAST_TO, shape=(2, 3, 2, 4, 5)), [(F32, (3, 1, 4, 1))]),
    "broadcast_run": (of(host.BROADCAST_TO, shape=(2, 3, 2, 4, 5)), [(F32, (4, 5))]),
    "matmul_wide": (of(host.MATMUL, adj_x=False, adj_y=True), [FULL, FULL]),
    "matmul_shared": (of(host.MATMUL, adj_x=False, adj_y=False), [FULL, (F32, (5, 2))]),
    "diagonal_wide": (of(host_arrays.MATRIX_DIAG), [(F32, (2, 3, 2, 2))]),
}
#: By the targets (as their indices in TARGETS) on which the host is left with something.
NARROWED_HOSTED = {name: where for where, names in {
    (0, 1): """
        max_apart max_many sum_all split_wide unpack_wide gather_wide matmul_wide
    """,
    (1, 2): """
        chain mean_wide mean_last transpose_merged transpose_back transpose_six transpose_windows strided_wide
        strided_shrunk matmul_shared slice_wide softmax_inner
    """,
    (0, 1, 2): """
        cos_wide compared less_wide mul_across add_across tile_wide
        broadcast_wide broadcast_run diagonal_wide
    """,
    (0, 1, 2, 3, 4): "add_signed sub_int",
    tuple(range(8)): "after_the_host mean_many",
}.items() for name in names.split()}
