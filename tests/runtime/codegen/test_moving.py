"""Native code that moves, picks, multiplies and steps, against NumPy over random shapes with every tail."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw

from nnx_convert import CompiledModel, OperandCode, RunError
from nnx_convert.runtime.codegen.grouped import MOST_PHASES

Make = Callable[[np.random.Generator], Net]
INT32, BOOL8, FLOAT32 = OperandCode.TENSOR_INT32, OperandCode.TENSOR_BOOL8, OperandCode.TENSOR_FLOAT32
KINDS = (OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32, OperandCode.TENSOR_BOOL8)


def matmul(rng: np.random.Generator) -> Net:
    """Two matrices that a run computes, either turned, leading axes repeated; then what follows element by element."""
    rows, depth, columns = draw(rng, 1, 40, 1)[0], *draw(rng, 1, 70, 2)
    lead = draw(rng, 1, 4, draw(rng, 0, 3, 1)[0])
    spread = rng.random() < 0.5
    leads = [tuple(1 if spread and rng.random() < 0.4 else n for n in lead) for _ in range(2)]
    both_lead = tuple(np.broadcast_shapes(*leads))
    (adj_x, adj_y), shape = (bool(v) for v in rng.integers(0, 2, 2)), (*both_lead, rows, columns)
    x = rng.standard_normal((*leads[0], *((depth, rows) if adj_x else (rows, depth))))
    y = rng.standard_normal((*leads[1], *((columns, depth) if adj_y else (depth, columns))))
    net = Net()
    name = "host.MATMUL" if spread else "BATCH_MATMUL"
    z = net.op(name, net.input(x), net.input(y), net.scalar(adj_x), net.scalar(adj_y), shape=shape)
    if rng.random() < 0.5:
        z = net.op("MUL", z, net.const([0.125]), net.scalar(0), shape=shape)
        z = net.op("ADD", z, net.input(rng.standard_normal(shape)), net.scalar(0), shape=shape)
    net.model = net.finish(z)
    return net


def rows(rng: np.random.Generator) -> Net:
    """Rows by a matrix that a run computes, and a bias."""
    count, depth, columns = draw(rng, 1, 40, 1)[0], *draw(rng, 1, 70, 2)
    net = Net()
    x, w = net.input(rng.standard_normal((count, 1, depth))), net.input(rng.standard_normal((columns, depth)))
    b = net.const(rng.standard_normal(columns)) if rng.random() < 0.5 else net.input(rng.standard_normal(columns))
    net.model = net.finish(net.op("FULLY_CONNECTED", x, w, b, net.scalar(draw(rng, 0, 4, 1)[0]),
                                  shape=(count, columns)))
    return net


def turned(rng: np.random.Generator) -> Net:
    """Axes in any order, last ones of a few elements and of many."""
    shape = [int(rng.choice([1, 2, 3, 4, 5, 16, 17, 35])) for _ in range(draw(rng, 2, 5, 1)[0])]
    perm = rng.permutation(len(shape)).tolist()
    kind = KINDS[draw(rng, 0, len(KINDS), 1)[0]]
    net = Net()
    x = net.input(rng.integers(0, 100, shape), kind)
    y = net.op("host.TRANSPOSE", x, net.const(perm, INT32), shape=[shape[a] for a in perm], kind=kind)
    net.model = net.finish(y)
    return net


def cut(rng: np.random.Generator) -> Net:
    """Parts with steps, backwards too, an axis dropped."""
    shape, axes = draw(rng, 1, 20, draw(rng, 1, 5, 1)[0]), list[int]()
    net, begin, end, steps, shrink, masks = Net(), list[int](), list[int](), list[int](), 0, draw(rng, 0, 16, 2)
    for i, n in enumerate(shape):
        step = int(rng.choice([1, 1, 2, 3, -1, -2]))
        a, b = sorted(draw(rng, 0, n + 1, 2))
        begin.append(a if step > 0 else b), end.append(b if step > 0 else a - n - 1), steps.append(step)
        picked = len(range(*slice(*(None if m >> i & 1 else v for m, v in zip(
            masks, (begin[i], end[i]), strict=True)), step).indices(n)))
        if picked == 0:
            begin[i], end[i], steps[i], picked = 0, 1, 1, 1 if not masks[1] >> i & 1 else n
        if picked == 1 and steps[i] > 0 and rng.random() < 0.5:
            shrink |= 1 << i
        else:
            axes.append(picked)
    x = net.input(rng.standard_normal(shape))
    lists = [net.const(v, INT32) for v in (begin, end, steps)]
    net.model = net.finish(net.op("STRIDED_SLICE", x, *lists, *map(net.scalar, (*masks, shrink)), shape=axes or [1]))
    return net


def views(rng: np.random.Generator) -> Net:
    """Axes turned, every other element, turned round, one after the other: one copy, or two where somebody reads what
    lies between; joined with what was there."""
    shape, kind = draw(rng, 1, 24, draw(rng, 2, 5, 1)[0]), KINDS[draw(rng, 0, len(KINDS), 1)[0]]
    net, made = Net(), list[int]()
    x = net.input(rng.integers(0, 100, shape), kind)
    for which in draw(rng, 0, 3, draw(rng, 2, 5, 1)[0]):
        axis = draw(rng, 0, len(shape), 1)[0]
        if which == 0:
            perm = rng.permutation(len(shape)).tolist()
            shape = [shape[a] for a in perm]
            x = net.op("host.TRANSPOSE", x, net.const(perm, INT32), shape=shape, kind=kind)
        elif which == 1:
            x = net.op("host.REVERSE", x, net.const([axis], INT32), shape=shape, kind=kind)
        else:
            begin, end = [0] * len(shape), list(shape)
            begin[axis] = draw(rng, 0, shape[axis], 1)[0]
            lists = (net.const(v, INT32) for v in (begin, end, [1 + (a == axis) for a in range(len(shape))]))
            shape = [(n - b - 1) // (1 + (a == axis)) + 1 for a, (n, b) in enumerate(zip(shape, begin, strict=True))]
            x = net.op("host.STRIDED_SLICE", x, *lists, *map(net.scalar, (0, 0, 0)), shape=shape, kind=kind)
        made.append(x)
    net.model = net.finish(x, *(made[:1] if rng.random() < 0.3 else []))
    return net


def blocks(rng: np.random.Generator) -> Net:
    """Blocks between depth, space and batch, and channels shuffled."""
    n, h, w, c, block = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 9, 2), *draw(rng, 1, 20, 1), draw(rng, 1, 4, 1)[0]
    net = Net()
    nchw = net.scalar(False)
    x = net.input(rng.standard_normal((n, h, w, c * block * block)))
    y = net.op("DEPTH_TO_SPACE", x, net.scalar(block), nchw, shape=(n, h * block, w * block, c))
    z = net.op("SPACE_TO_DEPTH", y, net.scalar(block), nchw, shape=(n, h, w, c * block * block))
    z = net.op("CHANNEL_SHUFFLE", z, net.scalar(block), net.scalar(3), shape=(n, h, w, c * block * block))
    a = net.input(rng.standard_normal((n * block, h, w, c)))
    b = net.op("BATCH_TO_SPACE_ND", a, net.const([block, 1], INT32), nchw, shape=(n, h * block, w, c))
    net.model = net.finish(y, z, b)
    return net


def edges(rng: np.random.Generator) -> Net:
    """Edges of zeros, of a value, of what they mirror; repetitions and reversal; then a convolution."""
    shape = [1, *draw(rng, 2, 12, 3)]
    amounts = [draw(rng, 0, 3, 2) for _ in shape]
    amounts = [[min(v, n - 1) for v in pair] for pair, n in zip(amounts, shape, strict=True)]
    wide = [n + sum(pair) for n, pair in zip(shape, amounts, strict=True)]
    net = Net()
    x, pads = net.input(rng.standard_normal(shape)), net.const(amounts, INT32)
    outs = [net.op("PAD", x, pads, shape=wide), net.op("PAD_V2", x, pads, net.scalar(1.5), shape=wide),
            net.op("MIRROR_PAD", x, pads, net.scalar(draw(rng, 0, 2, 1)[0]), shape=wide)]
    axis, times = draw(rng, 0, 4, 1)[0], draw(rng, 1, 4, 4)
    outs.append(net.op("REVERSE", x, net.const([axis], INT32), shape=shape))
    outs.append(net.op("TILE", x, net.const(times, INT32), shape=[n * t for n, t in zip(shape, times, strict=True)]))
    w = net.const(rng.standard_normal((3, 3, 3, wide[3])))
    outs.append(net.op("CONV_2D", outs[0], w, net.const(np.zeros(3)), *map(net.scalar, (1, 1, 1, 1, 1, 1, 0)),
                       shape=(*wide[:3], 3)))
    net.model = net.finish(*outs[1:])
    return net


def stacked(rng: np.random.Generator) -> Net:
    """Arrays stacked along a new axis, and taken apart again."""
    shape = draw(rng, 1, 20, draw(rng, 1, 4, 1)[0])
    axis = draw(rng, 0, len(shape) + 1, 1)[0]
    net, wide = Net(), [*shape[:axis], 3, *shape[axis:]]
    y = net.op("PACK", net.scalar(axis), *(net.input(rng.standard_normal(shape)) for _ in range(3)), shape=wide)
    parts = net.ops("UNPACK_EX", y, net.scalar(3), net.scalar(axis),
                    outs=[(tuple(shape), OperandCode.TENSOR_FLOAT32)] * 3)
    net.model = net.finish(y, *parts)
    return net


def groups(rng: np.random.Generator) -> Net:
    """A convolution in groups, one that is transposed, and a depthwise one with several filters a channel."""
    (n, groups, depth), (h, w), (each,) = draw(rng, 1, 4, 3), draw(rng, 3, 14, 2), draw(rng, 1, 20, 1)
    (kh, kw), (sh, sw), (top, low, left, right) = draw(rng, 1, 4, 2), draw(rng, 1, 3, 2), draw(rng, 0, 2, 4)
    oh, ow, units = (h + top + low - kh) // sh + 1, (w + left + right - kw) // sw + 1, groups * each
    net = Net()
    x, bias = net.input(rng.standard_normal((n, h, w, groups * depth))), net.const(rng.standard_normal(units))
    y = net.op("GROUPED_CONV_2D", x, net.const(rng.standard_normal((units, kh, kw, depth))), bias,
               *map(net.scalar, (left, right, top, low, sw, sh, groups, draw(rng, 0, 4, 1)[0], False)),
               shape=(n, oh, ow, units))
    y = net.op("MUL", y, net.input(rng.standard_normal((n, oh, ow, units))), net.scalar(0), shape=(n, oh, ow, units))
    kh, kw = (k + s for k, s in zip(draw(rng, 0, 3, 2), (sh, sw), strict=True))
    top, low, left, right = draw(rng, 0, 2, 4)
    low, right = low - 1, right - 1
    th, tw = (oh - 1) * sh + kh - top - low, (ow - 1) * sw + kw - left - right
    outs = [y]
    if th > 0 < tw:
        outs.append(net.op("TRANSPOSE_CONV_2D", y, net.const(rng.standard_normal((each, kh, kw, units))),
                           net.const(rng.standard_normal(each)),
                           *map(net.scalar, (left, right, top, low, sw, sh, 1, False)), shape=(n, th, tw, each)))
    wide = units * 3
    outs.append(net.op("DEPTHWISE_CONV_2D", y, net.const(rng.standard_normal((1, 3, 2, wide))),
                       net.const(np.ones(wide)), *map(net.scalar, (1, 0, 1, 1, 1, 1, 3, 0)), shape=(n, oh, ow, wide)))
    net.model = net.finish(*outs)
    return net


def resized(rng: np.random.Generator) -> Net:
    """Images of another size, by each rule of where its cells are."""
    n, h, w, oh, ow = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 12, 4)
    c, (align, half) = int(rng.choice([1, 2, 3, 16, 19])), [(0, 0), (1, 0), (0, 1)][draw(rng, 0, 3, 1)[0]]
    net, outs = Net(), list[int]()
    x = net.input(rng.standard_normal((n, h, w, c)))
    for name in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
        outs.append(net.op(name, x, *map(net.scalar, (ow, oh, False, bool(align), bool(half))), shape=(n, oh, ow, c)))
    net.model = net.finish(*outs)
    return net


def picked(rng: np.random.Generator) -> Net:
    """Elements and rows by indices, of a run and known before."""
    shape, kind = draw(rng, 1, 12, draw(rng, 1, 4, 1)[0]), KINDS[draw(rng, 0, len(KINDS), 1)[0]]
    axis, wide = draw(rng, 0, len(shape), 1)[0], draw(rng, 1, 6, draw(rng, 1, 3, 1)[0])
    net = Net()
    x = net.input(rng.integers(0, 100, shape), kind)
    indices = rng.integers(0, shape[axis], wide)
    out = [*shape[:axis], *wide, *shape[axis + 1:]]
    ends = [net.op("host.GATHER", x, net.scalar(axis), at, shape=out, kind=kind)
            for at in (net.input(indices, INT32), net.const(indices, INT32))]
    table = net.input(rng.standard_normal((5, *shape)))
    rows = net.input(rng.integers(0, 5, 7), INT32)
    net.model = net.finish(*ends, net.op("EMBEDDING_LOOKUP", rows, table, shape=(7, *shape)))
    return net


def tuples(rng: np.random.Generator) -> Net:
    """Elements and rows by tuples of indices, of a run and known before, batch by batch as well."""
    shape, kind, net = draw(rng, 1, 7, 4), KINDS[draw(rng, 0, len(KINDS), 1)[0]], Net()
    x, (wide, k, batch) = net.input(rng.integers(0, 100, shape), kind), draw(rng, 1, 4, 3)
    indices = np.stack([rng.integers(0, n, (3, wide)) for n in shape[:k]], -1)
    outs = [net.op("host.GATHER_ND", x, at, shape=[3, wide, *shape[k:]], kind=kind)
            for at in (net.input(indices, INT32), net.const(indices, INT32))]
    heads = shape[:batch]
    rows = net.input(rng.integers(0, shape[batch], (*heads, wide)), INT32)
    outs.append(net.op("host.GATHER_BATCHED", x, rows, net.scalar(batch), net.scalar(batch),
                       shape=[*heads, wide, *shape[batch + 1:]], kind=kind))
    single = net.input(rng.integers(0, shape[batch], (*heads, wide, 1)), INT32)
    outs.append(net.op("host.GATHER_ND_BATCHED", x, single, net.scalar(batch),
                       shape=[*heads, wide, *shape[batch + 1:]], kind=kind))
    net.model = net.finish(*outs)
    return net


def choices(rng: np.random.Generator) -> Net:
    """Comparisons, logic and choices of arrays that broadcast, arithmetic of integers, conversions."""
    shape = (*draw(rng, 1, 6, draw(rng, 0, 3, 1)[0]), int(rng.choice([1, 3, 16, 17, 40])))
    others = [tuple(1 if rng.random() < 0.3 else n for n in shape) for _ in range(4)]
    net, act = Net(), draw(rng, 0, 4, 1)[0]
    a, b = (net.input(rng.integers(-3, 4, s) * rng.choice([0.75, 1e6])) for s in (shape, others[0]))
    i, j = (net.input(rng.integers(-3, 4, s), INT32) for s in (shape, others[1]))
    p, q = (net.input(rng.integers(0, 2, s), BOOL8) for s in (shape, others[2]))
    name = str(rng.choice(["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]))
    outs = [net.op(name, *pair, shape=shape, kind=BOOL8) for pair in ((a, b), (i, j), (p, q))]
    outs += [net.op(n, p, q, shape=shape, kind=BOOL8) for n in ("LOGICAL_AND", "LOGICAL_OR")]
    outs.append(net.op("LOGICAL_NOT", outs[0], shape=shape, kind=BOOL8))
    outs += [net.op("host.SELECT", outs[5], x, y, shape=shape, kind=k)
             for x, y, k in ((a, net.input(rng.standard_normal(shape)), FLOAT32), (i, i, INT32), (p, outs[0], BOOL8))]
    outs.append(net.op("host.WHERE", q, a, b, shape=shape))
    outs += [net.op(f"host.{n}", i, j, net.scalar(act), shape=shape, kind=INT32) for n in ("ADD", "SUB", "MUL")]
    outs += [net.op(n, i, j, shape=shape, kind=INT32) for n in ("MAXIMUM", "MINIMUM")]
    outs += [net.op("CAST", x, shape=shape, kind=k) for x, k in ((i, FLOAT32), (a, INT32))]
    outs += [net.op("host.CAST", p, shape=shape, kind=k) for k in (FLOAT32, INT32)]
    net.model = net.finish(*outs)
    return net


def folds(rng: np.random.Generator) -> Net:
    """Folds over any axes, dropped or kept, and an image normalised."""
    shape = [int(rng.choice([1, 2, 5, 16, 19])) for _ in range(4)]
    axes = sorted(rng.permutation(4)[:draw(rng, 1, 5, 1)[0]].tolist())
    kept, net = [1 if a in axes else n for a, n in enumerate(shape)], Net()
    x, along = net.input(rng.standard_normal(shape)), net.const(axes, INT32)
    outs = [net.op("MEAN", x, along, net.scalar(1), shape=kept)]
    outs += [net.op(n, x, along, net.scalar(True), shape=kept) for n in ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN")]
    left = [n for a, n in enumerate(shape) if a not in axes]
    if left:
        outs += [net.op(f"REDUCE_{n}_EX", x, along, shape=left) for n in ("SUM", "MAX", "MIN")]
    outs.append(net.op("INSTANCE_NORMALIZATION", x, net.scalar(1.5), net.scalar(0.25), net.scalar(0.001),
                       net.scalar(False), shape=shape))
    net.model = net.finish(*outs)
    return net


def curves(rng: np.random.Generator) -> Net:
    """Logarithms of a softmax."""
    shape, net = [int(rng.choice([1, 2, 5, 16, 19, 40])) for _ in range(draw(rng, 2, 5, 1)[0])], Net()
    x, outs = net.input(rng.standard_normal(shape) * 3), list[int]()
    outs.append(net.op("LOG_SOFTMAX", x, net.scalar(1.25), net.scalar(len(shape) - 1), shape=shape))
    net.model = net.finish(*outs)
    return net


def cut_by(rng: np.random.Generator) -> Net:
    """Cut, filled up, split and repeated by numbers that ONNX computes; blocks stacked into batches."""
    shape, net, outs = draw(rng, 2, 12, 3), Net(), list[int]()
    x, axis = net.input(rng.standard_normal(shape)), draw(rng, 0, 3, 1)[0]
    numbers = [net.const([v], INT32) for v in (1, shape[axis], axis, 2)]
    wide = [len(range(1, n, 2)) if a == axis else n for a, n in enumerate(shape)]
    outs.append(net.op("CUT", x, *(numbers[i] for i in (0, 1, 2, 3)), shape=wide))
    for mode in range(4):
        sides = draw(rng, -1, 4, 2)
        wide = [n + sum(sides) if a == axis else n for a, n in enumerate(shape)]
        outs.append(net.op("PAD_BY", x, net.const(sides, INT32), net.const([1.5]), numbers[2], net.scalar(mode),
                           shape=wide))
    sizes = [1, shape[axis] - 1]
    parts = [tuple(size if a == axis else n for a, n in enumerate(shape)) for size in sizes]
    outs += net.ops("SPLIT_BY", x, net.const(sizes, INT32), net.scalar(axis), outs=[(p, FLOAT32) for p in parts])
    many = (2, *shape)
    row = net.input(rng.standard_normal([1 if rng.random() < 0.5 else n for n in shape]))
    outs.append(net.op("host.BROADCAST_TO", row, net.const(many, INT32), shape=many))
    image, block, pads = net.input(rng.standard_normal((2, *shape))), draw(rng, 1, 4, 2), draw(rng, 0, 3, 2)
    low, right = (-(n + p) % k for n, p, k in zip(shape[:2], pads, block, strict=True))
    high, across = (shape[0] + pads[0] + low) // block[0], (shape[1] + pads[1] + right) // block[1]
    outs.append(net.op("SPACE_TO_BATCH_ND", image, net.const(block, INT32), net.const(
        [[pads[0], low], [pads[1], right]], INT32), net.scalar(False),
        shape=(2 * block[0] * block[1], high, across, shape[2])))
    net.model = net.finish(*outs)
    return net


MAKES: dict[str, Make] = {"cut by": cut_by, "matmul": matmul, "rows": rows, "turned": turned, "cut": cut,
                          "views": views, "blocks": blocks, "edges": edges, "stacked": stacked, "groups": groups,
                          "resized": resized, "picked": picked, "tuples": tuples, "choices": choices, "folds": folds,
                          "curves": curves}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng = np.random.default_rng(11)
    for n in range(24 if machine == "host" else 8):
        net = MAKES[family](rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations), n
        assert all(g.dtype == w.dtype and g.shape == w.shape for g, w in zip(got, want, strict=True))
        assert apart([g.astype(float) for g in got], [w.astype(float) for w in want]) <= NEAR, n


@pytest.mark.parametrize(("stride", "natively"), [(32, True), (33, False), (200, False)])
def test_phases_of_transposed_convolutions_are_bounded(stride: int, natively: bool) -> None:
    assert natively == (stride ** 2 <= MOST_PHASES)
    net, rng, size = Net(), np.random.default_rng(1), 2 * stride
    y = net.op("TRANSPOSE_CONV_2D", net.input(rng.standard_normal((1, 2, 2, 3))),
               net.const(rng.standard_normal((2, stride, stride, 3))), net.const([0.5, -1]),
               *map(net.scalar, (0, 0, 0, 0, stride, stride, 0, False)), shape=(1, size, size, 2))
    want, got, native = both(net.finish(y), net.given, MACHINES["host"], 1)
    assert native == natively and apart(got, want) <= NEAR


@pytest.mark.parametrize(("wrong", "size"), [([-1, 2], 3), ([1, 4], 4), ([3, 0], 3)])
def test_a_tuple_out_of_bounds_is_told(wrong: list[int], size: int) -> None:
    net = Net()
    indices = net.input(np.zeros((2, 2)), INT32)
    y = net.op("host.GATHER_ND", net.input(np.arange(12).reshape(3, 4)), indices, shape=(2,))
    model, given = net.finish(y), np.arange(12, dtype=np.float32).reshape(3, 4)
    value = next(v for v, n in zip(wrong, (3, 4), strict=True) if not 0 <= v < n)
    for backend in ("numpy", "native"):
        run = CompiledModel(model, backend=backend, threads=2)
        with pytest.raises(RunError, match=rf"index {value} is not in \[0, {size}\)"):
            run.run([np.array([[0, 1], wrong], np.int32), given])
        np.testing.assert_array_equal(run.run([np.array([[2, 3], [0, 1]], np.int32), given])[0], [11, 1])


@pytest.mark.parametrize("wrong", [-1, 5, -2**31, 2**31 - 1])
def test_an_index_out_of_bounds_is_told(wrong: int) -> None:
    net = Net()
    indices = net.input(np.array([0, 4, 2]), INT32)
    table = net.const(np.arange(15).reshape(5, 3))
    y = net.op("EMBEDDING_LOOKUP", indices, table, shape=(3, 3))
    model = net.finish(net.op("RELU", y, shape=(3, 3)))
    given = np.array([1, wrong, 2], np.int32)
    for backend in ("numpy", "native"):
        run = CompiledModel(model, backend=backend, threads=2)
        for _ in range(2):
            with pytest.raises(RunError, match=rf"index {wrong} is not in \[0, 5\)") as error:
                run.run([given])
            assert str(error.value).startswith("NNX402 operation 0 EMBEDDING_LOOKUP: index ")
        np.testing.assert_array_equal(run.run([np.array([4, 0, 1], np.int32)])[0], [[12, 13, 14], [0, 1, 2], [3, 4, 5]])
