"""`--emit object:DIR`: the model as native code for an app that has neither NNAPI nor this package."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .. import aot
from ..artifact import from_bytes
from ..convert import HERE, convert, kind, read
from ..errors import NnxError
from ..model import Model
from ..runtime.compiled import TensorSpec
from ..types import Shape
from .arrays import gathered

#: Runs in a row of the example, of a model that keeps a state.
STATEFUL = 3


def write_object(path: str, source: str, shapes: Mapping[str, Shape], signature: str | None, triple: str | None,
                 features: str, progress: Callable[[str], None]) -> None:
    """Write the folder; raises `NnxError`. The model is lowered for this package, whatever a device would take."""
    machine = aot.machine(triple, features)
    data, name = read(source)
    model = from_bytes(data) if kind(data) == "nnx" else convert(source, HERE, shapes=shapes, signature=signature)
    golden = drawn(model, shapes)
    progress("generating code")
    try:
        aot.export(model, machine, path, Path(name).stem, golden)
    except NnxError as error:
        raise (error if error.where == path else error.at(name)) from error


def drawn(model: Model, shapes: Mapping[str, Shape]) -> aot.Golden:
    """Inputs as `run --random` draws them, of a seed for each run."""
    specs = [TensorSpec.of(p) for p in model.rim.inputs if not p.state]
    runs = STATEFUL if len(specs) < len(model.rim.inputs) else 1
    return aot.Golden([[g.array for g in gathered(specs, shapes, {}, None, seed)] for seed in range(runs)])
