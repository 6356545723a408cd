"""Values: classes of declared fields, compared by what they hold.

`dataclass(frozen=True)` writes and compiles six functions for each class when its module is imported; for some hundred
classes, that is a third of what a start costs. Here nothing is compiled for a class: the functions ask for the fields
when they are called, and `__init__`, which is called most, is that of a dataclass with as many fields, with the names
of these in it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from inspect import Parameter, Signature
from operator import attrgetter
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

Of = TypeVar("Of")


@overload
def frozen(cls: type[Of]) -> type[Of]: ...
@overload
def frozen(*, eq: bool) -> Callable[[type[Of]], type[Of]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, *, eq: bool = True) -> Any:
    """The class as a dataclass with a repr of its fields, none of which can be set again. Two of its values are equal
    where their fields are; without `eq`, where they are the same."""
    if cls is None:
        return lambda cls: _made(cls, eq)
    return _made(cls, eq)


def _made(cls: type[Any], eq: bool) -> type[Any]:
    made: Any = dataclass(init=False, eq=False, repr=False)(cls)
    shown = tuple(f.name for f in fields(made) if f.repr)

    def told(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"
    made.__init__, made.__repr__, made.__setattr__, made.__delattr__ = _init(made), told, _set, _delete
    made.__signature__ = _SIGNATURE
    if eq:
        _compare(made)
    found: type[Any] = made
    return found


def _init(cls: type[Any]) -> Callable[..., None]:
    """What sets the fields, given in order or by name, and calls `__post_init__` where there is one."""
    given = [f for f in fields(cls) if f.init]
    if any(f.default_factory is not MISSING for f in given):
        return _making(cls, given)
    shared = _shared(len(given), hasattr(cls, "__post_init__"))
    code, names = shared.__code__, tuple(f.name for f in given)
    own = dict(zip(code.co_varnames[1:], names, strict=False))
    code = code.replace(co_varnames=("self", *names, *code.co_varnames[1 + len(names):]),
                        co_consts=tuple(own.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
                        co_qualname=f"{cls.__qualname__}.__init__")
    defaults = tuple(f.default for f in given if f.default is not MISSING)
    return FunctionType(code, shared.__globals__, "__init__", defaults)


@cache
def _shared(count: int, post: bool) -> FunctionType:
    """The `__init__` of a frozen dataclass of so many fields. Not by `make_dataclass`, which would compile the five
    other functions with it."""
    given = [f"field_{n}" for n in range(count)]
    lines = [*(f"put(self, {name!r}, {name})" for name in given), *["self.__post_init__()"] * post, "return None"]
    scope: dict[str, Any] = {"put": object.__setattr__}
    exec("\n ".join((f"def __init__({', '.join(('self', *given))}):", *lines)), scope)
    found: FunctionType = scope["__init__"]
    return found


def _making(cls: type[Any], given: Sequence[Field[Any]]) -> Callable[..., None]:
    """The same where what is left out is made anew."""
    names, post = tuple(f.name for f in given), hasattr(cls, "__post_init__")
    defaults = {f.name: f.default for f in given if f.default is not MISSING}
    made = [(f.name, f.default_factory) for f in given if f.default_factory is not MISSING]

    def init(self: Any, *args: Any, **more: Any) -> None:
        held = self.__dict__
        held.update(defaults)
        held.update(zip(names, args, strict=False))
        held.update(more)
        for name, factory in made:
            if name not in held:
                held[name] = factory()
        if held.keys() != set(names) or len(args) > len(names) or not more.keys().isdisjoint(names[:len(args)]):
            raise TypeError(f"{cls.__qualname__}({', '.join(names)}) is given {len(args)} in order, {list(more)}")
        if post:
            self.__post_init__()
    return init


class _Signature:
    """What `inspect.signature` says of a class, made when it asks."""

    def __get__(self, _: object, cls: Any) -> Signature:
        return Signature([Parameter(f.name, Parameter.POSITIONAL_OR_KEYWORD, annotation=f.type, default=_default(f))
                          for f in fields(cls) if f.init])


_SIGNATURE = _Signature()


def _default(f: Field[Any]) -> Any:
    if f.default_factory is not MISSING:
        return f.default_factory()
    return Parameter.empty if f.default is MISSING else f.default


def _compare(cls: Any) -> None:
    """Give a class equality and a hash of the fields that take part."""
    compared = tuple(f.name for f in fields(cls) if f.compare)
    held: Callable[[Any], tuple[Any, ...]] = attrgetter(*compared) if len(compared) > 1 else lambda x: tuple(
        getattr(x, n) for n in compared)

    def equal(self: Any, other: object) -> Any:
        return held(self) == held(other) if other.__class__ is self.__class__ else NotImplemented
    cls.__eq__, cls.__hash__ = equal, lambda self: hash(held(self))


def _set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
