"""What NNAPI has no operation for.

Composites have no code: a rule expands each. Host operations belong to the extension
org.nnx_convert.host: the twin of every operation above, for types and rules NNAPI's own row does not
take, and a few that no row is near to. Their code is the extension's prefix and a number of 16 bits.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Annotated, Any

from ..kinds import (
    BROADCASTS, MATRICES, TOP_K, Any1, Bool, Bools, Fx, Int, Ints, Ints1, Mask, Natural, T, To, broadcast, broadcasts,
    scheme_pads, window)
from ..schema import HOST_CODES, OPS, OpDef, Rule, composite, host
from ..signature import Kind, Levels, Param
from ..types import B8, HOST_TYPES, I32, OBJECTS, Q8, REALS, STR, TENSORS, UNKNOWN, Quant, Tensor, Type, known
from .elementwise import both

ALL = dict.fromkeys((*TENSORS, *HOST_TYPES), 27)
#: The same for operations that texts go through.
TEXTS = ALL | {STR: 27}
#: Families of operations that move elements, texts as well, and operations of others that do.
MOVING = ("shape", "gather")
MOVERS = ("EQUAL", "NOT_EQUAL", "SELECT", "WHERE", "BROADCAST_TO", "GATHER_ND", "GATHER_BATCHED",
          "GATHER_ELEMENTS", "GATHER_ND_BATCHED", "REVERSE_SEQUENCE")
ToAny = Annotated[Type, Kind(ALL, output="type")]
AnyT = Annotated[Tensor, Kind(ALL)]
#: The scalar beside tensors of a type, where it is an element of them.
BESIDE = {t: {Type.FLOAT32 if t in REALS else Type.INT32: 27} for t in ALL}
#: Composites in the order of their twins' numbers, which files hold: a new one goes to the end.
COMPOSITES = (
    "LEAKY_RELU", "SQUARE", "CEIL", "COS", "ROUND", "RELU_0_TO_1", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD",
    "TRUNC_DIV", "TOPK_FIRST", "BROADCAST_TO", "WHERE", "MATMUL", "GATHER_BATCHED", "GATHER_ND", "TO_BOOL", "TO_MASK",
    "REQUANTIZE", "MATRIX_DIAG", "MATRIX_SET_DIAG", "REVERSE_SEQUENCE", "DYNAMIC_UPDATE_SLICE", "DILATE",
    "REDUCE_WINDOW", "SIGN", "GELU", "BUCKETIZE", "CUMSUM", "LINEAR", "ERF", "SOFTPLUS", "MISH", "TRUNC_MOD",
    "GATHER_ELEMENTS", "GATHER_ND_BATCHED", "TRILU", "ARGMAX_LAST", "ARGMIN_LAST",
    "QUANTIZE_LINEAR", "DEQUANTIZE_LINEAR", "QUANTIZE_EVEN", "RELABEL")


def _anything(p: Param, every: Levels, key: bool = False) -> Param:
    """The parameter, taking tensors of `every` type; `key` where its type still picks the row."""
    element = any(Type.INT32 in types for types in p.kind.by_key.values())
    if element and p.kind.groups(ALL) <= {"int", "float", "bool"}:
        return replace(p, kind=replace(p.kind, by_key=BESIDE | dict(p.kind.by_key)))
    if p.kind.output == "count" or "tensor" not in p.kind.groups(ALL):
        return p
    return replace(p, kind=Kind(every, is_key=key, output=p.kind.output), limits=())


def _any_params(params: tuple[Param, ...], every: Levels) -> tuple[Param, ...]:
    """The parameters, all of every type: the first key is the only one."""
    first = next((p.name for p in params if p.kind.is_key), None)
    return tuple(_anything(p, every, key=p.name == first) for p in params)


def _taken(of: OpDef) -> Levels:
    """The types that the host's version of an operation takes: graphs and movers hand on texts and lists as well."""
    moving = of.family in (*MOVING, "control") or of.name in MOVERS
    return ALL | dict.fromkeys(OBJECTS if moving else (), 27)


