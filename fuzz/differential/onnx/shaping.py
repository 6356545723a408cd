"""Steps that move elements: other shapes, parts, joints, gathered and scattered ones."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..draw import Unfit
from .growing import Growing, Value, step


@step("fibc", weight=3)
def reshape(m: Growing, x: Value) -> None:
    """Reshape with 0 for a size that is kept and -1 for one left open; Flatten."""
    if not x.size:
        raise Unfit
    if m.draw.chance(0.2):
        at = m.draw.between(0, x.rank)
        axis = at - x.rank if m.version >= 11 and at < x.rank and m.draw.chance(0.3) else at
        m.op("Flatten", [x], [m.like(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))], axis=axis)
        return
    shape = m.draw.factors(x.size, m.draw.between(1, 5)) if x.size > 1 or m.draw.chance(0.7) else ()
    said = list(shape)
    if m.draw.chance(0.3):
        said = [0 if i < x.rank and x.shape[i] == n else n for i, n in enumerate(shape)]
    if shape and m.draw.chance(0.4):
        said[m.draw.between(0, len(shape) - 1)] = -1
    m.op("Reshape", [x, m.ints(said)], [m.like(x, shape)])


@step("fibc", range(1, 7), weight=3)
def transpose(m: Growing, x: Value) -> None:
    """Transpose in any order, the reverse by default."""
    if m.draw.chance(0.2):
        m.op("Transpose", [x], [m.like(x, x.shape[::-1])])
        return
    order = m.draw.order(x.rank)
    m.op("Transpose", [x], [m.like(x, [x.shape[i] for i in order])], perm=order)


@step("fibc", range(5), weight=2)
def axes_of_one(m: Growing, x: Value) -> None:
    """Squeeze and Unsqueeze, axes as an attribute or an input."""
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    signed = m.version >= 11
    if ones and m.draw.chance(0.5):
        gone = m.draw.some(ones, 1, len(ones))
        shape = [n for i, n in enumerate(x.shape) if i not in gone]
        said = [i - (x.rank if signed and m.draw.chance(0.4) else 0) for i in gone]
        if m.draw.chance(0.2):
            m.op("Squeeze", [x], [m.like(x, [n for n in x.shape if n != 1])])
        elif m.version < 13:
            m.op("Squeeze", [x], [m.like(x, shape)], axes=said)
        else:
            m.op("Squeeze", [x, m.ints(said)], [m.like(x, shape)])
        return
    rank = x.rank + m.draw.between(1, 2)
    new = m.draw.some(range(rank), rank - x.rank, rank - x.rank)
    left = iter(x.shape)
    shape = [1 if i in new else next(left) for i in range(rank)]
    said = [i - (rank if signed and m.draw.chance(0.4) else 0) for i in new]
    if m.version < 13:
        m.op("Unsqueeze", [x], [m.like(x, shape)], axes=said)
    else:
        m.op("Unsqueeze", [x, m.ints(said)], [m.like(x, shape)])


def axis_of(m: Growing, rank: int, since: int = 11) -> int:
    """An axis, counted from the end at times in versions that allow it."""
    return m.draw.axis(rank) if m.version >= since else m.draw.between(0, rank - 1)


@step("fib", range(1, 6), weight=3)
def concatenation(m: Growing, x: Value) -> None:
    """Concat of one to four."""
    axis = axis_of(m, x.rank)
    at, parts = axis % x.rank, [x]
    for _ in range(m.draw.between(0, 3)):
        parts.append(m.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != at)) or x)
    shape = [sum(p.shape[i] for p in parts) if i == at else n for i, n in enumerate(x.shape)]
    m.op("Concat", parts, [m.made(x.dtype, shape, min(p.low for p in parts), max(p.high for p in parts))], axis=axis)


@step("fi", range(1, 6), weight=2)
def splits(m: Growing, x: Value) -> None:
    """Split into equal or other parts."""
    axis = axis_of(m, x.rank)
    n = x.shape[axis % x.rank]
    if n < 2:
        raise Unfit
    cut = sorted(m.draw.some(range(1, n), 1, 3))
    sizes = [b - a for a, b in zip([0, *cut], [*cut, n], strict=True)]
    more: dict[str, Any] = {"axis": axis}
    inputs: list[Value | str] = [x]
    if m.version >= 18 and m.draw.chance(0.5):
        count = m.draw.between(2, min(4, n))
        size = -(-n // count)
        sizes = [size] * (count - 1) + [n - size * (count - 1)]
        if sizes[-1] <= 0:
            raise Unfit
        more["num_outputs"] = count
    elif m.version >= 13:
        inputs.append(m.ints(sizes))
    else:
        more["split"] = sizes
    m.op("Split", inputs, [m.like(x, [s if i == axis % x.rank else d for i, d in enumerate(x.shape)]) for s in sizes],
         **more)


@step("fib", range(1, 6), weight=2)
def repeat(m: Growing, x: Value) -> None:
    """Tile and Expand, which broadcasts both ways."""
    if m.draw.chance(0.5) or m.version < 8:
        times = [m.draw.one([1, 1, 2, 3]) for _ in x.shape]
        m.op("Tile", [x, m.ints(times)], [m.like(x, [a * b for a, b in zip(x.shape, times, strict=True)])])
        return
    shape = [m.draw.one([1, 1, n, 2, 3]) if n == 1 else m.draw.one([1, n]) for n in x.shape]
    shape = [m.draw.one([1, 2, 3]) for _ in range(m.draw.between(0, 2))] + shape[m.draw.between(0, len(shape)):] \
        if m.draw.chance(0.3) else shape
    try:
        found = np.broadcast_shapes(x.shape, tuple(shape))
    except ValueError:
        raise Unfit from None
    m.op("Expand", [x, m.ints(shape)], [m.like(x, found)])


@step("fibc", range(1, 6), weight=4)
def slices(m: Growing, x: Value) -> None:
    """Slice of some axes with steps of both signs and ends beyond them."""
    axes = m.draw.some(range(x.rank), 1, x.rank)
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for i in axes:
        n = x.shape[i]
        by = m.draw.one([1, 1, 2, 3, -1, -2]) if m.version >= 10 else 1
        b, e = m.draw.between(-n - 2, n + 2), m.draw.one([m.draw.between(-n - 2, n + 2), 2 ** 31 - 1, 2 ** 63 - 1])
        if by < 0:
            e = m.draw.between(-n - 2, n + 2)
        # Beyond the start there is nothing, whatever the step.
        size = len(range(*slice(max(b, -n) if by > 0 else b, e, by).indices(n)))
        if by < 0 and e < -n:
            size = len(range(*slice(b, None, by).indices(n)))
        if not size and m.draw.chance(0.95):
            b, e, by, size = 0, n, 1, n
        starts.append(b)
        ends.append(e)
        steps.append(by)
        shape[i] = size
    said = [i - (x.rank if m.version >= 11 and m.draw.chance(0.4) else 0) for i in axes]
    if m.version < 10:
        m.op("Slice", [x], [m.like(x, shape)], starts=starts, ends=ends, axes=said)
        return
    m.op("Slice", [x, m.ints(starts), m.ints(ends), m.ints(said), *([m.ints(steps)] if set(steps) != {1} else [])],
         [m.like(x, shape)])


@step("fi", range(1, 6), weight=3)
def padding(m: Growing, x: Value) -> None:
    """Pad in each mode, uneven, negative at times."""
    mode = m.draw.one(["constant", "constant", "reflect", "edge", *["wrap"] * (m.version >= 19)])
    if 0 in x.shape or x.kind == "i" and m.version < 11:
        raise Unfit
    pads = []
    for n in x.shape:
        most = min(3, n - 1 if mode == "reflect" else n) if mode != "constant" else 3
        pads.append([m.draw.one([0, 0, m.draw.between(0, most)]) for _ in range(2)])
        if mode == "constant" and m.draw.chance(0.1) and n > 1:
            pads[-1][m.draw.between(0, 1)] = -1
    shape = [n + sum(p) for n, p in zip(x.shape, pads, strict=True)]
    flat = [p[0] for p in pads] + [p[1] for p in pads]
    y = m.made(x.dtype, shape, min(x.low, -3), max(x.high, 3))
    fill = m.draw.one([0, 1.5, -2])
    if m.version < 11:
        m.op("Pad", [x], [y], pads=flat, mode=mode, value=float(fill))
        return
    value = [m.constant(fill, x.dtype)] if mode == "constant" and m.draw.chance(0.6) else []
    m.op("Pad", [x, m.ints(flat), *value], [y], mode=mode)


@step("fib", range(1, 6), weight=3)
def gather(m: Growing, x: Value) -> None:
    """Gather, GatherElements, GatherND; negative indices where the version has them."""
    if 0 in x.shape:
        raise Unfit
    dtype = m.draw.one(["int64", "int32"])
    name = m.draw.one(["Gather", *["GatherElements", "GatherND"] * (m.version >= 11)])
    axis = axis_of(m, x.rank)
    at = axis % x.rank
    n = x.shape[at]
    least = -n if m.version >= 11 else 0
    if name == "Gather":
        lead = m.draw.shape(m.draw.between(0, 2))
        index = m.draw.integers(lead, least, n - 1, dtype)
        m.op(name, [x, m.indices(index)], [m.like(x, (*x.shape[:at], *lead, *x.shape[at + 1:]))], axis=axis)
    elif name == "GatherElements":
        shape = tuple(m.draw.between(1, s) if i != at else m.draw.between(1, 6) for i, s in enumerate(x.shape))
        m.op(name, [x, m.indices(m.draw.integers(shape, -n, n - 1, dtype))], [m.like(x, shape)], axis=axis)
    else:
        batch = m.draw.between(0, x.rank - 1) if m.version >= 12 and m.draw.chance(0.4) else 0
        depth = m.draw.between(1, x.rank - batch)
        lead = (*x.shape[:batch], *m.draw.shape(m.draw.between(0 if batch else 1, 2)))
        index = np.stack([m.draw.integers(lead, -s, s - 1, "int64") for s in x.shape[batch:batch + depth]], -1)
        more: dict[str, Any] = {"batch_dims": batch} if m.version >= 12 else {}
        m.op(name, [x, m.indices(index)], [m.like(x, (*lead, *x.shape[batch + depth:]))], **more)


@step("fi", range(1, 5), since=11, weight=2)
def scatter(m: Growing, x: Value) -> None:
    """ScatterElements and ScatterND, with a reduction where the version has one; else no place twice."""
    if 0 in x.shape:
        raise Unfit
    how = m.draw.one(["none", *["add", "mul"] * (m.version >= 16), *["max", "min"] * (m.version >= 18)])
    more = {"reduction": how} if how != "none" else {}
    bound = max(x.bound, 2) * 8 ** (3 if how == "mul" else 1) + 100
    if bound > 1e7:
        raise Unfit
    if m.draw.chance(0.5):
        axis = m.draw.axis(x.rank)
        at = axis % x.rank
        n = x.shape[at]
        shape = tuple(m.draw.between(1, n if i == at or how != "none" else s) if i == at else m.draw.between(1, s)
                      for i, s in enumerate(x.shape))
        order = np.argsort(m.draw.numbers.random((*shape[:at], n, *shape[at + 1:])), axis=at)
        index = np.take(order, range(shape[at]), axis=at)
        index = index - n * (m.draw.numbers.random(index.shape) < 0.3)
        updates = m.numbers(x, shape)
        m.op("ScatterElements", [x, m.indices(index.astype(np.int64)), updates],
             [m.made(x.dtype, x.shape, -bound, bound)], axis=axis, **more)
        return
    depth = m.draw.between(1, x.rank)
    places = math.prod(x.shape[:depth])
    count = m.draw.between(1, min(5, places))
    chosen = m.draw.some(range(places), count, count)
    index = np.stack(np.unravel_index(np.array(chosen), x.shape[:depth]), -1).astype(np.int64)
    updates = m.numbers(x, (count, *x.shape[depth:]))
    m.op("ScatterND", [x, m.indices(index), updates], [m.made(x.dtype, x.shape, -bound, bound)], **more)


def choices(m: Growing, **since: int) -> dict[str, Any]:
    """Attributes that are 0 or 1, where the version has them."""
    return {n: m.draw.one([0, 1]) for n, version in since.items() if m.version >= version}


@step("fi", range(1, 6), weight=3)
def largest(m: Growing, x: Value) -> None:
    """TopK both ways, ArgMax and ArgMin."""
    if 0 in x.shape:
        raise Unfit
    axis = axis_of(m, x.rank)
    at = axis % x.rank
    n = x.shape[at]
    if m.draw.chance(0.5):
        if x.dtype == "int32" or x.kind == "i" and m.version < 11:
            raise Unfit
        k = m.draw.between(1, n)
        shape = [k if i == at else s for i, s in enumerate(x.shape)]
        outputs = [m.like(x, shape), m.made("int64", shape, 0, n)]
        if m.version < 10:
            m.op("TopK", [x], outputs, axis=axis, k=k)
        else:
            m.op("TopK", [x, m.ints([k])], outputs, axis=axis, **choices(m, largest=11))
        return
    keep = m.draw.one([0, 1])
    shape = [1 if i == at else s for i, s in enumerate(x.shape) if keep or i != at]
    if x.dtype == "int64":
        raise Unfit
    m.op(m.draw.one(["ArgMax", "ArgMin"]), [x], [m.made("int64", shape, 0, n)], axis=axis, keepdims=keep,
         **choices(m, select_last_index=12))


@step("fi", range(1, 5), since=11)
def running(m: Growing, x: Value) -> None:
    """CumSum, forward and back, with and without the element itself."""
    axis = m.draw.axis(x.rank)
    bound = x.bound * max(1, x.shape[axis])
    if bound > 1e7:
        raise Unfit
    m.op("CumSum", [x, m.constant(axis, m.draw.one(["int32", "int64"]))], [m.made(x.dtype, x.shape, -bound, bound)],
         exclusive=m.draw.one([0, 1]), reverse=m.draw.one([0, 1]))


@step("fib")
def about_shapes(m: Growing, x: Value) -> None:
    """Shape, Size, ConstantOfShape, NonZero at an end."""
    name = m.draw.one(["Shape", "Size", *["ConstantOfShape"] * (m.version >= 9)])
    if name == "Shape":
        if m.version >= 15 and m.draw.chance(0.5):
            a, b = m.draw.between(-x.rank - 1, x.rank + 1), m.draw.between(-x.rank - 1, x.rank + 1)
            n = len(x.shape[max(0, a + x.rank if a < 0 else a):max(0, b + x.rank if b < 0 else b)])
            m.op(name, [x], [m.made("int64", (n,), 0, 1e3)], start=a, end=b)
        else:
            m.op(name, [x], [m.made("int64", (x.rank,), 0, 1e3)])
    elif name == "Size":
        m.op(name, [x], [m.made("int64", (), 0, 1e4)])
    else:
        shape = m.op("Shape", [x], [m.made("int64", (x.rank,), 0, 1e3)])
        m.op(name, [shape], [m.made("float32", x.shape, 0, 0)])


@step("i", range(1, 4), since=9)
def one_hot(m: Growing, x: Value) -> None:
    """OneHot of indices, some of them outside."""
    depth = m.draw.between(1, 7)
    rank = x.rank + 1
    at = m.draw.between(0, x.rank)
    axis = at - rank if m.draw.chance(0.4) else at
    m.op("OneHot", [x, m.constant([depth], "int64"), m.floats((2,))],
         [m.made("float32", (*x.shape[:at], depth, *x.shape[at:]), -2, 2)], axis=axis)


@step("fi", range(2, 5), since=14)
def triangles(m: Growing, x: Value) -> None:
    """Trilu with a diagonal beside the main one."""
    more = [m.constant(m.draw.between(-3, 3), "int64")] if m.draw.chance(0.6) else []
    m.op("Trilu", [x, *more], [m.made(x.dtype, x.shape, min(x.low, 0), max(x.high, 0))], upper=m.draw.one([0, 1]))


@step("fi", range(2, 5), since=10)
def reversal(m: Growing, x: Value) -> None:
    """ReverseSequence along either of the first two axes."""
    time = m.draw.one([0, 1])
    lengths = m.draw.integers((x.shape[1 - time],), 1, max(1, x.shape[time]), "int64")
    if 0 in x.shape:
        raise Unfit
    m.op("ReverseSequence", [x, m.indices(lengths)], [m.like(x)], time_axis=time, batch_axis=1 - time)
