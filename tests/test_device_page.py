"""Every command of docs/device.md does what it says."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cxx import MISSING

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "device.md").read_text(encoding="utf-8")
BLOCK, = re.findall(r"<!-- runs -->\n```bash\n(.*?)```", PAGE, re.S)


@pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing")
def test_the_commands_run(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", BLOCK], cwd=tmp_path, capture_output=True, text=True,
                          check=False, env=os.environ | {"PATH": path, "CMAKE_BUILD_TYPE": "Debug"})
    assert done.returncode == 0, done.stderr
    assert "largest difference 0" in done.stdout and "0 0 1 3\n" in done.stdout
