"""The kernels against the table: the same argument names, none missing where all are promised, none too many."""
from __future__ import annotations

import inspect

import pytest

import nnx_convert.runtime.kernels  # noqa: F401  (fills the registry)
from nnx_convert.codes import OperationCode, OperationCodeEx
from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.bind import tensor_names
from nnx_convert.runtime.kernel import KERNELS, kernel_of
from nnx_convert.schema import OPS

BY_NAME = OPS | {t.name: t for t in map(host_twin, list(OPS.values()))}
PROMISED = [*OperationCodeEx.__members__, OperationCode.DENSIFY.name]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_the_arguments_of_its_operation(name: str) -> None:
    assert name in BY_NAME
    site, *params = inspect.signature(KERNELS[name].prepare).parameters
    assert site == "site"
    assert tuple(params) == BY_NAME[name].forms[0].names


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_kernel_overwrites_or_views_is_a_tensor_of_its_own(name: str) -> None:
    k = KERNELS[name]
    assert {*k.inplace, *[k.view][:bool(k.view)]} <= set(tensor_names(BY_NAME[name]))


@pytest.mark.parametrize("name", PROMISED)
def test_what_is_promised_runs(name: str) -> None:
    assert kernel_of(OPS[name]) is not None
