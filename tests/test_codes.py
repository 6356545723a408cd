"""Codes agree with the published ones, name by name."""
from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pytest
from shared import SHARED

from nnx_convert.codes import (
    FeatureLevel, FuseCode, OperandCode, OperationCode, OperationCodeEx, PaddingCode, ResultCode)
from nnx_convert.schema import OPS

PUBLISHED: dict[str, Any] = json.loads((SHARED / "nnapi" / "codes.json").read_text()) if SHARED else {}
LISTS: dict[type[IntEnum], tuple[str, ...]] = {
    OperandCode: ("operand_types",), OperationCodeEx: ("samsung_ex_operations",),
    OperationCode: ("operations", "later_operations", "experimental_operations")}
NAMED: dict[type[IntEnum], str] = {FuseCode: "fused_activations", PaddingCode: "padding", ResultCode: "result"}
#: From here on codes belong to the extension org.nnx_convert.host.
EXTENSION = 0x10000


def listed(lists: tuple[str, ...]) -> dict[str, int]:
    return {entry["name"]: entry["code"] for name in lists for entry in PUBLISHED[name]}


@pytest.mark.parametrize("codes", LISTS if PUBLISHED else (), ids=lambda c: c.__name__)
def test_listed_codes_are_the_published_ones(codes: type[IntEnum]) -> None:
    assert {c.name: int(c) for c in codes if c < EXTENSION} == listed(LISTS[codes])


@pytest.mark.parametrize("codes", NAMED if PUBLISHED else (), ids=lambda c: c.__name__)
def test_small_enums_are_the_published_ones(codes: type[IntEnum]) -> None:
    published = {k.removeprefix("FUSED_").removeprefix("PADDING_"): v for k, v in PUBLISHED[NAMED[codes]].items()}
    assert {c.name: int(c) for c in codes} == published


@pytest.mark.parametrize("published", [PUBLISHED] if PUBLISHED else [], ids=["codes.json"])
def test_feature_levels_are_the_published_ones(published: dict[str, Any]) -> None:
    assert {int(v) for v in FeatureLevel} == {int(v) for v in published["feature_levels"]}


@pytest.mark.parametrize("published", [PUBLISHED] if PUBLISHED else [], ids=["codes.json"])
def test_every_operation_has_a_row_with_its_code_and_first_level(published: dict[str, Any]) -> None:
    names = ("operations", "later_operations", "samsung_ex_operations", "experimental_operations")
    assert {n: o.code for n, o in OPS.items() if o.code is not None and o.code < EXTENSION} == listed(names)
    for entry in (e for name in names for e in published[name] if "feature_level" in e):
        assert min(OPS[entry["name"]].types.values()) == entry["feature_level"], entry


def test_codes_of_operations_and_of_ex_do_not_meet() -> None:
    assert {int(c) for c in OperationCode}.isdisjoint(int(c) for c in OperationCodeEx)


@pytest.mark.parametrize("code", OperandCode, ids=lambda c: c.name)
def test_every_operand_type_has_elements(code: OperandCode) -> None:
    assert code.group in {"tensor", "int", "float", "bool", "model"}
    assert code.group == "model" or code.dtype.itemsize in {1, 2, 4, 8, 16}
