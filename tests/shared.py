"""Where the suites nobody here wrote are: $NNX_SHARED, or `shared` beside the checkout; None when absent."""
from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent
_GIVEN = Path(os.environ.get("NNX_SHARED") or _HERE.parent / "shared")
SHARED: Path | None = _GIVEN if (_GIVEN / "vectors").is_dir() else None
