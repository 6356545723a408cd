"""Rows of floats as int8: what the definitions say, element by element."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from nnx_convert.ops.host import MATMUL, host_twin
from nnx_convert.runtime.bind import once
from nnx_convert.runtime.hybrid import LEAST, Matrix, asymmetric, quantized, symmetric
from nnx_convert.types import QPC, Q16S, ChannelQuant, Quant, Tensor

f32 = np.float32
Array = np.ndarray[Any, Any]
ROWS = hnp.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9)),
                  elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False))


def away(x: float) -> int:
    return int(np.copysign(np.floor(abs(x) + 0.5), x))


@given(ROWS)
def test_symmetric_rows(rows: Array) -> None:
    found = symmetric(rows)
    for row, ints, scale in zip(rows, found.ints, found.scale, strict=True):
        reach = max(abs(row.min()), abs(row.max()))
        reach = reach if reach >= LEAST else f32(0)
        assert scale == (reach / f32(127) if reach else 1)
        want = [max(-127, min(127, away(v * (f32(127) / reach)))) if reach else 0 for v in row]
        assert ints.tolist() == want


@given(ROWS)
def test_asymmetric_rows_hold_zero_and_stay_within_a_step(rows: Array) -> None:
    found = asymmetric(rows)
    assert (np.abs(found.ints) <= 255).all() and (found.ints == np.rint(found.ints)).all()
    off = np.abs(found.ints * found.scale[:, None].astype(np.float64) - rows)
    assert (off <= found.scale[:, None] * 1.001).all()
    assert (found.ints[rows == 0] == 0).all()


def test_halves_go_away_from_zero_whatever_the_zero_point() -> None:
    """A number is rounded before the zero point is added: -128 + 0.5 would go down."""
    positive, mixed = asymmetric(np.array([[0, 255, 0.5, 1.5, 2.5], [-100, 155, -0.5, 1.5, -2.5]], f32)).ints.tolist()
    assert positive == [0, 255, 1, 2, 3] and mixed == [-100, 155, -1, 2, -3]


@pytest.mark.parametrize("wide", [False, True])
def test_rows_of_zeros_and_of_nothing_are_zeros(wide: bool) -> None:
    assert not quantized(np.zeros((2, 3), np.float32), wide).ints.any()
    nothing = Matrix(np.zeros((0, 4), np.int8), np.ones(4, f32), wide)
    assert nothing.times(np.zeros((2, 0), f32)).tolist() == [[0] * 4] * 2


@pytest.mark.parametrize("depth", [3, 518, 4000])
def test_sums_are_exact_at_their_largest(depth: int) -> None:
    weights = np.full((depth, 2), -127, np.int8)
    rows = np.linspace(-1, -0.99, depth, dtype=f32)[None]
    held = quantized(rows, True)
    want = f32(int((held.ints.astype(np.int64) * -127).sum())) * (held.scale[0] * f32(0.5))
    assert Matrix(weights, np.full(2, 0.5, f32), True).times(rows).tolist() == [[want] * 2]


@pytest.mark.parametrize("adj_y", [False, True])
def test_a_matrix_of_integers_may_have_a_scale_per_column(adj_y: bool) -> None:
    r = np.random.default_rng(0)
    x, y = r.integers(-32767, 32768, (3, 8)).astype(np.int16), r.integers(-127, 128, (8, 4)).astype(np.int8)
    scales = (0.01, 0.02, 0.005, 0.03)
    held = Tensor(QPC, (4, 8), ChannelQuant(scales, 0), y.T.copy()) if adj_y else \
        Tensor(QPC, (8, 4), ChannelQuant(scales, 1), y)
    made = once(host_twin(MATMUL), {"x": Tensor(Q16S, (3, 8), Quant(0.001), x), "y": held, "adj_x": False,
                                    "adj_y": adj_y}, (Tensor(Q16S, (3, 4), Quant(0.02)),))
    assert made is not None
    assert np.abs(made[0] - (x * 0.001) @ (y * np.array(scales)) / 0.02).max() <= 1
