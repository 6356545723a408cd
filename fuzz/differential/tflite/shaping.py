"""Steps that move elements: other shapes, parts, joints, gathered and scattered ones."""
from __future__ import annotations

import math

import numpy as np

from ..draw import Unfit
from .growing import CODES, Growing, Value, step, type_code


@step("fqib", weight=3)
def reshape(m: Growing, x: Value) -> None:
    """RESHAPE to any rank, its shape an input or an option, one size left open at times."""
    if not x.size:
        raise Unfit
    shape = m.draw.factors(x.size, m.draw.between(1, 6)) if x.size > 1 or m.draw.chance(0.7) else ()
    said = list(shape)
    if shape and m.draw.chance(0.4):
        said[m.draw.between(0, len(shape) - 1)] = -1
    if m.draw.chance(0.7):
        m.op("RESHAPE", [x, m.ints(said)], [m.like(x, shape)], "ReshapeOptions",
             {"NewShape": said})
    elif shape:
        m.op("RESHAPE", [x], [m.like(x, shape)], "ReshapeOptions", {"NewShape": said})


@step("fqib", range(1, 7), weight=3)
def transpose(m: Growing, x: Value) -> None:
    """TRANSPOSE in any order."""
    order = m.draw.order(x.rank)
    m.op("TRANSPOSE", [x, m.ints(order)], [m.like(x, [x.shape[i] for i in order])], "TransposeOptions")


@step("fqib", range(6))
def axes_of_one(m: Growing, x: Value) -> None:
    """SQUEEZE and EXPAND_DIMS."""
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if ones and m.draw.chance(0.5):
        gone = m.draw.some(ones, 1, len(ones))
        said = [i - (x.rank if m.draw.chance(0.3) else 0) for i in gone]
        shape = [n for i, n in enumerate(x.shape) if i not in gone]
        if m.draw.chance(0.2):
            said, shape = [], [n for n in x.shape if n != 1]
        m.op("SQUEEZE", [x], [m.like(x, shape)], "SqueezeOptions", {"SqueezeDims": said} if said else {})
        return
    at = m.draw.between(0, x.rank)
    said_at = at - (x.rank + 1 if m.draw.chance(0.4) else 0)
    m.op("EXPAND_DIMS", [x, m.ints(said_at)], [m.like(x, (*x.shape[:at], 1, *x.shape[at:]))], "ExpandDimsOptions")


@step("fqib", range(1, 5), weight=3)
def concatenation(m: Growing, x: Value) -> None:
    """CONCATENATION of two to four, on one grid unless they are bytes."""
    axis, parts = m.draw.axis(x.rank), [x]
    at = axis % x.rank
    for _ in range(m.draw.between(1, 3)):
        parts.append(m.pick(lambda v: v.dtype == x.dtype and v.kind == x.kind and v.rank == x.rank and (
            v.dtype == "uint8" or v.grid == x.grid) and all(
                a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != at)) or x)
    shape = [sum(p.shape[i] for p in parts) if i == at else n for i, n in enumerate(x.shape)]
    low, high = min(p.low for p in parts), max(p.high for p in parts)
    y = m.made(x.dtype, shape, low, high, scale=x.scale, zero=x.zero)
    if x.dtype == "uint8" and m.draw.chance(0.5):
        y = m.coded(shape, max(abs(low), abs(high)), "uint8")
    m.op("CONCATENATION", parts, [y], "ConcatenationOptions", {"Axis": axis})


