"""Inverse functions of angles, and hyperbolic ones, of vectors of FLOAT32; NaN outside of where they are defined."""
from __future__ import annotations

import math
from functools import cache

import numpy as np

from .ir import Function, mangled, number, parts, vector
from .mathematics import flags, horner, integers, select, signed, size_of
from .powers import MOST, exp2, log2

#: Below it a function is its argument, to the last digit of FLOAT32, or nearly.
SMALL = 2.0 ** -20
#: The tangent of pi / 8, and of 3 pi / 8: between them angles are brought nearer to 0.
NEAR, FAR = math.tan(math.pi / 8), math.tan(3 * math.pi / 8)


@cache
def atan_terms(degree: int = 5) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (atan(x) / x - 1) / x ** 2 by squares of x up to `NEAR`."""
    at = np.cos(np.linspace(0, np.pi * 0.45, 200)) * NEAR * 1.001
    return tuple(float(v) for v in np.polyfit(at * at, (np.arctan(at) / at - 1) / at ** 2, degree, w=at ** 2))


@cache
def asin_terms(degree: int = 6) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (asin(x) / x - 1) / x ** 2 by squares of x up to 0.5."""
    at = np.cos(np.linspace(0, np.pi * 0.45, 200)) * 0.5 * 1.001
    return tuple(float(v) for v in np.polyfit(at * at, (np.arcsin(at) / at - 1) / at ** 2, degree, w=at ** 2))


def _odd(f: Function, t: str, x: str, terms: tuple[float, ...]) -> str:
    """x + x ** 3 * a polynomial of its square."""
    square = f.let(f"fmul {t} {x}, {x}")
    cube = f.let(f"fmul {t} {square}, {x}")
    return f.fma(t, cube, horner(f, t, square, terms), x)


def _arc(f: Function, t: str, size: str) -> str:
    """The arc whose tangent is a size from 0 up."""
    far, middle = (f.let(f"fcmp ogt {t} {size}, {number(t, bound)}") for bound in (FAR, NEAR))
    one = number(t, 1)
    turned = f.let(f"fdiv {t} {number(t, -1)}, {size}")
    less, more = (f.let(f"{word} {t} {size}, {one}") for word in ("fsub", "fadd"))
    near = select(f, t, middle, f.let(f"fdiv {t} {less}, {more}"), size)
    begin = select(f, t, middle, number(t, math.pi / 4), number(t, 0))
    near, begin = select(f, t, far, turned, near), select(f, t, far, number(t, math.pi / 2), begin)
    return f.let(f"fadd {t} {begin}, {_odd(f, t, near, atan_terms())}")


def atan(f: Function, t: str, x: str) -> str:
    """atan(x), within 3 ulp."""
    return signed(f, t, _arc(f, t, size_of(f, t, x)), x)


def atan2(f: Function, t: str, y: str, x: str) -> str:
    """The angle of (x, y), within 4 ulp; zeros have signs, two infinities are alike."""
    high, wide = size_of(f, t, y), size_of(f, t, x)
    share = f.let(f"fdiv {t} {high}, {wide}")
    same = f.let(f"fcmp oeq {t} {high}, {wide}")                # 0 / 0 and infinity / infinity, too
    zero = f.let(f"fcmp oeq {t} {high}, {number(t, 0)}")
    share = select(f, t, same, number(t, 1), share)
    share = select(f, t, zero, high, share)
    arc = _arc(f, t, share)
    whole = integers(t)
    back = f.let(f"icmp slt {whole} {f.let(f'bitcast {t} {x} to {whole}')}, {number(whole, 0)}")
    arc = select(f, t, back, f.let(f"fsub {t} {number(t, math.pi)}, {arc}"), arc)
    none = f.let(f"fcmp uno {t} {x}, {y}")
    return select(f, t, none, f.let(f"fadd {t} {x}, {y}"), signed(f, t, arc, y))


def _asin_of(f: Function, t: str, size: str) -> tuple[str, str]:
    """The arc sine of a size up to 1 is twice a number less than a quarter turn, where that is large, or that number;
    and whether it is large."""
    large = f.let(f"fcmp ogt {t} {size}, {number(t, 0.5)}")
    half = f.let(f"fmul {t} {f.let(f'fsub {t} {number(t, 1)}, {size}')}, {number(t, 0.5)}")
    root = f.call(t, f"llvm.sqrt.{mangled(t)}", (t, half))
    return _odd(f, t, select(f, t, large, root, size), asin_terms()), large


def asin(f: Function, t: str, x: str) -> str:
    """asin(x), within 3 ulp."""
    found, large = _asin_of(f, t, size_of(f, t, x))
    twice = f.let(f"fmul {t} {found}, {number(t, -2)}")
    return signed(f, t, select(f, t, large, f.let(f"fadd {t} {twice}, {number(t, math.pi / 2)}"), found), x)


