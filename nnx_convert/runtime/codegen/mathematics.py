"""Functions of vectors of floats by polynomials; NaN gives NaN. Error bounds are in units in the last place (ulp)."""
from __future__ import annotations

from functools import cache

import numpy as np

from .ir import Function, number, parts, vector

#: exp: beyond these the result is 0 or infinite (below, FLOAT32 would be denormal: 0 is within 1.2e-38 of it).
LEAST, MOST = -87.33654, 88.72283
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693145751953125, 1.42860682030941723212e-6
#: Added to and taken from a small number, it rounds it to an integer, halves to even, which is in the low bits then.
ROUNDER = 1.5 * 2 ** 23
#: tanh(x) = x * P(x * x) / Q(x * x) within these bounds, beyond which it is 1 in FLOAT32.
TANH_MOST = 7.90531110763549805
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
    wide = f.machine.avx512 and type == vector(f.machine.lanes)
    bounded = f.clamp(type, x, LEAST, MOST if not wide else MOST + 1)
    shifted = f.fma(type, bounded, number(type, LOG2E), number(type, ROUNDER))
    power = f.let(f"fsub {type} {shifted}, {number(type, ROUNDER)}")
    rest = f.fma(type, power, number(type, -LN2_HIGH), bounded)
    rest = f.fma(type, power, number(type, -LN2_LOW), rest)
    series = horner(f, type, rest, tuple(reversed(exp_terms())))
    below = f.let(f"fcmp olt {type} {x}, {number(type, LEAST)}")
    if wide:
        return select(f, type, below, number(type, 0), _scaled(f, type, series, power))
    whole = integers(type)
    exponent = f.let(f"shl {whole} {f.let(f'bitcast {type} {shifted} to {whole}')}, {number(whole, 23)}")
    bits = f.let(f"add {whole} {f.let(f'bitcast {type} {series} to {whole}')}, {exponent}")
    found = f.let(f"bitcast {whole} {bits} to {type}")
    found = select(f, type, f.let(f"fcmp ogt {type} {x}, {number(type, MOST)}"), number(type, np.inf), found)
    found = select(f, type, below, number(type, 0), found)
    return select(f, type, f.let(f"fcmp uno {type} {x}, {x}"), x, found)


def _scaled(f: Function, type: str, x: str, power: str) -> str:
    """x * 2 ** power, infinite where that is too large; what is no number stays so."""
    mask = f"i{parts(type)[0]}"
    return f.call(type, "llvm.x86.avx512.mask.scalef.ps.512", (type, x), (type, power), (type, "zeroinitializer"),
                  (mask, "-1"), ("i32", "4"))


def logistic(f: Function, type: str, x: str) -> str:
    """1 / (1 + exp(-x)), within 3 ulp."""
    power = exp(f, type, f.let(f"fneg {type} {x}"))
    return f.let(f"fdiv {type} {number(type, 1)}, {f.let(f'fadd {type} {power}, {number(type, 1)}')}")


def tanh(f: Function, type: str, x: str) -> str:
    """tanh(x), within 5 ulp; 7 where products are not fused."""
    bounded = f.clamp(type, x, -TANH_MOST, TANH_MOST)
    square = f.let(f"fmul {type} {bounded}, {bounded}")
    above = f.let(f"fmul {type} {horner(f, type, square, TANH_P)}, {bounded}")
    return f.let(f"fdiv {type} {above}, {horner(f, type, square, TANH_Q)}")
