"""Random models of one operator give what LiteRT's reference kernels give: as recorded, and as it is installed."""
from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from litert_answers import ANSWERS, CASES, cases, checksum, exact, expected
from recurrent_cases import FILES

from nnx_convert import CompiledModel, convert

INSTALLED = find_spec("ai_edge_litert") is not None
RECORDED: dict[str, list[str]] = json.loads(ANSWERS.read_text())
NAMES = [*CASES, *FILES]


@pytest.mark.parametrize("name", RECORDED)
def test_an_operator_gives_what_litert_gave(name: str) -> None:
    found = []
    for file, runs in cases(name):
        model = CompiledModel(convert(file))
        found += [checksum(list(model.run(values))) for values in runs]
    assert found == RECORDED[name]


def test_all_that_is_exact_is_recorded() -> None:
    assert list(RECORDED) == [name for name in NAMES if exact(name)]


@pytest.mark.parametrize("name", NAMES if INSTALLED else [])
def test_an_operator_gives_what_litert_gives(name: str) -> None:
    tolerance = 0.0 if name in CASES else FILES[name][1]
    for n, (file, runs) in enumerate(cases(name)):
        model = CompiledModel(convert(file))
        for values, want in zip(runs, expected(file, runs), strict=True):
            for got, one in zip(model.run(values), want, strict=True):
                assert (got.shape, got.dtype) == (one.shape, one.dtype)
                np.testing.assert_allclose(got, one, rtol=0, atol=tolerance, err_msg=f"{name} {n}")
