"""Sparse constants: the stored elements put where they belong."""
from __future__ import annotations

from math import prod

import numpy as np

from ...errors import RunError
from ...ops import sparse
from ...types import Array, ZERO_POINTS, Quant, Tensor, Undecided
from ..kernel import NeedsValue, Run, Site, kernel


@kernel(sparse.DENSIFY)
def DENSIFY(site: Site, x: Tensor, order: Tensor, block_map: Tensor | None, formats: Tensor, dims: Tensor,
            pairs: tuple[Tensor | None, ...]) -> Run:
    args = {"x": x, "order": order, "block_map": block_map, "formats": formats, "dims": dims, "pairs": pairs}
    try:
        # A fold comes here with lists that no rule has seen: positions must lie in the output whatever they say.
        broken = next((rule.text for rule in sparse.DENSIFY.rules if not rule.test(args)), None)
    except Undecided:
        raise NeedsValue from None
    if broken:
        raise RunError(broken, "DENSIFY")
    at = positions(order, block_map, formats, dims, pairs)
    zero = x.quant.zero if isinstance(x.quant, Quant) and x.type in ZERO_POINTS else 0

    def run(out: Array, x: Array, *lists: Array) -> None:
        flat = out.reshape(-1)
        flat.fill(zero)
        flat[at] = x
    return run


def positions(order: Tensor, block_map: Tensor | None, formats: Tensor, dims: Tensor,
              pairs: tuple[Tensor | None, ...]) -> Array:
    """The place of each stored element in the flattened dense tensor. [stored] intp."""
    at = np.zeros(1, np.intp)
    steps = strides(order, block_map, dims)
    for level, (format_, size) in enumerate(zip(formats.ints(), dims.ints(), strict=True)):
        if format_ == sparse.DENSE:
            at = (at[:, None] + np.arange(size, dtype=np.intp) * steps[level]).reshape(-1)
        else:
            segments, indices = (sparse.values(p) for p in pairs[2 * level:2 * level + 2])
            at = np.repeat(at, np.diff(segments)) + indices.astype(np.intp) * steps[level]
    return at


def strides(order: Tensor, block_map: Tensor | None, dims: Tensor) -> list[int]:
    """How far apart two neighbours of each level are in the flattened dense tensor.

    A dimension that is divided into blocks counts whole blocks; the block dimension counts within one.
    """
    axes, blocks = order.ints(), sparse.blocks_of(block_map)
    shape = sparse.dense_shape(order, block_map, dims)
    sizes = dict(zip(axes, dims.ints(), strict=True))
    n = len(shape)
    step = [prod(shape[axis + 1:]) for axis in range(n)]
    within = [step[axis] for axis in blocks]
    for block, axis in enumerate(blocks):
        step[axis] *= sizes[n + block]
    return [(step + within)[axis] for axis in axes]
