"""Two files side by side: operations, types, shapes, grids, bytes, work and sparsity before and after."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from .emit.report import scaled, size
from .errors import UsageError
from .frozen import frozen
from .inspection import Inspection, TensorRow, of_model
from .types import ChannelQuant, Quant


@frozen
class Change:
    """One fact that differs: what it is of, before and after; "" where there is nothing of it."""

    of: str
    before: str
    after: str


@frozen
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


@frozen
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
    ops = _counts(a.names, b.names)
    types = _counts([t.type for t in a.tensors], [t.type for t in b.tensors])
    both = list(_named(a.tensors, b.tensors))
    return Comparison(
        before.source, after.source, ops,
        (*types, *(Change(x.name, x.type, y.type) for x, y in both if x.type != y.type)),
        tuple(Change(x.name, x.sizes, y.sizes) for x, y in both if x.shape != y.shape),
        tuple(Change(x.name, grid(x.quant), grid(y.quant)) for x, y in both if x.quant != y.quant),
        {name: Figure(of(a), of(b)) for name, of in FIGURES.items()})


def conditions(text: str) -> tuple[str, ...]:
    """What is not to be, as `dtype,ops,macs+5%,size+5%`: a list that changes, a figure that grows beyond a bound.

    Raises `UsageError` on what is no condition.
    """
    found = tuple(filter(None, text.replace(" ", "").split(",")))
    for part in found:
        match = GROWTH.fullmatch(part)
        if part not in LISTS and (match is None or match["figure"] not in FIGURES):
            raise UsageError(f"--fail-on does not know {part!r}", hint=f"its conditions are {', '.join(LISTS)} and the "
                             f"growth of {', '.join(FIGURES)}, as macs+5%")
    return found


def summary(found: Comparison) -> str:
    """What differs, in a line."""
    growths = {n: found.figures[n].growth for n in ("size", "macs")}
    return "equal" if found.equal else "   ".join(
        [*(f"{name} {len(of(found))}" for name, of in LISTS.items()),
         *(f"{name} {growth:+.1%}" for name, growth in growths.items() if growth)])


def met(condition: str, found: Comparison) -> bool:
    """Whether one of them holds; where the growth of a figure says nothing, whether the figure differs at all."""
    if condition in LISTS:
        return bool(LISTS[condition](found))
    match = GROWTH.fullmatch(condition)
    figure = found.figures[match["figure"]] if match else Figure(None, None)
    growth = figure.growth
    return figure.changed if growth is None else match is not None and growth > float(match["percent"]) / 100


def _converted(found: Inspection) -> Inspection:
    """The model that a source file becomes, in operations of the table."""
    return of_model(found.converted(), found.source, found.bytes)


def _counts(before: Sequence[str], after: Sequence[str]) -> tuple[Change, ...]:
    """Names whose numbers differ, those that differ most first."""
    a, b = Counter(before), Counter(after)
    names = sorted({*a, *b}, key=lambda n: (-abs(a[n] - b[n]), n))
    return tuple(Change(n, str(a[n]), str(b[n])) for n in names if a[n] != b[n])


def _named(a: Sequence[TensorRow], b: Sequence[TensorRow]) -> Iterator[tuple[TensorRow, TensorRow]]:
    """Tensors of one name in both, but for those that have numbers for names."""
    there = {(t.subgraph, t.name): t for t in b if not t.name.startswith("%")}
    return ((t, there[t.subgraph, t.name]) for t in a if (t.subgraph, t.name) in there)


def grid(quant: Quant | ChannelQuant | None) -> str:
    """A quantisation in words; "" where there is none."""
    if isinstance(quant, ChannelQuant):
        return f"{len(quant.scales)} scales on axis {quant.axis}, {min(quant.scales):.6g} to {max(quant.scales):.6g}"
    return "" if quant is None else f"scale {quant.scale:.6g} zero {quant.zero}"


def _density(found: Inspection) -> float | None:
    """The share of the weights' elements that are not zero, by their bytes."""
    parts = [(t.sparsity.density, t.sparsity.dense) for t in found.constants if t.sparsity is not None]
    whole = sum(n for _, n in parts)
    return sum(d * n for d, n in parts) / whole if whole else None


#: The figures of a comparison by name, each from what `inspect` finds; None where it is not known.
FIGURES: dict[str, Callable[[Inspection], float | None]] = {
    "size": lambda f: f.bytes, "weights": lambda f: sum(t.bytes or 0 for t in f.constants), "macs": lambda f: f.macs,
    "arena": lambda f: None if f.memory is None else f.memory.arena, "density": _density}
#: The lists of changes by name.
LISTS: dict[str, Callable[[Comparison], Sequence[Change]]] = {
    "ops": lambda c: c.ops, "dtype": lambda c: c.dtypes, "shape": lambda c: c.shapes, "scale": lambda c: c.scales}
#: How a figure is said.
SAID: dict[str, Callable[[float], str]] = {
    "size": lambda n: size(int(n)), "weights": lambda n: size(int(n)), "macs": lambda n: f"{scaled(int(n))}MAC",
    "arena": lambda n: size(int(n)), "density": lambda n: f"{n:.1%}"}
GROWTH = re.compile(r"(?P<figure>[a-z]+)\+(?P<percent>\d{1,6}(\.\d{1,6})?)%")
