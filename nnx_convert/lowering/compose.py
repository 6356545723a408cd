"""Composites of TFLite's rarer operators, each as the operations that give its exact answer."""
from __future__ import annotations

from functools import partial

import numpy as np

from ..graph import Node, Value
from ..ops import convert, elementwise as e, gather, host, host_arrays, host_math, image, reduce as r, shape
from ..types import BYTES, B8, F32, I32, Shape, Tensor, known, product
from .exact import bytes_like, codes, computed
from .expand import EXPAND, floats
from .legalize import LEGALIZE
from .quantized import as_it_is, looked_up, on
from .rewrite import Refusal, Result, Rewriter

#: What PAD and SELECT both take.
MOVED = (F32, *BYTES)
OPEN = Refusal("a size is open")


def fixed(*values: Value) -> bool:
    """Whether all sizes are known."""
    return all(v.tensor.dims is not None and all(map(known, v.shape)) for v in values)


def masked(g: Rewriter, mask: np.ndarray, x: Value, y: Value, out: Tensor) -> Value:
    """x where a constant mask is set, else y."""
    return g(host.WHERE, g.build.const(mask, B8), x, y, out=out)


@EXPAND.on(host_math.SIGN)
def sign(g: Rewriter, node: Node) -> Result:
    x = node.args["x"]
    if x.type not in (F32, I32):
        return None
    if not fixed(x):
        return OPEN
    zero, one, less = (g.build.full(x.shape, v, x.tensor) for v in (0, 1, -1))
    return g.legal(g(e.SELECT, g(e.GREATER, x, zero), one, g(e.SELECT, g(e.LESS, x, zero), less, zero)))


@LEGALIZE.on(host_math.GELU)
def gelu_of_a_byte(g: Rewriter, node: Node) -> Result:
    """Looked up: the way over floats would meet the error function again."""
    x, out = node.args["x"], node.outputs[0]
    if x.type not in BYTES or out.type not in BYTES:
        return None
    answers = computed(g.evaluate, partial(as_it_is, node=on(node, x=bytes_like(x, codes(x.type)))))
    if answers is None:
        return Refusal("there is no kernel to compute the table with")
    g.why = "looked up, being of bytes"
    return g.legal(looked_up(g, x, g.build.const(answers, out.type, out.tensor)))


@EXPAND.on(host_math.BUCKETIZE)
def bucketize(g: Rewriter, node: Node) -> Result:
    """The boundaries above x are counted, so that what is not a number is above them all, as in TFLite."""
    x, bounds = node.args["x"], node.args["boundaries"]
    if x.type not in (F32, I32):
        return None
    if not fixed(x):
        return OPEN
    x = x if x.type == F32 else g(convert.CAST, x, to=F32)
    full = (*x.shape, bounds.shape[0])
    above = g(e.LESS, g(shape.RESHAPE, x, (*x.shape, 1)), bounds)
    ones = g(e.SELECT, above, *(g.build.full(full, v, x.tensor) for v in (0, 1)))
    return g.legal(g(convert.CAST, g(r.REDUCE_SUM, ones, (len(full) - 1,), keep=False), to=I32))


@EXPAND.on(host_math.CUMSUM)
def cumsum(g: Rewriter, node: Node) -> Result:
    """Sums of 1, 2, 4, ... neighbours: x and x moved by as many, in log(n) steps."""
    x, axis = node.args["x"], node.args["axis"] % len(node.args["x"].shape)
    if not floats(node):
        return None
    back, size = node.args["reverse"], x.shape[axis]
    if not known(size):
        return OPEN
    x = moved(g, x, axis, 1, back) if node.args["exclusive"] else x
    for n in (1 << i for i in range(max(size - 1, 0).bit_length())):
        x = g(e.ADD, x, moved(g, x, axis, n, back), act=0)
    return g.legal(x) if x is not node.args["x"] else None


def moved(g: Rewriter, x: Value, axis: int, by: int, back: bool) -> Value:
    """x moved along an axis, with zeros where it came from."""
    pads = [[0, 0] for _ in x.shape]
    pads[axis] = [0, by] if back else [by, 0]
    begin = [by if back and i == axis else 0 for i in range(len(x.shape))]
    return g(shape.SLICE, g(shape.PAD, x, pads), begin, [n if known(n) else -1 for n in x.shape])


@EXPAND.on(host_arrays.MATRIX_DIAG)
def matrix_diag(g: Rewriter, node: Node) -> Result:
    x, out = node.args["x"], node.outputs[0].tensor
    if not fixed(x, node.outputs[0]):
        return OPEN
    zero = g.build.const([0], x.type, x.tensor)
    rows = g(shape.RESHAPE, x, (*x.shape, 1))
    return masked(g, np.eye(x.shape[-1], dtype=bool), rows, zero, out)


