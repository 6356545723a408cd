"""The NNAPI model, field for field: operands, operations, inputs and outputs, frozen once it is checked."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .codes import FeatureLevel
from .frozen import frozen
from .types import (
    UNKNOWN, Arg, ChannelQuant, Entry, Port, Quant, Rim, Scalar, Signature, Source, Tensor, Type, known)

if TYPE_CHECKING:
    from .schema import Checked, OpDef


class Lifetime(Enum):
    """Where an operand's value comes from."""

    TEMPORARY = "temporary"
    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    NO_VALUE = "no value"
    SUBGRAPH = "subgraph"


@frozen
class Operand:
    """One operand. In `dims` a 0 is a size not known yet; no dims at all on a tensor, a rank not known."""

    type: Type
    dims: tuple[int, ...] = ()
    quant: Quant | ChannelQuant | None = None
    lifetime: Lifetime = Lifetime.TEMPORARY
    value: np.ndarray[Any, Any] | Model | None = None

    def tensor(self) -> Tensor:
        """What is known of it as an output, or of a constant."""
        scalar = self.type.group != "tensor"
        data = self.value if isinstance(self.value, np.ndarray) else None
        if data is not None:
            return Tensor(self.type, self.dims, self.quant, data)
        dims = tuple(n or UNKNOWN for n in self.dims) if self.dims or scalar else None
        return Tensor(self.type, dims, self.quant)

    def arg(self) -> Arg:
        """What an operation that reads it knows of it."""
        if self.lifetime is Lifetime.NO_VALUE:
            return None
        if isinstance(self.value, Model):
            return self.value.signature()
        if self.type.group == "tensor":
            return replace(self.tensor(), omittable=self.lifetime in (Lifetime.INPUT, Lifetime.TEMPORARY))
        return Scalar(self.type, self.value.item() if isinstance(self.value, np.ndarray) else UNKNOWN)


@frozen
class Operation:
    """An operation by its row in the table, its operands by index."""

    op: OpDef
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@frozen
class Step:
    """One operation of a model with what it reads and writes: what `for step in model` gives.

    `index` is its place in the model, `op` its row in the table, `inputs` and `outputs` its operands in order,
    `origin` its place in the source file ("" where it has none), `checked` the table's verdict.
    """

    index: int
    op: OpDef
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    origin: str
    checked: Checked

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.op.name

    @property
    def level(self) -> int:
        """The first feature level that takes it."""
        return self.checked.level


@frozen
class Model:
    """A finished model: operations in an order they can run in, each as the table checked it.

    Iterating gives a `Step` for each. `checked[i]` is the table's verdict on `operations[i]`. `rim` is how a user sees
    the inputs and outputs; `origin` says where each operation comes from in the source file ("" where it does not).
    """

    operands: tuple[Operand, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    relaxed: bool
    checked: tuple[Checked, ...]
    rim: Rim
    origin: tuple[str, ...] = ()
    #: What lowering did and could not do, for reports: a line each.
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Step]:
        """The operations in order, those of subgraphs not included (see `subgraphs`)."""
        origins = self.origin or ("",) * len(self.operations)
        for i, (o, c, at) in enumerate(zip(self.operations, self.checked, origins, strict=True)):
            ins, outs = (tuple(self.operands[n] for n in those) for those in (o.inputs, o.outputs))
            yield Step(i, o.op, ins, outs, at, c)

    @property
    def source(self) -> Source | None:
        """The file it was made from; None where it was built call by call."""
        return self.rim.source

    @property
    def signatures(self) -> dict[str, Entry]:
        """The source file's signatures that lead to this model, by name."""
        return {e.name: e for e in self.rim.entries}

    def signature(self) -> Signature:
        """The model as an IF or a WHILE sees it."""
        return Signature(tuple(self.operands[i].tensor() for i in self.inputs),
                         tuple(self.operands[i].tensor() for i in self.outputs))

    @property
    def subgraphs(self) -> Iterator[Model]:
        """The models its operands hold."""
        return (o.value for o in self.operands if isinstance(o.value, Model))

    @cached_property
    def depth(self) -> int:
        """How deep the models in its operands are nested; 0 where there are none."""
        return max((m.depth + 1 for m in self.subgraphs), default=0)

    @cached_property
    def level(self) -> int:
        """The first feature level that takes the model; host and experimental operations do not count."""
        own = (c.level for o, c in zip(self.operations, self.checked, strict=True)
               if not o.op.host and c.level != FeatureLevel.EXPERIMENTAL)
        return max((*own, *(m.level for m in self.subgraphs), 28 if self.relaxed else 27))

    @cached_property
    def experimental(self) -> bool:
        """Whether it has operations of the experimental level (DENSIFY)."""
        own = any(c.level == FeatureLevel.EXPERIMENTAL for c in self.checked)
        return own or any(m.experimental for m in self.subgraphs)

    def save(self, path: str | Path) -> None:
        """Write the model as a .nnx file, whole or not at all; the same model gives the same bytes."""
        from .artifact import save
        save(self, path)

    def to_json(self, path: str | Path) -> None:
        """Write the model as a JSON file (docs/model.schema.json), longer constants as NAME.weights.bin beside it."""
        from .artifact.as_json import save_json
        save_json(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        from .artifact import from_bytes, to_bytes
        return from_bytes, (to_bytes(self),)


def default_rim(operands: tuple[Operand, ...], inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Rim:
    """Ports of a model that no source file names."""
    return Rim(tuple(_port(f"input{i}", operands[n]) for i, n in enumerate(inputs)),
               tuple(_port(f"output{i}", operands[n]) for i, n in enumerate(outputs)))


def _port(name: str, o: Operand) -> Port:
    """The port of an operand; of what a list holds nothing is known, and most hold float32."""
    t = o.tensor()
    if t.type is Type.TENSOR_LIST:
        return Port(name, "sequence(float32)", None)
    shape = None if t.dims is None else tuple(n if known(n) else None for n in t.dims)
    return Port(name, t.type.dtype.name, shape, t.quant)
