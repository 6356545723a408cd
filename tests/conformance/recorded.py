"""What was recorded of a real model: runs in a row, each with inputs and the outputs of the reference kernels."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from shared import SHARED

Array = np.ndarray[Any, Any]
#: Whose outputs count, best first: those computed in NumPy (where no kernel is right), the reference kernels', the
#: default ones' (where the reference's are the same and left out), another runtime's.
SOURCES = ("np_{}", "ref_{}", "{}", "tflm_{}")


@dataclass(frozen=True)
class Recorded:
    """One run, inputs and outputs by position; an input that is not recorded is an output of the run before."""

    inputs: dict[int, Array]
    outputs: dict[int, Array]


@dataclass(frozen=True)
class Recording:
    """A model's file and its runs; `fed_back` says which output an input is in the next run."""

    path: Path
    runs: list[Recorded]
    fed_back: dict[int, int]


def recording(name: str) -> Recording:
    """That of a model of the zoo."""
    path, arrays = files(name)
    meta = json.loads((path.parent / "meta.json").read_text())
    return Recording(path, list(runs(arrays)), feedback(meta))


def files(name: str) -> tuple[Path, dict[str, Array]]:
    """A model of the zoo, and the arrays beside it."""
    assert SHARED is not None
    folder = SHARED / "zoo" / name
    with np.load(folder / "golden.npz", allow_pickle=False) as npz:
        return next(folder.glob("model.*")), {k: npz[k] for k in npz.files}


def feedback(meta: dict[str, Any]) -> dict[int, int]:
    """Input -> output, as the notes say it."""
    notes = [n for n in meta["notes"] if "outputs fed back: " in n]
    return {int(i): o for n in notes for i, o in json.loads(n.partition(": ")[2]).items()}


def runs(arrays: dict[str, Array]) -> list[Recorded]:
    """The runs: of a sequence, along its first axis; else those with the prefixes "", s1_, s2_ and so on."""
    if "seq_in0" in arrays:
        whole = one(arrays, "seq_")
        return [Recorded({i: a[t] for i, a in whole.inputs.items()}, {i: a[t] for i, a in whole.outputs.items()})
                for t in range(len(whole.inputs[0]))]
    count = 1 + sum(k.startswith("s") and k.endswith("_in0") for k in arrays)
    return [one(arrays, f"s{n}_" if n else "") for n in range(count)]


def one(arrays: dict[str, Array], prefix: str) -> Recorded:
    """The run whose names have this prefix."""
    most = range(len(arrays))
    inputs = {i: arrays[f"{prefix}in{i}"] for i in most if f"{prefix}in{i}" in arrays}
    names = {i: [s.format(f"{prefix}out{i}") for s in SOURCES] for i in most}
    return Recorded(inputs, {i: next(arrays[n] for n in of if n in arrays) for i, of in names.items()
                             if any(n in arrays for n in of)})
