"""`dataclass` as the standard library has it, made in a tenth of the time.

There each method of each class is a text that is compiled when the class is made, which was half of what an import of
this package took. Here that is `__init__` alone; the other methods go through the names of the fields.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  (as NAME hands a name on)
else:
    from dataclasses import MISSING, FrozenInstanceError, dataclass as plain, fields
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, frozen=False, eq=True):
        """A class of fields, as a decorator with or without arguments."""
        def build(cls):
            plain(init=False, repr=False, eq=False)(cls)
            parts, own = fields(cls), cls.__dict__
            cls.__init__ = _init(cls, parts)
            if "__repr__" not in own:
                cls.__repr__ = _repr([f.name for f in parts if f.repr])
            if eq:
                _compared(cls, [f.name for f in parts if f.compare], frozen)
            if frozen:
                cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
            return cls
        return build if cls is None else build(cls)

    def _init(cls, parts):
        """`__init__` of fields; it writes to the object's own dictionary, which a frozen class allows."""
        space, args, lines = {"_absent": object()}, ["self"], ["own = self.__dict__"]
        for f in parts:
            value = f.name
            if f.default_factory is not MISSING:
                space[f"_make_{f.name}"] = f.default_factory
                value = f"_make_{f.name}() if {f.name} is _absent else {f.name}" if f.init else f"_make_{f.name}()"
            elif f.default is not MISSING:
                space[f"_default_{f.name}"] = f.default
            if f.init:
                default = "" if f.default is MISSING else f"=_default_{f.name}"
                args.append(f.name + ("=_absent" if f.default_factory is not MISSING else default))
            if f.init or f.default_factory is not MISSING:
                lines.append(f"own[{f.name!r}] = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__({', '.join(args)}):\n  " + "\n  ".join(lines), space)
        made = space["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        made.__annotations__ = {f.name: f.type for f in parts if f.init} | {"return": None}
        return made

    def _repr(names):
        """`__repr__` with these fields."""
        @recursive_repr()
        def made(self):
            return f"{self.__class__.__qualname__}({', '.join([f'{n}={getattr(self, n)!r}' for n in names])})"
        return made

    def _compared(cls, names, frozen):
        """Set `__eq__`, and `__hash__` where objects do not change, unless the class has its own."""
        several = attrgetter(*names) if len(names) > 1 else lambda self: tuple([getattr(self, n) for n in names])
        if "__hash__" not in cls.__dict__ or cls.__hash__ is None and "__eq__" in cls.__dict__:
            cls.__hash__ = (lambda self: hash(several(self))) if frozen else None
        if "__eq__" not in cls.__dict__:
            cls.__eq__ = lambda self, other: (
                several(self) == several(other) if other.__class__ is self.__class__ else NotImplemented)

    def _refuse_to_set(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
