"""`python -m fuzz.differential --count N --format tflite|onnx`: random models by the reference runtime and by ours.

A model is the same for the same format and seed. What differs is written as recipes, a line of JSON each: format, seed,
the first operator that gives something else on the same inputs, and how. `--seed S --count 1 --show` prints a model and
what becomes of it. Ends with 1 where there is a difference or a fault.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .engines import PEERS, installed
from .judging import judge
from .models import model
from .pool import Judged, Task, judging

#: What counts as an unexplained difference.
BAD = ("different", "fault")
EXAMPLE = "example: python -m fuzz.differential --format onnx --count 1000 --seed 5000 --recipes found.jsonl"


def options(words: Sequence[str] | None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser("fuzz.differential", epilog=EXAMPLE, description=__doc__)
    parser.add_argument("--format", choices=sorted(PEERS), default="tflite")
    parser.add_argument("--count", type=int, default=1000, help="models (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the next has the next (0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (one per processor)")
    parser.add_argument("--native", type=int, default=1, help="run every so many natively as well (1: all, 0: none)")
    parser.add_argument("--no-peer", action="store_true", help="compare only the two backends")
    parser.add_argument("--recipes", type=Path, help="append what differs to this file")
    parser.add_argument("--again", type=Path, help="judge the recipes of a file once more, and no others")
    parser.add_argument("--show", action="store_true", help="print the first model and what becomes of it, in here")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    chosen = options(words)
    if not chosen.no_peer and not installed(chosen.format):
        print(f"{PEERS[chosen.format]} is not installed: pip install 'nnx-convert[verify]', or --no-peer",
              file=sys.stderr)
        return 2
    os.environ["NNX_CACHE"] = "0"                # no model is seen twice
    if chosen.show:
        made = model(chosen.format, chosen.seed)
        print(made, judge(made, not chosen.no_peer, chosen.native > 0), sep="\n")
        return 0
    seeds = [(chosen.format, seed) for seed in range(chosen.seed, chosen.seed + chosen.count)]
    if chosen.again:
        found = map(json.loads, chosen.again.read_text().splitlines())
        seeds = list(dict.fromkeys((each["format"], each["seed"]) for each in found))
    tasks = [Task(form, seed, not chosen.no_peer, bool(chosen.native) and seed % chosen.native == 0)
             for form, seed in seeds]
    began, count = time.monotonic(), Count()
    with suppress(KeyboardInterrupt):            # what is counted by then is told
        for each in judging(tasks, chosen.workers):
            count.add(each)
            if each.finding.kind in BAD:
                keep(recipe(each), chosen.recipes)
            if count.models % 500 == 0:
                print(f"{count} in {time.monotonic() - began:.0f} s", flush=True)
    print(count.whole(), f"{time.monotonic() - began:.0f} s", sep="\n")
    return int(any(count.kinds[k] for k in BAD))


def keep(line: str, file: Path | None) -> None:
    """Print a recipe, and append it to a file."""
    print(line, flush=True)
    if file is not None:
        with file.open("a") as end:
            end.write(line + "\n")


def recipe(judged: Judged) -> str:
    """A line that says how to see it again."""
    f = judged.finding
    return json.dumps({"format": judged.task.form, "seed": judged.task.seed, "kind": f.kind, "about": f.about,
                       "operator": f.operator, "operators": len(judged.operators), "detail": f.detail[:400]})


class Count:
    """How many became what."""

    def __init__(self) -> None:
        self.models, self.native = 0, 0
        self.kinds, self.operators = Counter[str](), Counter[str]()
        self.rules, self.refused = Counter[str](), Counter[str]()

    def add(self, judged: Judged) -> None:
        """One more."""
        finding = judged.finding
        self.models += 1
        self.native += judged.task.native
        self.kinds[finding.kind] += 1
        self.operators.update(judged.operators)
        if finding.kind == "explained":
            self.rules[finding.about] += 1
        if finding.kind in ("peer", "ours"):
            self.refused[f"{finding.kind}: {finding.detail[:160]}"] += 1

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {k}" for k, n in self.kinds.most_common())
        return f"{self.models} models ({self.native} native): {kinds}"

    def whole(self) -> str:
        """All of it, in lines."""
        return "\n".join([
            str(self), *(f"  explained by {r}: {n}" for r, n in self.rules.most_common()),
            *(f"  refused, {r}: {n}" for r, n in self.refused.most_common(40)),
            f"  {sum(self.operators.values())} operators of {len(self.operators)} kinds: "
            + ", ".join(f"{o} {n}" for o, n in self.operators.most_common())])


if __name__ == "__main__":
    raise SystemExit(main())
