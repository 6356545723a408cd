"""Sines, cosines and tangents of vectors of FLOAT32, of any size: NaN where the angle is not finite.

An angle is brought between -pi / 4 and pi / 4 in FLOAT64; a large one, whose quarter turns FLOAT64 does not count,
by integers: its mantissa times the bits of 2 / pi that count at its exponent.
"""
from __future__ import annotations

from functools import cache

import numpy as np

from .ir import Function, number, parts, vector
from .mathematics import flags, horner, integers, negative, select, size_of
from .places import ITEM

#: Angles from here on are brought down by integers, and the exponent, as it is stored, of the smallest of them.
LARGE, EXPONENT = 2.0 ** 20, 127 + 20
#: Added to and taken from a number, it rounds it to an integer, which is in the low bits then.
ROUNDER = 1.5 * 2 ** 52
#: pi / 2: a number of few digits, so that a product with a count of quarter turns is exact, and the rest.
HIGH, LOW = 1.57079632673412561417, 6.07710050650619224932e-11
#: The bits of 2 / pi behind the point, from the highest down.
TWO_OVER_PI, DIGITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7, 264
#: Words for the exponents of large numbers, and the bits behind the point of a count of quarter turns.
COUNT, FRACTION = 128 - 20, 62


@cache
def words() -> tuple[int, ...]:
    """For each exponent of large numbers, what their mantissa (24 bits) is multiplied by for quarter turns modulo 4,
    in units of 2 ** -62."""
    shifts = (DIGITS - FRACTION - (n + EXPONENT - 127 - 23) for n in range(COUNT))
    return tuple((TWO_OVER_PI >> shift) & (1 << 64) - 1 for shift in shifts)


@cache
def sine_terms(degree: int = 3) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (sin(x) / x - 1) / x ** 2 by squares of x up to pi / 4."""
    at = _points()
    return tuple(float(v) for v in np.polyfit(at * at, (np.sin(at) / at - 1) / at ** 2, degree, w=at ** 2))


@cache
def cosine_terms(degree: int = 3) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (cos(x) - 1 + x ** 2 / 2) / x ** 4 by squares of x."""
    at = _points()
    rest = 2 * np.sin(at / 2) ** 2               # 1 - cos(x) without cancellation
    return tuple(float(v) for v in np.polyfit(at * at, (at ** 2 / 2 - rest) / at ** 4, degree, w=at ** 4))


def _points() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Chebyshev's points between 0.05 and pi / 4."""
    return (np.cos(np.linspace(0, np.pi, 200)) + 1) / 2 * (np.pi / 4 * 1.002 - 0.05) + 0.05


def _reduced(f: Function, type: str, x: str) -> tuple[str, str]:
    """An angle less quarter turns, and how many these were, modulo 4."""
    lanes, _ = parts(type)
    double, long, whole = vector(lanes, "double"), vector(lanes, "i64"), integers(type)
    wide = f.let(f"fpext {type} {x} to {double}")
    turns = f.let(f"fmul {double} {wide}, {number(double, 2 / np.pi)}")
    shifted = f.let(f"fadd {double} {turns}, {number(double, ROUNDER)}")
    count = f.let(f"fsub {double} {shifted}, {number(double, ROUNDER)}")
    rest = wide
    for part in (HIGH, LOW):
        rest = f.let(f"fsub {double} {rest}, {f.let(f'fmul {double} {count}, {number(double, part)}')}")
    angle = f.let(f"fptrunc {double} {rest} to {type}")
    quarters = f.let(f"trunc {long} {f.let(f'bitcast {double} {shifted} to {long}')} to {whole}")
    size = size_of(f, type, x)
    large = f.let(f"fcmp oge {type} {size}, {number(type, LARGE)}")
    some = f.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (flags(type), large))
    rooms = [f.room(kind) for kind in (type, type, whole)]

    def one(i: str, _: list[str]) -> None:
        place, *found = (f.at(room, f.mul(i, ITEM)) for room in rooms)
        value = f.load("float", place)

        def put() -> None:
            for kind, made, at in zip(("float", "i32"), _by_integers(f, value), found, strict=True):
                f.store(kind, made, at)
        size = f.call("float", "llvm.fabs.f32", ("float", value))
        f.when(f.let(f"fcmp oge float {size}, {number('float', LARGE)}"), put)

    def all_(_: str, now: list[str]) -> list[str]:
        """Lane by lane in memory: by a number that is no constant, a register has no lanes."""
        for kind, value, room in zip((type, type, whole), (x, *now), rooms, strict=True):
            f.store(kind, value, room)
        f.loop(0, lanes, 1, [], one)
        return [f.load(kind, room) for kind, room in zip((type, whole), rooms[1:], strict=True)]
    angle, quarters = f.loop(0, f.let(f"zext i1 {some} to i64"), 1, [(type, angle), (whole, quarters)], all_)
    return angle, quarters


