"""Quantisation as ONNX has it: codes without a grid of their own, a scale and a zero point beside them.

Halves go to even here, where NNAPI's QUANTIZE rounds them away from zero. Bytes whose scale is 1 and whose zero
point is 0 are plain integers; RELABEL tells them what they stand for.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import MATRICES, Bool, Float, Int, Ints, Ints1, Positive, T, T3, To, broadcast, rank, takes
from ..schema import Rule, composite, host
from ..signature import Kind
from ..types import F32, I32, Q8, Q8S, Shape, Tensor, Type, known
from .conv_nd import slid
from .host import ALL, AnyT, ToAny

#: Truth of the shapes of a scale or a zero point: one element, one for each index of an axis, one for each block.
ALONG = "has one element, one for each index of `axis`, or one for each `block` of them"
SCALED = Rule(f"scale {ALONG}", lambda x, scale, axis, block: lies_along(scale.shape, x.shape, axis, block))
OFFSET = Rule(f"zero {ALONG}",
              lambda x, zero, axis, block: zero is None or lies_along(zero.shape, x.shape, axis, block))
Codes = Annotated[Tensor, takes(Q8, Q8S)]
Codes3 = Annotated[Codes, rank(3)]
Floats = Annotated[Tensor, takes(F32)]
Floats2 = Annotated[Floats, rank(2)]
Floats3 = Annotated[Floats, rank(3)]
CODES = {Q8: 27, Q8S: 27}
ToByte = Annotated[Type, Kind(CODES, output="type")]


def lies_along(own: Shape, of: Shape, axis: int, block: int) -> bool:
    """Whether a scale or a zero point of this shape belongs to a tensor of that one."""
    if all(known(n) and n == 1 for n in own) or not -len(of) <= axis < len(of):
        return all(n == 1 for n in own)
    axis %= len(of)
    if not block:
        return len(own) == 1 and own[0] == of[axis]
    return len(own) == len(of) and all(
        n == (-(-m // block) if i == axis else m) for i, (n, m) in enumerate(zip(own, of, strict=True)))


@composite(ALL, SCALED, OFFSET)
def QUANTIZE_LINEAR(x: T, scale: AnyT, zero: AnyT | None, axis: Int, block: Int, saturate: Bool, to: ToAny) -> To:
    """x / scale rounded to codes of a type, halves to even, + zero; integers saturate, narrow floats if wanted."""
    return Tensor(to, x.shape)


@composite(ALL, SCALED, OFFSET)
def DEQUANTIZE_LINEAR(x: T, scale: AnyT, zero: AnyT | None, axis: Int, block: Int, to: ToAny) -> To:
    """scale * (x - zero), x as it is stored."""
    return Tensor(to, x.shape)


@composite(ALL)
def QUANTIZE_EVEN(x: T, to: ToByte) -> To:
    """clamp(zero + round(x / scale)) on the grid of the output, halves rounded to even."""
    return Tensor(to, x.shape)


@composite(CODES)
def RELABEL(x: T) -> T:
    """The same bytes on another grid."""
    return x.free(x.shape)


# Host operations.
@host(60510, CODES, MATRICES,
      Rule("the columns of x are as many as the rows of y", lambda x, y: x.shape[-1] == y.shape[-2]))
def MATMUL_INTEGER(x: T, y: Codes, zx: Codes | None, zy: Codes | None) -> Ints:
    """(x - zx) @ (y - zy) in 32 bits, leading dimensions broadcast; zx and zy are numbers, or broadcast."""
    return Tensor(I32, (*broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]))


@host(60511, CODES, Rule("w is as deep as x / groups", lambda x, w, groups: w.shape[1] * groups == x.shape[1]),
      Rule("groups divides the filters", lambda w, groups: w.shape[0] % groups == 0),
      Rule("pads, strides and dilations are those of w", lambda w, pads, strides, dilations:
           len(pads.ints()) == 2 * (w.rank - 2) and len(strides.ints()) == len(dilations.ints()) == w.rank - 2))
def CONV_INTEGER(x: T, w: Codes, zx: Codes | None, zw: Codes | None, pads: Ints1, strides: Ints1, dilations: Ints1,
                 groups: Positive) -> Ints:
    """The sum of (x - zx) * (w - zw) over each window in 32 bits; x [n, c, ...], w [out, c / groups, ...]."""
    return Tensor(I32, (x.shape[0], w.shape[0], *slid(
        x.shape[2:], w.shape[2:], pads.ints(), strides.ints(), dilations.ints())))


@host(60512, {F32: 27}, Rule("w and r are [directions, inputs or units, 4 * units]", lambda x, w, r:
                             w.shape == (r.shape[0], x.shape[2], 4 * r.shape[1]) and r.shape[2] == w.shape[2]),
      outs=("y", "h_out", "c_out"))
def DYNAMIC_QUANTIZE_LSTM(x: T3, w: Codes3, r: Codes3, b: Floats2 | None, lengths: Ints1 | None, h: Floats3 | None,
                          c: Floats3 | None, peepholes: Floats2 | None, ws: Floats, wz: Codes, rs: Floats, rz: Codes,
                          backward: Bool, coupled: Bool, clip: Float) -> tuple[T, T, T]:
    """LSTM in ONNX's order of gates, i, o, f, c; x as a whole and h in each step are brought to bytes."""
    several, units, _ = r.shape
    last = x.free((several, x.shape[1], units))
    return x.free((x.shape[0], several, x.shape[1], units)), last, last
