"""Orders of axes, and when a reshape moves nothing."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert.lowering.axes import (
    Perm, alike, carried, compose, dropped, factors, ident, in_memory, inverse, sizes_of, stored, turn)
from nnx_convert.types import UNKNOWN, Shape, product, symbol

N, M = symbol("n"), symbol("m")
NHWC = (0, 2, 3, 1)


def test_permutations() -> None:
    assert ident(3) == (0, 1, 2) and inverse(NHWC) == (0, 3, 1, 2) and compose(NHWC, inverse(NHWC)) == ident(4)
    assert stored((2, 3, 4, 5), NHWC) == (2, 4, 5, 3) and turn(NHWC, ident(4)) == (0, 3, 1, 2)
    assert dropped(NHWC, [1]) == (0, 1, 2) and dropped(NHWC, [2, 3]) == (0, 1) and dropped((1, 0), [0, 1]) == ()
    assert in_memory((2, 1, 4, 1), (3, 0, 1, 2)) == (0, 2)


def test_shapes_are_alike_where_that_is_certain() -> None:
    assert alike((N, 3), (N, 3)) and not alike((N, 3), (M, 3)) and not alike((UNKNOWN,), (UNKNOWN,))
    assert not alike((1, 2), (2,))


@pytest.mark.parametrize(("a", "b", "p", "want"), [
    ((2, 8, 4, 6), (2, 8, 24), NHWC, (0, 2, 1)), ((N, 8, 4, 6), (N, 8, 24), NHWC, (0, 2, 1)),
    ((2, 8, 1, 1), (2, 8), NHWC, (0, 1)), ((2, 8, 4, 6), (2, 192), NHWC, None),
    ((2, 8, 4, 6), (2, 192), ident(4), (0, 1)), ((2, 8, 4, 6), (2, 2, 4, 4, 6), NHWC, (0, 3, 4, 1, 2)),
    ((2, 24), (2, 4, 6), (1, 0), (1, 2, 0)), ((2, 8, 4, 6), (16, 24), ident(4), (0, 1)),
    ((2, 8, 4, 6), (16, 24), NHWC, None), ((6, 10), (4, 15), ident(2), None),
    ((N, 6), (N * 2, 3), ident(2), (0, 1)), ((N, M, 6), (N * M, 6), (1, 0, 2), None),
    ((N, M, 6), (N, M, 2, 3), (1, 2, 0), (1, 2, 3, 0)), ((UNKNOWN, 6), (UNKNOWN, 6), ident(2), None),
    ((0, 4), (0, 4), ident(2), None), ((1, 1), (1,), (1, 0), (0,))])
def test_a_reshape_moves_nothing_in_one_order(a: Shape, b: Shape, p: Perm, want: Perm | None) -> None:
    assert carried(a, b, p) == want


@settings(max_examples=200)
@given(st.data())
def test_what_is_carried_are_the_same_bytes(data: st.DataObject) -> None:
    a = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4).map(tuple))
    rest, b = product(a), list[int]()
    for _ in range(data.draw(st.integers(0, 3))):
        b.append(data.draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0])))
        rest //= b[-1]
    b.append(rest)
    p = tuple(data.draw(st.permutations(range(len(a)))))
    q = carried(a, tuple(b), p)
    if q is None:
        return
    x = np.arange(product(a)).reshape(a)
    np.testing.assert_array_equal(x.transpose(p).ravel(), x.reshape(b).transpose(q).ravel())


def test_factors_have_sizes() -> None:
    assert factors((N, 4, 6), (N, 6, 4)) is None and factors((6, 10), (4, 15)) is None
    cut = factors((N, 4, 6), (2 * N, 12))
    assert cut == ([[0], [1, 2], [3]], [[0, 1], [2, 3]])
    assert sizes_of((N, 4, 6), cut[0], (2 * N, 12), cut[1]) == {0: N, 1: 2, 2: 2, 3: 6}
