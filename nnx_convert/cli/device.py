"""`--emit ndk:DIR`: what to take to a device, with the inputs and outputs to test it by."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..arrays import gathered
from ..artifact.files import made, write_all
from ..emit.ndk import Golden, for_device, project
from ..errors import RunError
from ..model import Model, default_rim
from ..runtime import rim
from ..runtime.compiled import CompiledModel, TensorSpec
from ..types import Array, Shape

#: What golden inputs are drawn with.
SEED = 0


def write_ndk(folder: str, model: Model, name: str, shapes: Mapping[str, Shape],
              progress: Callable[[str], None]) -> list[Path]:
    """Write the folder; its files. Raises `StrictError` where no device has an operation, `InputError` where sizes are
    open."""
    device = for_device(model)
    progress("running")
    found = golden(device, shapes)
    progress("writing")
    files = [(Path(folder, path), pieces) for path, pieces in project(device, name, found)]
    for place, _ in files:
        made(place.parent)
    write_all(files)
    return [place for place, _ in files]


def golden(model: Model, shapes: Mapping[str, Shape]) -> Golden:
    """Drawn inputs as the operands have them, and what comes of them; states start as the source file says.

    Zeros, where what is drawn is no index of what there is.
    """
    drawn = gathered([TensorSpec.of(p) for p in model.rim.inputs], shapes, {}, None, SEED)
    given = {g.name: g.array for g in drawn}
    try:
        return _run(model, given)
    except RunError:
        return _run(model, {name: np.zeros_like(array) for name, array in given.items()})


def _run(model: Model, given: Mapping[str, Array]) -> Golden:
    """What a model gives, its inputs and outputs as NNAPI has them."""
    arrays = rim.Doors(model).enter([given[p.name] if p.name in given else rim.initial(p) for p in model.rim.inputs])
    inputs = [a for a in arrays if a is not None]
    own = replace(model, rim=default_rim(model.operands, model.inputs, model.outputs))
    return Golden(inputs, CompiledModel(own).run(inputs), SEED)