def _free(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Inference without dictated quantisation: the host meets any the output has."""
    @wraps(fn)
    def infer(*args: Any, **named: Any) -> Any:
        found = fn(*args, **named)
        if isinstance(found, Tensor):
            return Tensor(found.type, found.dims)
        return [t and Tensor(t.type, t.dims) for t in found]
    return infer


def _twin_code(of: OpDef) -> int:
    """The code of an operation's version on the host; composites count from 61000."""
    return HOST_CODES | (61000 + COMPOSITES.index(of.name) if of.code is None else of.code & 0xFFFF)


@cache
def host_twin(of: OpDef) -> OpDef:
    """The host's version of an operation: the same operands and shapes, any types, none of NNAPI's limits."""
    if of.host:
        return of
    every = _taken(of)
    forms = [replace(f, fn=_free(f.fn) if i == 0 else f.fn, override=_any_params(f.params, every))
             for i, f in enumerate(of.forms)]
    types = of.types if of.name == "WHILE" else every
    return replace(of, name=f"host.{of.name}", code=_twin_code(of), types=types, forms=forms,
                   rules=tuple(r for r in of.rules if not r.limit and r.until is None),
                   override=tuple(_anything(p, every) for p in of.returns), twin_of=of)


# Composites.
@composite(ALL)
def LEAKY_RELU(x: T, alpha: Fx) -> T:
    """x where x >= 0, else alpha * x."""
    return x.free(x.shape)


@composite(ALL)
def SQUARE(x: T) -> T:
    """x * x."""
    return x.free(x.shape)


@composite(ALL)
def CEIL(x: T) -> T:
    """-floor(-x)."""
    return x


@composite(ALL)
def COS(x: T) -> T:
    """cos(x), x in radians."""
    return x


@composite(ALL)
def ROUND(x: T) -> T:
    """x rounded to the nearest integer, halves to even."""
    return x


@composite(ALL)
def RELU_0_TO_1(x: T) -> T:
    """min(max(x, 0), 1)."""
    return x.free(x.shape)


@composite(ALL, BROADCASTS)
def SQUARED_DIFFERENCE(x: T, y: T) -> T:
    """(x - y) ** 2."""
    return both(x, y)


@composite(ALL, BROADCASTS)
def FLOOR_DIV(x: T, y: T) -> T:
    """floor(x / y)."""
    return both(x, y)


@composite(ALL, BROADCASTS)
def FLOOR_MOD(x: T, y: T) -> T:
    """x - floor(x / y) * y."""
    return both(x, y)


@composite(ALL, BROADCASTS)
def TRUNC_DIV(x: T, y: T) -> T:
    """x / y, on integers toward zero."""
    return both(x, y)


@composite(ALL, TOP_K, outs=("values", "indices"))
def TOPK_FIRST(x: T, k: Int) -> tuple[T, Ints]:
    """The k largest along the last axis, descending, the smaller index first among equals."""
    return x.like((*x.shape[:-1], k)), Tensor(I32, (*x.shape[:-1], k))


@composite(ALL, Rule("x and shape broadcast", lambda x, shape: broadcasts(x.shape, shape.ints())))
def BROADCAST_TO(x: T, shape: Ints1) -> T:
    """x repeated to a shape."""
    return x.like(broadcast(x.shape, shape.ints()))


@composite(ALL, BROADCASTS, Rule("cond broadcasts with x and y, or has rank 1 and chooses rows", lambda cond, x, y:
                                 broadcasts(cond.shape, broadcast(x.shape, y.shape)) or cond.rank == 1 and
                                 cond.shape[0] == x.shape[0]))
def WHERE(cond: Bools, x: T, y: T) -> T:
    """x where cond, else y, all three broadcast."""
    return x.free(broadcast(cond.shape, broadcast(x.shape, y.shape)))


@composite(ALL, MATRICES, Rule("the columns of x are as many as the rows of y", lambda x, y, adj_x, adj_y:
                               x.shape[-2 if adj_x else -1] == y.shape[-1 if adj_y else -2]))
def MATMUL(x: T, y: T, adj_x: Bool, adj_y: Bool) -> T:
    """x @ y, leading dimensions broadcast, either one transposed first where adj_ is set."""
    rows, cols = x.shape[-1 if adj_x else -2], y.shape[-2 if adj_y else -1]
    return x.free((*broadcast(x.shape[:-2], y.shape[:-2]), rows, cols))


@composite(ALL, Rule("x and indices share their first batch axes, which are before axis",
                     lambda x, indices, axis, batch: batch <= min(axis, indices.rank) and
                     x.shape[:batch] == indices.shape[:batch]))
def GATHER_BATCHED(x: T, indices: Ints, axis: Natural, batch: Natural) -> T:
    """GATHER for each index of the first `batch` axes, which x and indices share."""
    return x.like(x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1:])


