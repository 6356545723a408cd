"""Fingerprint64 against values that others have published."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_convert.runtime.farmhash import fingerprint64

#: Keys with their fingerprints: of Guava's tests, of BigQuery's manual for FARM_FINGERPRINT, of TensorFlow's
#: string_to_hash_bucket_fast; those of 43, 60 and 130 bytes and of "", "a" and "abc" by Google's C++ code (pyfarmhash).
PUBLISHED = [
    (b"", 11160318154034397263), (b"a", 12917804110809363939), (b"abc", 2640714258260161385),
    (b"test", 8581389452482819506), (b"test" * 8, -4196240717365766262), (b"test" * 64, 3500507768004279527),
    (b"1footrue", -1541654101129638711), (b"2applefalse", 2794438866806483259), (b"3true", -4880158226897771312),
    (b"Hello", 15404698994557526151), (b"World", 18308117990299812472),
    (b"The quick brown fox jumps over the lazy dog", 12375473906752639284), (b"0123456789" * 6, 16491625745426164513),
    (b"abcdefghijklmnopqrstuvwxyz" * 5, 15759353760439510698)]


def keys(*texts: bytes) -> np.ndarray:
    """Texts of one length as rows of bytes."""
    return np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1)


@pytest.mark.parametrize("text, want", PUBLISHED)
def test_published_fingerprints(text: bytes, want: int) -> None:
    assert int(fingerprint64(keys(text))[0]) == want % 2**64


@given(st.integers(0, 200), st.integers(0, 10**6))
def test_many_keys_at_once_are_each_by_itself(length: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (5, length)).astype(np.uint8)
    found = fingerprint64(rows)
    assert found.dtype == np.uint64
    assert [int(v) for v in found] == [int(fingerprint64(rows[i:i + 1])[0]) for i in range(5)]
