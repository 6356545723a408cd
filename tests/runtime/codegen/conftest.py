"""Without a cross compiler and an emulator, tests of code for aarch64 are not collected; the header says so."""
from __future__ import annotations

from cross import MISSING

collect_ignore = ["test_aarch64.py"] if MISSING else []
