"""Between types: Cast, CastLike and BitCast."""
from __future__ import annotations

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import casts, convert, elementwise as e, host, host_math
from ....types import (
    B8, BYTES, F16, F32, F64, I16, I32, I64, Q8, Q8S, Q16A, STR, U32, U64, Tensor, Type)
from ..constants import type_of
from ..importer import Op
from ..registry import imports
from ..tensors import KINDS, grid

#: Types that CAST, NNAPI's or the host's, takes as ONNX does, but for the way from floats to integers.
FLOATS, INTS = (F32, F16, F64), (I32, I64, I16, U32, U64, Q16A, *BYTES)
#: Integers that a float beyond them becomes some of, ONNX does not say which.
WHOLE = (I32, I64)
ROUNDINGS = {"nearest": casts.NEAREST, "up": casts.UP, "down": casts.DOWN}
BITS = {kind.type: kind.bits for kind in KINDS.values()}


def cast(g: Op, x: Value, to: Type, saturate: bool = True, round_mode: str = "up") -> Value:
    """x in another type by the rules of ONNX's Cast; itself where it has it. Raises `FormatError` on a round mode."""
    if x.type == to:
        return x
    if round_mode not in ROUNDINGS:
        raise FormatError(f"round_mode is {round_mode!r}, not one of {', '.join(ROUNDINGS)}")
    found = _cast(g, x, to, saturate, ROUNDINGS[round_mode])
    if x in g.session.contents and {x.type, to} <= {I32, I64}:
        g.session.contents[found] = g.session.contents[x]
    return found


def _cast(g: Op, x: Value, to: Type, saturate: bool, rounding: int) -> Value:
    out = Tensor(to, x.tensor.dims, grid(to))
    if to == B8 and x.type in (*FLOATS, *INTS):
        return g.elementwise(e.NOT_EQUAL, x, zero(g, x))
    if to in BYTES and x.type in (*FLOATS, *INTS):
        return byte(g, wrapped(g, cast(g, x, I32), to), out)
    if x.type == Q8S and to in (F32, F16, I32):        # CAST takes no signed bytes
        real = g.elementwise(convert.DEQUANTIZE, x, to=F16 if to == F16 else F32)
        return cast(g, real, to)
    if x.type in (B8, *INTS) and to in (*FLOATS, *INTS) or x.type in FLOATS and to in (*FLOATS, *WHOLE):
        return g.elementwise(convert.CAST, x, to=to, out=out)
    return g.elementwise(casts.CONVERT, x, to=to, saturate=saturate, rounding=rounding, out=out)


def byte(g: Op, x: Value, out: Tensor) -> Value:
    """INT32 that a byte holds as that byte."""
    if out.type == Q8:
        return g.elementwise(convert.CAST, x, to=Q8, out=out)
    return g.elementwise(convert.QUANTIZE, cast(g, x, F32), to=Q8S, out=out)


def zero(g: Op, x: Value) -> Value:
    """A zero of x's type, of rank 0."""
    return g.const(np.zeros((), x.type.dtype), x.type)


def wrapped(g: Op, x: Value, to: Type) -> Value:
    """INT32 as the integers of eight bits they are equal to modulo 256: NNAPI's cast would take the nearest."""
    modulus, low = g.const(np.array(256, np.int32)), g.const(np.array(-128, np.int32))
    if np.iinfo(to.dtype).min == 0:
        return g.elementwise(host.FLOOR_MOD, x, modulus)
    return g.elementwise(e.ADD, g.elementwise(
        host.FLOOR_MOD, g.elementwise(e.SUB, x, low, act=0), modulus), low, act=0)


@imports("Cast", until=5)
def cast_by_name(g: Op, x: Value, *, to: str) -> Value:
    found = next((kind.type for kind in KINDS.values() if kind.name == to), None)
    if found is None:
        raise FormatError(f"casts to {to!r}, which is no type")
    return cast(g, x, found)


@imports(since=6)
def Cast(g: Op, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(g, x, type_of(to), bool(saturate), round_mode)


@imports()
def CastLike(g: Op, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return cast(g, x, like.type, bool(saturate), round_mode)


@imports()
def BitCast(g: Op, x: Value, *, to: int) -> Value:
    found = type_of(to)
    if BITS[x.type] != BITS[found] or STR in (x.type, found):
        raise FormatError(f"reads {x.type.name} as {found.name}, which has another number of bits")
    if x.type == found:
        return x
    return g.elementwise(host_math.BITCAST, x, to=found, out=Tensor(
        found, x.tensor.dims, grid(found)))
