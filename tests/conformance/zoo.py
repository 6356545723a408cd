"""Real models with recorded outputs: where they are, and how a run differs from the reference kernels'."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from shared import SHARED

Array = np.ndarray[Any, Any]
#: Keys of recorded outputs, best first: the reference kernels', the default ones', another runtime's.
PREFIXES = ("ref_out", "out", "tflm_out")


@dataclass(frozen=True)
class Golden:
    """A model with its inputs and its outputs, by position."""

    path: Path
    inputs: list[Array]
    outputs: dict[int, Array]


def golden(name: str) -> Golden:
    """The model of that name."""
    assert SHARED is not None
    folder = SHARED / "zoo" / name
    with np.load(folder / "golden.npz", allow_pickle=False) as npz:
        inputs = [npz[f"in{i}"] for i in range(len(npz.files)) if f"in{i}" in npz.files]
        outputs: dict[int, Array] = {}
        for i in range(len(npz.files)):
            key = next((p + str(i) for p in PREFIXES if p + str(i) in npz.files), None)
            if key:
                outputs[i] = npz[key]
    return Golden(next(folder.glob("model.*")), inputs, outputs)


def steps(got: Array, want: Array) -> tuple[int, int]:
    """How many integers differ, and by how much at most."""
    off = np.abs(got.astype(np.int64) - want.astype(np.int64))
    return int((off > 0).sum()), int(off.max(initial=0))


def excess(got: Array, want: Array) -> float:
    """The largest |got - want| / (1 + |want|)."""
    return float(_off(got, want).max(initial=0.0))


def beyond(got: Array, want: Array, tolerance: float) -> float:
    """The share of elements where that is more than a tolerance."""
    return float((_off(got, want) > tolerance).mean())


def _off(got: Array, want: Array) -> Array:
    return np.abs(got.astype(np.float64) - want) / (1 + np.abs(want.astype(np.float64)))
