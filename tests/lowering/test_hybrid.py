"""Floats beside int8 weights: exact on the host with the reason, or close on NNAPI's float operations."""
from __future__ import annotations

import numpy as np
import pytest
from litert_cases import CASES
from one_operator import write

from nnx_convert import CompiledModel, Target, convert
from nnx_convert.emit.facts import host
from nnx_convert.errors import UsageError

HYBRID = [name for name in CASES if name.startswith("hybrid")]
#: The largest difference over the largest output: what rounding activations to int8 makes.
ROUNDED = 0.04


@pytest.mark.parametrize("name", HYBRID)
def test_the_float_way_is_nnapi_s_and_close(name: str) -> None:
    for seed, case in enumerate(CASES[name][::4]):                 # those without a fused activation
        file, r = write(case), np.random.default_rng(seed)
        exact, near = (convert(file, Target(8, hybrid=way)) for way in ("exact", "float"))
        assert [h.operation for h in host([exact])] == [exact.operations[-1].op.name]
        beyond = "groups" in name and case.values["DilationWFactor"] > 1
        assert "--hybrid float" in host([exact])[0].reason and bool(host([near])) == beyond
        ports = [(p.shape or (), np.dtype(p.dtype)) for p in exact.rim.inputs]
        values = [r.normal(size=s).astype(d) if d.kind == "f" else r.integers(-127, 128, s).astype(d) for s, d in ports]
        first, second = (CompiledModel(m).run(values)[0] for m in (exact, near))
        assert np.abs(first - second).max() <= ROUNDED * np.abs(second).max()


def test_strict_takes_the_float_way() -> None:
    file = write(CASES["hybrid FULLY_CONNECTED"][0])
    assert not host([convert(file, strict=True)])


def test_there_are_two_ways() -> None:
    with pytest.raises(UsageError, match="hybrid is"):
        Target(hybrid="fast")  # type: ignore[arg-type]
