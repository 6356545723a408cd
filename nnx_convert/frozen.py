"""Values: classes of declared fields, compared by what they hold.

`dataclass(frozen=True)` writes and compiles six functions for each class when its module is imported; for the classes
that every start needs, that is a third of what a start costs. Here one of them is compiled and the others are shared.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Of = TypeVar("Of")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Of]) -> type[Of]:
    """The class as a dataclass with equality, a hash and a repr of its fields; that none is set is the type checker's
    to see."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    shown = tuple(f.name for f in fields(made) if f.repr)
    compared = tuple(f.name for f in fields(made) if f.compare)
    held: Callable[[Any], tuple[Any, ...]] = attrgetter(*compared) if len(compared) > 1 else lambda x: tuple(
        getattr(x, n) for n in compared)

    def equal(self: Any, other: object) -> Any:
        return held(self) == held(other) if other.__class__ is self.__class__ else NotImplemented

    def told(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"
    made.__eq__, made.__hash__, made.__repr__ = equal, lambda self: hash(held(self)), told
    found: type[Of] = made
    return found
