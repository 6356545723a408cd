"""Element by element: arithmetic, comparison, logic, activation."""
from __future__ import annotations

import numpy as np

from ...ops import elementwise as e
from ...types import Tensor
from ..kernel import Array, Run, Site, kernel

#: Bounds of the fused activations, by NNAPI's codes.
BOUNDS = {0: None, 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


def clamp(out: Array, act: int) -> None:
    """Apply a fused activation in place."""
    bounds = BOUNDS[act]
    if bounds:
        low, high = bounds
        np.maximum(out, low, out=out)
        if high is not None:
            np.minimum(out, high, out=out)


@kernel(e.ADD, inplace=("x", "y"))
def ADD(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    def run(out: Array, x: Array, y: Array) -> None:
        np.add(x, y, out=out)
        clamp(out, act)
    return run
