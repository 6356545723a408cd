"""`nnx-convert inspect FILE`: what a file holds, as tables of at most 100 columns."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import ml_dtypes

from ..emit.report import LABEL, MOST, counted, headed, listed, scaled, size, wrapped
from ..inspection import Inspection, OpRow, TensorRow, inspect
from ..types import ChannelQuant, Quant, Shape
from .screen import Progress, show, show_json
from .tables import Column, show_table

#: Columns of a full arena.
BAR = 40
#: Number types as their files call them, without what all of NNAPI's begin with.
PREFIX = "TENSOR_"


def inspect_file(file: str, sections: Sequence[str], signature: str | None, shapes: Mapping[str, Shape], report: str
                 ) -> None:
    """Do it; raises `NnxError`. Without a section: what there is, in short."""
    with Progress() as progress:
        found = inspect(file, shapes=shapes, signature=signature, progress=progress)
        if "memory" in sections or report == "json":
            progress("planning")
            _ = found.memory                     # planned now, while progress is shown, and not when it is printed
    if report == "json":
        show_json(as_json(found, sections or tuple(SECTIONS)))
        return
    if not sections:
        show(summary(found), LABEL)
    for n, name in enumerate(sections):
        if n:
            show([("", "")], LABEL)
        SECTIONS[name](found)


def summary(found: Inspection) -> Iterator[tuple[str, str]]:
    """The screen without a section: counts, and the largest of everything."""
    constants = sum(t.bytes or 0 for t in found.constants)
    yield from headed(f"{found.source}   {found.format}, {size(found.bytes)}", "")
    names = Counter(found.names)
    yield from wrapped("operations", f"{len(found.operations)}: {listed(dict(names.most_common()))}")
    types = Counter(t.type.removeprefix(PREFIX) for t in found.tensors)
    yield from wrapped("tensors", f"{len(found.tensors)}: {listed(dict(types.most_common()))}")
    yield "weights", f"{counted(len(found.constants), 'constant')}, {size(constants)}"
    if kept := [t.sparsity for t in found.constants if t.sparsity and t.sparsity.levels]:
        yield "sparse", (f"{counted(len(kept), 'tensor')}, {size(sum(s.stored for s in kept))} in place of "
                         f"{size(sum(s.dense for s in kept))}")
    if grids := [t for t in found.tensors if t.quant is not None]:
        channels = sum(isinstance(t.quant, ChannelQuant) for t in grids)
        yield "quantised", f"{len(grids)} of {counted(len(found.tensors), 'tensor')}, {channels} per channel"
    at = ", where open sizes are 1" if found.at_1 else ""
    if found.macs is not None:
        yield "work", f"{scaled(found.macs)}MAC{at}"
    yield from largest("most work", [(o.macs or 0, f"{scaled(o.macs or 0)}MAC", o.origin) for o in found.operations])
    yield from largest("most bytes", [(t.bytes or 0, size(t.bytes or 0), t.name) for t in found.constants])


def largest(label: str, rows: Sequence[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    """The first few by size, those of nothing left out."""
    first = sorted((r for r in rows if r[0]), key=lambda r: -r[0])[:MOST]
    for n, (_, amount, name) in enumerate(first):
        yield "" if n else label, f"{amount:>10}   {name if len(name) < 70 else f'{name[:66]}...'}"


def operations(found: Inspection) -> None:
    """--ops: a line for each operation."""
    show_table([Column("operation"), Column("as"), Column("inputs", flexible=True), Column("outputs", flexible=True),
                Column("MAC", right=True), Column("weights", right=True)],
               list(map(operation, found.operations)))


def operation(o: OpRow) -> list[str]:
    """The cells of an operation."""
    work = "?" if o.macs is None else scaled(o.macs).strip() if o.macs else ""
    return [o.origin or o.operation, "" if o.operation == o.source else o.operation, ", ".join(o.inputs),
            ", ".join(o.outputs), work, size(o.weights) if o.weights else ""]


def tensors(found: Inspection) -> None:
    """--tensors: a line for each tensor."""
    show_table([Column("tensor", flexible=True), Column("role"), Column("type"), Column("shape"),
                Column("bytes", right=True), Column("made by", flexible=True), Column("read", right=True)],
               [[t.name, t.role, t.type.removeprefix(PREFIX), t.sizes, "?" if t.bytes is None else size(t.bytes),
                 t.made_by, str(t.readers)] for t in found.tensors])


def sparsity(found: Inspection) -> None:
    """--sparsity: the constants, those with the most zeros first, and the levels of those that are stored sparse.

    Dense levels of one place are left out.
    """
    rows = []
    both = [(t, t.sparsity) for t in found.constants if t.sparsity is not None]
    for t, s in sorted(both, key=lambda b: (not b[1].levels, b[1].density)):
        saved = s.dense - s.stored
        levels = ", ".join("block " * v.block + f"{v.format} {v.size}" + f" {v.density:.0%}" * (v.format == "sparse")
                           for v in s.levels if v.format == "sparse" or v.size > 1)
        rows.append([t.name, t.dtype, t.sizes, f"{s.density:.1%}", levels or "dense",
                     size(s.stored), size(saved) if saved > 0 else ""])
    show_table([Column("constant", flexible=True), Column("type"), Column("shape"), Column("kept", right=True),
                Column("levels", flexible=True), Column("bytes", right=True), Column("saved", right=True)], rows)


def quantisation(found: Inspection) -> None:
    """--quant: the grid of each tensor, and the reals it reaches."""
    rows = []
    for t in found.tensors:
        if isinstance(t.quant, Quant):
            rows.append([t.name, t.dtype, f"{t.quant.scale:.6g}", str(t.quant.zero), reach(t)])
        elif t.quant is not None:
            rows.append([t.name, t.dtype, f"{min(t.quant.scales):.3g} to {max(t.quant.scales):.3g}",
                         f"{len(t.quant.scales)} on axis {t.quant.axis}", reach(t)])
    show_table([Column("tensor", flexible=True), Column("type"), Column("scale", right=True), Column("zero"),
                Column("reaches", right=True)], rows)


def reach(t: TensorRow) -> str:
    """The reals between the ends of a tensor's grid."""
    if t.quant is None or "int" not in t.dtype:
        return ""
    ends = ml_dtypes.iinfo(t.dtype)  # type: ignore[no-untyped-call]
    if isinstance(t.quant, ChannelQuant):
        return f"up to {max(t.quant.scales) * ends.max:.4g}"
    return " to ".join(f"{t.quant.scale * (int(n) - t.quant.zero):.4g}" for n in (ends.min, ends.max))


