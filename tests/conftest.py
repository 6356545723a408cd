"""What every test run says first: whether the external suites are there."""
from __future__ import annotations

from shared import SHARED


def pytest_report_header() -> str:
    """One line about the external suites."""
    return f"external suites: {SHARED}" if SHARED else "external suites: absent ($NNX_SHARED), their tests are not run"
