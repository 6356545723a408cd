"""Functions of vectors of floats by polynomials; NaN gives NaN. Error bounds are in units in the last place (ulp)."""
from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..special import smooth
from .ir import Function, number, parts, vector

#: exp: beyond these the result is 0 or infinite (below, FLOAT32 would be denormal: 0 is within 1.2e-38 of it).
LEAST, MOST = -87.33654, 88.72283
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693145751953125, 1.42860682030941723212e-6
#: Added to and taken from a small number, it rounds it to an integer, halves to even, which is in the low bits then.
ROUNDER = 1.5 * 2 ** 23
#: tanh(x) = x * P(x * x) / Q(x * x) within these bounds, at which that is 1, whether products are fused or not: so
#: it is beyond them, and 1 + tanh(x) is 0 however large -x is.
TANH_MOST = 8.078094482421875
#: Below it erf is a product with its argument, beyond it 1 less a rest.
NEAR = 0.5
#: The bits of the square root of 0.5, and the smallest FLOAT32 with all its digits.
HALF_ROOT, SMALLEST = 0x3F3504F3, 2.0 ** -126
TANH_P = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
          1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


def integers(type: str) -> str:
    """The type of as many integers of 32 bits."""
    lanes, _ = parts(type)
    return f"<{lanes} x i32>" if type.startswith("<") else "i32"


def flags(type: str) -> str:
    """The type of as many truth values."""
    lanes, _ = parts(type)
    return f"<{lanes} x i1>" if type.startswith("<") else "i1"


def select(f: Function, type: str, condition: str, yes: str, no: str) -> str:
    """One of two values lane by lane."""
    return f.let(f"select {flags(type)} {condition}, {type} {yes}, {type} {no}")


def size_of(f: Function, type: str, x: str) -> str:
    """|x| by its bits: `merging` sees the mask, which is an operand where registers are few."""
    whole = integers(type)
    return f.let(f"bitcast {whole} {_masked(f, whole, type, x, (1 << 31) - 1)} to {type}")


def signed(f: Function, type: str, x: str, like: str) -> str:
    """x with the sign of another number, in the same way."""
    whole = integers(type)
    size, sign = _masked(f, whole, type, x, (1 << 31) - 1), _masked(f, whole, type, like, -1 << 31)
    return f.let(f"bitcast {whole} {f.let(f'or {whole} {size}, {sign}')} to {type}")


def negative(f: Function, type: str, x: str) -> str:
    """-x, in the same way."""
    whole = integers(type)
    bits = f.let(f"bitcast {type} {x} to {whole}")
    return f.let(f"bitcast {whole} {f.let(f'xor {whole} {bits}, {number(whole, -1 << 31)}')} to {type}")


def _masked(f: Function, whole: str, type: str, x: str, mask: int) -> str:
    return f.let(f"and {whole} {f.let(f'bitcast {type} {x} to {whole}')}, {number(whole, mask)}")


@cache
def exp_terms(degree: int = 6) -> tuple[float, ...]:
    """The coefficients of exp on [-ln 2 / 2, ln 2 / 2] of least relative error, fitted at Chebyshev's points."""
    at = np.cos(np.linspace(0, np.pi, 400)) * 0.3466 * 1.002
    powers = np.stack([at ** k / np.exp(at) for k in range(degree + 1)], 1)
    found = np.linalg.lstsq(powers, np.ones(400), rcond=None)[0]
    return (1.0, 1.0, *(float(v) for v in found[2:]))


def horner(f: Function, type: str, x: str, terms: tuple[float, ...]) -> str:
    """A polynomial, its terms from the highest power down."""
    found = number(type, terms[0])
    for term in terms[1:]:
        found = f.fma(type, found, x, number(type, term))
    return found


def exp(f: Function, type: str, x: str) -> str:
    """e ** x, within 2 ulp."""
    if wide(f, type):
        bounded = f.clamp(type, x, LEAST, MOST + 1)
        _, power, rest = _reduced(f, type, bounded)
        found = _scaled(f, type, horner(f, type, rest, tuple(reversed(exp_terms()))), power)
    else:
        found = _by_bits(f, type, f.clamp(type, x, LEAST, MOST))
        beyond = f.let(f"fadd {type} {x}, {number(type, np.inf)}")
        found = select(f, type, f.let(f"fcmp ugt {type} {x}, {number(type, MOST)}"), beyond, found)
    return select(f, type, f.let(f"fcmp olt {type} {x}, {number(type, LEAST)}"), number(type, 0), found)


