"""The generator against its authors' vectors, and what is made of its words."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert.runtime.philox import fractions, normal, words

#: Random123's known answers for philox4x32-10: counter and key all zero.
ZERO = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_rounds_give_the_known_answer() -> None:
    from nnx_convert.runtime.philox import ROUNDS, STEPS, turned
    counter, key = [np.zeros(1, np.uint64)] * 4, [0, 0]
    for _ in range(ROUNDS):
        counter = turned(counter, key)
        key = [(k + s) & 0xFFFFFFFF for k, s in zip(key, STEPS, strict=True)]
    assert [int(c[0]) for c in counter] == ZERO


@pytest.mark.parametrize("count", [0, 1, 4, 7, 1000])
@pytest.mark.parametrize("seeds", [(1, 2), (-1, 7), (0, 5)])
def test_a_seed_says_all(count: int, seeds: tuple[int, int]) -> None:
    found = words(count, *seeds)
    assert (found.shape, found.dtype) == ((count,), np.uint32)
    np.testing.assert_array_equal(found, words(1000, *seeds)[:count])


def test_no_seeds_are_others_each_time() -> None:
    assert (words(64, 0, 0) != words(64, 0, 0)).any() and (words(64, 1, 0) != words(64, 2, 0)).any()


def test_fractions_fill_the_unit_interval_evenly() -> None:
    assert fractions(np.array([0, 1 << 22, 0xFFFFFFFF], np.uint32)).tolist() == [0.0, 0.5, 1 - 2.0**-23]
    counts = np.histogram(fractions(words(1 << 16, 3, 4)), bins=16, range=(0, 1))[0]
    assert abs(counts / (1 << 12) - 1).max() < 0.1


def test_normal_numbers_have_the_moments_of_the_bell() -> None:
    x = normal(words(1 << 16, 3, 4)).astype(np.float64)
    assert x.shape == (1 << 16,)
    np.testing.assert_allclose([x.mean(), x.var(), (x**3).mean(), (x**4).mean()], [0, 1, 0, 3], atol=0.1)
