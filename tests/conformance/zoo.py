"""Real models with recorded outputs: where they are, and how a run differs from the reference kernels'."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from recorded import files, one

Array = np.ndarray[Any, Any]
#: |got - want| <= TOLERANCE * (1 + |want|).
TOLERANCE = 1e-4
#: Outputs whose sums cancel so far that LiteRT's own kernel sets disagree: by model, output and backend the largest
#: excess, and the share of elements beyond TOLERANCE. Of the recording (XNNPACK's), LiteRT's reference kernels are
#: 4.3e-3 off, its optimised ones 5.8e-3 and, with two threads, 7.4e-3.
CANCELLING = {("pose_landmark_lite_fp16", 2, "numpy"): (4.5e-3, 0.015),
              ("pose_landmark_lite_fp16", 2, "native"): (7.4e-3, 0.015)}


@dataclass(frozen=True)
class Golden:
    """A model with its inputs and its outputs, by position."""

    path: Path
    inputs: list[Array]
    outputs: dict[int, Array]


def golden(name: str) -> Golden:
    """The model of that name."""
    path, arrays = files(name)
    run = one(arrays, "")
    return Golden(path, list(run.inputs.values()), run.outputs)


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
