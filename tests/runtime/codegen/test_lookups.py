"""Functions of bytes and of 16-bit integers by tables, natively: every answer is NumPy's."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, Net, both, left_to

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen.fusion import groups
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.tasks import Group

Q8, Q8S, Q16S = (OperandCode[f"TENSOR_QUANT{n}"] for n in ("8_ASYMM", "8_ASYMM_SIGNED", "16_SYMM"))
BOOL8, FLOAT32, INT32 = OperandCode.TENSOR_BOOL8, OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32
ONE = ("RELU", "RELU6", "ABS", "EXP", "LOGISTIC", "TANH", "HARD_SWISH", "host.LOG", "host.SIN", "host.LEAKY_RELU",
       "host.SQUARE", "host.CEIL", "host.GELU")
MORE = {"host.LEAKY_RELU": 0.25, "host.GELU": True}
TWO = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU", "host.SQUARED_DIFFERENCE")
TRUTHS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def raw(rng: np.random.Generator, shape: tuple[int, ...], kind: OperandCode) -> np.ndarray:
    info = np.iinfo(kind.dtype)
    return rng.integers(info.min, info.max + 1, shape)


def grid(rng: np.random.Generator, kind: OperandCode) -> tuple[float, int]:
    scale = rng.uniform(0.01, 0.1) / (200 if kind == Q16S else 1)
    return float(np.float32(scale)), 0 if kind == Q16S else int(raw(rng, (), kind))


def of_one(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Functions and conversions of one element."""
    net, shape = Net(), tuple(rng.integers(1, 30, 2).tolist())
    x = net.input(raw(rng, shape, kind), kind, grid(rng, kind))
    outs = [net.op(n if n.startswith("host.") else f"host.{n}", x, *([net.scalar(MORE[n])] if n in MORE else []),
                   shape=shape, kind=kind, grid=grid(rng, kind)) for n in ONE]
    outs += [net.op("host.CAST", x, shape=shape, kind=k) for k in (INT32, FLOAT32, BOOL8)]
    outs.append(net.op("host.REQUANTIZE", x, shape=shape, kind=kind, grid=grid(rng, kind)))
    net.model = net.finish(*outs)
    return net


def of_two(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Functions of two that broadcast, with ratios of scales as models have them and beyond all measure."""
    net, shape = Net(), tuple(rng.integers(1, 20, rng.integers(1, 4)).tolist())
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)
    x, y = (net.input(raw(rng, s, kind), kind, grid(rng, kind)) for s in (shape, other))
    outs = [net.op(f"host.{n}" if not n.startswith("host.") else n, x, y,
                   *([net.scalar(0)] if n in ("ADD", "SUB", "MUL", "DIV") else []),
                   shape=shape, kind=kind, grid=grid(rng, kind)) for n in TWO]
    outs += [net.op(n, x, y, shape=shape, kind=BOOL8) for n in TRUTHS]
    outs.append(net.op("host.MUL", x, y, net.scalar(0), shape=shape, kind=kind, grid=(2e-35, 3)))
    net.model = net.finish(*outs)
    return net


def joined(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Arrays of several grids along any axis; one is on the result's."""
    net, shape = Net(), rng.integers(1, 12, 3).tolist()
    axis, same = int(rng.integers(0, 3)), grid(rng, kind)
    shapes = [tuple(int(rng.integers(1, 9)) if a == axis else n for a, n in enumerate(shape)) for _ in range(3)]
    xs = [net.input(raw(rng, s, kind), kind, g)
          for s, g in zip(shapes, (grid(rng, kind), same, grid(rng, kind)), strict=True)]
    shape[axis] = sum(s[axis] for s in shapes)
    net.model = net.finish(net.op("CONCATENATION", *xs, net.scalar(axis), shape=shape, kind=kind, grid=same))
    return net


def regridded(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Bytes on another grid, by way of reals: any, the same one, and the same one half of the range away."""
    net, shape = Net(), tuple(rng.integers(1, 30, 2).tolist())
    scale, zero = grid(rng, kind)
    x = net.input(raw(rng, shape, kind), kind, (scale, zero))
    other, by = (Q8S, -128) if kind == Q8 else (Q8, 128)
    outs = [net.op("host.QUANTIZE", net.op("DEQUANTIZE", x, shape=shape), shape=shape, kind=k, grid=g)
            for k, g in ((kind, grid(rng, kind)), (kind, (scale, zero)), (other, (scale, zero + by)))]
    net.model = net.finish(*outs)
    return net


def of_itself(rng: np.random.Generator, kind: OperandCode) -> Net:
    """A function of one byte in several steps, as x * sigmoid(x) is; what comes in between is read elsewhere, too."""
    net, shape = Net(), tuple(rng.integers(1, 30, 2).tolist())
    x = net.input(raw(rng, shape, kind), kind, grid(rng, kind))
    outs, before = [], x
    for _ in range(2):
        bent = net.op("host.LOGISTIC", before, shape=shape, kind=kind, grid=grid(rng, kind))
        before = net.op("host.MUL", before, bent, net.scalar(0), shape=shape, kind=kind, grid=grid(rng, kind))
        outs.append(net.op("host.ADD", before, x, net.scalar(1), shape=shape, kind=kind, grid=grid(rng, kind)))
    net.model = net.finish(*outs)
    return net


CASES = {"one": (of_one, (Q8, Q8S, Q16S)), "two": (of_two, (Q8, Q8S)), "joined": (joined, (Q8, Q8S)),
         "regridded": (regridded, (Q8, Q8S)), "itself": (of_itself, (Q8, Q8S))}


def any_kind(family: str) -> Callable[[np.random.Generator], Net]:
    """A case of a family, of any of its types."""
    make, kinds = CASES[family]
    return lambda rng: make(rng, kinds[int(rng.integers(0, len(kinds)))])


MAKES = {family: any_kind(family) for family in CASES}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("family", "kind"), [(n, k) for n, (_, kinds) in CASES.items() for k in kinds],
                         ids=lambda v: v if isinstance(v, str) else v.name)
def test_tables_give_what_numpy_gives(family: str, kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(13)
    for n in range(4 if machine == "host" else 2):
        net = CASES[family][0](rng, kind)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w, err_msg=net.model.operations[i].op.name)


def test_a_byte_by_its_own_sigmoid_is_one_table() -> None:
    net, rng, shape = Net(), np.random.default_rng(0), (7, 33)
    x = net.input(raw(rng, shape, Q8S), Q8S, (0.05, 3))
    bent = net.op("LOGISTIC", x, shape=shape, kind=Q8S, grid=(1 / 256, -128))
    net.model = net.finish(net.op("MUL", x, bent, net.scalar(0), shape=shape, kind=Q8S, grid=(0.03, 3)))
    group, = groups(left_to(net.model, net.given, host()), host())
    assert isinstance(group, Group) and len(group.members) == 2
