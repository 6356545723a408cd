"""Convolutions over any number of axes, channels before them: what NNAPI's rows have no shape for.

x is [n, channels, *sizes]; pads are the amounts before each of those axes, then those after.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import Ints1, Positive, T, rank, window
from ..schema import Rule, host
from ..types import Shape, given, product
from .host import ALL, AnyT

Image = Annotated[T, rank(3, 8)]
SLIDES = Rule("pads are two for each axis behind the channels, strides and dilations one, positive",
              lambda x, pads, strides, dilations: pads.shape == (2 * (x.rank - 2),) and
              strides.shape == dilations.shape == (x.rank - 2,) and
              all(n > 0 for n in (*strides.ints(), *dilations.ints())))
GROUPS = Rule("w is as deep as x / groups, and groups divides its filters", lambda x, w, groups:
              w.rank == x.rank and w.shape[1] * groups == x.shape[1] and w.shape[0] % groups == 0)


def slid(sizes: Shape, kernel: Shape, pads: Shape, strides: Shape, dilations: Shape) -> Shape:
    """Positions of a kernel along each axis."""
    ends = zip(pads[:len(sizes)], pads[len(sizes):], strict=True)
    return tuple(window(n, k, s, d, p) for n, k, s, d, p in
                 zip(sizes, kernel, strides, dilations, ends, strict=True))


def scattered(sizes: Shape, kernel: Shape, pads: Shape, strides: Shape, dilations: Shape) -> Shape:
    """Sizes that a kernel moved over `sizes` positions covers, less the pads."""
    heads, tails = pads[:len(sizes)], pads[len(sizes):]
    return tuple((n - 1) * s + (k - 1) * d + 1 - a - b for n, k, s, d, a, b in
                 zip(sizes, kernel, strides, dilations, heads, tails, strict=True))


@host(60590, ALL, SLIDES, GROUPS)
def CONV_ND(x: Image, w: AnyT, b: AnyT | None, pads: Ints1, strides: Ints1, dilations: Ints1, groups: Positive) -> T:
    """CONV_2D over all axes behind the channels, w [out, in / groups, *kernel]."""
    return x.free((x.shape[0], w.shape[0], *slid(
        x.shape[2:], w.shape[2:], pads.ints(), strides.ints(), dilations.ints())))


@host(60591, ALL, SLIDES, Rule("w has a filter for each channel of x, which groups divides", lambda x, w, groups:
                               w.rank == x.rank and w.shape[0] == x.shape[1] and w.shape[0] % groups == 0))
def TRANSPOSE_CONV_ND(x: Image, w: AnyT, b: AnyT | None, pads: Ints1, strides: Ints1, dilations: Ints1,
                      groups: Positive) -> T:
    """TRANSPOSE_CONV_2D over all axes behind the channels, w [in, out / groups, *kernel]; pads may be negative."""
    return x.free((x.shape[0], w.shape[1] * groups, *scattered(
        x.shape[2:], w.shape[2:], pads.ints(), strides.ints(), dilations.ints())))


@host(60592, ALL, SLIDES, GROUPS, Rule("x has rank 4", lambda x: x.rank == 4),
      Rule("offset has a row and a column for each cell of the kernel and offset group", lambda w, offset,
           offset_groups: offset.shape[1] == 2 * offset_groups * product(w.shape[2:])),
      Rule("mask has a number for each of them", lambda w, mask, offset_groups:
           not given(mask) or mask.shape[1] == offset_groups * product(w.shape[2:])))
def DEFORM_CONV(x: Image, w: AnyT, offset: AnyT, b: AnyT | None, mask: AnyT | None, pads: Ints1, strides: Ints1,
                dilations: Ints1, groups: Positive, offset_groups: Positive) -> T:
    """CONV_2D whose kernel's cells are moved by offset at each position, x being interpolated, times mask."""
    return x.free((x.shape[0], w.shape[0], *offset.shape[2:]))


@host(60593, ALL, Rule("x is [n, channels * cells of the kernel, positions]", lambda x, kernel:
                       x.rank == 3 and x.shape[1] % product(kernel.ints()) == 0),
      Rule("strides and dilations are positive", lambda strides, dilations:
           all(n > 0 for n in (*strides.ints(), *dilations.ints()))),
      Rule("x has the positions of the kernel over sizes", lambda x, sizes, kernel, pads, strides, dilations:
           x.shape[2] == product(slid(sizes.ints(), kernel.ints(), pads.ints(), strides.ints(), dilations.ints()))))
def COL2IM(x: T, sizes: Ints1, kernel: Ints1, pads: Ints1, strides: Ints1, dilations: Ints1) -> T:
    """Columns of x added up where a kernel's cells lie on an image of these sizes."""
    return x.like((x.shape[0], x.shape[1] // product(kernel.ints()), *sizes.ints()))
