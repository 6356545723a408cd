"""What a model keeps from run to run: the states, as its user sees them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import InputError
from ..types import Array, Port, Rim
from .forks import Locked
from .rim import fitted, initial


class Memory(Locked):
    """The states of one compiled model. A run reads and writes them as one: the next waits for it."""

    def __init__(self, rim: Rim) -> None:
        super().__init__()
        self._ports: dict[str, Port] = {p.name: p for p in rim.inputs if p.state}
        self._entering = tuple((i, p.name) for i, p in enumerate(rim.inputs) if p.state)
        self._leaving = tuple((i, p.name) for i, p in enumerate(rim.outputs) if p.state and p.name in self._ports)
        #: Whether there are any.
        self.kept = any(p.state for p in (*rim.inputs, *rim.outputs))
        self._now = self._start()

    def _start(self) -> dict[str, Array]:
        return {n: initial(p) for n, p in self._ports.items()}

    @contextmanager
    def open(self, given: Sequence[Any]) -> Iterator[list[Any]]:
        """The inputs with the states in place of None; while it is open, no other run has them."""
        complete = list(given)
        with self._lock:
            for i, name in self._entering:
                if complete[i] is None:
                    complete[i] = self._now[name]
            yield complete

    def keep(self, outputs: Sequence[Array]) -> None:
        """Take the next states out of a run's outputs, one for each port."""
        self._now |= {name: outputs[i] for i, name in self._leaving}

    def read(self) -> dict[str, Array]:
        """Copies, by name."""
        with self._lock:
            return {n: np.array(a) for n, a in self._now.items()}

    def write(self, values: Mapping[str, Any]) -> None:
        """Set some of them, all or none; raises `InputError` naming every one that does not fit."""
        faults = [f"there is no state {n!r}" for n in values if n not in self._ports]
        found = {n: fitted(self._ports[n], v) for n, v in values.items() if n in self._ports}
        faults += [v for v in found.values() if isinstance(v, str)]
        if faults:
            raise InputError("; ".join(faults), hint=f"the states are {', '.join(self._ports) or 'none'}")
        with self._lock:
            self._now |= {n: np.array(v) for n, v in found.items() if not isinstance(v, str)}

    def reset(self) -> None:
        """Each as before the first run."""
        with self._lock:
            self._now = self._start()
