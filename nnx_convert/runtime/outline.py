"""What a run needs to know of a model whose program is there already: the ways in and out, without the operations."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..model import Model, Operand
from ..types import Entry, Rim, Shape

if TYPE_CHECKING:
    from .codegen.ready import Ready


@dataclass(frozen=True)
class Outline:
    """A model by its rim and the operands there, with a program for inputs of these shapes; `make` gives all of it."""

    rim: Rim
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operands: Mapping[int, Operand]
    shapes: tuple[Shape | None, ...]
    program: Ready
    make: Callable[[], Model]

    @property
    def signatures(self) -> dict[str, Entry]:
        """As `Model.signatures`."""
        return {e.name: e for e in self.rim.entries}

    @cached_property
    def whole(self) -> Model:
        """The model; raises what making it does."""
        return self.make()
