"""Arithmetic of integers and conversions between all types, natively: every answer is NumPy's."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import CompiledModel, ModelError, OperandCode, RunError

INT32, FLOAT32, BOOL8 = (OperandCode[f"TENSOR_{n}"] for n in ("INT32", "FLOAT32", "BOOL8"))
WHOLE = [OperandCode[f"TENSOR_{n}"] for n in ("INT32", "INT64", "UINT32", "UINT64", "INT16")]
ALL = [*WHOLE, FLOAT32, OperandCode.TENSOR_FLOAT64, BOOL8]
TWO = ("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "TRUNC_DIV", "TRUNC_MOD", "BITWISE_AND", "BITWISE_OR",
       "BITWISE_XOR", "RIGHT_SHIFT", "SQUARED_DIFFERENCE")
HOSTS = ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BITWISE_NOT", "RIGHT_SHIFT", "SHIFT")
ONE = ("ABS", "NEG", "SIGN", "SQUARE", "RELU", "RELU6", "BITWISE_NOT")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: OperandCode) -> np.ndarray:
    """Small ones, the ends of the type, and any."""
    if kind == BOOL8:
        return rng.integers(0, 2, shape)
    if kind.dtype.kind == "f":
        some = [0.0, -0.0, 0.5, -1.5, 254.9, 255.5, -129.0, 3e9, -3e9, 1e19, -1e19, 2e19, np.inf, -np.inf, np.nan]
        return rng.choice(some, shape)
    info = np.iinfo(kind.dtype)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7, 300], kind.dtype)
    small = rng.integers(0, 8, shape).astype(kind.dtype) * np.array(-1).astype(kind.dtype)
    return np.where(rng.random(shape) < 0.5, small, rng.choice(ends, shape))


def host(name: str) -> str:
    return name if name in HOSTS else f"host.{name}"


def arithmetic(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Every operation of two integers and of one, of arrays that broadcast."""
    net, shape = Net(), tuple(rng.integers(1, 20, rng.integers(1, 4)).tolist())
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)
    signed, y = kind.dtype.kind == "i", numbers(rng, other, kind)
    a, b, divisor = net.input(numbers(rng, shape, kind), kind), net.input(y, kind), net.input(np.where(y, y, 1), kind)
    outs = [net.op(host(n), a, divisor if n[:5] in ("FLOOR", "TRUNC") else b, shape=shape, kind=kind) for n in TWO]
    outs += [net.op(f"host.{n}", a, b, net.scalar(int(rng.integers(0, 4)) if signed else 0), shape=shape, kind=kind)
             for n in ("ADD", "SUB", "MUL", "DIV")]
    outs += [net.op("SHIFT", a, b, net.scalar(left), shape=shape, kind=kind) for left in (False, True)]
    outs += [net.op(host(n), a, shape=shape, kind=kind) for n in ONE if signed or n != "NEG"]
    outs += [net.op(f"host.{n}", a, b, shape=shape, kind=BOOL8) for n in ("EQUAL", "LESS", "GREATER_EQUAL")]
    net.model = net.finish(*outs)
    return net


def conversions(rng: np.random.Generator, kind: OperandCode) -> Net:
    """Into every type, and to bytes as NNAPI's table has it: there integers are clamped."""
    net, shape = Net(), tuple(rng.integers(1, 40, 2).tolist())
    x = net.input(numbers(rng, shape, kind), kind)
    outs = [net.op("host.CAST", x, shape=shape, kind=k) for k in ALL]
    bytes_ = [(k, (0.5, 3)) for k in (OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED)]
    names = ("host.CAST", "CAST") if kind in (INT32, FLOAT32) else ("host.CAST",)
    outs += [net.op(n, x, shape=shape, kind=k, grid=g) for n in names for k, g in bytes_[:2 - (n == "CAST")]]
    net.model = net.finish(*outs)
    return net


def reals(rng: np.random.Generator) -> Net:
    """Operations of FLOAT64, whose results IEEE 754 tells to the bit, with any activation."""
    kind = OperandCode.TENSOR_FLOAT64
    net, shape = Net(), tuple(rng.integers(1, 20, rng.integers(1, 4)).tolist())
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)
    drawn = (np.where(rng.random(s) < 0.5, numbers(rng, s, kind), rng.standard_normal(s)) for s in (shape, other))
    a, b = (net.input(v, kind) for v in drawn)
    outs = [net.op(f"host.{n}", a, b, shape=shape, kind=kind)
            for n in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU")]
    outs += [net.op(f"host.{n}", a, b, net.scalar(int(rng.integers(0, 4))), shape=shape, kind=kind)
             for n in ("ADD", "SUB", "MUL", "DIV")]
    outs += [net.op(host(n), a, shape=shape, kind=kind) for n in (
        "ABS", "NEG", "SIGN", "SQUARE", "SQRT", "FLOOR", "CEIL", "ROUND", "RELU", "RELU1", "RELU6", "RELU_0_TO_1")]
    net.model = net.finish(*outs)
    return net


MAKES = {"reals": reals, "arithmetic": lambda rng: arithmetic(rng, WHOLE[int(rng.integers(0, len(WHOLE)))]),
         "conversions": lambda rng: conversions(rng, ALL[int(rng.integers(0, len(ALL)))])}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("make", "kind"), [*((arithmetic, k) for k in WHOLE), *((conversions, k) for k in ALL)],
                         ids=lambda v: v.name if isinstance(v, OperandCode) else v.__name__)
