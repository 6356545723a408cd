"""What is known while a graph is imported: names, ranks, contents of shape tensors; and graphs within graphs."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import FormatError
from ...frozen import frozen
from ...graph import Build, Evaluate, Graph, Value
from ...resources import deep
from ...types import Rim, Shape, Tensor
from .reader import Model
from .registry import Given, Items


@dataclass
class Session:
    """A checked file being imported.

    `scalars` have rank 0 in the file and are [1] here. `contents`: integer tensors whose elements are numbers and
    symbols. `kinds`: the ONNX type of a LIST value. `shapes`: the sizes of inputs that the caller wants; `sizes` are
    the named ones among these. `undecided`: branches that drop an axis if its size, which is open, is 1; `decided`: it
    is taken to be 1, which a run makes sure of.
    """

    model: Model
    shapes: Mapping[str, Shape]
    evaluate: Evaluate
    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: set[Value] = field(default_factory=set)
    contents: dict[Value, np.ndarray] = field(default_factory=dict)
    kinds: dict[Value, Any] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)
    decided: bool = False

    @property
    def stale(self) -> bool:
        """Whether sizes that the file declares say nothing, since the caller wants others."""
        return bool(self.shapes)

    def moved(self, old: Value, new: Value) -> Value:
        """What is known of a value, for another that stands for it."""
        if old in self.scalars:
            self.scalars.add(new)
        if old in self.contents:
            self.contents[new] = self.contents[old]
        if old in self.kinds:
            self.kinds[new] = self.kinds[old]
        return new


@frozen
class Region:
    """A graph attribute with the scope it stands in."""

    proto: Any
    scope: Scope


@frozen
class Body:
    """A graph attribute imported: its own inputs come first, then those that stand for `captured` outer values."""

    graph: Graph
    captured: tuple[Value, ...]


@dataclass
class Scope:
    """One graph, or one call of a function, being imported.

    `versions` are the operator sets its nodes are of. `inner`: names are looked up in the `outer` scope as well;
    what is found there and is no constant becomes an input of this graph.
    """

    session: Session
    build: Build
    versions: Mapping[str, int]
    outer: Scope | None = None
    inner: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    names: dict[str, Given] = field(default_factory=dict)
    captured: dict[Value, Value] = field(default_factory=dict)     # outer value -> the input that stands for it

    @property
    def depth(self) -> int:
        """How many scopes it stands in."""
        return 0 if self.outer is None else self.outer.depth + 1

    def find(self, name: str) -> Given:
        """The value of a name; "" is none. Raises `FormatError` where nothing defines it."""
        if not name:
            return None
        if name in self.names:
            return self.names[name]
        if not self.inner or self.outer is None:
            raise FormatError(f"reads {name!r}, which nothing before it defines")
        found = self.outer.find(name)
        self.names[name] = self._taken(found)
        return self.names[name]

    def _taken(self, found: Given) -> Given:
        """A value of the outer scope in this one, whose nodes are emitted into a graph of its own."""
        if found is None or self.outer is None or self.outer.build is self.build:
            return found
        if isinstance(found, Items):
            return replace(found, values=tuple(v for v in map(self._taken, found.values) if isinstance(v, Value)))
        if found.constant:
            return found
        if found not in self.captured:
            self.captured[found] = self.session.moved(found, Value(found.name, open_(found.tensor)))
        return self.captured[found]

    def define(self, name: str, value: Given) -> None:
        """Give a name its value; raises `FormatError` where it has one."""
        if name in self.names:
            raise FormatError(f"defines {name!r} for the second time")
        self.names[name] = value

    def nested(self, name: str, **changes: Any) -> Scope:
        """A scope in this one, for a graph of its own; raises `FormatError` where that is too deep."""
        deep(self.depth, "graphs are")
        return Scope(self.session, Build(name), self.versions, self, True, self.attributes, **changes)


def open_(t: Tensor) -> Tensor:
    """A tensor whose value is not known."""
    return replace(t, data=None)


def closed(bodies: Sequence[Body]) -> tuple[tuple[Graph, ...], tuple[Value, ...]]:
    """Graphs that take the same captured values: what only one of them reads the others take, too."""
    captured = tuple(dict.fromkeys(v for b in bodies for v in b.captured))
    graphs = []
    for b in bodies:
        own = b.graph.inputs[:len(b.graph.inputs) - len(b.captured)]
        there = dict(zip(b.captured, b.graph.inputs[len(own):], strict=True))
        taken = tuple(there.get(v) or Value(v.name, open_(v.tensor)) for v in captured)
        graphs.append(replace(b.graph, inputs=(*own, *taken), rim=Rim()))
    return tuple(graphs), captured
