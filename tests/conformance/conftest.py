"""Every conformance test runs in NumPy and natively, there with both cores however small a model is.

Without the external suites, tests that are about nothing else are not collected; the header says so.
"""
from __future__ import annotations

import pytest
from shared import SHARED

from nnx_convert.runtime.backends import VARIABLE
from nnx_convert.runtime.codegen import effort

collect_ignore = [] if SHARED else ["test_cases.py", "test_sparse.py", "test_zoo.py", "test_onnx_models.py",
                                  "test_xnnpack.py", "test_verify.py"]


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
    return chosen
