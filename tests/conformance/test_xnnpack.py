"""Whole models with `rounding="fast"` against what XNNPACK gave for them."""
from __future__ import annotations

import pytest
from litert_answers import checksum
from xnnpack_answers import MODELS, SEEDS, drawn, path_of, recorded

import nnx_convert

#: This rounding is native code's alone.
pytestmark = pytest.mark.parametrize("backend", ["native"], indirect=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_xnnpack_gives(name: str) -> None:
    model = nnx_convert.compile(path_of(name), threads=1, backend="native", rounding="fast")
    given = [checksum(model.run(drawn(model.inputs, seed))) for seed in range(SEEDS)]
    assert given == recorded()[name]


def test_the_reference_is_another_rounding() -> None:
    model = nnx_convert.compile(path_of("mobilenet_v2_1.0_224_int8_perchannel"), threads=1, backend="native")
    assert checksum(model.run(drawn(model.inputs, 0))) not in recorded()["mobilenet_v2_1.0_224_int8_perchannel"]
