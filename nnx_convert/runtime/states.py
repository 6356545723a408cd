"""What a model keeps from run to run: the states, as its user sees them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..types import Array, Port, Rim
from .forks import Locked
from .rim import fitted, initial

if TYPE_CHECKING:
    from .again import Again, Held


class Memory(Locked):
    """The states of one compiled model. A run reads and writes them as one: the next waits for it.

    They are here, or in the frame of the run before where the next one reads them.
    """

    def __init__(self, rim: Rim) -> None:
        super().__init__()
        self._ports: dict[str, Port] = {p.name: p for p in rim.inputs if p.state}
        self._entering = tuple((i, p.name) for i, p in enumerate(rim.inputs) if p.state)
        self._leaving = tuple((i, p.name) for i, p in enumerate(rim.outputs) if p.state and p.name in self._ports)
        #: Whether there are any.
        self.kept = any(p.state for p in (*rim.inputs, *rim.outputs))
        self._now = self._start()
        self._held: Held | None = None

    def run(self, again: Again, given: Sequence[Any]) -> list[Any] | None:
        """The outputs of a run like the one before; None where it is none. Raises `RunError`."""
        with self._lock:
            if not again.fits(given):
                return None
            held = self._held
            if held is None or held.again is not again:
                held = self._held = again.holding(self._settled())
            if held is None:
                return None
            try:
                return held.run(given)
            except BaseException:
                self._now, self._held = held.states(), None
                raise

    def _settled(self) -> dict[str, Array]:
        """The states, which are here from now on."""
        if self._held is not None:
            self._now = self._held.states()
            self._let_go()
        return self._now

    def _let_go(self) -> None:
        """The frame's states count no longer."""
        if self._held is not None:
            self._held.free()
            self._held = None

    def _start(self) -> dict[str, Array]:
        return {n: initial(p) for n, p in self._ports.items()}

    @contextmanager
    def open(self, given: Sequence[Any]) -> Iterator[list[Any]]:
        """The inputs with the states in place of None; while it is open, no other run has them."""
        complete = list(given)
        with self._lock:
            now = self._settled()
            for i, name in self._entering:
                if complete[i] is None:
                    complete[i] = now[name]
            yield complete

    def keep(self, outputs: Sequence[Array]) -> None:
        """Take the next states out of a run's outputs, one for each port."""
        self._now |= {name: outputs[i] for i, name in self._leaving}

    def read(self) -> dict[str, Array]:
        """Copies, by name."""
        with self._lock:
            now = self._now if self._held is None else self._held.states()
            return {n: np.array(a) for n, a in now.items()}

    def write(self, values: Mapping[str, Any]) -> None:
        """Set some of them, all or none; raises `InputError` naming every one that does not fit."""
        faults = [f"there is no state {n!r}" for n in values if n not in self._ports]
        found = {n: fitted(self._ports[n], v) for n, v in values.items() if n in self._ports}
        faults += [v for v in found.values() if isinstance(v, str)]
        if faults:
            raise InputError("; ".join(faults), hint=f"the states are {', '.join(self._ports) or 'none'}")
        with self._lock:
            self._now = self._settled() | {n: np.array(v) for n, v in found.items() if not isinstance(v, str)}

    def reset(self) -> None:
        """Each as before the first run."""
        with self._lock:
            self._now = self._start()
            self._let_go()
