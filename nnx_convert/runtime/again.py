"""Runs like the one before: what they need is looked up once, so that each is a few copies and one call."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..frozen import frozen
from ..types import Array, Shape

if TYPE_CHECKING:
    from .codegen.ready import Frame, Ready
    from .rim import Door, Doors


@frozen
class Way:
    """The arrays of a frame as the model's user sees them: where inputs go, and what takes each output out.

    `alike` are the inputs it is for. It knows no more of whom they are of: the program has its idle frames, so that a
    frame that had the program would keep both, and all weights, until the next search for cycles.
    """

    alike: tuple[tuple[Shape, np.dtype[Any]], ...]
    into: tuple[Array, ...]
    out: tuple[Callable[[], Any], ...]


class Again:
    """Runs of a native program on arrays of the same shapes and types as those of a run before.

    Of a model with states, these stay in the frame of one run for the next one: see `Held`.
    """

    def __init__(self, doors: Doors, program: Ready, given: Sequence[Array]) -> None:
        self.doors, self.program, self._pop = doors, program, program.pop
        self._alike = tuple((a.shape, a.dtype) for a in given)

    @classmethod
    def of(cls, doors: Doors, program: Ready, given: Sequence[Any], states: bool) -> Again | None:
        """Those like a run with these inputs, the states' left out; None where such runs need more than copies."""
        own = doors.inputs[:len(given)]
        alike = all(type(a) is np.ndarray and a.dtype == d.alike for a, d in zip(given, own, strict=True))
        if not alike or states and not program.program.states or None in program.program.inputs:
            return None
        found = cls(doors, program, given)
        frame = program.taken()
        fitting = found._way(frame) is not None
        program.back(frame)
        return found if fitting else None

    def fits(self, given: Sequence[Any]) -> bool:
        """Whether inputs are like those before."""
        if len(given) != len(self._alike):
            return False
        for value, (shape, dtype) in zip(given, self._alike):       # noqa: B905  (`strict` takes half a microsecond)
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
        return True

    def run(self, given: Sequence[Any]) -> list[Any] | None:
        """The outputs; None where the inputs are not like those before. Raises `RunError`."""
        if not self.fits(given):
            return None
        try:
            frame = self._pop()
        except IndexError:
            frame = self.program.taken()
        found = self.through(frame, given)
        self.program.back(frame)
        return found

    def through(self, frame: Frame, given: Sequence[Any]) -> list[Any]:
        """The outputs of a run in a frame, whose inputs fit."""
        way: Way | None = frame.way
        if way is None or way.alike is not self._alike:
            way = self._way(frame)
        if way is None:
            raise TypeError("a frame is not like the one before")
        for to, value in zip(way.into, given):                      # noqa: B905
            to[...] = value
        if frame.only is None:
            frame.go()
        else:
            frame.only()
        return [take() for take in way.out]

    def _way(self, frame: Frame) -> Way | None:
        """The way into a frame and out, kept there; None where a user's shape is no view of an input."""
        into = []
        for array, (shape, _) in zip(frame.inputs, self._alike, strict=False):
            view = None if array is None else viewed(array, shape)
            if view is None:
                return None
            into.append(view)
        out = zip(self.doors.outputs, frame.outputs, strict=True)
        found = Way(self._alike, tuple(into), tuple(self._taken(d, a) for d, a in out if not d.port.state))
        frame.way = found
        return found

    @staticmethod
    def _taken(door: Door, array: Array) -> Callable[[], Any]:
        """What takes an output out."""
        view = viewed(array, ()) if door.port.shape == () and array.size == 1 else array
        return view.copy if door.alike and view is not None else lambda: door.leave(array.copy())

    def holding(self, states: Mapping[str, Array]) -> Held | None:
        """A frame that holds such states, by name; None where one of them has another shape there."""
        frame = self.program.taken()
        for door, array in zip(self.doors.inputs, frame.inputs, strict=True):
            if door.port.state and array is not None:
                state = door.inward(states[door.port.name])
                if state.shape != array.shape:
                    self.program.back(frame)
                    return None
                array[...] = state
        return Held(self, frame)


@frozen
class Held:
    """A frame that holds the states from run to run: a run leaves its new ones where the next one reads them."""

    again: Again
    frame: Frame

    def run(self, given: Sequence[Any]) -> list[Any]:
        """The outputs of a run on inputs that fit. Raises `RunError`, then the states are those before."""
        return self.again.through(self.frame, given)

    def states(self) -> dict[str, Array]:
        """What is held, as the model's user sees it, by name."""
        pairs = zip(self.again.doors.inputs, self.frame.inputs, strict=True)
        return {d.port.name: d.leave(a.copy()) for d, a in pairs if d.port.state and a is not None}

    def free(self) -> None:
        """The end of it, after runs that went well."""
        self.again.program.back(self.frame)


def viewed(array: Array, shape: Shape) -> Array | None:
    """An array in another shape, where that is the same memory."""
    found = array.reshape(shape)
    return found if found.size == 0 or np.may_share_memory(found, array) else None
