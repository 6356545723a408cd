"""Without a cross compiler and an emulator, tests of code for aarch64 are not collected; the header says so. Those of
MXCSR are not where the processor has none."""
from __future__ import annotations

from cross import MISSING

from nnx_convert.runtime.codegen.machine import host

collect_ignore = [*(["test_aarch64.py"] if MISSING else []), *([] if host().x86 else ["test_directed.py"])]
