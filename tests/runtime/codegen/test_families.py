"""Which modules have native code for an operation is known before they are imported."""
from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from nnx_convert.runtime.codegen import tasks

FOLDER = Path(tasks.__file__).parent


@pytest.mark.parametrize("module", tasks.MODULES)
def test_a_module_serves_what_it_is_said_to(module: str) -> None:
    listed = import_module(f"nnx_convert.runtime.codegen.{module}").NATIVE
    assert {op.family for each in listed for op in each.ops} == set(tasks.MODULES[module].split())


def test_every_module_with_families_is_known() -> None:
    assert {p.stem for p in FOLDER.glob("*.py") if "\nNATIVE = " in p.read_text()} == set(tasks.MODULES)


def test_what_no_operation_of_a_model_needs_is_not_imported() -> None:
    asked = "from nnx_convert import ops\nfrom nnx_convert.runtime.codegen.tasks import family_named\n" \
        "assert family_named('CONV_2D') and family_named('SOFTMAX') and family_named('RESHAPE') is None\n" \
        "import sys\nprint(*(m.rpartition('.')[2] for m in sys.modules if '.codegen.' in m))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert {"dense", "folds"} <= found and not found & {"cells", "trees", "detections", "fourier", "scatters"}
