"""Products of matrices, and their determinants."""
from __future__ import annotations

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import functions as f, host
from ....ops.linear import LINEAR
from ....ops.shape import TRANSPOSE
from ....types import F16, F32
from ..importer import Op
from ..registry import imports
from .elementwise import add, times

#: What LINEAR's NNAPI operation multiplies.
DENSE = (F32, F16)


def turned(g: Op, x: Value) -> Value:
    """x with its last two axes exchanged."""
    n = g.rank(x)
    return g(TRANSPOSE, x, [*range(n - 2), n - 1, n - 2])


def product(g: Op, x: Value, y: Value, adj_x: bool = False, adj_y: bool = False) -> Value:
    """x @ y, the ranks made equal; by a constant matrix a LINEAR."""
    if g.known(y) is not None and g.rank(y) == 2 and y.type in DENSE and not adj_x:
        return linear(g, x, y if adj_y else turned(g, y))
    rank = max(g.rank(x), g.rank(y))
    x, y = (g.reshape(v, (1,) * (rank - g.rank(v)) + g.shape(v)) for v in (x, y))
    return g(host.MATMUL, x, y, adj_x=adj_x, adj_y=adj_y)


def linear(g: Op, x: Value, w: Value, b: Value | None = None, flat: int = 1) -> Value:
    """x @ w.T + b for a constant w [units, ..., depth, ...] whose last `flat` axes are those of x that are summed."""
    units = g.shape(w)[:g.rank(w) - flat]
    return g(LINEAR, x, w, b if b is not None else g.const(np.zeros(units, x.type.dtype), x.type), flat=flat)


@imports(arithmetic=True)
def MatMul(g: Op, x: Value, y: Value) -> Value:
    """A vector is a row on the left, a column on the right, and its axis is gone from the result."""
    if not g.rank(x) or not g.rank(y):
        raise FormatError("multiplies a scalar")
    row, column = g.rank(x) == 1, g.rank(y) == 1
    left = g.reshape(x, (1, *g.shape(x))) if row else x
    found = product(g, left, g.reshape(y, (*g.shape(y), 1)) if column else y)
    if not row and not column:
        return found
    shape = g.shape(found)
    kept = shape[:-2] + (() if row else shape[-2:-1]) + (() if column else shape[-1:])
    return g.reshape(found, kept)


@imports(until=6, arithmetic=True)
def Gemm(g: Op, a: Value, b: Value, c: Value, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0, broadcast: int = 0) -> Value:
    return gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@imports("Gemm", since=7, arithmetic=True)
def gemm(g: Op, a: Value, b: Value, c: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0) -> Value:
    """alpha * a @ b + beta * c; what is constant is multiplied out beforehand."""
    if g.rank(a) != 2 or g.rank(b) != 2:
        raise FormatError("multiplies what are no matrices")
    added = None if c is None or beta == 0 else times(g, c, beta)
    if g.known(b) is None or b.type not in DENSE:
        found = times(g, product(g, a, b, bool(transA), bool(transB)), alpha)
        return found if added is None else add(g, found, added)
    w = times(g, b if transB else turned(g, b), alpha)
    bias = None if added is None else bias_of(g, added, g.shape(w)[0])
    found = linear(g, turned(g, a) if transA else a, w, bias)
    return found if added is None or bias is not None else add(g, found, added)


def bias_of(g: Op, c: Value, units: int) -> Value | None:
    """A constant as one element per unit, where it is the same for all rows; None where it is not."""
    data = g.known(c)
    if data is None or not (data.size == 1 or data.shape[-1:] == (units,) == (data.size,)):
        return None
    return g.const(np.broadcast_to(data.reshape(-1), (units,)).copy(), c.type)


@imports(arithmetic=True)
def Det(g: Op, x: Value) -> Value:
    found = g(f.DETERMINANT, x)
    return found if g.rank(x) > 2 else g.scalar(found)
