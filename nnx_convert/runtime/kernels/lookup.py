"""Tables from keys to values."""
from __future__ import annotations

import numpy as np

from ...ops import lookup
from ...types import Array, Tensor
from ..kernel import Run, Site, kernel


@kernel(lookup.TABLE_FIND)
def TABLE_FIND(site: Site, x: Tensor, keys: Tensor, values: Tensor, other: Tensor) -> Run:
    def run(out: Array, x: Array, keys: Array, values: Array, other: Array) -> None:
        table = dict(zip(reversed(keys.reshape(-1).tolist()), reversed(values.reshape(-1).tolist()), strict=True))
        rest = other.reshape(-1)[0]
        found = np.empty(x.size, out.dtype)
        found[:] = [table.get(k, rest) for k in x.reshape(-1).tolist()]
        np.copyto(out, found.reshape(out.shape))
    return run