def wide(f: Function, type: str) -> bool:
    """Whether values are vectors of 512 bits."""
    return f.machine.avx512 and type == vector(f.machine.lanes)


def _reduced(f: Function, type: str, x: str) -> tuple[str, str, str]:
    """x as n * ln 2 + rest: n with `ROUNDER` added, n, and the rest."""
    shifted = f.fma(type, x, number(type, LOG2E), number(type, ROUNDER))
    power = f.let(f"fsub {type} {shifted}, {number(type, ROUNDER)}")
    rest = f.fma(type, power, number(type, -LN2_HIGH), x)
    return shifted, power, f.fma(type, power, number(type, -LN2_LOW), rest)


def _by_bits(f: Function, type: str, x: str) -> str:
    """e ** x within the bounds, its power of two added to the bits of an exponent; of what is no number, anything.

    The polynomial's terms are summed in pairs, not one after the other: few registers leave few vectors in flight.
    """
    shifted, _, rest = _reduced(f, type, x)
    _, _, *terms = (number(type, t) for t in exp_terms())
    square = f.let(f"fmul {type} {rest}, {rest}")
    high = f.fma(type, square, terms[4], f.fma(type, rest, terms[3], terms[2]))
    high = f.fma(type, high, square, f.fma(type, rest, terms[1], terms[0]))
    series = f.let(f"fadd {type} {f.fma(type, high, square, rest)}, {number(type, 1)}")
    whole = integers(type)
    exponent = f.let(f"shl {whole} {f.let(f'bitcast {type} {shifted} to {whole}')}, {number(whole, 23)}")
    bits = f.let(f"add {whole} {f.let(f'bitcast {type} {series} to {whole}')}, {exponent}")
    return f.let(f"bitcast {whole} {bits} to {type}")


def _scaled(f: Function, type: str, x: str, power: str) -> str:
    """x * 2 ** power, infinite where that is too large; what is no number stays so."""
    mask = f"i{parts(type)[0]}"
    return f.call(type, "llvm.x86.avx512.mask.scalef.ps.512", (type, x), (type, power), (type, "zeroinitializer"),
                  (mask, "-1"), ("i32", "4"))


def logistic(f: Function, type: str, x: str) -> str:
    """1 / (1 + exp(-x)), within 3 ulp."""
    if wide(f, type):
        power = exp(f, type, f.let(f"fneg {type} {x}"))
    else:                                        # 1 and the least power are 1: that need not be 0
        power = _by_bits(f, type, f.let(f"fneg {type} {f.clamp(type, x, -MOST, -LEAST)}"))
        beyond = f.let(f"fsub {type} {number(type, np.inf)}, {x}")
        power = select(f, type, f.let(f"fcmp ult {type} {x}, {number(type, -MOST)}"), beyond, power)
    return f.let(f"fdiv {type} {number(type, 1)}, {f.let(f'fadd {type} {power}, {number(type, 1)}')}")


def tanh(f: Function, type: str, x: str) -> str:
    """tanh(x), within 5 ulp; 6 where products are not fused."""
    bounded = f.clamp(type, x, -TANH_MOST, TANH_MOST)
    square = f.let(f"fmul {type} {bounded}, {bounded}")
    above = f.let(f"fmul {type} {horner(f, type, square, TANH_P)}, {bounded}")
    return f.let(f"fdiv {type} {above}, {horner(f, type, square, TANH_Q)}")


@cache
def erfc_terms(degree: int = 10) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of p(t) for erfc(z) = t * exp(p(t) - z * z), t = 2 / (2 + z)."""
    at = (np.cos(np.linspace(0, np.pi, 200)) + 1.0001) / 2.0002
    return tuple(float(v) for v in np.polyfit(at, [smooth(2 / t - 2, t) for t in at], degree))


@cache
def erf_terms(degree: int = 5) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of erf(x) / x by squares of x up to `NEAR` ** 2."""
    at = (np.cos(np.linspace(0, np.pi, 200)) + 1.0001) / 2.0002 * NEAR
    return tuple(float(v) for v in np.polyfit(at * at, [math.erf(x) / x for x in at], degree))


def erfc(f: Function, type: str, z: str) -> str:
    """1 - erf(z) of z from 0 up; relative to it within 7e-6."""
    t = f.let(f"fdiv {type} {number(type, 2)}, {f.let(f'fadd {type} {z}, {number(type, 2)}')}")
    power = f.fma(type, f.let(f"fneg {type} {z}"), z, horner(f, type, t, erfc_terms()))
    return f.let(f"fmul {type} {t}, {exp(f, type, power)}")