def test_integers_are_those_of_numpy(make: type[Net], kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(17)
    for n in range(6 if machine == "host" else 3):
        net = make(rng, kind)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            np.testing.assert_array_equal(g, w, err_msg=net.model.operations[i].op.name)


@pytest.mark.parametrize("machine", MACHINES)
def test_reals_are_those_of_numpy(machine: str) -> None:
    rng = np.random.default_rng(19)
    for n in range(4 if machine == "host" else 2):
        net = reals(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            np.testing.assert_array_equal(g, w, err_msg=net.model.operations[i].op.name)


@pytest.mark.parametrize("name", ["FLOOR_DIV", "FLOOR_MOD", "TRUNC_DIV", "TRUNC_MOD"])
def test_a_division_by_zero_is_told(name: str) -> None:
    net = Net()
    y = net.op(f"host.{name}", net.input(np.arange(20), INT32), net.input(np.ones(20), INT32), shape=(20,), kind=INT32)
    model, given = net.finish(y), [np.arange(20, dtype=np.int32), np.ones(20, np.int32)]
    for backend in ("numpy", "native"):
        run = CompiledModel(model, backend=backend, threads=2)
        for at in (0, 19):
            wrong = given[1].copy()
            wrong[at] = 0
            with pytest.raises(RunError, match="division by zero"):
                run.run([given[0], wrong])
        assert len(run.run(given)) == 1


MASK = (1.0, 0)


@pytest.mark.parametrize("kind", [OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED])
def test_bytes_on_the_grid_of_a_mask_are_numbers_on_a_grid(kind: OperandCode) -> None:
    """Every pair of bytes: what leaves their range is held within it, what lies between two is rounded."""
    info = np.iinfo(kind.dtype)
    every = np.arange(info.min, info.max + 1).astype(kind.dtype)
    net = Net()
    a, b = net.input(every[:, None], kind, MASK), net.input(every[every != 0][None], kind, MASK)
    shape = (256, 255)
    two = [n for n in TWO if n not in HOSTS]
    outs = [net.op(host(n), a, b, shape=shape, kind=kind, grid=MASK) for n in two]
    outs += [net.op(f"host.{n}", a, b, net.scalar(0), shape=shape, kind=kind, grid=MASK)
             for n in ("ADD", "SUB", "MUL", "DIV")]
    outs += [net.op(host(n), a, shape=(256, 1), kind=kind, grid=MASK) for n in ONE if n not in HOSTS]
    model = net.finish(*outs)
    with np.errstate(all="ignore"):              # a table of all pairs has divisions by 0
        want, got, _ = both(model, net.given, MACHINES["host"], 1)
    assert all(map(np.array_equal, got, want))


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", ["FLOOR_DIV", "FLOOR_MOD", "TRUNC_DIV", "TRUNC_MOD"])
def test_no_byte_is_divided_by_zero(name: str, backend: str) -> None:
    net, kind = Net(), OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
    x, y = (net.input(np.array(v), kind, MASK) for v in ([1, 2, 3], [1, 0, 2]))
    model = net.finish(net.op(host(name), x, y, shape=(3,), kind=kind, grid=MASK))
    with pytest.raises(RunError, match="division by zero"):
        CompiledModel(model, backend=backend).run(net.given)


@pytest.mark.parametrize("kind", [INT32, FLOAT32])
def test_truth_values_of_numbers(kind: OperandCode) -> None:
    net = Net()
    x = net.input(np.array([0, 1, -1, 256, -2 ** 31, 65536], np.float64), kind)
    outs = [net.op("host.TO_MASK", x, shape=(6,), kind=OperandCode.TENSOR_QUANT8_ASYMM, grid=MASK),
            net.op("host.LOGICAL_NOT", x, shape=(6,), kind=BOOL8)]
    want, got, _ = both(net.finish(*outs), net.given, MACHINES["host"], 1)
    assert want[0].tolist() == [0, 1, 1, 1, 1, 1] and want[1].tolist() == [True, *[False] * 5]
    assert all(map(np.array_equal, got, want))


@pytest.mark.parametrize("kind", [FLOAT32, OperandCode.TENSOR_FLOAT64, BOOL8, INT32])
@pytest.mark.parametrize("name", ["RESHAPE", "SLICE", "CUMSUM", "COMPLEX_ABS", "RIGHT_SHIFT"])
def test_no_output_has_another_type_than_the_operation_gives(name: str, kind: OperandCode) -> None:
    """A file may declare any: the host's operations would write beyond it, or half of it."""
    net, own = Net(), {"COMPLEX_ABS": OperandCode.TENSOR_COMPLEX64, "RIGHT_SHIFT": OperandCode.TENSOR_INT16}
    x = net.input(np.ones((4, 6)), own.get(name, OperandCode.TENSOR_INT64))
    more = {"RESHAPE": [net.const([4, 6], INT32)], "SLICE": [net.const([0, 0], INT32), net.const([4, 6], INT32)],
            "CUMSUM": [net.scalar(0), net.scalar(False), net.scalar(False)], "RIGHT_SHIFT": [x]}.get(name, [])
    right = FLOAT32 if name == "COMPLEX_ABS" else own.get(name, OperandCode.TENSOR_INT64)
    full = name if name in ("COMPLEX_ABS", "RIGHT_SHIFT") else f"host.{name}"
    net.op(full, x, *more, shape=(4, 6), kind=right)
    if kind != right:
        with pytest.raises(ModelError, match="output 0"):
            net.op(full, x, *more, shape=(4, 6), kind=kind)
