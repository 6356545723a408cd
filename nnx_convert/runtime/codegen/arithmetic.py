"""Arithmetic of integers, lane by lane: they wrap, and quotients are those of NumPy's kernels for every divisor."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from ...frozen import frozen
from .elements import BOUNDS
from .ir import Function, number
from .mathematics import flags, select
from .scalars import Scalar

#: Writes an operation on vectors of an integer's type: (function, type, scalar, values) -> value.
Emit = Callable[..., str]


@frozen
class Integers:
    """The code of an operation of integers.

    `divides`: its second argument must not be 0. `signed`: it means nothing for integers without a sign.
    """

    emit: Emit
    divides: bool = False
    signed: bool = False


def _simple(instruction: str) -> Emit:
    return lambda f, t, s, *v: f.let(f"{instruction} {t} {', '.join(v)}")


def _extreme(relation: str) -> Emit:
    def emit(f: Function, t: str, s: Scalar, x: str, y: str) -> str:
        return select(f, t, f.let(f"{s.relation(relation)} {t} {x}, {y}"), x, y)
    return emit


def _limited(low: int | None, high: int | None) -> Emit:
    return lambda f, t, s, x: bounded(f, t, s, x, low, high)


def bounded(f: Function, t: str, s: Scalar, x: str, low: float | None, high: float | None) -> str:
    """x within bounds, of which each may be None."""
    for bound, relation in ((low, "lt"), (high, "gt")):
        if bound is not None:
            limit = number(t, bound)
            x = select(f, t, f.let(f"{s.relation(relation)} {t} {x}, {limit}"), limit, x)
    return x


def activated(f: Function, t: str, s: Scalar, x: str, act: int) -> str:
    """What a fused activation keeps of integers."""
    return bounded(f, t, s, x, *BOUNDS[act])


def _divided(f: Function, t: str, s: Scalar, x: str, y: str) -> tuple[str, str]:
    """The quotient rounded toward zero, which wraps, and the remainder; of a divisor 0, x and 0."""
    odd = f.let(f"icmp eq {t} {y}, {number(t, 0)}")
    if s.signed:
        over = f.let(f"and {flags(t)} {f.let(f'icmp eq {t} {x}, {number(t, s.least)}')}, "
                     f"{f.let(f'icmp eq {t} {y}, {number(t, -1)}')}")
        odd = f.let(f"or {flags(t)} {odd}, {over}")
    y = select(f, t, odd, number(t, 1), y)
    sign = "s" if s.signed else "u"
    return f.let(f"{sign}div {t} {x}, {y}"), f.let(f"{sign}rem {t} {x}, {y}")


def _down(f: Function, t: str, s: Scalar, x: str, y: str) -> tuple[str, str]:
    """The quotient rounded down, and the remainder with y's sign."""
    whole, rest = _divided(f, t, s, x, y)
    if not s.signed:
        return whole, rest
    mixed = f.let(f"icmp slt {t} {f.let(f'xor {t} {rest}, {y}')}, {number(t, 0)}")
    below = f.let(f"and {flags(t)} {mixed}, {f.let(f'icmp ne {t} {rest}, {number(t, 0)}')}")
    less = f.let(f"add {t} {whole}, {number(t, -1)}")
    return select(f, t, below, less, whole), select(f, t, below, f.let(f"add {t} {rest}, {y}"), rest)


def _quotient(f: Function, t: str, s: Scalar, x: str, y: str) -> str:
    """Rounded down; 0 where y is 0."""
    none = f.let(f"icmp eq {t} {y}, {number(t, 0)}")
    return select(f, t, none, number(t, 0), _down(f, t, s, x, y)[0])


def _shift(left: bool) -> Emit:
    """By the width or more, or by less than nothing, nothing but the sign is left."""
    def emit(f: Function, t: str, s: Scalar, x: str, y: str) -> str:
        beyond = f.let(f"icmp uge {t} {y}, {number(t, 8 * s.size)}")
        last = number(t, 8 * s.size - 1)
        moved = f.let(f"{_right(s) if not left else 'shl'} {t} {x}, {select(f, t, beyond, last, y)}")
        return moved if s.signed and not left else select(f, t, beyond, number(t, 0), moved)
    return emit


def _right(s: Scalar) -> str:
    return "ashr" if s.signed else "lshr"


def _right_shift(f: Function, t: str, s: Scalar, x: str, y: str) -> str:
    """By y within the width."""
    return f.let(f"{_right(s)} {t} {x}, {bounded(f, t, s, y, 0, 8 * s.size - 1)}")


def _sign(f: Function, t: str, s: Scalar, x: str) -> str:
    below = number(t, 0)
    if s.signed:
        below = select(f, t, f.let(f"icmp slt {t} {x}, {number(t, 0)}"), number(t, -1), below)
    return select(f, t, f.let(f"{s.relation('gt')} {t} {x}, {number(t, 0)}"), number(t, 1), below)


def _absolute(f: Function, t: str, s: Scalar, x: str) -> str:
    if not s.signed:
        return x
    return select(f, t, f.let(f"icmp slt {t} {x}, {number(t, 0)}"), f.let(f"sub {t} {number(t, 0)}, {x}"), x)


def _square(f: Function, t: str, s: Scalar, x: str) -> str:
    return f.let(f"mul {t} {x}, {x}")


def _squared(f: Function, t: str, s: Scalar, x: str, y: str) -> str:
    return _square(f, t, s, f.let(f"sub {t} {x}, {y}"))


INTEGERS: Mapping[str, Integers] = {
    "ADD": Integers(_simple("add")), "SUB": Integers(_simple("sub")), "MUL": Integers(_simple("mul")),
    "DIV": Integers(_quotient), "MAXIMUM": Integers(_extreme("gt")), "MINIMUM": Integers(_extreme("lt")),
    "FLOOR_DIV": Integers(lambda *v: _down(*v)[0], divides=True),
    "FLOOR_MOD": Integers(lambda *v: _down(*v)[1], divides=True),
    "TRUNC_DIV": Integers(lambda *v: _divided(*v)[0], divides=True),
    "TRUNC_MOD": Integers(lambda *v: _divided(*v)[1], divides=True),
    "BITWISE_AND": Integers(_simple("and")), "BITWISE_OR": Integers(_simple("or")),
    "BITWISE_XOR": Integers(_simple("xor")), "SHIFT_LEFT": Integers(_shift(left=True)),
    "SHIFT_RIGHT": Integers(_shift(left=False)), "RIGHT_SHIFT": Integers(_right_shift),
    "BITWISE_NOT": Integers(lambda f, t, s, x: f.let(f"xor {t} {x}, {number(t, -1)}")),
    "ABS": Integers(_absolute),
    "NEG": Integers(lambda f, t, s, x: f.let(f"sub {t} {number(t, 0)}, {x}"), signed=True),
    "SIGN": Integers(_sign), "SQUARE": Integers(_square), "RELU": Integers(_limited(0, None)),
    "RELU6": Integers(_limited(0, 6)), "RELU1": Integers(_limited(-1, 1), signed=True),
    "RELU_0_TO_1": Integers(_limited(0, 1)),
    "SQUARED_DIFFERENCE": Integers(_squared)}