@step("fqi", range(5))
def stacks(m: Growing, x: Value) -> None:
    """PACK and UNPACK."""
    rank = x.rank
    if rank and m.draw.chance(0.5):
        axis = m.draw.axis(rank)
        n = x.shape[axis % rank]
        if not 1 <= n <= 6:
            raise Unfit
        shape = [s for i, s in enumerate(x.shape) if i != axis % rank]
        m.op("UNPACK", [x], [m.like(x, shape) for _ in range(n)], "UnpackOptions", {"Num": n, "Axis": axis})
        return
    axis = m.draw.axis(rank + 1)
    at = axis % (rank + 1)
    parts = [x, *(m.pick(lambda v: (v.dtype, v.shape, v.grid) == (x.dtype, x.shape, x.grid)) or x
                  for _ in range(m.draw.between(0, 2)))]
    y = m.made(x.dtype, (*x.shape[:at], len(parts), *x.shape[at:]), min(p.low for p in parts),
               max(p.high for p in parts), scale=x.scale, zero=x.zero)
    m.op("PACK", parts, [y], "PackOptions", {"ValuesCount": len(parts), "Axis": axis})


@step("fqi", range(1, 7), weight=2)
def splits(m: Growing, x: Value) -> None:
    """SPLIT into equal parts, SPLIT_V into others."""
    rank = x.rank
    axis = m.draw.axis(rank)
    n = x.shape[axis % rank]

    def part(size: int) -> Value:
        return m.like(x, [size if i == axis % rank else s for i, s in enumerate(x.shape)])

    equal = [k for k in range(1, 6) if n % k == 0 and n]
    if equal and m.draw.chance(0.5):
        k = m.draw.one(equal)
        m.op("SPLIT", [m.ints(axis), x], [part(n // k) for _ in range(k)], "SplitOptions", {"NumSplits": k})
        return
    if n < 2:
        raise Unfit
    cut = sorted(m.draw.some(range(1, n), 1, 3))
    sizes = [b - a for a, b in zip([0, *cut], [*cut, n], strict=True)]
    said = list(sizes)
    if m.draw.chance(0.4):
        said[m.draw.between(0, len(said) - 1)] = -1
    m.op("SPLIT_V", [x, m.ints(said), m.ints(axis)], [part(s) for s in sizes], "SplitVOptions",
         {"NumSplits": len(sizes)})


@step("fqi", range(1, 6), weight=2)
def repeat(m: Growing, x: Value) -> None:
    """TILE and BROADCAST_TO."""
    if m.draw.chance(0.5):
        times = [m.draw.one([1, 1, 2, 3]) for _ in x.shape]
        m.op("TILE", [x, m.ints(times)], [m.like(x, [a * b for a, b in zip(x.shape, times, strict=True)])],
             "TileOptions")
        return
    shape = [m.draw.one([2, 3, 4]) if n == 1 and m.draw.chance(0.6) else n for n in x.shape]
    shape = [m.draw.one([1, 2, 3]) for _ in range(m.draw.between(0, max(0, 5 - len(shape))))] + shape
    m.op("BROADCAST_TO", [x, m.ints(shape)], [m.like(x, shape)], "BroadcastToOptions", version=3)


@step("fqi", range(1, 6), weight=2)
def cut(m: Growing, x: Value) -> None:
    """SLICE, sizes to the end as -1."""
    if 0 in x.shape:
        raise Unfit
    begin = [m.draw.between(0, n - 1) for n in x.shape]
    sizes = [m.draw.between(1, n - b) for n, b in zip(x.shape, begin, strict=True)]
    said = [-1 if b + s == n and m.draw.chance(0.5) else s for b, s, n in zip(begin, sizes, x.shape, strict=True)]
    dtype = m.draw.one(["int32", "int32", "int64"])
    m.op("SLICE", [x, m.ints(begin, dtype), m.ints(said, dtype)], [m.like(x, sizes)], "SliceOptions")


@step("fqi", range(1, 5), weight=3)
def strided(m: Growing, x: Value) -> None:
    """STRIDED_SLICE with steps of both signs, ends beyond the axis, and masks."""
    begin, end, by, shape = [], [], [], []
    masks = {"BeginMask": 0, "EndMask": 0, "ShrinkAxisMask": 0}
    for i, n in enumerate(x.shape):
        if n and m.draw.chance(0.15):
            at = m.draw.between(-n, n - 1)
            begin.append(at)
            end.append(at + 1)
            by.append(1)
            masks["ShrinkAxisMask"] |= 1 << i
            continue
        b, e, s = m.draw.between(-n - 2, n + 2), m.draw.between(-n - 2, n + 2), m.draw.one([1, 1, 1, 2, 3, -1, -2])
        if m.draw.chance(0.4):
            masks["BeginMask"] |= 1 << i
        if m.draw.chance(0.4):
            masks["EndMask"] |= 1 << i
        whole = slice(None if masks["BeginMask"] >> i & 1 else b, None if masks["EndMask"] >> i & 1 else e, s)
        size = len(range(*whole.indices(n)))
        if not size:
            b, e, s = 0, n, 1
            size = n
        begin.append(b)
        end.append(e)
        by.append(s)
        shape.append(size)
    m.op("STRIDED_SLICE", [x, m.ints(begin), m.ints(end), m.ints(by)], [m.like(x, shape)], "StridedSliceOptions",
         masks)


@step("fqi", range(1, 6), weight=3)
def padding(m: Growing, x: Value) -> None:
    """PAD, PADV2 and MIRROR_PAD, uneven."""
    dtype = m.draw.one(["int32", "int32", "int64"])
    if m.draw.chance(0.3):
        mode = m.draw.one([0, 1])
        most = [n - 1 if mode == 0 else n for n in x.shape]
        if 0 in x.shape or x.dtype == "int16":
            raise Unfit
        pads = [[m.draw.between(0, min(3, k)) for _ in range(2)] for k in most]
        shape = [n + sum(p) for n, p in zip(x.shape, pads, strict=True)]
        m.op("MIRROR_PAD", [x, m.ints(pads, dtype)], [m.like(x, shape)], "MirrorPadOptions", {"Mode": mode})
        return
    pads = [[m.draw.one([0, 0, 1, 2, 3]) for _ in range(2)] for _ in x.shape]
    shape = [n + sum(p) for n, p in zip(x.shape, pads, strict=True)]
    y = m.made(x.dtype, shape, min(x.low, 0), max(x.high, 0), scale=x.scale, zero=x.zero)
    if m.draw.chance(0.5):
        m.op("PAD", [x, m.ints(pads, dtype)], [y], "PadOptions", version=2)
        return
    fill = m.draw.floats((), -2, 2) if x.kind == "f" else m.draw.integers((), *CODES.get(x.dtype, (-5, 5)), x.dtype)
    value = m.tensor(x.dtype, (), fill, **({} if x.scale is None else {"scale": x.scale, "zero": x.zero}))
    y = m.made(x.dtype, shape, min(x.low, -5), max(x.high, 5), scale=x.scale, zero=x.zero)
    m.op("PADV2", [x, m.ints(pads, dtype), value], [y], "PadV2Options", version=2)


@step("fqi", range(1, 6), weight=3)
def gather(m: Growing, x: Value) -> None:
    """GATHER with batches and axes from either end, GATHER_ND."""
    rank, dtype = x.rank, m.draw.one(["int32", "int32", "int64"])
    if 0 in x.shape:
        raise Unfit
    if m.draw.chance(0.3):
        depth = m.draw.between(1, rank)
        lead = m.draw.shape(m.draw.between(0, 2))
        index = np.stack([m.draw.integers(lead, 0, n - 1, dtype) for n in x.shape[:depth]], -1)
        m.op("GATHER_ND", [x, m.indices(index, dtype)], [m.like(x, (*lead, *x.shape[depth:]))], "GatherNdOptions")
        return
    axis = m.draw.axis(rank)
    at = axis % rank
    batch = m.draw.between(0, at) if m.draw.chance(0.3) else 0
    lead = (*x.shape[:batch], *m.draw.shape(m.draw.between(0, 2)))
    index = m.draw.integers(lead, 0, x.shape[at] - 1, dtype)
    shape = (*x.shape[:at], *lead[batch:], *x.shape[at + 1:])
    if len(shape) > 6:
        raise Unfit
    m.op("GATHER", [x, m.indices(index, dtype)], [m.like(x, shape)], "GatherOptions",
         {"Axis": axis, "BatchDims": batch}, 5 if batch else 1)


@step("fqi", range(1, 5))
def reversal(m: Growing, x: Value) -> None:
    """REVERSE_V2 of an axis, REVERSE_SEQUENCE."""
    rank = x.rank
    if rank >= 2 and m.draw.chance(0.5) and x.dtype in ("float32", "int32", "int64", "uint8"):
        seq, batch = m.draw.some(range(rank), 2, 2)
        lengths = m.draw.integers((x.shape[batch],), 0, x.shape[seq], "int32")
        m.op("REVERSE_SEQUENCE", [x, m.indices(lengths)], [m.like(x)], "ReverseSequenceOptions",
             {"SeqDim": seq, "BatchDim": batch})
        return
    m.op("REVERSE_V2", [x, m.ints([m.draw.axis(rank)])], [m.like(x)], "ReverseV2Options")


@step("fqi")
def about_shapes(m: Growing, x: Value) -> None:
    """SHAPE, RANK, ZEROS_LIKE."""
    name = m.draw.one(["SHAPE", "RANK", "ZEROS_LIKE"])
    if name == "ZEROS_LIKE":
        if x.kind == "q":
            raise Unfit
        m.op(name, [x], [m.made(x.dtype, x.shape, 0, 0)], "ZerosLikeOptions")
    elif name == "SHAPE":
        to = m.draw.one(["int32", "int64"])
        m.op(name, [x], [m.made(to, (x.rank,), 0, 1e3)], "ShapeOptions", {"OutType": type_code(to)})
    else:
        m.op(name, [x], [m.made("int32", (), 0, 6)], "RankOptions")


@step("f")
def one_hot(m: Growing, x: Value) -> None:
    """ONE_HOT of indices, some of them outside."""
    shape = m.draw.shape(m.draw.between(0, 3))
    depth = m.draw.between(1, 7)
    index = m.indices(m.draw.integers(shape, -1, depth, "int32"))
    at = m.draw.between(0, len(shape))
    axis = -1 if at == len(shape) and m.draw.chance(0.5) else at
    m.op("ONE_HOT", [index, m.ints(depth), m.float32(m.draw.real(-2, 2)), m.float32(m.draw.real(-2, 2))],
         [m.made("float32", (*shape[:at], depth, *shape[at:]), -2, 2)], "OneHotOptions", {"Axis": axis})


@step("fi", range(1, 5))
def scatter(m: Growing, x: Value) -> None:
    """SCATTER_ND, with several updates for one place."""
    depth = m.draw.between(1, 2)
    lead = x.shape[:m.draw.between(0, x.rank)]
    sizes = tuple(m.draw.between(1, 5) for _ in range(depth))
    index = np.stack([m.draw.integers(lead, 0, n - 1, "int32") for n in sizes], -1)
    shape = (*sizes, *x.shape[len(lead):])
    bound = x.bound * max(1, math.prod(lead))
    m.op("SCATTER_ND", [m.indices(index), x, m.ints(shape)], [m.made(x.dtype, shape, -bound, bound)],
         "ScatterNdOptions")


@step("fi", range(1, 5), weight=2)
def running(m: Growing, x: Value) -> None:
    """CUMSUM, forward and back, with and without the element itself."""
    axis = m.draw.axis(x.rank)
    bound = x.bound * max(1, x.shape[axis])
    if x.kind == "i" and bound > 1e8:
        raise Unfit
    m.op("CUMSUM", [x, m.ints(axis)], [m.made(x.dtype, x.shape, -bound, bound)], "CumsumOptions",
         {"Exclusive": m.draw.chance(0.5), "Reverse": m.draw.chance(0.5)})


@step("fqi", range(1, 5), weight=2)
def largest(m: Growing, x: Value) -> None:
    """TOPK_V2, ARG_MAX and ARG_MIN."""
    if 0 in x.shape:
        raise Unfit
    if m.draw.chance(0.5):
        n = x.shape[-1]
        if x.dtype == "int16":
            raise Unfit
        k = m.draw.between(1, n)
        shape = (*x.shape[:-1], k)
        m.op("TOPK_V2", [x, m.ints(k)], [m.like(x, shape), m.made("int32", shape, 0, n)], "TopKV2Options")
        return
    if x.dtype in ("int16", "int64"):
        raise Unfit
    axis = m.draw.axis(x.rank)
    left = [n for i, n in enumerate(x.shape) if i != axis % x.rank]
    to = m.draw.one(["int32", "int64"])
    name, table = m.draw.one([("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")])
    m.op(name, [x, m.ints(axis)], [m.made(to, left, 0, x.shape[axis])], table,
         {"OutputType": type_code(to)}, 2 if x.kind == "q" else 1)


@step("fi", range(1, 5))
def segments(m: Growing, x: Value) -> None:
    """SEGMENT_SUM and the unsorted ones."""
    n = x.shape[0]
    if not n:
        raise Unfit
    count = m.draw.between(1, 4)
    bound = x.bound * n
    if x.kind == "i" and bound > 1e8:
        raise Unfit
    if m.draw.chance(0.4):
        ids = np.sort(m.draw.integers((n,), 0, count - 1, "int32"))
        shape = (int(ids[-1]) + 1, *x.shape[1:])
        m.op("SEGMENT_SUM", [x, m.ints(ids)], [m.made(x.dtype, shape, -bound, bound)], "SegmentSumOptions")
        return
    name = m.draw.one(["UNSORTED_SEGMENT_SUM"])
    ids = m.draw.integers((n,), -1, count - 1, "int32")
    m.op(name, [x, m.indices(ids), m.ints(count)], [m.made(x.dtype, (count, *x.shape[1:]), -bound, bound)],
         "UnsortedSegmentSumOptions")


@step("fqi", range(1, 5))
def update(m: Growing, x: Value) -> None:
    """DYNAMIC_UPDATE_SLICE, its place beyond the end at times; EMBEDDING_LOOKUP."""
    if x.rank >= 2 and m.draw.chance(0.4) and x.kind == "f" and x.shape[0]:
        n = m.draw.between(1, 6)
        index = m.draw.integers((n,), 0, x.shape[0] - 1, "int32")
        m.op("EMBEDDING_LOOKUP", [m.indices(index), x], [m.like(x, (n, *x.shape[1:]))])
        return
    if x.dtype == "int16" or 0 in x.shape:
        raise Unfit
    sizes = tuple(m.draw.between(1, n) for n in x.shape)
    part = m.pick(lambda v: (v.dtype, v.grid) == (x.dtype, x.grid) and v.rank == x.rank and all(
        a <= b for a, b in zip(v.shape, x.shape, strict=True)))
    if part is None:
        part = m.op("SLICE", [x, m.ints([0] * x.rank), m.ints(sizes)], [m.like(x, sizes)], "SliceOptions")
    starts = [m.draw.between(-1, n) for n in x.shape]
    y = m.made(x.dtype, x.shape, min(x.low, part.low), max(x.high, part.high), scale=x.scale, zero=x.zero)
    m.op("DYNAMIC_UPDATE_SLICE", [x, part, m.indices(starts)], [y], "DynamicUpdateSliceOptions")


@step("fi", range(1, 4))
def diagonals(m: Growing, x: Value) -> None:
    """MATRIX_DIAG and MATRIX_SET_DIAG."""
    if x.dtype == "int64":
        raise Unfit
    if x.rank >= 2 and m.draw.chance(0.5):
        diagonal = m.constant(x, (*x.shape[:-2], min(x.shape[-2:])))
        y = m.made(x.dtype, x.shape, min(x.low, -2), max(x.high, 2))
        m.op("MATRIX_SET_DIAG", [x, diagonal], [y], "MatrixSetDiagOptions")
        return
    y = m.made(x.dtype, (*x.shape, x.shape[-1]), min(x.low, 0), max(x.high, 0))
    m.op("MATRIX_DIAG", [x], [y], "MatrixDiagOptions")