@composite(ALL)
def GATHER_ND(x: T, indices: Ints) -> T:
    """x at the tuples along the last axis of indices."""
    return x.like((indices.shape[:-1] + x.shape[indices.shape[-1]:]) or (1,))


@composite({Q8: 27})
def TO_BOOL(x: T) -> Bools:
    """A QUANT8 mask as truth values."""
    return Tensor(B8, x.shape)


@composite({B8: 29})
def TO_MASK(x: T) -> Mask:
    """Truth values as a QUANT8 mask."""
    return Tensor(Q8, x.shape, Quant(1.0, 0))


@composite(ALL)
def REQUANTIZE(x: T, to: ToAny) -> To:
    """x on another quantisation grid."""
    return Tensor(to, x.shape)


# Host operations.
@host(60000, ALL)
def CONV_3D(x: T, w: Any1, b: Any1 | None, scheme: Int, sd: Int, sh: Int, sw: Int, act: Int, dd: Int = 1, dh: Int = 1,
            dw: Int = 1) -> T:
    """CONV_2D with a depth axis, x [n, d, h, w, c], w [kd, kh, kw, in, out]."""
    sizes = zip(x.shape[1:4], w.shape[:3], (sd, sh, sw), (dd, dh, dw), strict=True)
    found = (window(n, k, stride, dil, scheme_pads(scheme, n, k, stride, dil)) for n, k, stride, dil in sizes)
    return x.free((x.shape[0], *found, w.shape[4]))


@host(60001, ALL)
def SCATTER_ND(indices: Ints, updates: T, shape: Ints1) -> T:
    """Zeros of a shape with the updates added at the tuples of indices."""
    return updates.like(shape.ints())


@host(60002, ALL)
def NON_ZERO(x: T) -> AnyT:
    """The index tuples of the elements that are not zero."""
    return Tensor(Type.TENSOR_INT64, (UNKNOWN, x.rank))


@host(60003, ALL)
def RFFT(x: T, length: Ints1) -> AnyT:
    """The discrete Fourier transform of the last two axes, cut to the non-redundant half."""
    rows, cols = length.ints()
    return Tensor(Type.TENSOR_COMPLEX64, (*x.shape[:-2], rows, cols // 2 + 1 if known(cols) else UNKNOWN))


@host(60004, ALL)
def COMPLEX_ABS(x: T) -> AnyT:
    """The magnitudes of complex numbers."""
    return Tensor(Type.TENSOR_FLOAT32, x.shape)


@host(60005, ALL, BROADCASTS)
def ATAN2(x: T, y: T) -> T:
    """The angle of the point (y, x)."""
    return both(x, y)


@host(60006, ALL)
def SEGMENT_SUM(x: T, ids: Ints1) -> T:
    """Rows of x summed by ascending segment ids."""
    return x.like((UNKNOWN, *x.shape[1:]))


def op_of(code: int) -> OpDef | None:
    """The operation of a code, the host's twins included; None where there is none."""
    own, twins = _by_code(len(OPS))
    return host_twin(twins[code]) if code in twins else own.get(code)


@cache
def _by_code(_size: int) -> tuple[dict[int, OpDef], dict[int, OpDef]]:
    """Every operation by its code, and by that of its twin; a table that has grown since is read again."""
    return ({o.code: o for o in OPS.values() if o.code is not None},
            {_twin_code(o): o for o in OPS.values() if not o.host})
