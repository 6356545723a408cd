"""Tests import their helpers by name, and say in one line when the external suites are not there."""
from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "models")]

from shared import SHARED  # noqa: E402


def pytest_report_header() -> str:
    """One line about the external suites."""
    return f"external suites: {SHARED}" if SHARED else "external suites: absent ($NNX_SHARED), their tests are not run"
