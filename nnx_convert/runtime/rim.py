"""Between the arrays a user knows and those the operands hold: names, scalars, wider integers, signed bytes."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..codes import dtype_of
from ..contents import Contents, contents
from ..errors import InputError, UsageError, among
from ..model import Model, Operand
from ..types import Array, Port, Quant, Shape
from .given import NO_ARRAY, entered, left
from .memory import affordable
from .outline import Outline


def listed(given: Any) -> list[Any]:
    """Inputs by position as a list; raises `InputError` on what is no sequence."""
    try:
        return list(given)
    except NO_ARRAY as error:
        kind = type(given).__name__
        raise InputError(f"inputs are a mapping by name or a sequence by position, not {kind}") from error


def by_position(ports: Sequence[Port], given: Mapping[str, Any]) -> list[Any]:
    """Inputs by name in the ports' order; raises `InputError` naming those that are missing or not there.

    States and optional inputs may be missing.
    """
    names = [p.name for p in ports]
    extra = [n for n in given if n not in names]
    missing = [p.name for p in ports if p.name not in given and not p.state and not optional(p)]
    if extra or missing:
        said = [f"there is no input {', '.join(map(repr, extra))}"] * bool(extra)
        said += [f"{', '.join(map(repr, missing))} is missing"] * bool(missing)
        raise InputError("; ".join(said), hint=among(str(extra[0]) if extra else "", names, "inputs"))
    return [given.get(n) for n in names]


def optional(port: Port) -> bool:
    """Whether None is a value of it."""
    return port.dtype.startswith("optional")


def completed(ports: Sequence[Port], given: Sequence[Any]) -> list[Any]:
    """Inputs by position, the states that are left out as None; raises `InputError` on another number of them."""
    if len(given) == len(ports):
        return list(given)
    own = [p for p in ports if not p.state]
    if len(given) != len(own):
        raise InputError(f"takes {len(own)} inputs, not {len(given)}",
                         hint=f"the inputs are {', '.join(p.name for p in ports)}")
    return [*given, *[None] * (len(ports) - len(given))]


def chosen(ports: Sequence[Port], shapes: Mapping[str, Shape]) -> list[Shape]:
    """The shape of each input: the one given for its name, else its own.

    Raises `UsageError` on a name or a shape that the ports do not have, `InputError` where a size stays open.
    """
    if extra := [n for n in shapes if all(p.name != n for p in ports)]:
        raise UsageError(f"there is no input {', '.join(map(repr, extra))}",
                         hint=among(str(extra[0]), [p.name for p in ports], "inputs"))
    for p in ports:
        if p.name in shapes and not takes(p, shapes[p.name]):
            raise UsageError(f"input {p.name!r} cannot have the shape {list(shapes[p.name])}",
                             hint=f"the model has {shown(p)}; other sizes are given when its source is converted")
    named = sizes_by_name(ports, [shapes.get(p.name) for p in ports])
    found = {p.name: shapes.get(p.name, completed_by(p, named)) for p in ports}
    if open_ := [n for n, s in found.items() if s is None or None in s]:
        raise InputError(f"the sizes of {', '.join(open_)} are open", hint="give shapes")
    return [tuple(n or 0 for n in s or ()) for s in found.values()]


def sizes_by_name(ports: Sequence[Port], shapes: Sequence[Sequence[int] | None]) -> dict[str, int]:
    """What the shapes of inputs say of the sizes that have names; raises `InputError` where they say two things."""
    said: dict[str, tuple[int, str]] = {}
    for port, shape in zip(ports, shapes, strict=True):
        for name, n in zip(port.sizes, shape or (), strict=False):
            before, where = said.setdefault(name, (n, port.name))
            if name and before != n:
                raise InputError(f"{name} is {before} in {where!r} and {n} in {port.name!r}",
                                 hint="one name is one size: the model was lowered for that")
    return {name: n for name, (n, _) in said.items() if name}


def completed_by(port: Port, sizes: Mapping[str, int]) -> tuple[int | None, ...] | None:
    """A port's own shape, with sizes by their names."""
    if port.shape is None or not port.sizes:
        return port.shape
    return tuple(sizes.get(name) if n is None else n for n, name in zip(port.shape, port.sizes, strict=True))


def takes(port: Port, shape: Sequence[int]) -> bool:
    """Whether a port can have a shape: its own sizes where they are known."""
    return port.shape is None or len(shape) == len(port.shape) and all(
        n is None or n == m for n, m in zip(port.shape, shape, strict=True))


def shown(port: Port) -> str:
    """The port's shape in words, its name or a question mark for a size that is open."""
    names = port.sizes or ("",) * len(port.shape or ())
    return "[" + ",".join(name or "?" if n is None else str(n)
                          for n, name in zip(port.shape or (), names, strict=True)) + "]"


