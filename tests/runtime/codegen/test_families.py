"""Native code against NumPy over random shapes with every tail, on this machine and on what it is with less."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw, reach

from nnx_convert import OperandCode

Make = Callable[[np.random.Generator], Net | None]
INT32 = OperandCode.TENSOR_INT32


def convolution(rng: np.random.Generator, depthwise: bool) -> Net | None:
    """A convolution with any padding, stride and dilation, what follows it element by element, and a second one."""
    n, c, h, w = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 40, 1), *draw(rng, 1, 30, 2)
    w = w if rng.random() < 0.8 else 1               # a sequence, whose steps are rows
    (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr) = draw(rng, 1, 5, 2), draw(rng, 1, 3, 2), draw(rng, 1, 3, 2), draw(
        rng, 0, 3, 4)
    oh, ow = reach(h, kh, sh, dh, pt, pb), reach(w, kw, sw, dw, pl, pr)
    if oh < 1 or ow < 1:
        return None
    out = c if depthwise else draw(rng, 1, 70, 1)[0]
    net, shape = Net(), (n, oh, ow, out)
    filters = (1, kh, kw, c) if depthwise else (out, kh, kw, c)
    x, filt, bias = (rng.standard_normal(s) for s in ((n, h, w, c), filters, (out,)))
    args = [net.input(x), net.const(filt), net.const(bias), *map(net.scalar, (pl, pr, pt, pb, sw, sh))]
    args += [net.scalar(1)] if depthwise else []
    act = draw(rng, 0, 4, 1)[0]
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    y = net.op(name, *args, *map(net.scalar, (act, False, dw, dh)), shape=shape)
    y = net.op("ADD", y, net.input(rng.standard_normal(shape)), net.scalar(0), shape=shape)
    y = net.op("MUL", y, net.const(rng.standard_normal(out)), net.scalar(0), shape=shape)
    y = net.op("LOGISTIC", y, shape=shape)
    last = rng.standard_normal((5, 2, 1, out))
    z = net.op("CONV_2D", y, net.const(last), net.const(np.zeros(5)), *map(net.scalar, (0, 1, 1, 0, 1, 1, 0)),
               shape=(n, oh, ow + 1, 5))
    net.model = net.finish(y, z)
    return net


def product(rng: np.random.Generator) -> Net:
    """Rows by a constant matrix, with an activation."""
    rows, depth, units = draw(rng, 1, 20, 1)[0], *draw(rng, 1, 100, 2)
    net = Net()
    x, w, b = (rng.standard_normal(s) for s in ((rows, depth), (units, depth), (units,)))
    y = net.op("FULLY_CONNECTED", net.input(x), net.const(w), net.const(b), net.scalar(draw(rng, 0, 4, 1)[0]),
               shape=(rows, units))
    z = net.op("TANH", net.op("SUB", y, net.const([0.5]), net.scalar(0), shape=(rows, units)), shape=(rows, units))
    net.model = net.finish(z)
    return net


UNARY = ("RELU", "RELU6", "ABS", "NEG", "FLOOR", "EXP", "LOGISTIC", "TANH", "HARD_SWISH", "host.CEIL", "host.ROUND",
         "host.SQUARE", "host.RELU_0_TO_1", "host.SIGN", "host.LEAKY_RELU", "ELU")
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU", "host.SQUARED_DIFFERENCE")
#: What more an operation takes.
MORE = {"host.LEAKY_RELU": 0.25, "ELU": 0.75}


def of_one(net: Net, name: str, x: int, shape: tuple[int, ...]) -> int:
    return net.op(name, x, *([net.scalar(MORE[name])] if name in MORE else []), shape=shape)


def chain(rng: np.random.Generator) -> Net:
    """Operations element by element on arrays that broadcast."""
    shape = (*draw(rng, 1, 6, draw(rng, 0, 3, 1)[0]), int(rng.choice([1, 3, 16, 17, 40])))
    net = Net()
    y = net.input(rng.standard_normal(shape))
    for _ in range(draw(rng, 1, 7, 1)[0]):
        if rng.random() < 0.5:
            y = of_one(net, str(rng.choice(UNARY)), y, shape)
            continue
        name, other = str(rng.choice(BINARY)), tuple(1 if rng.random() < 0.4 else n for n in shape)
        z = net.input(rng.uniform(0.5, 2, other))
        operands = [z, y] if name not in ("PRELU", "DIV") and rng.random() < 0.5 else [y, z]
        more = [net.scalar(draw(rng, 0, 4, 1)[0])] if name in ("ADD", "SUB", "MUL", "DIV") else []
        y = net.op(name, *operands, *more, shape=shape)
    net.model = net.finish(y)
    return net


def pool(rng: np.random.Generator) -> Net | None:
    """Windows of images."""
    n, h, w, c = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 20, 2), *draw(rng, 1, 40, 1)
    (kh, kw), (sh, sw) = draw(rng, 2, 8, 2), draw(rng, 1, 4, 2)
    pt, pb, pl, pr = (int(rng.integers(0, k)) for k in (kh, kh, kw, kw))
    oh, ow = reach(h, kh, sh, 1, pt, pb), reach(w, kw, sw, 1, pl, pr)
    covered = pt < kh and pl < kw and (oh - 1) * sh - pt < h and (ow - 1) * sw - pl < w
    if oh < 1 or ow < 1 or not covered:
        return None
    net = Net()
    name = str(rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    y = net.op(name, net.input(rng.standard_normal((n, h, w, c))),
               *map(net.scalar, (pl, pr, pt, pb, sw, sh, kw, kh, draw(rng, 0, 4, 1)[0])), shape=(n, oh, ow, c))
    net.model = net.finish(y)
    return net


def fold(rng: np.random.Generator) -> Net:
    """A mean or another fold over neighbouring axes, and a softmax of its rows."""
    shape = tuple(draw(rng, 1, 20, 4))
    low = draw(rng, 0, 4, 1)[0]
    axes = list(range(low, min(4, low + draw(rng, 1, 3, 1)[0])))
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    net = Net()
    name = str(rng.choice(["MEAN", "REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN"]))
    keep = net.scalar(1) if name == "MEAN" else net.scalar(True)
    y = net.op(name, net.input(rng.standard_normal(shape)), net.const(axes, INT32), keep, shape=kept)
    z = net.op("SOFTMAX", y, net.scalar(0.7), net.scalar(3), shape=kept)
    net.model = net.finish(y, z)
    return net


def moves(rng: np.random.Generator) -> Net:
    """Arrays cut, turned and joined."""
    a, b, c, d = draw(rng, 2, 9, 4)
    net = Net()
    x = net.input(rng.standard_normal((a, b, c, d)))
    perm = [*rng.permutation(3).tolist(), 3]
    turned = tuple((a, b, c, d)[i] for i in perm)
    y = net.op("TRANSPOSE", x, net.const(perm, INT32), shape=turned)
    begin = [int(rng.integers(0, n)) for n in turned]
    size = [int(rng.integers(1, n - s + 1)) for n, s in zip(turned, begin, strict=True)]
    z = net.op("SLICE", y, net.const(begin, INT32), net.const(size, INT32), shape=size)
    axis = draw(rng, 0, 4, 1)[0]
    out = [*size]
    out[axis] *= 3
    net.model = net.finish(net.op("CONCATENATION", z, z, z, net.scalar(axis), shape=out))
    return net


MAKES: dict[str, Make] = {
    "convolution": lambda rng: convolution(rng, False), "depthwise": lambda rng: convolution(rng, True),
    "product": product, "chain": chain, "pool": pool, "fold": fold, "moves": moves}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng, ran = np.random.default_rng(7), 0
    for n in range(24 if machine == "host" else 8):
        net = MAKES[family](rng)
        if net is None:
            continue
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native and apart(got, want) <= NEAR, n
        ran += 1
    assert ran > 3


def test_what_is_no_number_stays_so() -> None:
    net, x = Net(), np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, 100, -100] * 3)
    a = net.input(x)
    outs = [of_one(net, name, a, x.shape) for name in UNARY]
    outs += [net.op(n, a, net.const(np.roll(x, 1)), shape=x.shape) for n in ("MAXIMUM", "MINIMUM")]
    want, got, native = both(net.finish(*outs), net.given, MACHINES["host"], 1)
    assert native == len(outs)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=2e-38)
