"""Tensors of a source file in a run of what it was compiled to, by their names."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..convert import Data, import_graph
from ..errors import UsageError, among
from ..graph import Graph
from ..lowering.flatten import flatten
from ..runtime.rim import Doors
from ..target import Target
from ..types import Array, Shape
from .segments import Cut, Program, cut


class Tapping:
    """What `CompiledModel.run(tap=...)` asks: the file is read and lowered again when something is tapped first."""

    def __init__(self, data: Data, folder: Path | None, shapes: Mapping[str, Shape], target: Target, backend: str,
                 threads: int | None) -> None:
        self._file, self._target, self._options = (data, shapes, None, folder), target, (backend, threads or 0)
        self._programs: dict[tuple[str, ...], Program] = {}

    @cached_property
    def _graph(self) -> Graph:
        return import_graph(*self._file)

    @cached_property
    def _cut(self) -> Cut:
        return cut(self._graph, self._target, bool)

    @cached_property
    def _doors(self) -> Doors:
        return Doors(flatten(self._cut.legal))

    def __call__(self, names: Sequence[str], inputs: Sequence[Any]) -> Mapping[str, Array]:
        """The tensors of these names; raises `UsageError` on one that is not to be had."""
        if not names:
            return {}
        key = tuple(names)
        if key not in self._programs:
            anchors = {a.name: a for a in self._cut.anchors}
            self._known(names, anchors)
            self._programs[key] = Program(self._cut, [anchors[n] for n in names], *self._options, fed=False)
        given = zip(self._cut.legal.inputs, self._doors.enter(inputs), strict=True)
        return dict(self._programs[key].run(dict(given), {}))

    def _known(self, names: Sequence[str], anchors: Mapping[str, Any]) -> None:
        if lost := [n for n in names if n not in anchors]:
            there = any(v.name == lost[0] for n in self._graph.nodes for v in n.outputs)
            said = f"the tensor {lost[0]!r} is not computed by itself: lowering made it a part of another operation, " \
                   "or the file has several of this name" if there else f"there is no tensor {lost[0]!r}"
            raise UsageError(said, hint=among(lost[0], list(anchors), "tensors"))
