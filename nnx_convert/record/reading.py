"""What recorder.cpp writes, as a `Model`: every call of the program's is made again on a `ModelBuilder`."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ctypes import c_float
from pathlib import Path
from typing import Any

import numpy as np

from .. import reading
from ..artifact.container import Buffer
from ..builder import ModelBuilder
from ..codes import OperandCode
from ..errors import FormatError, ModelError, NnxError
from ..model import Model

Fields = Mapping[str, Any]
#: What Python raises on JSON that is not as it should be.
BROKEN = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def read_record(folder: str | Path) -> Model:
    """The model of a record's folder (`model.json`, `model.bin`).

    Raises `FormatError` where it is no record, `ModelError` on what NNAPI would refuse.
    """
    path, name = Path(folder), str(folder)
    try:
        fields, data = reading.json(reading.text(path / "model.json")), reading.mapped(path / "model.bin")
        if (fields["format"], fields["version"]) != ("nnx-record", 1):
            raise FormatError("is no record, or one of another version", name)
        models: list[Model] = []
        for one in fields["models"]:
            models.append(_model(one, data, models))
        return models[-1]
    except NnxError as error:
        raise error.at(name) from error
    except (*BROKEN, IndexError) as error:
        raise FormatError("is no record, or a damaged one", name) from error


def _model(fields: Fields, data: Buffer, before: Sequence[Model]) -> Model:
    """One model; those it holds are among the ones `before` it."""
    builder = ModelBuilder()
    for o in fields["operands"]:
        _operand(builder, o, data, before)
    for o in fields["operations"]:
        add = builder.add_operation_ex if o["ex"] else builder.add_operation
        add(o["code"], o["inputs"], o["outputs"])
    builder.identify_inputs_and_outputs(fields["inputs"], fields["outputs"])
    if fields["relaxed"]:
        builder.relax_computation_float32_to_float16(True)
    return builder.finish()


def _operand(builder: ModelBuilder, o: Fields, data: Buffer, before: Sequence[Model]) -> None:
    index = builder.add_operand(o["type"], o["dims"], _float(o["scale"]), o["zero"])
    if "scales" in o:
        builder.set_operand_symm_per_channel_quant_params(index, o["axis"], [_float(s) for s in o["scales"]])
    if o.get("none"):
        builder.set_operand_value(index, None)
    elif "model" in o:
        builder.set_operand_value_from_model(index, before[o["model"]])
    elif "at" in o:
        builder.set_operand_value(index, _value(o, index, data))


def _float(scale: float) -> float:
    """A scale, float32 as the program gave it: nine digits say which."""
    return c_float(scale).value


def _value(o: Fields, index: int, data: Buffer) -> np.ndarray[Any, Any]:
    """A constant's elements. Raises `ModelError` where they are not as many as its sizes say."""
    type_, sizes = OperandCode(o["type"]), o["dims"]
    count, width = math.prod(sizes), type_.dtype.itemsize
    if o["bytes"] != count * width:
        raise ModelError(f"{type_.name}{list(sizes)} takes {count * width} bytes, not {o['bytes']}", operand=index)
    if type_.dtype == np.bool_:
        return np.frombuffer(data, np.uint8, count, o["at"]).astype(np.bool_)
    return np.frombuffer(data, type_.dtype.newbyteorder("<"), count, o["at"]).astype(type_.dtype, copy=False)
