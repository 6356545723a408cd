"""Two files side by side: operations, types, shapes, grids, bytes, work and sparsity before and after."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .inspection import Inspection, TensorRow, of_model
from .types import ChannelQuant, Quant


@dataclass(frozen=True)
class Change:
    """One fact that differs: what it is of, before and after; "" where there is nothing of it."""

    of: str
    before: str
    after: str


@dataclass(frozen=True)
class Figure:
    """A number before and after; None where it is not known."""

    before: float | None
    after: float | None

    @property
    def growth(self) -> float | None:
        """How much more it is afterwards, in parts of what it was; None where that says nothing."""
        if self.before is None or self.after is None:
            return None
        return (self.after - self.before) / self.before if self.before else (0.0 if not self.after else None)

    @property
    def changed(self) -> bool:
        """Whether it differs."""
        return self.before != self.after


@dataclass(frozen=True)
class Comparison:
    """What differs between two files.

    `ops` are numbers of operations by name, `dtypes` numbers of tensors by type and the types of tensors of one name,
    `shapes` and `scales` those of tensors of one name. `figures` are by name: the `size` of the file and of its
    `weights` in bytes, `macs`, the `arena` in bytes, and the share of weights that are not zero as `density`.
    """

    before: str
    after: str
    ops: tuple[Change, ...]
    dtypes: tuple[Change, ...]
    shapes: tuple[Change, ...]
    scales: tuple[Change, ...]
    figures: Mapping[str, Figure]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        lists = (self.ops, self.dtypes, self.shapes, self.scales)
        return not any(lists) and not any(f.changed for f in self.figures.values())


def compare(before: Inspection, after: Inspection) -> Comparison:
    """What differs. Of files of two formats, what they become is compared."""
    a, b = (before, after) if before.format == after.format else (_converted(before), _converted(after))
    ops = _counts([o.source or o.operation for o in a.operations], [o.source or o.operation for o in b.operations])
    types = _counts([t.type for t in a.tensors], [t.type for t in b.tensors])
    both = list(_named(a.tensors, b.tensors))
    return Comparison(
        before.source, after.source, ops,
        (*types, *(Change(x.name, x.type, y.type) for x, y in both if x.type != y.type)),
        tuple(Change(x.name, _shape(x), _shape(y)) for x, y in both if x.shape != y.shape),
        tuple(Change(x.name, grid(x.quant), grid(y.quant)) for x, y in both if x.quant != y.quant),
        {"size": Figure(before.bytes, after.bytes), "weights": Figure(_weights(a), _weights(b)),
         "macs": Figure(a.macs, b.macs), "arena": Figure(_arena(a), _arena(b)),
         "density": Figure(_density(a), _density(b))})


def _converted(found: Inspection) -> Inspection:
    """The model that a source file becomes, in operations of the table."""
    own = of_model(found.converted(), found.source, found.bytes)
    return replace(own, operations=tuple(replace(o, source="") for o in own.operations))


def _counts(before: Sequence[str], after: Sequence[str]) -> tuple[Change, ...]:
    """Names whose numbers differ, those that differ most first."""
    a, b = Counter(before), Counter(after)
    names = sorted({*a, *b}, key=lambda n: (-abs(a[n] - b[n]), n))
    return tuple(Change(n, str(a[n]), str(b[n])) for n in names if a[n] != b[n])


def _named(a: Sequence[TensorRow], b: Sequence[TensorRow]) -> Iterator[tuple[TensorRow, TensorRow]]:
    """Tensors of one name in both, but for those that have numbers for names."""
    there = {(t.subgraph, t.name): t for t in b if not t.name.startswith("%")}
    return ((t, there[t.subgraph, t.name]) for t in a if (t.subgraph, t.name) in there)


def _shape(t: TensorRow) -> str:
    return "[...]" if t.shape is None else f"[{','.join('?' if n is None else str(n) for n in t.shape)}]"


def grid(quant: Quant | ChannelQuant | None) -> str:
    """A quantisation in words; "" where there is none."""
    if isinstance(quant, ChannelQuant):
        return f"{len(quant.scales)} scales on axis {quant.axis}, {min(quant.scales):.6g} to {max(quant.scales):.6g}"
    return "" if quant is None else f"scale {quant.scale:.6g} zero {quant.zero}"


def _weights(found: Inspection) -> int:
    return sum(t.bytes or 0 for t in found.constants)


def _arena(found: Inspection) -> int | None:
    return None if found.memory is None else found.memory.arena


def _density(found: Inspection) -> float | None:
    """The share of the weights' elements that are not zero, by their bytes."""
    parts = [(t.sparsity.density, t.sparsity.dense) for t in found.constants if t.sparsity is not None]
    whole = sum(n for _, n in parts)
    return sum(d * n for d, n in parts) / whole if whole else None
