"""What every test run says at its end: whether the external suites and an emulator are there."""
from __future__ import annotations

import os

import pytest
from cross import MISSING
from shared import SHARED

# Tests leave nothing in the user's cache; one that is about the cache gives it a folder.
os.environ["NNX_CACHE"] = "0"
# What a model gives is tested in NumPy, which is the oracle; tests of native code ask for that.
os.environ["NNX_BACKEND"] = "numpy"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line about the external suites, and one about code for aarch64."""
    suites = str(SHARED) if SHARED else "absent ($NNX_SHARED), their tests are not run"
    emulated = f"{' and '.join(MISSING)} missing, its tests are not run" if MISSING else "emulated"
    terminalreporter.write_line(f"external suites: {suites}; native code for aarch64: {emulated}")
