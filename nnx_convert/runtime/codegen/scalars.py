"""What the elements of tensors are in code."""
from __future__ import annotations

import math
from collections.abc import Mapping

from ...frozen import frozen
from ...types import B8, F32, F64, I16, I32, I64, Q8, Q8S, Q16A, Q16S, QS, U32, U64, Type
from .ir import width


@frozen
class Scalar:
    """An element's type in code, and, of an integer, whether it has a sign."""

    code: str
    signed: bool = True

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return width(self.code) // 8

    @property
    def real(self) -> bool:
        """Whether it is a float."""
        return self.code in ("float", "double")

    @property
    def least(self) -> float:
        """Its least value."""
        return -math.inf if self.real else -(1 << 8 * self.size - 1) if self.signed else 0

    @property
    def most(self) -> float:
        """Its greatest value."""
        return math.inf if self.real else (1 << 8 * self.size - self.signed) - 1

    def relation(self, name: str, odd: str = "o") -> str:
        """A comparison's instruction by its name (lt, ge ...); `odd` says what it is where one is no number: `o`
        false, `u` true."""
        if self.real:
            return f"fcmp {odd}{name}"
        return f"icmp {'' if name in ('eq', 'ne') else 's' if self.signed else 'u'}{name}"


#: Types whose elements stand for themselves, or for what a grid says of them.
SCALARS: Mapping[Type, Scalar] = {
    F32: Scalar("float"), F64: Scalar("double"), B8: Scalar("i8", signed=False), Q8: Scalar("i8", signed=False),
    Q8S: Scalar("i8"), QS: Scalar("i8"), I16: Scalar("i16"), Q16S: Scalar("i16"), Q16A: Scalar("i16", signed=False),
    I32: Scalar("i32"), U32: Scalar("i32", signed=False), I64: Scalar("i64"), U64: Scalar("i64", signed=False)}
