"""Between types: casts and quantisation. The output operand chooses the type, so `to` stands for it."""
from __future__ import annotations

from typing import Annotated

from ..kinds import MATH, T, T1to4z, To
from ..schema import op
from ..signature import Kind
from ..types import B8, F16, F32, I32, Q8, Q8S, Q16A, Q16S, QPC, QS, Tensor, Type

_CASTS = {F16: 29, F32: 29, I32: 29, Q8: 29}                # any of these to any of these
_COPIES = {B8: 30, Q16A: 30, Q16S: 30, Q8S: 30, QS: 30}     # only onto itself
CastTo = Annotated[Type, Kind(by_key={t: {t: 30} for t in _COPIES} | dict.fromkeys(_CASTS, _CASTS),
                              output="type")]


@op(_CASTS | _COPIES)
def CAST(x: T, to: CastTo) -> To:
    """x as another type; quantised values count as plain integers, floats are truncated."""
    return Tensor(to, x.shape)


@op(MATH)
def QUANTIZE(x: T, to: Annotated[Type, Kind({Q8: 29, Q8S: 30}, output="type")]) -> To:
    """clamp(zero + round(x / scale)), halves rounded away from zero."""
    return Tensor(to, x.shape)


@op({Q8: 27, QS: 29, QPC: 29, Q8S: 30})
def DEQUANTIZE(x: T1to4z, to: Annotated[Type, Kind({F32: 27, F16: 29}, output="type")]) -> To:
    """scale * (x - zero), a scale per channel where x has them."""
    return Tensor(to, x.shape)