def _by_integers(f: Function, x: str) -> tuple[str, str]:
    """The same of one large number, within 1e-11."""
    f.module.declare(f"@quarters = internal constant [{COUNT} x i64] [{', '.join(f'i64 {w}' for w in words())}]")
    bits = f.let(f"bitcast float {x} to i32")
    high = f.let(f"lshr i32 {bits}, 23")
    exponent = f.let(f"sub i32 {f.let(f'and i32 {high}, 255')}, {EXPONENT}")
    row = f.call("i32", "llvm.umin.i32", ("i32", exponent), ("i32", str(COUNT - 1)))
    at = f.let(f"zext i32 {row} to i64")
    word = f.load("i64", f.let(f"getelementptr i64, ptr @quarters, i64 {at}"), 0, 8)
    mantissa = f.let(f"or i32 {f.let(f'and i32 {bits}, {0x7FFFFF}')}, {0x800000}")
    turns = f.let(f"mul i64 {f.let(f'zext i32 {mantissa} to i64')}, {word}")
    count = f.let(f"lshr i64 {f.let(f'add i64 {turns}, {1 << FRACTION - 1}')}, {FRACTION}")
    rest = f.let(f"sub i64 {turns}, {f.let(f'shl i64 {count}, {FRACTION}')}")
    unit = number("double", np.pi / 2 / 2.0 ** FRACTION)
    part = f.let(f"fmul double {f.let(f'sitofp i64 {rest} to double')}, {unit}")
    angle, quarters = f.let(f"fptrunc double {part} to float"), f.let(f"trunc i64 {count} to i32")
    below = f.let(f"icmp slt i32 {bits}, 0")
    return (f.select(below, "float", f.let(f"fneg float {angle}"), angle),
            f.select(below, "i32", f.let(f"sub i32 0, {quarters}"), quarters))


def _both(f: Function, type: str, angle: str) -> tuple[str, str]:
    """Sine and cosine between -pi / 4 and pi / 4; of a zero, that zero."""
    square = f.let(f"fmul {type} {angle}, {angle}")
    cubic = f.let(f"fmul {type} {square}, {angle}")
    sine = f.fma(type, cubic, horner(f, type, square, sine_terms()), angle)
    sine = select(f, type, f.let(f"fcmp oeq {type} {angle}, {number(type, 0)}"), angle, sine)    # a zero keeps its sign
    high = f.let(f"fmul {type} {f.let(f'fmul {type} {square}, {square}')}, {horner(f, type, square, cosine_terms())}")
    half = f.fma(type, square, number(type, -0.5), number(type, 1))
    return sine, f.let(f"fadd {type} {half}, {high}")


def _turned(f: Function, type: str, x: str, more: int) -> str:
    """The sine of an angle and so many quarter turns."""
    whole = integers(type)
    angle, quarters = _reduced(f, type, x)
    count = f.let(f"add {whole} {quarters}, {number(whole, more)}")
    odd = _bit(f, whole, count, 1)
    sine, cosine = _both(f, type, angle)
    found = select(f, type, odd, cosine, sine)
    found = select(f, type, _bit(f, whole, count, 2), negative(f, type, found), found)
    return _finite(f, type, x, found)


def _bit(f: Function, whole: str, x: str, bit: int) -> str:
    return f.let(f"icmp ne {whole} {f.let(f'and {whole} {x}, {number(whole, bit)}')}, {number(whole, 0)}")


def _finite(f: Function, type: str, x: str, found: str) -> str:
    """No number where x is infinite or none."""
    odd = f.let(f"fcmp uno {type} {f.let(f'fsub {type} {x}, {x}')}, {number(type, 0)}")
    return select(f, type, odd, number(type, np.nan), found)


def sin(f: Function, type: str, x: str) -> str:
    """The sine, within 2 ulp below 2 ** 20."""
    return _turned(f, type, x, 0)


def cos(f: Function, type: str, x: str) -> str:
    """The cosine, within 2 ulp below 2 ** 20."""
    return _turned(f, type, x, 1)


def tan(f: Function, type: str, x: str) -> str:
    """The tangent, within 4 ulp below 2 ** 20."""
    whole = integers(type)
    angle, quarters = _reduced(f, type, x)
    sine, cosine = _both(f, type, angle)
    odd = _bit(f, whole, quarters, 1)
    above = select(f, type, odd, f.let(f"fneg {type} {cosine}"), sine)
    return _finite(f, type, x, f.let(f"fdiv {type} {above}, {select(f, type, odd, sine, cosine)}"))