def memory(found: Inspection) -> None:
    """--memory: what of the arena is in use at each step."""
    if found.memory is None:
        show([("memory", "is known in a run alone: sizes follow from values")], LABEL)
        return
    m = found.memory
    most = max(m.live, default=0)
    show([("arena", f"{size(m.arena)}, {size(most)} in use at the most" + ", open sizes being 1" * found.at_1)], LABEL)
    show_table([Column("step"), Column("in use", right=True), Column("")],
               [[name, size(n), "#" * round(BAR * n / max(m.arena, 1))]
                for name, n in zip(m.steps, m.live, strict=True)])


#: The sections by their options.
SECTIONS: dict[str, Callable[[Inspection], None]] = {
    "ops": operations, "tensors": tensors, "sparsity": sparsity, "quant": quantisation, "memory": memory}


def as_json(found: Inspection, sections: Sequence[str]) -> dict[str, Any]:
    """The same as what `json.dumps` takes; sections that are not asked for are null."""
    m = found.memory if "memory" in sections else None
    listed_ = {"tensors", "sparsity", "quant"} & set(sections)
    return {"source": found.source, "format": found.format, "bytes": found.bytes, "macs": found.macs,
            "measured_at_1": found.at_1,
            "operations": [asdict(o) for o in found.operations] if "ops" in sections else None,
            "tensors": [asdict(t) for t in found.tensors] if listed_ else None,
            "memory": None if m is None else {**asdict(m), "live": m.live}}