def erf(f: Function, type: str, x: str) -> str:
    """The error function, within 3 ulp."""
    size = size_of(f, type, x)
    far = f.let(f"fsub {type} {number(type, 1)}, {erfc(f, type, size)}")
    far = signed(f, type, far, x)
    square = f.let(f"fmul {type} {x}, {x}")
    near = f.let(f"fmul {type} {x}, {horner(f, type, square, erf_terms())}")
    return select(f, type, f.let(f"fcmp olt {type} {size}, {number(type, NEAR)}"), near, far)


def gelu(f: Function, type: str, x: str) -> str:
    """x / 2 * erfc(-x / sqrt 2), relative to it within 1e-5; of an infinity below 0, what is no number."""
    z = f.let(f"fmul {type} {x}, {number(type, math.sqrt(0.5))}")
    share = erfc(f, type, size_of(f, type, z))
    above = f.let(f"fsub {type} {number(type, 2)}, {share}")
    share = select(f, type, f.let(f"fcmp ogt {type} {x}, {number(type, 0)}"), above, share)
    return f.let(f"fmul {type} {f.let(f'fmul {type} {x}, {number(type, 0.5)}')}, {share}")


def gelu_by_tanh(f: Function, type: str, x: str) -> str:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))), off by 4e-7 of x at most; of an infinity below
    0, what is no number."""
    square = f.let(f"fmul {type} {x}, {x}")
    cubic = f.let(f"fmul {type} {square}, {number(type, 0.044715)}")
    inner = f.fma(type, cubic, x, x)
    curve = tanh(f, type, f.let(f"fmul {type} {inner}, {number(type, math.sqrt(2 / math.pi))}"))
    half = f.let(f"fmul {type} {x}, {number(type, 0.5)}")
    return f.let(f"fmul {type} {half}, {f.let(f'fadd {type} {curve}, {number(type, 1)}')}")


@cache
def log_terms(degree: int = 8) -> tuple[float, ...]:
    """The coefficients, from the highest power down, of (log(1 + x) - x + x ** 2 / 2) / x ** 3 about 0, for numbers
    from sqrt 0.5 to sqrt 2."""
    low, high = math.sqrt(0.5) - 1, math.sqrt(2) - 1
    at = (np.cos(np.linspace(0, np.pi, 400)) * (high - low) * 1.002 + high + low) / 2
    at = at[np.abs(at) > 1e-2]
    return tuple(float(v) for v in np.polyfit(at, (np.log1p(at) - at + at * at / 2) / at ** 3, degree,
                                              w=np.abs(at) ** 3 / np.abs(np.log1p(at))))


def log(f: Function, type: str, x: str) -> str:
    """The natural logarithm, within 1 ulp; of 0 it is infinite, of what is below, no number."""
    whole = integers(type)
    least = f.let(f"fcmp olt {type} {x}, {number(type, SMALLEST)}")
    scaled = select(f, type, least, f.let(f"fmul {type} {x}, {number(type, 2.0 ** 23)}"), x)
    bits = f.let(f"bitcast {type} {scaled} to {whole}")
    over = f.let(f"sub {whole} {bits}, {number(whole, HALF_ROOT)}")
    power = f.let(f"ashr {whole} {over}, {number(whole, 23)}")
    mantissa = f.let(f"sub {whole} {bits}, {f.let(f'shl {whole} {power}, {number(whole, 23)}')}")
    rest = f.let(f"fsub {type} {f.let(f'bitcast {whole} {mantissa} to {type}')}, {number(type, 1)}")
    count = f.let(f"sitofp {whole} {power} to {type}")
    count = select(f, type, least, f.let(f"fsub {type} {count}, {number(type, 23)}"), count)
    square = f.let(f"fmul {type} {rest}, {rest}")
    series = f.let(f"fmul {type} {f.let(f'fmul {type} {square}, {rest}')}, {horner(f, type, rest, log_terms())}")
    series = f.fma(type, count, number(type, LN2_LOW), series)
    series = f.fma(type, square, number(type, -0.5), series)
    found = f.fma(type, count, number(type, LN2_HIGH), f.let(f"fadd {type} {rest}, {series}"))
    found = select(f, type, f.let(f"fcmp oeq {type} {x}, {number(type, np.inf)}"), x, found)
    found = select(f, type, f.let(f"fcmp oeq {type} {x}, {number(type, 0)}"), number(type, -np.inf), found)
    return select(f, type, f.let(f"fcmp ult {type} {x}, {number(type, 0)}"), number(type, np.nan), found)