def fitted(port: Port, value: Any) -> Array | str:
    """The value as an array of what the port holds, converted only where no value changes; else what is wrong."""
    found = entered(contents(port.dtype), value)
    if isinstance(found, str):
        return f"{port.name!r} is {found}"
    if not takes(port, found.shape):
        return f"{port.name!r} has shape {list(found.shape)}, not {shown(port)}"
    return found


def inside(shape: Shape, operand: Operand) -> Shape:
    """A user's shape as the operand's: NNAPI has no rank 0, and inputs of more than four axes enter with fewer."""
    if 0 < len(operand.dims) < len(shape) and math.prod(shape) == math.prod(operand.dims):
        return operand.dims
    return shape or (() if operand.type.group != "tensor" else (1,))


class Door:
    """The way between a port and its operand: what every run needs to know of both, found once."""

    def __init__(self, port: Port, operand: Operand) -> None:
        self.port, self.operand = port, operand
        self.holds = contents(port.dtype)
        self.dtype = dtype_of(self.holds) if isinstance(self.holds, str) else None
        self.optional = optional(port)
        #: The type of arrays that are the operand's as they are.
        self.alike = self.dtype if self.dtype == operand.type.dtype != np.dtype(object) else None

    def inward(self, array: Array) -> Array:
        """The port's array as the operand's; raises `InputError` where that cannot hold a value."""
        array = array.reshape(inside(array.shape, self.operand))
        want = self.operand.type.dtype
        if array.dtype == want:
            return array
        if (self.port.dtype, want.name) == ("int8", "uint8"):
            return array.view(np.uint8) ^ np.uint8(0x80)
        if np.can_cast(want, array.dtype, "safe") and array.size and not np.array_equal(array.astype(want), array):
            raise InputError(f"{self.port.name!r} has values that {want} cannot hold")
        return array.astype(want)

    def leave(self, array: Array) -> Any:
        """An operand's array as the source file declares it: an array, a list, None, a dict."""
        if isinstance(self.holds, Contents):
            return left(self.holds, array)
        if self.port.shape == () and array.size == 1:
            array = array.reshape(())
        if array.dtype == self.dtype:
            return array if self.alike else left(self.holds, array)
        if (array.dtype.name, self.port.dtype) == ("uint8", "int8"):
            return (array ^ np.uint8(0x80)).view(np.int8)
        return array.astype(self.dtype)


class Doors:
    """All ways into a model and out of it."""

    def __init__(self, model: Model | Outline) -> None:
        self.inputs = tuple(Door(p, model.operands[i]) for p, i in zip(model.rim.inputs, model.inputs, strict=True))
        self.outputs = tuple(Door(p, model.operands[i]) for p, i in zip(model.rim.outputs, model.outputs, strict=True))
        #: Shapes of inputs that were in order, outside and inside, where their arrays may enter as they are.
        self._seen: tuple[tuple[Shape, Shape], ...] = ()

    def enter(self, given: Sequence[Any]) -> list[Array | None]:
        """Users' inputs, one for each port, as the operands' arrays; raises `InputError` naming all that do not fit."""
        if (seen := self._seen) and self._as_before(seen, given):
            return [array.reshape(inner) for array, (_, inner) in zip(given, seen, strict=True)]
        found = [None if value is None and not door.optional else fitted(door.port, value)
                 for door, value in zip(self.inputs, given, strict=True)]
        if faults := [fault for fault in found if isinstance(fault, str)]:
            raise InputError("; ".join(faults))
        fit = [array for array in found if not isinstance(array, str)]
        arrays = [None if array is None else door.inward(array) for door, array in zip(self.inputs, fit, strict=True)]
        sizes_by_name([d.port for d in self.inputs], [None if array is None else array.shape for array in fit])
        seen = tuple((outside.shape, array.shape) for outside, array in zip(fit, arrays, strict=True)
                     if outside is not None and array is not None)
        if len(seen) == len(given) and all(door.alike for door in self.inputs):
            self._seen = seen
        return arrays

    def _as_before(self, seen: Sequence[tuple[Shape, Shape]], given: Sequence[Any]) -> bool:
        for value, door, (shape, _) in zip(given, self.inputs, seen, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != door.alike:
                return False
        return True

    def leave(self, arrays: Sequence[Array]) -> list[Any]:
        """Outputs as the source file declares them: arrays, lists, None, dicts."""
        return [door.leave(array) for door, array in zip(self.outputs, arrays, strict=True)]


def initial(port: Port) -> Array:
    """What a state holds before the first run, as its user sees it: zeros, as in TFLite the real one for int8 only.

    Raises `RunError` where the machine's memory does not hold it.
    """
    if port.initial is not None:
        return port.initial
    dtype = dtype_of(port.dtype)
    zero = port.quant.zero if isinstance(port.quant, Quant) and dtype == np.int8 else 0
    shape = tuple(1 if n is None else n for n in port.shape or ())
    affordable(math.prod(shape) * dtype.itemsize, f"the state {port.name!r}")
    return np.full(shape, zero, dtype)
