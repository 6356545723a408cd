"""ONNX's own backend suite, case by case, each in a time of its own.

    python tests/conformance/onnx_suite.py               # every case, a line for each that fails
    python tests/conformance/onnx_suite.py 'test_conv_'  # the cases whose names match
    python tests/conformance/onnx_suite.py X -v          # with the traceback of each failure
    python tests/conformance/onnx_suite.py --pin         # pin what passes now
"""
from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import traceback
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from nnx_convert.onnx_backend import Backend, Prepared

#: What passes is pinned here: of the others, the name and the reason.
PINNED = Path(__file__).with_name("onnx_pinned.json")
SECONDS = 60
Case = Callable[[], None]


@cache
def cases() -> dict[str, Case]:
    """The cases of the suite by name, those for the processor. Making them takes some seconds."""
    scratch = tempfile.mkdtemp()
    os.environ["ONNX_HOME"] = scratch
    from onnx.backend.test import BackendTest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")          # the suite's own sums overflow
        suite = BackendTest(Counting, __name__)
    found: dict[str, Case] = {}
    for items in suite._test_items.values():
        for name, item in items.items():
            if name.endswith("_cpu"):
                found[name.removesuffix("_cpu")] = _case(item.func)
    return found


def _case(fn: Any) -> Case:
    return lambda: fn(unittest.TestCase())


class Late(Exception):
    """A case that did not end."""


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raise `Late` in what takes longer."""
    def ring(*_: Any) -> None:
        raise Late(f"took more than {seconds} s")
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def failure(case: Case) -> BaseException | None:
    """What a case fails with; None where it passes."""
    try:
        with deadline(SECONDS):
            case()
    except Exception as error:
        return error
    return None


def pinned() -> dict[str, str]:
    """The cases that do not pass, with their reasons."""
    found: dict[str, str] = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    return found


#: Operations of the models prepared so far: NNAPI's and EX's, and the host's.
PLACED: Counter[str] = Counter()


class Counting(Backend):
    """The backend under test, which counts where operations went."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
        """As the backend's own."""
        kwargs = {k: v for k, v in kwargs.items() if k not in ("rtol", "atol")}
        found = super().prepare(model, device, **kwargs)
        PLACED.update("host" if o.op.host else "nnapi" for o in found.model.operations)
        return found


def main(words: list[str]) -> None:
    """Print the summary."""
    patterns = [w for w in words if not w.startswith("-")]
    chosen = {n: c for n, c in cases().items() if not patterns or any(re.search(p, n) for p in patterns)}
    wrong: dict[str, str] = {}
    for name, case in chosen.items():
        error = failure(case)
        if error is None:
            continue
        wrong[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        print(f"{name:60} {wrong[name][:180]}", flush=True)
        if "-v" in words:
            traceback.print_exception(error)
    total = sum(PLACED.values()) or 1
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} cases pass; "
          f"{PLACED['nnapi'] / total:.0%} of {total} operations are NNAPI's or EX's, the rest the host's")
    if "--pin" in words and not patterns:
        reasons = pinned()
        PINNED.write_text(json.dumps({n: reasons.get(n, why) for n, why in sorted(wrong.items())}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
