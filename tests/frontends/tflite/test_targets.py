"""Operators that NNAPI has not: for the oldest target, and through a file, they give what the default gives."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnx_convert import CompiledModel, Target, convert, load

from .host_cases import HOST
from .one_operator import Case, write
from .test_litert import TOLERANCE, drawn

#: Drawn numbers are compared elsewhere.
DRAWN = {"MULTINOMIAL"}


@pytest.mark.parametrize("case", [c for c in HOST if c.name not in DRAWN], ids=str)
def test_the_oldest_target_computes_the_same(case: Case, tmp_path: Path) -> None:
    r, file = np.random.default_rng(0), write(case)
    inputs = [drawn(t, r) for t in case.inputs if t is not None and t.data is None]
    convert(file, Target(27, ex=False, experimental=False)).save(tmp_path / "m.nnx")
    found = CompiledModel(load(tmp_path / "m.nnx")).run(inputs)
    for got, want in zip(found, CompiledModel(convert(file)).run(inputs), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)
