"""Folds over any axes of every type, natively: integers wrap, and what is no number is no extreme."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import OperandCode

INT32, FLOAT32, BOOL8 = (OperandCode[f"TENSOR_{n}"] for n in ("INT32", "FLOAT32", "BOOL8"))
Q8, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
NUMBERS = ("REDUCE_SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
#: Types, with what folds they have.
KINDS = {INT32: NUMBERS, OperandCode.TENSOR_INT64: NUMBERS, OperandCode.TENSOR_UINT32: NUMBERS, FLOAT32: NUMBERS,
         OperandCode.TENSOR_FLOAT64: (*NUMBERS, "MEAN"), Q8: NUMBERS[2:], Q8S: NUMBERS[2:],
         BOOL8: ("REDUCE_ALL", "REDUCE_ANY")}


def numbers(rng: np.random.Generator, shape: list[int], kind: OperandCode) -> np.ndarray:
    if kind.dtype.kind == "f":
        return rng.choice([0.5, -1.5, 2, 1.25, -0.75], shape)
    if kind == BOOL8:
        return rng.random(shape) < 0.9 if rng.random() < 0.5 else rng.random(shape) < 0.1
    return rng.integers(np.iinfo(kind.dtype).min, np.iinfo(kind.dtype).max, shape, kind.dtype, endpoint=True)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_folds_are_those_of_numpy(kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(29)
    for n in range(10 if machine == "host" else 4):
        shape = [int(rng.choice([1, 2, 5, 16, 19])) for _ in range(rng.integers(1, 5))]
        axes = sorted(rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)].tolist())
        net, grid = Net(), (0.5, 3) if kind in (Q8, Q8S) else (0, 0)
        x, along = net.input(numbers(rng, shape, kind), kind, grid), net.const(axes, INT32)
        kept = [1 if a in axes else n for a, n in enumerate(shape)]
        outs = [net.op(f"host.{n}", x, along, net.scalar(1) if n == "MEAN" else net.scalar(True), shape=kept, kind=kind,
                       grid=grid) for n in KINDS[kind]]
        want, got, native = both(net.finish(*outs), net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(outs)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-5 if kind.dtype.kind == "f" else 0, atol=0)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_no_number_is_no_extreme(machine: str) -> None:
    net, x = Net(), np.random.default_rng(0).standard_normal((3, 5, 40))
    x[0, 1, 3], x[2, :, 7], x[1] = np.nan, np.nan, np.nan
    a = net.input(x)
    outs = [net.op(name, a, net.const(axes, INT32), net.scalar(True),
                   shape=[1 if i in axes else n for i, n in enumerate(x.shape)])
            for name in ("REDUCE_MAX", "REDUCE_MIN") for axes in ([0], [1], [2], [0, 2])]
    want, got, native = both(net.finish(*outs), net.given, MACHINES[machine], 2)
    assert native == len(outs)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def running(rng: np.random.Generator) -> Net:
    """Running sums and products along any axis, either way."""
    kind = (FLOAT32, INT32)[int(rng.integers(0, 2))]
    shape = [int(rng.choice([1, 2, 5, 16, 19])) for _ in range(rng.integers(1, 4))]
    net, axis, ways = Net(), int(rng.integers(0, len(shape))), [bool(v) for v in rng.integers(0, 2, 2)]
    x = net.input(numbers(rng, shape, kind), kind)
    outs = [net.op("host.CUMSUM", x, *map(net.scalar, (axis, *ways)), shape=shape, kind=kind)]
    outs += [net.op("CUMULATE", x, net.const([axis], INT32), *map(net.scalar, (*ways, product)), shape=shape, kind=kind)
             for product in (False, True)]
    net.model = net.finish(*outs)
    return net


MAKES = {"running": running}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", [FLOAT32, INT32, OperandCode.TENSOR_INT64], ids=lambda k: k.name)
def test_running_sums_and_products_are_those_of_numpy(kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(31)
    for n in range(8):
        shape = [int(rng.choice([1, 2, 5, 16, 19])) for _ in range(rng.integers(1, 4))]
        net, axis, (exclusive, reverse) = Net(), int(rng.integers(0, len(shape))), (bool(n & 1), bool(n & 2))
        x = net.input(numbers(rng, shape, kind), kind)
        outs = [net.op("host.CUMSUM", x, *map(net.scalar, (axis, exclusive, reverse)), shape=shape, kind=kind)]
        outs += [net.op("CUMULATE", x, net.const([axis], INT32), *map(net.scalar, (exclusive, reverse, product)),
                        shape=shape, kind=kind) for product in (False, True)]
        want, got, native = both(net.finish(*outs), net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(outs)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
