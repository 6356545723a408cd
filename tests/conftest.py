"""What every test run says first: whether the external suites are there."""
from __future__ import annotations

import os

from shared import SHARED

# Tests leave nothing in the user's cache; one that is about the cache gives it a folder.
os.environ["NNX_CACHE"] = "0"


def pytest_report_header() -> str:
    """One line about the external suites."""
    return f"external suites: {SHARED}" if SHARED else "external suites: absent ($NNX_SHARED), their tests are not run"
