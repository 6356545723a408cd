"""Element by element: floats against the formula, integers against TFLite's arithmetic one number at a time."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.errors import RunError
from nnx_convert.ops import elementwise as e, shifts
from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.kernel import Site, kernel_of
from nnx_convert.runtime.kernels.elements import PIECE
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, F16, F32, F64, I32, I64, Q8, Q8S, Q16S, Quant, Tensor, Type

LITERT = rows(*(o.name for family in (e, shifts) for o in vars(family).values() if isinstance(o, OpDef)))
X = np.array([-np.inf, -7.5, -3, -1, -0.5, -0.0, 0.0, 0.25, 1, 2.5, 3, 6, 7, 40, np.inf, np.nan])
Y = np.array([2, -2, 0.5, 3, -0.5, 1, 4, 0.25, 1, -2.5, 3, 6, 0.125, 2, 1, 2])

UNARY: dict[OpDef, Callable[[Any], Any]] = {
    e.ABS: abs, e.NEG: lambda x: -x, e.EXP: np.exp, e.LOG: np.log, e.SIN: np.sin, e.SQRT: np.sqrt,
    e.RSQRT: lambda x: 1 / np.sqrt(x), e.FLOOR: np.floor, e.RELU: lambda x: np.maximum(x, 0),
    e.RELU1: lambda x: np.clip(x, -1, 1), e.RELU6: lambda x: np.clip(x, 0, 6), e.TANH: np.tanh,
    e.LOGISTIC: lambda x: 1 / (1 + np.exp(-x)), e.HARD_SWISH: lambda x: x * np.clip(x + 3, 0, 6) / 6}
BINARY: dict[OpDef, Callable[[Any, Any], Any]] = {
    e.ADD: np.add, e.SUB: np.subtract, e.MUL: np.multiply, e.DIV: np.divide, e.MAXIMUM: np.maximum,
    e.MINIMUM: np.minimum, e.POW: np.power, e.PRELU: lambda x, y: np.where(x >= 0, x, y * x)}
COMPARE: dict[OpDef, Callable[[Any, Any], Any]] = {
    e.EQUAL: np.equal, e.NOT_EQUAL: np.not_equal, e.GREATER: np.greater, e.GREATER_EQUAL: np.greater_equal,
    e.LESS: np.less, e.LESS_EQUAL: np.less_equal}
TOLERANCE = {F32: 1e-6, F16: 2e-3, F64: 1e-12}


def run(op: OpDef, args: dict[str, Any], *outs: Tensor) -> Any:
    """The first output, as any of the executor's runs computes it; the host's row where NNAPI's takes no such type."""
    args = {"act": 0} | args if "act" in op.forms[0].names else args
    key = args["x"].type
    with np.errstate(all="ignore"):
        return run_op(op if key in op.types else host_twin(op), args, *outs)[0]


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    got, golden = found(row)
    np.testing.assert_array_equal(got, golden)


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("op", UNARY, ids=lambda o: o.name)
def test_unary_floats(op: OpDef, kind: Type) -> None:
    x = tensor(X, kind)
    with np.errstate(all="ignore"):
        want = UNARY[op](np.asarray(x.data, np.float64)).astype(kind.dtype)
    got = run(op, {"x": x})
    assert got.dtype == kind.dtype
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_elu(kind: Type, alpha: float) -> None:
    want = np.where(X > 0, X, alpha * np.expm1(X))
    np.testing.assert_allclose(run(e.ELU, {"x": tensor(X, kind), "alpha": alpha}), want.astype(kind.dtype),
                               rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("op", BINARY, ids=lambda o: o.name)
def test_binary_floats(op: OpDef, kind: Type) -> None:
    with np.errstate(all="ignore"):
        want = BINARY[op](X, Y).astype(kind.dtype)
    got = run(op, {"x": tensor(X, kind), "y": tensor(Y, kind)})
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("op", COMPARE, ids=lambda o: o.name)
@pytest.mark.parametrize("kind", [F32, F16, F64, I32, I64, B8])
def test_comparisons(op: OpDef, kind: Type) -> None:
    x, y = (tensor(np.nan_to_num(v) if kind.dtype.kind != "f" else v, kind) for v in (X[3:], X[2:-1]))
    np.testing.assert_array_equal(run(op, {"x": x, "y": y}), COMPARE[op](x.data, y.data))


BOUNDS = {1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}


@pytest.mark.parametrize("act", BOUNDS)
@pytest.mark.parametrize("op", [e.ADD, e.SUB, e.MUL, e.DIV], ids=lambda o: o.name)
def test_fused_activation(op: OpDef, act: int) -> None:
    x, y = X[1:-2], Y[1:-2]
    got = run(op, {"x": tensor(x, F32), "y": tensor(y, F32), "act": act})
    np.testing.assert_allclose(got, np.clip(BINARY[op](x, y), *BOUNDS[act]).astype(np.float32), rtol=1e-6)


SLOPES = {"within 0 and 1": [0.1, 0.25, 1.0], "above 1": [1.0, 1.5, 30.0], "any": [-2.0, 0.5, 3.0],
          "none": [0.0, -0.0, 1.0], "infinite": [np.inf, -np.inf, np.nan]}


@pytest.mark.parametrize("slope", SLOPES.values(), ids=SLOPES)
def test_prelu_by_slope(slope: list[float]) -> None:
    """Each way to compute it gives the formula's float, not a number included."""
    x = np.linspace(-8, 8, 3 * 999, dtype=np.float32).reshape(-1, 3)
    x[5], x[6], x[7, 0], x[8] = np.nan, -0.0, -np.inf, np.inf
    y = np.array(slope, np.float32)
    with np.errstate(invalid="ignore"):
        want = np.where(x >= 0, x, y * x)
    np.testing.assert_array_equal(run(e.PRELU, {"x": tensor(x, F32), "y": tensor(y, F32)}), want)


INT32: list[tuple[OpDef, list[int], list[int], list[int]]] = [
    (e.ADD, [2**31 - 1, -2**31], [1, -1], [-2**31, 2**31 - 1]),
    (e.SUB, [-2**31, 5], [1, 7], [2**31 - 1, -2]),
    (e.MUL, [2**31 - 1, 65536], [2, 65536], [-2, 0]),
    (e.DIV, [7, -7, 7, -7, 1, -2**31], [2, 2, -2, -2, 0, -1], [3, -4, -4, 3, 0, -2**31]),
    (e.MAXIMUM, [3, -3], [2, -2], [3, -2]), (e.MINIMUM, [3, -3], [2, -2], [2, -3]),
    (e.POW, [2, -3, 0], [10, 3, 0], [1024, -27, 1])]


@pytest.mark.parametrize(("op", "x", "y", "want"), INT32, ids=lambda v: getattr(v, "name", None))
def test_integers(op: OpDef, x: list[int], y: list[int], want: list[int]) -> None:
    """Sums and products wrap; a quotient is rounded down, and 0 where the divisor is."""
    np.testing.assert_array_equal(run(op, {"x": tensor(x, I32), "y": tensor(y, I32)}), want)


@pytest.mark.parametrize("kind", [I32, I64])
def test_integers_of_one(kind: Type) -> None:
    x = tensor([-3, 0, 9], kind)
    for op, want in ((e.ABS, [3, 0, 9]), (e.NEG, [3, 0, -9]), (e.RELU, [0, 0, 9]), (e.RELU6, [0, 0, 6])):
        np.testing.assert_array_equal(run(op, {"x": x}), want)


@pytest.mark.parametrize("op", [e.EXP, e.LOGISTIC, e.SIN], ids=lambda o: o.name)
def test_real_functions_refuse_integers(op: OpDef) -> None:
    with pytest.raises(RunError, match="TENSOR_INT32"):
        run(op, {"x": tensor([1], I32)})


def test_logic() -> None:
    x, y = tensor([0, 0, 1, 1], B8), tensor([0, 1, 0, 1], B8)
    assert run(e.LOGICAL_AND, {"x": x, "y": y}).tolist() == [False, False, False, True]
    assert run(e.LOGICAL_OR, {"x": x, "y": y}).tolist() == [False, True, True, True]
    assert run(e.LOGICAL_NOT, {"x": x}).tolist() == [True, True, False, False]


def test_select_brings_both_to_the_grid() -> None:
    x, y = tensor([10, 20], Q8, Quant(0.5, 0)), tensor([30, 40], Q8, Quant(1.0, 10))
    out = Tensor(Q8, None, Quant(0.25, 1))
    assert run(e.SELECT, {"cond": tensor([1, 0], B8), "x": x, "y": y}, out).tolist() == [21, 121]


SHAPES = [((3, 5, 7), (3, 5, 7)), ((3, 5, 7), (7,)), ((3, 5, 7), (1, 1, 7)), ((7,), (3, 5, 7)), ((3, 5, 7), (5, 7)),
          ((3, 1, 7), (1, 5, 1)), ((3, 5, 7), (1,)), ((0, 4), (4,)), ((2, 0), (2, 1)),
          ((2, PIECE // 2 + 3), (2, PIECE // 2 + 3)), ((PIECE // 3, 5), (5,)), ((2, 3, PIECE), (PIECE,))]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize("constant", [True, False])
def test_every_way_to_broadcast(a: tuple[int, ...], b: tuple[int, ...], constant: bool) -> None:
    """Floats with scratch, bytes in pairs, int16 computed; y a constant, or known only when run."""
    rng = np.random.default_rng(3)
    fx, fy = rng.normal(size=a).astype(np.float32), rng.normal(size=b).astype(np.float32)
    shape = np.broadcast_shapes(a, b)
    got = _prepared(e.PRELU, F32, None, fx, fy, shape, constant)
    np.testing.assert_array_equal(got, np.where(fx >= 0, fx, fx * fy))
    for kind, grid in ((Q8S, Quant(0.5, 1)), (Q16S, Quant(0.25, 0))):
        ix, iy = (rng.integers(-99, 99, s).astype(kind.dtype) for s in (a, b))
        got = _prepared(e.MAXIMUM, kind, grid, ix, iy, shape, constant)
        np.testing.assert_array_equal(got, np.maximum(ix, iy))


def _prepared(op: OpDef, kind: Type, grid: Quant | None, x: Any, y: Any, shape: tuple[int, ...],
              constant: bool) -> Any:
    kernel = kernel_of(op)
    assert kernel
    site = Site((Tensor(kind, shape, grid),))
    given_ = kernel.prepare(site, x=Tensor(kind, x.shape, grid), y=Tensor(kind, y.shape, grid, y if constant else None))
    out = np.empty(shape, kind.dtype)
    given_(out, x, y, *(np.empty(s, d) for s, d in site.buffers))
    return out


KINDS = [(F32, None), (Q8S, Quant(0.05, 3)), (Q16S, Quant(0.001, 0))]


@pytest.mark.parametrize(("kind", "grid"), KINDS, ids=["float", "int8", "int16"])
@pytest.mark.parametrize("op", [*UNARY, *BINARY, e.ELU], ids=lambda o: o.name)
def test_in_place(op: OpDef, kind: Type, grid: Quant | None) -> None:
    """The output may be written over any argument that the kernel says it may."""
    rng = np.random.default_rng(1)
    kernel = kernel_of(op)
    assert kernel
    size = (3, PIECE // 2 + 5)
    arrays = {n: (rng.normal(size=size) if grid is None else rng.integers(-99, 99, size)).astype(kind.dtype)
              for n in ("x", "y") if n in op.forms[0].names}
    numbers = {"act": 3, "alpha": 0.5}
    site = Site((Tensor(kind, size, grid),))
    args = {n: Tensor(kind, size, grid) if n in arrays else numbers[n] for n in op.forms[0].names}
    with np.errstate(all="ignore"):
        step = kernel.prepare(site, **args)
        scratch = [np.empty(s, d) for s, d in site.buffers]
        want = np.empty(size, kind.dtype)
        step(want, *arrays.values(), *scratch)
        for name in kernel.inplace:
            copies = {n: a.copy() for n, a in arrays.items()}
            step(copies[name], *copies.values(), *scratch)
            np.testing.assert_array_equal(copies[name], want)


BYTES = st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 127)), min_size=1, max_size=30)
SCALES = st.floats(2.0**-13, 8, width=32)
ZEROS = st.integers(-128, 127)
f32 = np.float32


@given(BYTES, SCALES, SCALES, SCALES, ZEROS, ZEROS, ZEROS, st.booleans())
@settings(max_examples=60)
def test_add(pairs: Any, sx: float, sy: float, so: float, zx: int, zy: int, zo: int, minus: bool) -> None:
    so = max(so, (sx + sy) / 512)                                   # TFLite refuses an output multiplier of 1 or more
    twice = 2 * max(sx, sy)
    mx, my = scalars.multiplier(sx / twice), scalars.multiplier(sy / twice)
    mo = scalars.multiplier(twice / float(f32((1 << 20) * f32(so))))

    def formula(a: int, b: int) -> int:
        left, right = scalars.scale32((a - zx) << 20, *mx), scalars.scale32((b - zy) << 20, *my)
        return scalars.clamp(scalars.scale32(left - right if minus else left + right, *mo) + zo, -128, 127)
    check_bytes(e.SUB if minus else e.ADD, pairs, Quant(sx, zx), Quant(sy, zy), Quant(so, zo), formula)


@given(BYTES, SCALES, SCALES, SCALES, ZEROS, ZEROS, ZEROS)
@settings(max_examples=60)
def test_mul(pairs: Any, sx: float, sy: float, so: float, zx: int, zy: int, zo: int) -> None:
    so = float(f32(max(so, sx * sy)))
    m = scalars.multiplier(float(f32(f32(sx) * f32(sy)) / f32(so)))

    def formula(a: int, b: int) -> int:
        return scalars.clamp(scalars.scale32((a - zx) * (b - zy), *m) + zo, -128, 127)
    check_bytes(e.MUL, pairs, Quant(sx, zx), Quant(sy, zy), Quant(so, zo), formula)


@given(BYTES, SCALES, SCALES, SCALES, ZEROS, ZEROS, ZEROS)
@settings(max_examples=60)
def test_prelu(pairs: Any, sx: float, sy: float, so: float, zx: int, zy: int, zo: int) -> None:
    so = float(f32(max(so, sx, sx * sy)))
    up = scalars.multiplier(float(f32(sx) / f32(so)))
    down = scalars.multiplier(float(f32(f32(sx) * f32(sy)) / f32(so)))

    def formula(a: int, b: int) -> int:
        q = a - zx
        v = scalars.scale32(q, *up) if q >= 0 else scalars.scale32(q * (b - zy), *down)
        return scalars.clamp(v + zo, -128, 127)
    check_bytes(e.PRELU, pairs, Quant(sx, zx), Quant(sy, zy), Quant(so, zo), formula)


def check_bytes(op: OpDef, pairs: list[tuple[int, int]], qx: Quant, qy: Quant, qo: Quant,
                formula: Callable[[int, int], int]) -> None:
    """An int8 operation, pair by pair."""
    x, y = (tensor(v, Q8S, quant) for v, quant in zip(zip(*pairs, strict=True), (qx, qy), strict=True))
    got = run(op, {"x": x, "y": y}, Tensor(Q8S, None, qo))
    assert got.tolist() == [formula(a, b) for a, b in pairs]


@given(st.lists(st.integers(0, 255), min_size=1), SCALES, st.integers(0, 255), SCALES, st.integers(0, 255))
@settings(max_examples=60)
def test_bytes_of_real_functions_are_within_a_step(xs: list[int], sx: float, zx: int, so: float, zo: int) -> None:
    """What TFLite has no integer kernel for: the real function between two grids."""
    x = tensor(xs, Q8, Quant(sx, zx))
    got = run(e.SIN, {"x": x}, Tensor(Q8, None, Quant(so, zo)))
    want = [scalars.clamp(scalars.away(math.sin(sx * (v - zx)) / so) + zo, 0, 255) for v in xs]
    assert np.abs(got.astype(int) - want).max() <= 1
