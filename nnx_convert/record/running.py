"""What the recorder calls: its record becomes a .nnx file, and a run's inputs become outputs."""
from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import reading
from ..artifact import load, save
from ..artifact.files import write_all
from ..errors import FormatError, InputError
from ..model import Model, Operand
from ..types import Array
from .reading import BROKEN, read_record

#: The model of a record, as a run reads it.
MODEL = "model.nnx"


def hand_over(folder: str | Path) -> Model:
    """Do what a record's folder asks for, and return its model.

    Without `run.json` its model is read from the record and written as `model.nnx`. With it, the run's inputs
    (`in0.bin` and so on) are run: outputs are `out0.bin` and so on, their ranks and sizes a line each of `outputs.txt`.
    Raises `FormatError`, `ModelError`, `InputError`, `RunError`.
    """
    path = Path(folder)
    if not (path / "run.json").exists():
        model = read_record(path)
        save(model, path / MODEL)
        return model
    model = load(path / MODEL)
    outputs = _run(model, _inputs(model, path))
    write_all([*((path / f"out{i}.bin", [np.ascontiguousarray(a).tobytes()]) for i, a in enumerate(outputs)),
               (path / "outputs.txt", [b"%s\n" % " ".join(map(str, (a.ndim, *a.shape))).encode() for a in outputs])])
    return model


def _run(model: Model, inputs: Sequence[Array | None]) -> list[Any]:
    from ..runtime.compiled import CompiledModel
    return CompiledModel(model).run(list(inputs))


def _inputs(model: Model, path: Path) -> list[Array | None]:
    """The inputs that the program set, as arrays of the operands' types."""
    try:
        asked = reading.json(reading.text(path / "run.json"))["inputs"]
        return [None if how["none"] else _array(model.operands[i], how, n, path)
                for n, (i, how) in enumerate(zip(model.inputs, asked, strict=True))]
    except BROKEN as error:
        raise FormatError("run.json is not what the recorder writes", os.fspath(path)) from error


def _array(o: Operand, how: Mapping[str, Any], number: int, path: Path) -> Array:
    data, dims = reading.mapped(path / f"in{number}.bin"), tuple(map(int, how.get("dims", o.dims)))
    dtype, count = o.type.dtype, math.prod(dims)
    if count < 1 or len(data) != count * dtype.itemsize:
        raise InputError(f"input {number} is {o.type.name}{list(dims)}, and {len(data)} bytes were set")
    return np.frombuffer(data, np.uint8 if dtype == np.bool_ else dtype.newbyteorder("<")).astype(dtype).reshape(dims)
