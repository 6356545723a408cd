"""Values: classes of declared fields, compared by what they hold.

`dataclass(frozen=True)` writes and compiles six functions for each class when its module is imported; for the classes
that every start needs, that is a third of what a start costs. Here one of them is compiled and the others are shared.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Of = TypeVar("Of")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Of]) -> type[Of]:
    """The class as a dataclass with equality, a hash and a repr of its fields, none of which can be set again."""
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
    made.__setattr__, made.__delattr__ = _set, _delete
    found: type[Of] = made
    return found


def _set(self: Any, name: str, value: object) -> None:
    """What `__init__` sets fields by."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(_: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
