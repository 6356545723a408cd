"""What a run needs to know of a graph whose program is there already, without its operations."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..frozen import frozen
from ..model import Model, Operand
from ..types import Entry, Rim, Shape

if TYPE_CHECKING:
    from .codegen.ready import Ready
    from .steps import Options

Shapes = tuple[Shape | None, ...]


@frozen
class Sketch:
    """A graph, with a program for inputs of these shapes if there is one; `make` gives all of it, the same each time.
    """

    shapes: Shapes | None
    program: Callable[[Options], Ready] | None
    make: Callable[[], Model]


@frozen
class Outline(Sketch):
    """A model by its rim and the operands there, with such a program."""

    rim: Rim
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operands: Mapping[int, Operand]

    @property
    def signatures(self) -> dict[str, Entry]:
        """As `Model.signatures`."""
        return {e.name: e for e in self.rim.entries}
