"""What there is to say of a converted model: the facts that every report shows."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..artifact.encode import narrowest
from ..frozen import frozen
from ..model import Model
from ..ops.sparse import DENSIFY
from ..schema import HOST_CODES, OPS, OpDef
from ..target import level_name
from ..types import ChannelQuant, Entry, Port, Quant, Source, Tensor
from .levels import Reason, every_model, needs
from .macs import macs
from .transposes import Transposes, transposes

KINDS = ("base", "EX", "DENSIFY", "host")


@frozen
class PortFacts:
    """An input or output; a size that each run chooses is None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    quantization: dict[str, Any] | None
    state: bool
    range: tuple[float, float] | None = None
    normalization: dict[str, Any] | None = None
    sizes: tuple[str, ...] = ()


@frozen
class HostFacts:
    """Operations that run on the host for one reason, and where the first of them comes from."""

    operation: str
    count: int
    origin: str
    reason: str


@frozen
class Emitted:
    """What was written beside the .nnx file: the `kind` and the `path` asked for, its `files`, and their bytes."""

    kind: str
    path: str
    files: tuple[str, ...]
    bytes: int


@frozen
class Facts:
    """A converted model in numbers. Sizes are in bytes; what is not known is None.

    `made_from` is the file the model was made from, `entries` are its signatures that lead to the model.
    `operations` counts them by kind (base, EX, DENSIFY, host) and name; `reasons` says what makes the feature
    level what it is. `sparse_bytes` is what the sparse constants take, `dense_bytes` what they would dense.
    `measured_at_1` says that arena, MACs and the bytes of transposes are those of a run whose open sizes are 1.
    """

    source: str
    format: str
    source_bytes: int
    seconds: float
    inputs: tuple[PortFacts, ...]
    outputs: tuple[PortFacts, ...]
    made_from: Source | None
    entries: tuple[Entry, ...]
    level: str
    operations: dict[str, dict[str, int]]
    host: tuple[HostFacts, ...]
    reasons: tuple[Reason, ...]
    weight_bytes: int
    sparse_bytes: int
    dense_bytes: int
    arena_bytes: int | None
    macs: int | None
    measured_at_1: bool
    transposes: Transposes
    notes: tuple[str, ...]
    output: str | None = None
    output_bytes: int | None = None
    emitted: tuple[Emitted, ...] = ()

    def json(self) -> dict[str, Any]:
        """The same as what `json.dumps` takes; the keys are the field names."""
        return asdict(self)


def facts(model: Model, *, source: str, format: str, source_bytes: int, seconds: float,
          arena_bytes: int | None, measured: Model | None = None) -> Facts:
    """The facts of a model that was read from `source` in `seconds`.

    `measured`: the same model with its open sizes set to 1, where `arena_bytes` is that one's.
    """
    models = every_model(model)
    sparse, dense = sparse_sizes(models)
    return Facts(source, format, source_bytes, seconds, tuple(map(port, model.rim.inputs)),
                 tuple(map(port, model.rim.outputs)), model.source, model.rim.entries, level_name(model.level),
                 by_kind(models), host(models), needs(model), weight_bytes(models), sparse, dense, arena_bytes,
                 macs(measured or model), measured is not None and measured is not model,
                 transposes(every_model(measured or model)), model.notes)


def port(p: Port) -> PortFacts:
    """An input or output."""
    norm = None if p.norm is None else {"mean": list(p.norm[0]), "std": list(p.norm[1])}
    return PortFacts(p.name, p.dtype, p.shape, quantization(p.quant), p.state, p.range, norm, p.sizes)


def quantization(quant: Quant | ChannelQuant | None) -> dict[str, Any] | None:
    """A grid in words."""
    if isinstance(quant, ChannelQuant):
        return {"scales": list(quant.scales), "axis": quant.axis}
    return None if quant is None else {"scale": quant.scale, "zero_point": quant.zero}


def kind(op: OpDef) -> str:
    """Where an operation is from."""
    if op.host:
        return "host"
    return "DENSIFY" if op is DENSIFY else "EX" if op.ex else "base"


def by_kind(models: Iterable[Model]) -> dict[str, dict[str, int]]:
    """Names with their counts by kind, the most frequent first."""
    counts = Counter((kind(o.op), o.op.name) for m in models for o in m.operations)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {k: {name.removeprefix("host."): n for (of, name), n in ordered if of == k} for k in KINDS}


def host(models: Iterable[Model]) -> tuple[HostFacts, ...]:
    """The host operations, those of one name and reason together."""
    models, found = list(models), dict[tuple[str, str], list[str]]()
    hosts = Hosts.of(models)
    for m in models:
        for step in m:
            if step.op.host:
                name = step.name.removeprefix("host.")
                found.setdefault((name, hosts.why(step.origin, name)), []).append(step.origin)
    return tuple(HostFacts(name, len(at), at[0], why) for (name, why), at in found.items())


@frozen
class Hosts:
    """Why lowering gave operations to the host: what it noted, by their places in the source file and their names."""

    noted: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, models: Iterable[Model]) -> Hosts:
        """Of a model and its subgraphs, the notes on which are the model's."""
        found: dict[tuple[str, str], str] = {}
        for note in (n for m in models for n in m.notes):
            place, _, rest = note.partition(": to_host on ")
            name, _, why = rest.partition(": ")
            if why:
                found.setdefault((place, name), why)
        return cls(found)

    def why(self, origin: str, name: str) -> str:
        """The reason for an operation, by its name without `host.`."""
        why = self.noted.get((origin, name)) or self.noted.get((origin, f"host.{name}"), "")
        if not why:
            near = (OPS[name].code or HOST_CODES) < HOST_CODES
            why = f"NNAPI's {name} would not give the same" if near else "NNAPI has no such operation"
        return why.removeprefix(f"{name}: ")


def weight_bytes(models: Iterable[Model]) -> int:
    """The size of the constant tensors, each array once."""
    arrays = {id(o.value): o.value for m in models for o in m.operands
              if o.type.group == "tensor" and isinstance(o.value, np.ndarray)}
    return sum(a.nbytes for a in arrays.values())


def sparse_sizes(models: Iterable[Model]) -> tuple[int, int]:
    """The bytes of the sparse constants as a file keeps them, and those they would take dense."""
    stored = dense = 0
    for m, o, out in _densified(models):
        stored += sum(narrowest(v).nbytes for i in o if isinstance(v := m.operands[i].value, np.ndarray))
        dense += out.size * out.type.dtype.itemsize
    return stored, dense


def _densified(models: Iterable[Model]) -> Iterator[tuple[Model, tuple[int, ...], Tensor]]:
    for m in models:
        for o, c in zip(m.operations, m.checked, strict=True):
            if o.op is DENSIFY and m.operands[o.inputs[0]].value is not None:
                yield m, o.inputs, c.outputs[0]