def acos(f: Function, t: str, x: str) -> str:
    """acos(x), within 3 ulp."""
    found, large = _asin_of(f, t, size_of(f, t, x))
    below = f.let(f"fcmp olt {t} {x}, {number(t, 0)}")
    twice = f.let(f"fmul {t} {found}, {number(t, 2)}")
    far = select(f, t, below, f.let(f"fsub {t} {number(t, math.pi)}, {twice}"), twice)
    near = f.let(f"fsub {t} {number(t, math.pi / 2)}, {signed(f, t, found, x)}")
    return select(f, t, large, far, near)


def _wide(f: Function, t: str, x: str) -> tuple[str, str]:
    """The type of as many FLOAT64, and numbers as such."""
    double = vector(parts(t)[0], "double")
    return double, f.let(f"fpext {t} {x} to {double}")


def _narrow(f: Function, t: str, x: str, logarithm: bool = False) -> str:
    double = vector(parts(t)[0], "double")
    x = f.let(f"fmul {double} {x}, {number(double, math.log(2))}") if logarithm else x
    return f.let(f"fptrunc {double} {x} to {t}")


def _logarithm(f: Function, t: str, of: str, x: str, size: str) -> str:
    """The logarithm of FLOAT64 as FLOAT32 with x's sign; what is infinite or none, and what is small, as it is."""
    double = vector(parts(t)[0], "double")
    found = signed(f, t, _narrow(f, t, log2(f, double, of), logarithm=True), x)
    plain = f.let(f"or {flags(t)} {f.let(f'fcmp olt {t} {size}, {number(t, SMALL)}')}, "
                  f"{f.let(f'fcmp ueq {t} {size}, {number(t, np.inf)}')}")
    return select(f, t, plain, x, found)


def asinh(f: Function, t: str, x: str) -> str:
    """asinh(x), within 1 ulp."""
    size = size_of(f, t, x)
    double, wide = _wide(f, t, size)
    square = f.fma(double, wide, wide, number(double, 1))
    root = f.call(double, f"llvm.sqrt.{mangled(double)}", (double, square))
    return _logarithm(f, t, f.let(f"fadd {double} {wide}, {root}"), x, size)


def atanh(f: Function, t: str, x: str) -> str:
    """atanh(x), within 1 ulp; infinite at 1."""
    size = size_of(f, t, x)
    double, wide = _wide(f, t, size)
    more, less = (f.let(f"{word} {double} {number(double, 1)}, {wide}") for word in ("fadd", "fsub"))
    share = f.let(f"fdiv {double} {more}, {less}")
    root = f.call(double, f"llvm.sqrt.{mangled(double)}", (double, share))
    found = _logarithm(f, t, root, x, size)
    one = f.let(f"fcmp oeq {t} {size}, {number(t, 1)}")
    found = select(f, t, one, signed(f, t, number(t, np.inf), x), found)
    return select(f, t, f.let(f"fcmp ogt {t} {size}, {number(t, 1)}"), number(t, np.nan), found)


def acosh(f: Function, t: str, x: str) -> str:
    """acosh(x), within 1 ulp; no number below 1."""
    double, wide = _wide(f, t, x)
    square = f.let(f"fmul {double} {f.let(f'fsub {double} {wide}, {number(double, 1)}')}, "
                   f"{f.let(f'fadd {double} {wide}, {number(double, 1)}')}")
    root = f.call(double, f"llvm.sqrt.{mangled(double)}", (double, square))
    found = _narrow(f, t, log2(f, double, f.let(f"fadd {double} {wide}, {root}")), logarithm=True)
    found = select(f, t, f.let(f"fcmp ueq {t} {x}, {number(t, np.inf)}"), x, found)
    return select(f, t, f.let(f"fcmp olt {t} {x}, {number(t, 1)}"), number(t, np.nan), found)


def _exponentials(f: Function, t: str, size: str) -> tuple[str, str, str]:
    """The type of FLOAT64, and half of e to the power of a size, and of minus it."""
    double, wide = _wide(f, t, size)
    power = f.let(f"fmul {double} {wide}, {number(double, 1 / math.log(2))}")
    found = exp2(f, double, f.clamp(double, power, -MOST, MOST))
    high = f.let(f"fmul {double} {found}, {number(double, 0.5)}")
    return double, high, f.let(f"fdiv {double} {number(double, 0.5)}, {found}")


def cosh(f: Function, t: str, x: str) -> str:
    """cosh(x), within 1 ulp."""
    size = size_of(f, t, x)
    double, high, low = _exponentials(f, t, size)
    found = _narrow(f, t, f.let(f"fadd {double} {high}, {low}"))
    return select(f, t, f.let(f"fcmp uno {t} {x}, {x}"), x, found)


def sinh(f: Function, t: str, x: str) -> str:
    """sinh(x), within 2 ulp."""
    size = size_of(f, t, x)
    double, high, low = _exponentials(f, t, size)
    far = signed(f, t, _narrow(f, t, f.let(f"fsub {double} {high}, {low}")), x)
    near = _odd(f, t, x, tuple(1 / math.factorial(n) for n in (11, 9, 7, 5, 3)))
    found = select(f, t, f.let(f"fcmp olt {t} {size}, {number(t, 1)}"), near, far)
    return select(f, t, f.let(f"fcmp uno {t} {x}, {x}"), x, found)