@EXPAND.on(host_arrays.MATRIX_SET_DIAG)
def matrix_set_diag(g: Rewriter, node: Node) -> Result:
    x, diagonal = node.args["x"], node.args["diagonal"]
    if not fixed(x, diagonal):
        return OPEN
    rows, columns = x.shape[-2:]
    wide: Shape = (*diagonal.shape, 1) if rows <= columns else (*diagonal.shape[:-1], 1, columns)
    return masked(g, np.eye(rows, columns, dtype=bool), g(shape.RESHAPE, diagonal, wide), x, node.outputs[0].tensor)


@EXPAND.on(host_arrays.REVERSE_SEQUENCE)
def reverse_sequence(g: Rewriter, node: Node) -> Result:
    """By known lengths: the rows along both axes, picked by index."""
    x, lengths, axis, batch = (node.args[n] for n in ("x", "lengths", "axis", "batch"))
    if lengths.tensor.data is None or not fixed(x):
        return Refusal("the lengths are computed")
    there = (batch, axis, *(i for i in range(len(x.shape)) if i not in (axis, batch)))
    count, size = x.shape[batch], x.shape[axis]
    ends, ramp = lengths.array.astype(np.int64)[:, None], np.arange(size)
    at = np.where(ramp < ends, ends - 1 - ramp, ramp) + size * np.arange(count)[:, None]
    first = x if there == (*range(len(there)),) else g(shape.TRANSPOSE, x, there)
    rows = g(shape.RESHAPE, first, (count * size, *first.shape[2:]))
    picked = g(shape.RESHAPE, g(gather.GATHER, rows, axis=0, indices=at.reshape(-1)), first.shape)
    return g.legal(picked if first is x else g(shape.TRANSPOSE, picked, tuple(np.argsort(there).tolist())))


@EXPAND.on(host_arrays.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(g: Rewriter, node: Node) -> Result:
    """At a known place: the update, filled up to the size of x, where a mask says so."""
    x, update, start = (node.args[n] for n in ("x", "update", "start"))
    if start.tensor.data is None or not fixed(x, update):
        return Refusal("its place is computed")
    if x.type not in MOVED:
        return None
    first = np.clip(start.array, 0, np.subtract(x.shape, update.shape)).tolist()
    mask = np.zeros(x.shape, bool)
    mask[tuple(slice(a, a + n) for a, n in zip(first, update.shape, strict=True))] = True
    pads = [[a, n - a - m] for a, m, n in zip(first, update.shape, x.shape, strict=True)]
    return masked(g, mask, g(shape.PAD, update, pads), x, node.outputs[0].tensor)


@EXPAND.on(host_arrays.DILATE)
def dilate(g: Rewriter, node: Node) -> Result:
    """Axis by axis: each element becomes a row of itself and the value, and the last gap is cut off."""
    x, value, steps = node.args["x"], node.args["value"], node.args["dilations"]
    if steps.tensor.data is None or value.tensor.data is None or not fixed(x) or 0 in x.shape:
        return Refusal("a size or the value is computed")
    if not floats(node):
        return None
    y = x
    for axis, d in enumerate(steps.tensor.ints()):
        if d > 1:
            head, n, tail = product(y.shape[:axis]), y.shape[axis], product(y.shape[axis + 1:])
            rows = g(shape.RESHAPE, y, (head * n, 1, tail))
            filled = g(shape.PAD_V2, rows, [[0, 0], [0, d - 1], [0, 0]], value=value.array.item())
            long = g(shape.RESHAPE, filled, (head, n * d, tail))
            cut = g(shape.SLICE, long, (0, 0, 0), (head, (n - 1) * d + 1, tail))
            y = g(shape.RESHAPE, cut, (*y.shape[:axis], (n - 1) * d + 1, *y.shape[axis + 1:]))
    return x if y is x else g.legal(y)


@EXPAND.on(host_arrays.REDUCE_WINDOW)
def reduce_window(g: Rewriter, node: Node) -> Result:
    """The largest of images' windows: MAX_POOL_2D, where the start is not above any number."""
    x, start = node.args["x"], node.args["start"].tensor.data
    sizes, strides, apart = (node.args[n].tensor for n in ("sizes", "strides", "dilations"))
    if any(t.data is None for t in (sizes, strides, apart)) or start is None or len(x.shape) != 4 or not floats(node):
        return Refusal("windows of no image, or computed ones")
    (n, kh, kw, c), (sn, sh, sw, sc) = sizes.ints(), strides.ints()
    if node.args["function"] != host_arrays.MOST or start.item() > np.finfo(np.float32).min or {
            n, c, sn, sc, *apart.ints()} != {1}:
        return Refusal("NNAPI folds windows of images into their largest alone, without gaps")
    return g.legal(g(image.MAX_POOL_2D, x, scheme=2, sw=sw, sh=sh, kw=kw, kh=kh, act=0))
