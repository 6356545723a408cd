"""Powers of vectors of FLOAT32, as C's `powf` has them: within 1 unit in the last place, where IEEE 754 says what, so.

The logarithm times the exponent is made in FLOAT64, whose digits beyond those of the result are as many as that product
takes; what is too large or too small for FLOAT32 becomes infinite, denormal or 0 when it is rounded.
"""
from __future__ import annotations

import math
from functools import cache

import numpy as np

from .ir import Function, number, parts, vector
from .mathematics import flags, horner, integers, select, size_of

#: Added to and taken from a number, it rounds it to an integer, which is in the low bits then.
ROUNDER = 1.5 * 2 ** 52
#: The bits of FLOAT64 behind its exponent; those of 1, those of 2 ** 52, and what is between those of sqrt 0.5 and 1.
DIGITS, ONE, COUNTER, UP = 52, 1023 << 52, 1075 << 52, 0x95F619980C433
#: Exponents of 2 beyond which FLOAT32 is infinite or 0, whatever the mantissa; FLOAT64 has them yet.
MOST = 1000.0
#: From here on all FLOAT32 are even integers.
EVEN = 2.0 ** 24


@cache
def log_terms(degree: int = 5) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of log2((1 + s) / (1 - s)) / s by squares of s, for numbers from
    sqrt 0.5 to sqrt 2."""
    at = _points((math.sqrt(2) - 1) / (math.sqrt(2) + 1))
    return tuple(float(v) for v in np.polyfit(at * at, 2 * np.arctanh(at) / at / math.log(2), degree))


@cache
def exp_terms(degree: int = 6) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (2 ** r - 1) / r for r from -0.5 to 0.5, and then 1."""
    at = np.concatenate([_points(0.5), -_points(0.5)])
    return (*(float(v) for v in np.polyfit(at, np.expm1(at * math.log(2)) / at, degree)), 1.0)


def _points(end: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Chebyshev's points between 0 and a bit beyond an end, those next to 0 left out."""
    return np.cos(np.linspace(0, np.pi * 0.49, 200)) * end * 1.001


def log2(f: Function, double: str, x: str) -> str:
    """The logarithm to base 2 of normal FLOAT64 above 0, within 1e-11 of it; of what else there is, anything."""
    whole = vector(parts(double)[0], "i64")
    bits = f.let(f"bitcast {double} {x} to {whole}")
    moved = f.let(f"add {whole} {bits}, {number(whole, UP)}")
    power = f.let(f"or {whole} {f.let(f'lshr {whole} {moved}, {number(whole, DIGITS)}')}, {number(whole, COUNTER)}")
    count = f.let(f"fsub {double} {f.let(f'bitcast {whole} {power} to {double}')}, {number(double, 2.0 ** 52 + 1023)}")
    high = f.let(f"and {whole} {moved}, {number(whole, -1 << DIGITS)}")
    near = f.let(f"add {whole} {f.let(f'sub {whole} {bits}, {high}')}, {number(whole, ONE)}")
    mantissa = f.let(f"bitcast {whole} {near} to {double}")
    less, more = (f.let(f"{word} {double} {mantissa}, {number(double, 1)}") for word in ("fsub", "fadd"))
    share = f.let(f"fdiv {double} {less}, {more}")
    series = horner(f, double, f.let(f"fmul {double} {share}, {share}"), log_terms())
    return f.fma(double, share, series, count)


def exp2(f: Function, double: str, x: str) -> str:
    """2 ** x for FLOAT64 up to `MOST`, within 1e-9 of it; of what is no number, anything."""
    whole = vector(parts(double)[0], "i64")
    shifted = f.let(f"fadd {double} {x}, {number(double, ROUNDER)}")
    rest = f.let(f"fsub {double} {x}, {f.let(f'fsub {double} {shifted}, {number(double, ROUNDER)}')}")
    series = horner(f, double, rest, exp_terms())
    power = f.let(f"shl {whole} {f.let(f'bitcast {double} {shifted} to {whole}')}, {number(whole, DIGITS)}")
    bits = f.let(f"add {whole} {f.let(f'bitcast {double} {series} to {whole}')}, {power}")
    return f.let(f"bitcast {whole} {bits} to {double}")


def pow(f: Function, type: str, x: str, y: str) -> str:
    """x ** y."""
    double, yes = vector(parts(type)[0], "double"), flags(type)
    size = size_of(f, type, x)
    found = _of_size(f, type, double, size, y)
    odd, whole = _parity(f, type, y)
    below = f.let(f"fcmp olt {type} {x}, {number(type, 0)}")
    none = f.let(f"and {yes} {below}, {f.let(f'fcmp one {type} {size}, {number(type, np.inf)}')}")
    none = f.let(f"and {yes} {none}, {f.let(f'xor {yes} {whole}, {number(yes, 1)}')}")
    found = select(f, type, none, number(type, np.nan), _signed(f, type, found, x, odd))
    found = select(f, type, f.let(f"fcmp uno {type} {x}, {y}"), f.let(f"fadd {type} {x}, {y}"), found)
    ones = f.let(f"or {yes} {f.let(f'fcmp oeq {type} {x}, {number(type, 1)}')}, "
                 f"{f.let(f'fcmp oeq {type} {y}, {number(type, 0)}')}")
    return select(f, type, ones, number(type, 1), found)


def _of_size(f: Function, type: str, double: str, size: str, y: str) -> str:
    """size ** y for a size from 0 up, y other than 0."""
    wide = f.let(f"fpext {type} {size} to {double}")
    log = log2(f, double, wide)
    for end, value in ((0.0, -np.inf), (np.inf, np.inf)):
        log = select(f, double, f.let(f"fcmp oeq {double} {wide}, {number(double, end)}"), number(double, value), log)
    product = f.let(f"fmul {double} {log}, {f.let(f'fpext {type} {y} to {double}')}")
    one = f.let(f"fcmp oeq {double} {wide}, {number(double, 1)}")
    product = select(f, double, one, number(double, 0), product)
    return f.let(f"fptrunc {double} {exp2(f, double, f.clamp(double, product, -MOST, MOST))} to {type}")


def _parity(f: Function, type: str, y: str) -> tuple[str, str]:
    """Whether y is an odd integer, as the sign's bit, and whether it is an integer; an infinity is an even one."""
    whole = integers(type)
    there = select(f, type, f.let(f"fcmp uno {type} {y}, {y}"), number(type, 0), f.clamp(type, y, -EVEN, EVEN))
    cut = f.let(f"fptosi {type} {there} to {whole}")
    same = f.let(f"fcmp oeq {type} {there}, {f.let(f'sitofp {whole} {cut} to {type}')}")
    return select(f, whole, same, f.let(f"shl {whole} {cut}, {number(whole, 31)}"), number(whole, 0)), same


def _signed(f: Function, type: str, found: str, x: str, odd: str) -> str:
    """A power with the sign of x where the exponent is odd."""
    whole = integers(type)
    sign = f.let(f"and {whole} {f.let(f'bitcast {type} {x} to {whole}')}, {odd}")
    bits = f.let(f"xor {whole} {f.let(f'bitcast {type} {found} to {whole}')}, {sign}")
    return f.let(f"bitcast {whole} {bits} to {type}")
