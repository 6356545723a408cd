"""`--emit object:DIR`: the model as native code for an app that has neither NNAPI nor this package."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from .. import aot
from ..arrays import gathered
from ..artifact import from_bytes
from ..convert import HERE, convert, kind, read
from ..errors import NnxError, RunError
from ..model import Model
from ..runtime.codegen.machine import Machine
from ..runtime.compiled import TensorSpec
from ..types import Shape

#: Runs in a row of the example, of a model that keeps a state.
STATEFUL = 3


def write_object(path: str, source: str, shapes: Mapping[str, Shape], signature: str | None, triple: str | None,
                 features: str, progress: Callable[[str], None]) -> list[Path]:
    """Write the folder; its files. Raises `NnxError`. It is lowered for this package, whatever a device takes."""
    machine = aot.machine(triple, features)
    data, name = read(source)
    model = from_bytes(data) if kind(data) == "nnx" else convert(source, HERE, shapes=shapes, signature=signature)
    progress("generating code")
    try:
        return exported(model, machine, path, Path(name).stem, shapes)
    except NnxError as error:
        raise (error if error.where.startswith(path) else error.at(name)) from error


def exported(model: Model, machine: Machine, path: str, name: str, shapes: Mapping[str, Shape]) -> list[Path]:
    """Write the folder with drawn inputs; with zeros where what is drawn is no index of what there is."""
    try:
        return aot.export(model, machine, path, name, drawn(model, shapes))
    except RunError:
        return aot.export(model, machine, path, name, zeros(model, shapes))


def specs(model: Model) -> list[TensorSpec]:
    """The inputs that a run is given."""
    return [TensorSpec.of(p) for p in model.rim.inputs if not p.state]


def drawn(model: Model, shapes: Mapping[str, Shape]) -> aot.Golden:
    """Inputs as `run --random` draws them, of a seed for each run."""
    stateful = any(p.state for p in model.rim.inputs)
    return aot.Golden([[g.array for g in gathered(specs(model), shapes, {}, None, seed)]
                       for seed in range(STATEFUL if stateful else 1)])


def zeros(model: Model, shapes: Mapping[str, Shape]) -> aot.Golden:
    """One run's inputs, of zeros."""
    return aot.Golden([[np.zeros_like(g.array) for g in gathered(specs(model), shapes, {}, None, 0)]])
