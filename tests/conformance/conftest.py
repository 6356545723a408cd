"""Without the external suites, tests that are about nothing else are not collected; the header says so."""
from __future__ import annotations

from shared import SHARED

collect_ignore = [] if SHARED else ["test_cases.py", "test_sparse.py", "test_zoo.py", "test_onnx_models.py"]
