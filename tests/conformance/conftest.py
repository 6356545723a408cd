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


@pytest.fixture(autouse=True, params=["numpy", "native"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What computes the models of a test."""
    monkeypatch.setenv(VARIABLE, request.param)
    monkeypatch.setattr(effort, "LEAST", 0.0)
    return str(request.param)
