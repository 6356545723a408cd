"""The kernels against the table: the same argument names, none missing where all are promised, none too many."""
from __future__ import annotations

import inspect

import pytest

from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.bind import tensor_names
from nnx_convert.runtime.kernel import KERNELS, kernel_of
from nnx_convert.schema import OPS

BY_NAME = OPS | {t.name: t for t in map(host_twin, list(OPS.values()))}
FOUND = {op.name: kernel_of(op) for op in OPS.values()}


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


@pytest.mark.parametrize("name", FOUND)
def test_every_operation_has_a_kernel_and_so_has_its_host_twin(name: str) -> None:
    assert FOUND[name] is not None and kernel_of(host_twin(OPS[name])) is not None


def test_kernels_stand_in_the_module_named_like_the_ops() -> None:
    strays = {n for n, k in KERNELS.items() if k.prepare.__module__.rpartition(".")[2] != BY_NAME[n].family}
    assert not {n for n in strays if not BY_NAME[n].host}
