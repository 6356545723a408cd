"""What every test run says at its end: whether the external suites and an emulator are there."""
from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import browser
import builds
import cxx
import pytest
from cross import MISSING
from hypothesis import HealthCheck, settings
from shared import SHARED

from nnx_convert.cli.screen import Volume, volume

# Tests leave nothing in the user's cache; one that is about the cache gives it a folder.
os.environ["NNX_CACHE"] = "0"
# What a model gives is tested in NumPy, which is the oracle; tests of native code ask for that.
os.environ["NNX_BACKEND"] = "numpy"
# No test hangs on how fast a machine is, or on what else it does.
settings.register_profile("any clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any clock")


@pytest.fixture(autouse=True)
def normal_volume() -> Iterator[None]:
    """A command that a test only parses, --quiet among its words, leaves others as loud as they are."""
    volume.set(Volume.NORMAL)
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line about what is not part of the project: external suites, compilers, emulators, a browser."""
    suites = str(SHARED) if SHARED else "absent ($NNX_SHARED), their tests are not run"
    emulated = f"{' and '.join(MISSING)} missing, its tests are not run" if MISSING else "emulated"
    built = f"{' and '.join(builds.MISSING)} missing, its tests are not run" if builds.MISSING else "built"
    emitted = f"{' and '.join(cxx.MISSING)} missing, its tests are not run" if cxx.MISSING else "compiled"
    seen = f"{' and '.join(browser.MISSING)} missing, their tests are not run" if browser.MISSING else "in Chromium"
    told = "built" if find_spec("pdoc") else "pdoc missing, its test is not run"
    terminalreporter.write_line(f"external suites: {suites}; native code for aarch64: {emulated}; "
                                f"exported code: {built}; NNAPI's C++: {emitted}; pages: {seen}; "
                                f"the library's reference: {told}")
