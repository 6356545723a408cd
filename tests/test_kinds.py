"""Shape formulas of the vocabulary, against NumPy where that has them."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nnx_convert.kinds import broadcast, broadcasts, image, nhwc, put, scheme_pads, window, without
from nnx_convert.types import F32, UNKNOWN, Tensor

SHAPES = st.lists(st.integers(1, 3), max_size=4).map(tuple)


@given(SHAPES, SHAPES)
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        assert not broadcasts(a, b)
    else:
        assert broadcasts(a, b) and broadcast(a, b) == want


@pytest.mark.parametrize(("a", "b", "want"), [((UNKNOWN,), (3,), "(3,)"), ((UNKNOWN,), (1,), "(?,)"), (
    (1, UNKNOWN), (UNKNOWN, UNKNOWN), "(?, ?)"), ((2, 1), (UNKNOWN,), "(2, ?)")])
def test_an_unknown_size_gives_way_to_one_that_is_not_1(a: tuple[int, ...], b: tuple[int, ...], want: str) -> None:
    assert broadcasts(a, b) and repr(broadcast(a, b)) == want


@given(size=st.integers(1, 40), k=st.integers(1, 7), stride=st.integers(1, 4), dilation=st.integers(1, 3))
def test_same_padding_gives_a_position_per_stride(size: int, k: int, stride: int, dilation: int) -> None:
    head, tail = scheme_pads(1, size, k, stride, dilation)
    assert window(size, k, stride, dilation, (head, tail)) == -(-size // stride) or head == tail == 0
    assert 0 <= tail - head <= 1


def test_valid_padding_is_none() -> None:
    assert scheme_pads(2, 10, 3, 2) == (0, 0) and window(10, 3, 2, 1, (0, 0)) == 4


@pytest.mark.parametrize("nchw", [False, True])
def test_layouts_undo_each_other(nchw: bool) -> None:
    assert nhwc(Tensor(F32, image(1, 2, 3, 4, nchw)), nchw) == (1, 2, 3, 4)


def test_axes_out_and_resized() -> None:
    assert without((2, 3), -1) == (2,) and without((2,), 0) == (1,) and put((2, 3), -2, 9) == (9, 3)
