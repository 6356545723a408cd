"""Vectors of integers: bytes widened, products of neighbours summed, sums kept within bounds."""
from __future__ import annotations

from .ir import Function, mangled, number, parts, vector, width
from .machine import Machine

#: The intrinsics that multiply neighbours of 16 bits and add them, by how many sums there are.
PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
#: An integer of 32 bits with the sign alone.
SIGN = -1 << 31


def bounded(f: Function, type: str, x: str, low: int, high: int) -> str:
    """x within low..high, signed."""
    for name, bound in (("smax", low), ("smin", high)):
        x = f.call(type, f"llvm.{name}.{mangled(type)}", (type, x), (type, number(type, bound)))
    return x


def clipped(f: Function, type: str, x: str, low: int, high: int, signed: bool) -> str:
    """Bytes within low..high, where these are not all bytes there are."""
    least, most = (-128, 127) if signed else (0, 255)
    for name, bound, end in (("max", low, least), ("min", high, most)):
        if bound != end:
            x = f.call(type, f"llvm.{'su'[not signed]}{name}.{mangled(type)}", (type, x), (type, number(type, bound)))
    return x


def widened(f: Function, lanes: int, x: str, signed: bool, element: str = "i32") -> str:
    """Bytes as wider integers."""
    return f.let(f"{'sext' if signed else 'zext'} {vector(lanes, 'i8')} {x} to {vector(lanes, element)}")


def centred(f: Function, lanes: int, x: str, signed: bool, zero: int) -> str:
    """Bytes as integers of 32 bits less their zero point."""
    wide = widened(f, lanes, x, signed)
    kind = vector(lanes, "i32")
    return f.let(f"sub {kind} {wide}, {number(kind, zero)}") if zero else wide


def signed_like(f: Function, lanes: int, size: str, x: str) -> str:
    """FLOAT32 magnitudes with the signs of integers of 32 bits."""
    whole, real = vector(lanes, "i32"), vector(lanes)
    sign = f.let(f"and {whole} {x}, {number(whole, SIGN)}")
    bits = f.let(f"or {whole} {sign}, {f.let(f'bitcast {real} {size} to {whole}')}")
    return f.let(f"bitcast {whole} {bits} to {real}")


def pairs(f: Function, lanes: int, total: str, x: str, w: str) -> str:
    """total + x0 * w0 + x1 * w1, of 16 bits each, in each of so many lanes."""
    kind, half = vector(lanes, "i32"), vector(2 * lanes, "i16")
    if f.machine.sums_pairs:
        return f.call(kind, f"llvm.x86.avx512.vpdpwssd.{lanes * 32}", (kind, total), (half, x), (half, w))
    if f.machine.x86:
        return f.let(f"add {kind} {total}, {f.call(kind, PAIRS[lanes], (half, x), (half, w))}")
    wide = vector(2 * lanes, "i32")
    a, b = (f.let(f"sext {half} {v} to {wide}") for v in (x, w))
    product = f.let(f"mul {wide} {a}, {b}")
    even, odd = (shuffled(f, wide, product, product, list(range(first, 2 * lanes, 2))) for first in (0, 1))
    return f.let(f"add {kind} {total}, {f.let(f'add {kind} {even}, {odd}')}")


def lift(machine: Machine, signed: bool) -> int:
    """How far above themselves bytes lie as `quads` takes them: unsigned on x86, signed on aarch64."""
    return 128 * (signed - (not machine.x86))


def quads(f: Function, lanes: int, total: str, x: str, w: str) -> str:
    """total + the products of four bytes each, x's lifted and w's signed, in each of so many lanes."""
    kind, four = vector(lanes, "i32"), vector(4 * lanes, "i8")
    if not f.machine.x86:
        return f.call(kind, "llvm.aarch64.neon.sdot.v4i32.v16i8", (kind, total), (four, x), (four, w))
    return f.call(kind, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}", (kind, total), (four, x), (four, w))


def flipped(f: Function, type: str, x: str) -> str:
    """Signed bytes as unsigned ones, 128 added to each, or the other way; in vectors of integers of any width."""
    bits = int(mangled(type).rpartition("i")[2])
    return f.let(f"xor {type} {x}, {number(type, int.from_bytes(bytes([128]) * (bits // 8), 'little', signed=True))}")


#: Bytes that x86 shuffles and packs by themselves in a wider vector.
STRETCH = 16
#: The intrinsics that cut integers of 32 bits to 16 and those of 16 to 8, by how many 32-bit ones a vector holds.
CUT = {4: ("llvm.x86.sse2.packssdw.128", "llvm.x86.sse2.pack{}swb.128"),
       8: ("llvm.x86.avx2.packssdw", "llvm.x86.avx2.pack{}swb"),
       16: ("llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.pack{}swb.512")}


def woven(f: Function, type: str, a: str, b: str, high: bool) -> str:
    """The elements of two vectors in turn: of each stretch of 16 bytes the lower half, or the higher one."""
    lanes, element = parts(type)
    size = STRETCH * 8 // width(element)
    which = [at + n + (size // 2 if high else 0) + other * lanes
             for at in range(0, lanes, size) for n in range(size // 2) for other in (0, 1)]
    return shuffled(f, type, a, b, which)


def shuffled(f: Function, type: str, a: str, b: str, which: list[int]) -> str:
    """Elements of two vectors by their numbers."""
    mask = ", ".join(f"i32 {n}" for n in which)
    return f.let(f"shufflevector {type} {a}, {type} {b}, <{len(which)} x i32> <{mask}>")


def halved(f: Function, lanes: int, a: str, b: str) -> str:
    """Two vectors of 32 bits as one of 16, saturated: of each stretch first a's elements, then b's."""
    kind, half = vector(lanes, "i32"), vector(2 * lanes, "i16")
    if f.machine.x86:
        return f.call(half, CUT[lanes][0], (kind, a), (kind, b))
    low, high = (f.let(f"trunc {kind} {bounded(f, kind, v, -1 << 15, (1 << 15) - 1)} to {vector(lanes, 'i16')}")
                 for v in (a, b))
    return shuffled(f, vector(lanes, "i16"), low, high, list(range(2 * lanes)))


def quartered(f: Function, lanes: int, a: str, b: str, signed: bool) -> str:
    """Two vectors of 16 bits as one of bytes, saturated: of each stretch first a's elements, then b's."""
    half = vector(2 * lanes, "i16")
    if not f.machine.x86:
        ends = (-128, 127) if signed else (0, 255)
        low, high = (f.let(f"trunc {half} {bounded(f, half, v, *ends)} to {vector(2 * lanes, 'i8')}") for v in (a, b))
        return shuffled(f, vector(2 * lanes, "i8"), low, high, list(range(4 * lanes)))
    return f.call(vector(4 * lanes, "i8"), CUT[lanes][1].format("s" if signed else "u"), (half, a), (half, b))
