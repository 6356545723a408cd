"""Numbers only execution knows, and sizes with names: polynomials in them, closed under what shapes are computed with.

A named size is at least 1. What no polynomial says, such as a quotient rounded down, is a factor of its own.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import reduce
from math import gcd, prod
from typing import Any, TypeVar, cast

import numpy as np

from .frozen import frozen

V = TypeVar("V")


class Undecided(Exception):
    """The answer depends on a dimension or a value that only execution knows."""


class Unknown:
    """A number only execution knows. It absorbs arithmetic and refuses to be a truth value.

    So inference and rules are written as if everything were known: an unknown size flows through
    the formula, and a question about it raises `Undecided`, which whoever asked turns into
    "unknown" (inference) or "check again at run time" (rules).
    """

    def _absorb(self, *_: Any) -> Any:
        return UNKNOWN

    def _refuse(self) -> Any:
        raise Undecided

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = cast(Any, _absorb)
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = cast(Any, _absorb)
    __mod__ = __rmod__ = __neg__ = __abs__ = __and__ = __rshift__ = cast(Any, _absorb)
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = cast(Any, _absorb)
    __bool__ = __index__ = __int__ = __float__ = cast(Any, _refuse)     # so min, range, sets and dicts ask, too
    __hash__ = cast(Any, _refuse)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "UNKNOWN"               # by this name, so that a copy is the same object

    def __repr__(self) -> str:
        return "?"


#: To the type checker an unknown number is a number; that is the point of it.
UNKNOWN: int = cast(int, Unknown())
#: What a polynomial may grow to before it is just unknown: terms, factors of one, characters of one factor, numbers.
MOST_TERMS, MOST_FACTORS, LONGEST_TEXT, LARGEST = 32, 12, 256, 1 << 63
#: Up to so many factors a difference of sizes is looked into.
MOST_SHIFTED = 6


@frozen
class Factor:
    """A size by its `name` (kind ""), or what is computed of two `parts`: kinds "//", "min" and "max".

    `least` is a number it is never smaller than, None where there is none.
    """

    kind: str
    text: str
    name: str = field(default="", compare=False)
    parts: tuple[int, ...] = field(default=(), compare=False)
    least: int | None = field(default=1, compare=False)

    def __lt__(self, other: Factor) -> bool:
        return (self.kind, self.text) < (other.kind, other.text)


Monomial = tuple[Factor, ...]
Terms = dict[Monomial, int]


class Polynomial(Unknown):
    """A polynomial with integer coefficients, not a number: what is known of a size before a run.

    Arithmetic gives polynomials and numbers, UNKNOWN where UNKNOWN takes part or the result grows too large.
    Comparisons give a truth value where all sizes agree on it and UNKNOWN, which refuses to be one, elsewhere.
    Equal polynomials are equal and have one hash; different ones may still be equal for some sizes.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1)

    def __neg__(self) -> Any:
        return Polynomial(tuple((m, -c) for m, c in self.terms))

    def __mul__(self, other: Any) -> Any:
        b = _terms(other)
        return UNKNOWN if b is None else _number(_product(dict(self.terms), b))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _floor(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor(other, self)

    def __truediv__(self, other: Any) -> Any:
        exact = quotient(cast(int, self), other)
        return UNKNOWN if exact is None else exact

    def __rtruediv__(self, other: Any) -> Any:
        exact = quotient(other, cast(int, self))
        return UNKNOWN if exact is None else exact

    def __mod__(self, other: Any) -> Any:
        return self - _floor(self, other) * other

    def __rmod__(self, other: Any) -> Any:
        return other - _floor(other, self) * self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self if self <= 0 else UNKNOWN

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Polynomial) and self.terms == other.terms:
            return True
        gap = _sum(self, other, -1)
        if known(gap):
            return gap == 0
        return False if _never_zero(gap) else UNKNOWN

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else UNKNOWN

    def __lt__(self, other: Any) -> Any:
        return _positive(_sum(-self, other, 1))

    def __gt__(self, other: Any) -> Any:
        return _positive(_sum(self, other, -1))

    def __le__(self, other: Any) -> Any:
        return _positive(_sum(-self, other, 1) + 1)

    def __ge__(self, other: Any) -> Any:
        return _positive(_sum(self, other, -1) + 1)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(self.terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return Polynomial, (self.terms,)

    def __repr__(self) -> str:
        if factor := _alone(self):
            return factor.text[1:-1] if factor.kind == "//" else factor.text
        return "".join(f"{'-' if c < 0 else '+'}{_written(m, abs(c))}" for m, c in self.terms).removeprefix("+")


def known(value: object) -> bool:
    """Whether a number is one."""
    return not isinstance(value, Unknown)


def differ(a: int, b: int) -> bool:
    """Whether two numbers are certainly not the same."""
    try:
        return bool(a != b)
    except Undecided:
        return False


def symbol(name: str) -> int:
    """The size of this name, at least 1; one name is one size wherever it stands."""
    return cast(int, _of(Factor("", name if name.isidentifier() else repr(name), name)))


def name_of(size: int) -> str:
    """The name of a size that has one by itself; empty of a number and of what is computed with names."""
    factor = _alone(size)
    return factor.name if factor else ""


def same(a: int, b: int) -> bool:
    """Whether two sizes are equal whatever the named sizes are; not so of UNKNOWN and itself."""
    gap = a - b
    return known(gap) and gap == 0


def smaller(a: int, b: int) -> int:
    """The smaller of two sizes, a factor of its own where that is not decided."""
    return _chosen("min", a, b)


def larger(a: int, b: int) -> int:
    """The larger of two sizes, a factor of its own where that is not decided."""
    return _chosen("max", a, b)


def quotient(a: int, b: int) -> int | None:
    """a / b where that leaves no rest whatever the named sizes are, else None. Raises `ZeroDivisionError`."""
    rest, by = _terms(a), _terms(b)
    if rest is None or by is None:
        return None
    if not by:
        raise ZeroDivisionError
    lead = max(by, key=_order)
    found: Terms = {}
    while rest:
        top = max(rest, key=_order)
        left = _without(top, lead)
        if left is None or rest[top] % by[lead] or len(found) > MOST_TERMS:
            return None
        found[left] = rest[top] // by[lead]
        rest = _added(rest, _product({left: -found[left]}, by))
    return _number(found)


def resolve(size: int, sizes: Mapping[str, int]) -> int:
    """A size with the named sizes put in: a number once all of them are; UNKNOWN stays so."""
    if not isinstance(size, Polynomial):
        return size
    total = 0
    for monomial, c in size.terms:
        total = total + c * prod(_resolved(f, sizes) for f in monomial)
    return total


def expressed(size: int, name: Callable[[str], V], number: Callable[[int], V], ops: Mapping[str, Callable[[V, V], V]]
              ) -> V:
    """A size computed by operations of another kind: "+", "*", "//", "min" and "max" of names and numbers.

    Raises what `name` raises for a name that it has nothing for, `Undecided` on UNKNOWN.
    """
    if not isinstance(size, Polynomial):
        if not known(size):
            raise Undecided
        return number(size)

    def factor(f: Factor) -> V:
        return name(f.name) if not f.parts else ops[f.kind](*(expressed(p, name, number, ops) for p in f.parts))
    terms = (reduce(ops["*"], [*map(factor, m), *[number(c)] * (c != 1 or not m)]) for m, c in size.terms)
    return reduce(ops["+"], terms)


def at_least(size: int) -> int | None:
    """A number that a size is never smaller than, whatever the named sizes are; None where none is found."""
    terms = _terms(size)
    if terms is None:
        return None
    if any(c < 0 or any((f.least or 0) < 0 or f.least is None for f in m) for m, c in terms.items() if m):
        terms = _shifted(terms)
        return None if terms is None else terms.get((), 0)
    return sum(c * prod(f.least or 0 for f in m) for m, c in terms.items())


def _alone(size: object) -> Factor | None:
    """The factor that is all of a size; None where there is more to it."""
    if not isinstance(size, Polynomial) or len(size.terms) > 1:
        return None
    (factors, c), = size.terms
    return factors[0] if c == 1 and len(factors) == 1 else None


def _of(factor: Factor) -> Polynomial:
    return Polynomial((((factor,), 1),))


def _order(monomial: Monomial) -> tuple[int, Monomial]:
    """By degree, then by factors: products of equals with one monomial keep their order."""
    return len(monomial), monomial


def _terms(value: Any) -> Terms | None:
    """A number or a polynomial by its terms; None where it is neither."""
    if isinstance(value, Polynomial):
        return dict(value.terms)
    if isinstance(value, int | np.integer) or isinstance(value, float | np.floating) and float(value).is_integer():
        return {(): int(value)} if value else {}
    return None


def _number(terms: Terms) -> int:
    """The polynomial of these terms, a number where it is one, UNKNOWN where it is too large."""
    kept = {m: c for m, c in terms.items() if c}
    if not any(kept):
        return kept.get((), 0)
    if len(kept) > MOST_TERMS or any(len(m) > MOST_FACTORS or abs(c) >= LARGEST for m, c in kept.items()):
        return UNKNOWN
    return cast(int, Polynomial(_sorted(kept)))


def _sorted(terms: Terms) -> tuple[tuple[Monomial, int], ...]:
    """Terms in the order that a polynomial keeps them in: the number, of the least degree, comes last."""
    found = tuple(terms.items())
    return found if len(found) == 1 else tuple(sorted(found, key=lambda t: _order(t[0]), reverse=True))


def _added(a: Terms, b: Terms) -> Terms:
    total = dict(a)
    for m, c in b.items():
        total[m] = total.get(m, 0) + c
    return {m: c for m, c in total.items() if c}


def _product(a: Terms, b: Terms) -> Terms:
    total: Terms = {}
    for m, c in a.items():
        for n, d in b.items():
            key = tuple(sorted(m + n))
            total[key] = total.get(key, 0) + c * d
    return total


def _sum(a: Any, b: Any, sign: int) -> Any:
    """a + sign * b."""
    if isinstance(a, Polynomial) and b.__class__ is int and abs(b) < LARGEST:
        return _moved(a, sign * b)
    if sign < 0 and isinstance(a, Polynomial) and isinstance(b, Polynomial) and a.terms == b.terms:
        return 0
    left, right = _terms(a), _terms(b)
    return UNKNOWN if left is None or right is None else _number(_added(left, {m: sign * c for m, c in right.items()}))


def _moved(a: Polynomial, n: int) -> Any:
    """a + n: only the number, which is its last term, changes."""
    *rest, last = a.terms
    if last[0]:
        return Polynomial((*a.terms, ((), n))) if n and len(a.terms) < MOST_TERMS else UNKNOWN if n else a
    total = last[1] + n
    return UNKNOWN if abs(total) >= LARGEST else Polynomial((*rest, ((), total)) if total else tuple(rest))


def _without(whole: Monomial, part: Monomial) -> Monomial | None:
    """A product less some of its factors; None where it does not have them."""
    rest = list(whole)
    for f in part:
        if f not in rest:
            return None
        rest.remove(f)
    return tuple(rest)


def _floor(a: Any, b: Any) -> Any:
    """a / b rounded down."""
    top, by = _terms(a), _terms(b)
    if top is None or by is None:
        return UNKNOWN
    exact = quotient(a, b)
    if exact is not None:
        return exact
    if not known(b):
        return _made("//", _number(top), b)
    n = int(b)
    lead = max(top, key=_order)
    if n < 0:
        return _floor(-a, -n)
    if top[lead] < 0:
        return -_floor(n - 1 - a, n)
    whole, rest = _number({m: c // n for m, c in top.items()}), {m: c % n for m, c in top.items() if c % n}
    return whole + _fraction(rest, n)


def _fraction(top: Terms, n: int) -> Any:
    """top / n rounded down, all coefficients being from 0 to n - 1; equal quotients become equal factors."""
    if not any(top):
        return 0
    shared = gcd(n, *(c for m, c in top.items() if m))
    if shared > 1:
        return _floor(_number({m: c // shared for m, c in top.items()}), n // shared)
    inner = next(m for m in top if m)
    nested = inner[0] if len(inner) == 1 and top[inner] == 1 and len(top.keys() - {()}) == 1 else None
    if nested is not None and nested.kind == "//" and known(nested.parts[1]):
        a, b = nested.parts
        return _floor(a + b * top.get((), 0), b * n)
    return _made("//", _number(top), n)


def _made(kind: str, a: int, b: int) -> Any:
    """A factor of two parts; UNKNOWN where it is too long."""
    text = f"({_wrapped(a)}//{_wrapped(b)})" if kind == "//" else f"{kind}({a}, {b})"
    if not (isinstance(a, int | Polynomial) and isinstance(b, int | Polynomial)) or len(text) > LONGEST_TEXT:
        return UNKNOWN
    return _of(Factor(kind, text, "", (a, b), _least(kind, at_least(a), at_least(b), b)))


def _least(kind: str, a: int | None, b: int | None, divisor: int) -> int | None:
    """A number such a factor is never smaller than, of those its parts are never smaller than."""
    if kind == "max":
        return max((n for n in (a, b) if n is not None), default=None)
    if a is None or b is None:
        return None
    if kind == "min":
        return min(a, b)
    return a // divisor if known(divisor) else 0 if a >= 0 and b >= 1 else None


def _chosen(kind: str, a: int, b: int) -> int:
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    try:
        return a if bool(a <= b) == (kind == "min") else b
    except Undecided:
        first, second = sorted((a, b), key=str)
        return cast(int, _made(kind, first, second))


def _shifted(terms: Terms) -> Terms | None:
    """The terms in what each factor is above its least; None where a term may then be negative."""
    if any(len(m) > MOST_SHIFTED for m in terms):
        return None
    total: Terms = {}
    for monomial, c in terms.items():
        part: Terms = {(): c}
        for f in monomial:
            if f.least is None:
                return None
            part = _product(part, {(f,): 1, (): f.least})
        total = _added(total, part)
    return None if any(c < 0 for m, c in total.items() if m) else total


def _positive(gap: Any) -> Any:
    """Whether a difference is more than 0: a truth value where that is certain."""
    if known(gap):
        return gap > 0
    if (least := at_least(gap)) is not None and least > 0:
        return True
    if (least := at_least(-gap)) is not None and least >= 0:
        return False
    return UNKNOWN


def _never_zero(gap: Any) -> bool:
    """Whether a difference has one sign for all sizes, or a rest that no size makes up for."""
    if any((least := at_least(g)) is not None and least > 0 for g in (gap, -gap)):
        return True
    terms = _terms(gap) or {}
    shared = gcd(*(c for m, c in terms.items() if m))
    return shared > 1 and terms.get((), 0) % shared != 0


def _resolved(factor: Factor, sizes: Mapping[str, int]) -> int:
    if not factor.parts:
        return sizes[factor.name] if factor.name in sizes else cast(int, _of(factor))
    a, b = (resolve(p, sizes) for p in factor.parts)
    return a // b if factor.kind == "//" else _chosen(factor.kind, a, b)


def _written(monomial: Iterable[Factor], c: int) -> str:
    names = [f.text for f in monomial]
    return "*".join([str(c), *names] if c != 1 or not names else names)


def _wrapped(value: int) -> str:
    return f"({value})" if isinstance(value, Polynomial) and not _alone(value) else str(value)
