"""Whether tests that repeat themselves do so for minutes: $NNX_FULL=1."""
from __future__ import annotations

import os

FULL = os.environ.get("NNX_FULL") == "1"
