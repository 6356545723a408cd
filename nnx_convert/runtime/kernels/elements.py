"""How an element-by-element function runs on each kind of tensor.

Floats and integers run the function itself, cut so that several passes stay in the cache; float16 runs it in
float32; bytes look the answer up; 16-bit integers look it up or compute it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...types import Array, Shape, Tensor
from ..cuts import CHUNK, cuts, period, repeats
from ..kernel import Run, Site
from .quantized import One, Two
from .tables import by_real, exactly, looked_up, on_grid, paired, patterns, raw, reals

#: `step(out, *inputs, *scratch)`, all of shapes that broadcast.
Step = Callable[..., Any]
#: Of the inputs and the output, all quantised: the function of raw values.
Exact1 = Callable[[Tensor, Tensor], One]
Exact2 = Callable[[Tensor, Tensor, Tensor], Two]
#: Float elements handled at a time: with a second input and scratch they fill half a core's second-level cache.
PIECE = 1 << 16


def _aligned(tensors: Sequence[Tensor], full: Shape, size: int) -> tuple[int, dict[int, Array]] | None:
    """The width of rows that every input lines up with, and the small constants repeated to it.

    None where an input broadcasts otherwise.
    """
    widths = {i: period(t.shape, full) for i, t in enumerate(tensors) if t.size != size}
    if any(w is None or tensors[i].data is None for i, w in widths.items()):
        return None
    found = {w for w in widths.values() if w is not None and w > 1}
    if len(found) > 1:
        return None
    width = max(found, default=1)
    count = repeats(width) if found else 1
    tiled: dict[int, Array] = {}
    for i in widths:
        flat = np.asarray(tensors[i].data).reshape(-1)
        tiled[i] = np.tile(flat, count) if flat.size > 1 else flat
    return width * count, tiled


def in_pieces(site: Site, tensors: Sequence[Tensor], step: Step, *, temps: int = 0, passes: int = 2,
              piece: int = PIECE) -> Run:
    """`run(out, *inputs, *scratch)` of a step over tensors of one width of element; `temps` are its scratch arrays.

    Each piece of the output is written after its inputs were read for the last time, if the step does so.
    """
    full, size, dtype = site.out.shape, site.out.size, tensors[0].type.dtype
    found = _aligned(tensors, full, size)
    if found is None or not found[1] and passes == 1:
        for _ in range(temps):
            site.scratch(full, dtype)
        return step
    width, tiled = found
    for _ in range(temps):
        site.scratch((min(size, max(piece, width)),), dtype)

    def run(out: Array, *given: Array) -> None:
        to = out.reshape(-1)
        flat = [tiled[i] if i in tiled else x.reshape(-1) for i, x in enumerate(given[:len(tensors)])]
        for part, use in cuts(size, width, piece):
            rows = (-1, use.stop)
            ins = (f[use] if i in tiled else f[part].reshape(rows) for i, f in enumerate(flat))
            step(to[part].reshape(rows), *ins,
                 *(w[:part.stop - part.start].reshape(rows) for w in given[len(tensors):]))
    return run


def widened(step: Step, temps: int = 0) -> Run:
    """A step on float16, computed in float32."""
    def run(out: Array, *given: Array) -> None:
        made = np.empty(out.shape, np.float32)
        step(made, *(x.astype(np.float32) for x in given), *(np.empty_like(made) for _ in range(temps)))
        np.copyto(out, made, casting="unsafe")
    return run


def called(step: Step, temps: int = 0) -> Callable[..., Array]:
    """A step as a function of arrays that broadcast."""
    def function(*given: Array) -> Array:
        made = np.empty(np.broadcast_shapes(*(x.shape for x in given)), given[0].dtype)
        step(made, *given, *(np.empty_like(made) for _ in range(temps)))
        return made
    return function


def unary(site: Site, x: Tensor, step: Step, *, exact: Exact1 | None = None, temps: int = 0,
          passes: int = 2, ints: bool = False) -> Run:
    """The run of a function of one tensor.

    `exact`: of x and the output, both quantised, the function of raw values; without one the step is tabulated.
    `ints`: whether the step means something on plain integers.
    """
    out = site.out
    if on_grid(x) and on_grid(out):
        if exact is None:
            return looked_up(by_real(x, out, exactly(called(step, temps))))
        return looked_up(np.asarray(exact(x, out)(patterns(x)), out.type.dtype))
    plainly(x, out, ints=ints)
    if x.type.dtype == np.float16:
        return widened(step, temps)
    return in_pieces(site, (x,), step, temps=temps, passes=passes)


def binary(site: Site, x: Tensor, y: Tensor, step: Step, *, exact: Exact2 | None = None,
           temps: int = 0, passes: int = 1, ints: bool = True) -> Run:
    """The run of a function of two tensors; see `unary`."""
    out = site.out
    if on_grid(x) and on_grid(y) and on_grid(out):
        return by_raw(site, x, y, exact(x, y, out) if exact else _through_real(x, y, out, called(step, temps)))
    plainly(x, y, out, ints=ints)
    if x.type.dtype == np.float16:
        return widened(step, temps)
    return in_pieces(site, (x, y), step, temps=temps, passes=passes)


def plainly(*tensors: Tensor, ints: bool = True) -> None:
    """Raises `RunError` where the types are not one, or integers that the function says nothing of."""
    kinds = dict.fromkeys(t.type for t in tensors)
    if len(kinds) > 1 or tensors[0].type.dtype.kind not in ("iufcb" if ints else "fc"):
        raise RunError("there is no kernel for " + " with ".join(t.name for t in kinds))


def _through_real(x: Tensor, y: Tensor, out: Tensor, function: Callable[..., Array]) -> Two:
    return lambda a, b: raw(out, function(reals(x, a), reals(y, b)))


def by_raw(site: Site, x: Tensor, y: Tensor, exact: Two) -> Run:
    """The run of a function of raw integers: a table of all pairs of bytes, or computed where they are wider."""
    dtype = site.out.type.dtype
    if x.type.dtype.itemsize == y.type.dtype.itemsize == 1:
        return paired(site, x, y, np.asarray(exact(patterns(x)[:, None], patterns(y)), dtype))

    def step(out: Array, x: Array, y: Array) -> None:
        np.copyto(out, exact(x, y), casting="unsafe")
    return in_pieces(site, (x, y), step, piece=CHUNK)


def compared(site: Site, x: Tensor, y: Tensor, ufunc: np.ufunc, exact: tuple[One, One] | None) -> Run:
    """The run of a comparison into truth values, or into a mask of bytes 0 and 1.

    `exact`: what to compare instead of raw values where x and y are quantised.
    """
    if exact and on_grid(x) and on_grid(y):
        left, right = exact

        def truth(a: Array, b: Array) -> Array:
            return np.asarray(ufunc(left(a), right(b)))
        return by_raw(site, x, y, truth)

    def step(out: Array, x: Array, y: Array) -> None:
        ufunc(x, y, out=out.view(np.bool_))
    return in_pieces(site, (x, y), step, passes=1)
