"""Every conformance test runs in NumPy and natively, there with both cores however small a model is, and in memory with
guards around each array: half the tests have them behind arrays, the others before; $NNX_GUARDS says where for all, or
"swapped": a second run that has them at the other end each.

Without the external suites, tests that are about nothing else are not collected; the header says so.
"""
from __future__ import annotations

import os
import zlib

import pytest
from guards import Guarded
from shared import SHARED

from nnx_convert.runtime.backends import VARIABLE
from nnx_convert.runtime.codegen import effort, pages

collect_ignore = [] if SHARED else ["test_cases.py", "test_sparse.py", "test_zoo.py", "test_onnx_models.py",
                                  "test_xnnpack.py", "test_verify.py"]


#: Where guards are.
SIDES = ("behind", "before")
#: Cases whose outputs are the softmax of equal sums near 1e10: NumPy's matrix products give these to seven digits only,
#: and on some processors not alike for all columns. Native code, which sums all of them in one order, is asked twice.
AMPLIFIED = {"light_squeezenet", "test_squeezenet"}


@pytest.fixture(autouse=True, params=["numpy", "native"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What computes the models of a test."""
    case = getattr(request.node, "callspec", None)
    chosen = "native" if case is not None and case.params.get("name") in AMPLIFIED else str(request.param)
    monkeypatch.setenv(VARIABLE, chosen)
    monkeypatch.setattr(effort, "LEAST", 0.0)
    end = guarded_end(request.node.nodeid, os.environ.get("NNX_GUARDS"))
    monkeypatch.setattr(pages, "MEMORY", Guarded(behind=end == "behind"))
    return chosen


def guarded_end(test: str, said: str | None) -> str:
    """At which end of arrays a test has its guards: by its name, where nothing is said of all."""
    if said in SIDES:
        return said
    if said not in (None, "", "swapped"):
        raise ValueError(f"NNX_GUARDS={said} is none of {', '.join(SIDES)}, swapped")
    return SIDES[(zlib.crc32(test.encode()) + (said == "swapped")) % len(SIDES)]
