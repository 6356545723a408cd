"""Sparse constants."""
from __future__ import annotations

from ..kinds import EXPERIMENTAL, T1, Ints1, T
from ..schema import Rule, op
from ..types import B8, F16, F32, I32, Q8, Q8S, Q16A, Q16S, QS, given

DENSE, SPARSE_CSR = 0, 1
SPARSE = dict.fromkeys((F16, F32, QS, Q8, Q8S, B8, I32, Q16S, Q16A), EXPERIMENTAL)


@op(SPARSE,
    Rule("order, formats and dims have one length, n + k", lambda order, formats, dims:
         order.shape == formats.shape == dims.shape),
    Rule("order is a permutation: axes first, block axes last", lambda order:
         sorted(order.ints()) == list(range(order.size))),
    Rule("formats are 0 DENSE or 1 SPARSE_CSR", lambda formats: set(formats.ints()) <= {DENSE, SPARSE_CSR}),
    Rule("there is a pair (segments, indices) per traversed axis", lambda order, pairs:
         len(pairs) == 2 * order.size),
    Rule("a pair is present exactly where its axis is SPARSE_CSR", lambda formats, pairs: all(
        given(p) == (formats.ints()[i // 2] == SPARSE_CSR) for i, p in enumerate(pairs))))
def DENSIFY(x: T1, order: Ints1, block_map: Ints1 | None, formats: Ints1, dims: Ints1,
            *pairs: Ints1 | None) -> T:
    """x, the stored elements in traversal order, spread out; dims are sizes in that order too."""
    axes, sizes = order.ints(), dims.ints()
    blocks = block_map.ints() if given(block_map) else ()
    n = len(axes) - len(blocks)
    shape = dict(zip(axes[:n], sizes[:n], strict=True))
    for block, size in zip(axes[n:], sizes[n:], strict=True):
        shape[blocks[block - n]] *= size
    return x.like(tuple(shape[axis] for axis in range(n)))
