"""The schema's package, imported by its parts: in a process of its own, as others have imported it here."""
from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import sys
import nnx_convert.frontends.tflite.records
def loaded(): return sum(name.startswith("tflite.") for name in sys.modules)
import tflite
assert loaded() < 30, loaded()
"""


def holds(text: str) -> None:
    """Run it behind the imports; raises `CalledProcessError` with what it said."""
    subprocess.run([sys.executable, "-c", BEGIN + text], check=True)


@pytest.mark.parametrize("text", [
    "assert tflite.AddOptions is sys.modules['tflite.AddOptions'].AddOptions and loaded() < 30",
    "from tflite import AddOptions, Model; assert isinstance(AddOptions, type) and loaded() < 30",
    "import tflite.AddOptions as found; assert isinstance(found, type)",
    "from tflite.AddOptions import AddOptions; assert tflite.AddOptions is AddOptions",
    "assert tflite.__version__ and loaded() > 150 and type(tflite) is type(sys)",
    "assert tflite.utils is sys.modules['tflite.utils']",
    "from tflite import *; assert isinstance(AddOptions, type) and loaded() > 150",
    "assert {'AddOptions', 'Model', '__version__', 'utils'} <= set(dir(tflite))",
    "old = tflite.Model; tflite.__version__; assert tflite.Model is old",
    "assert getattr(tflite, 'nothing', None) is None and not hasattr(tflite, '__nothing__')",
    "import pickle; assert pickle.loads(pickle.dumps(tflite.Model)) is tflite.Model"])
def test_to_who_imports_it_too_it_is_the_package(text: str) -> None:
    holds(text)


def test_one_that_was_imported_before_stays() -> None:
    subprocess.run([sys.executable, "-c", "import tflite, nnx_convert.frontends.tflite.records as r\n"
                    "assert r.tflite is tflite and type(tflite) is type(r)"], check=True)
