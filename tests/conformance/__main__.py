"""The golden vectors that pass, per family.

    python tests/conformance                 # every family, a line each where a case fails
    python tests/conformance DENSIFY -v      # families whose name has the word, with each failing case
    python tests/conformance --pin           # pin what passes now
    python tests/conformance --litert        # record what LiteRT gives for the models of one operator
    python tests/conformance --xnnpack       # record what XNNPACK gives for models of 8-bit numbers
"""
from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.extend(str(Path(__file__).resolve().parents[2] / f) for f in ("tests", "models", "tests/frontends/tflite"))

from pins import counted, pin, pinned
from vectors import failures


def main(words: list[str]) -> None:
    """Print the summary."""
    if "--litert" in words:
        import_module("litert_answers").record()
        return
    if "--xnnpack" in words:
        import_module("xnnpack_answers").record()
        return
    names = [w for w in words if not w.startswith("-")]
    passes: dict[str, int] = {}
    totals = 0
    for family in counted():
        if names and not any(n in family for n in names):
            continue
        found = failures(family)
        wrong = {name: why for name, why in found.items() if why}
        passes[family], totals = len(found) - len(wrong), totals + len(found)
        if wrong or names:
            print(f"{family:32} {passes[family]:4} of {len(found):4}   {next(iter(wrong.values()), '')[:110]}")
        if "-v" in words:
            print(*(f"    {name}: {why}" for name, why in wrong.items()), sep="\n")
    print(f"{sum(passes.values())} of {totals} cases pass")
    if "--pin" in words:
        pin((pinned() if names else {}) | passes)


main(sys.argv[1:])
