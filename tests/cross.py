"""What links native code for aarch64 and what runs it: those that are missing here."""
from __future__ import annotations

import shutil

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MISSING = tuple(name for name in (COMPILER, EMULATOR) if shutil.which(name) is None)
