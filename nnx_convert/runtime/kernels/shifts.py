"""Additions of int16 by shifts."""
from __future__ import annotations

from functools import partial

import numpy as np

from ...ops import shifts as s
from ...types import Tensor
from ..kernel import Run, Site, kernel
from . import quantized as q
from .elementwise import arithmetic, ufunc


@kernel(s.ADD_BY_SHIFTS, inplace=("x", "y"))
def ADD_BY_SHIFTS(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, ufunc(np.add), partial(q.add, shifted=True))


@kernel(s.SUB_BY_SHIFTS, inplace=("x", "y"))
def SUB_BY_SHIFTS(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, ufunc(np.subtract), partial(q.add, sign=-1, shifted=True))
