"""The folder that `--emit ndk:DIR` writes: sources, weights, golden inputs and outputs."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ctypes import c_float

from ...builder import ModelBuilder
from ...codes import FeatureLevel, ResultCode
from ...errors import StrictError
from ...frozen import frozen
from ...model import Lifetime, Model, Operand
from ...schema import HOST_CODES
from ...target import level_name
from ...types import Array, ChannelQuant, Quant
from ..levels import every_model
from .header import header, template
from .tables import little, tables

#: What is the same for every model, or nearly.
STATIC = ("nnapi.hpp", "nnapi.cpp", "network.hpp", "network.cpp", "main.cpp", "CMakeLists.txt")
HINT = "`nnx-convert check MODEL` says why, and what to change"


@frozen
class Golden:
    """Inputs as the operands have them, drawn with a seed, and the outputs that our executor gives."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]
    seed: int


def for_device(model: Model) -> Model:
    """The model as a device gets it call by call: scales are float32. Its rim stays.

    Raises `StrictError` where operations, or types of inputs and outputs, are the host's: no device has them.
    """
    every = every_model(model)
    host = dict.fromkeys(o.op.name.removeprefix("host.") for m in every for o in m.operations if o.op.host)
    if host:
        what = "an operation" if len(host) == 1 else "operations"
        raise StrictError(f"no device runs {', '.join(host)}: {what} of the host", hint=HINT)
    types = dict.fromkeys(o.type.name for m in every for o in m.operands if o.type >= HOST_CODES)
    if types:
        raise StrictError(f"NNAPI has no {', '.join(types)}, which an input or an output is", hint=HINT)
    return _rebuilt(model, {})


def _rebuilt(model: Model, known: dict[int, Model]) -> Model:
    """The model, built call by call."""
    if id(model) in known:
        return known[id(model)]
    builder = ModelBuilder()
    for o in model.operands:
        _add(builder, o, known)
    for operation, origin in zip(model.operations, model.origin or ("",) * len(model.operations), strict=True):
        builder.add(operation.op, operation.inputs, operation.outputs, origin=origin)
    builder.identify_inputs_and_outputs(model.inputs, model.outputs)
    if model.relaxed:
        builder.relax_computation_float32_to_float16(True)
    known[id(model)] = builder.finish(model.rim, model.notes)
    return known[id(model)]


def _add(builder: ModelBuilder, o: Operand, known: dict[int, Model]) -> None:
    scale, zero = (o.quant.scale, o.quant.zero) if isinstance(o.quant, Quant) else (0.0, 0)
    index = builder.add_operand(o.type, o.dims, c_float(scale).value, zero)
    if isinstance(o.quant, ChannelQuant):
        scales = [c_float(s).value for s in o.quant.scales]
        builder.set_operand_symm_per_channel_quant_params(index, o.quant.axis, scales)
    if isinstance(o.value, Model):
        builder.set_operand_value_from_model(index, _rebuilt(o.value, known))
    elif o.value is not None or o.lifetime is Lifetime.NO_VALUE:
        builder.set_operand_value(index, o.value)


def project(model: Model, name: str, golden: Golden) -> Iterator[tuple[str, list[bytes]]]:
    """The files by their paths in the folder; `model` is one of `for_device`, `name` what to call it."""
    source, weights = tables(model, name, golden.inputs, golden.outputs)
    yield "model.cpp", [source.encode()]
    yield "weights.bin", weights
    yield "NeuralNetworks.h", [header().encode()]
    results = ", ".join(f'"{r.name}"' for r in ResultCode)
    for file in STATIC:
        yield file, [template(file).replace("@RESULTS@", results).encode()]
    yield "README.md", [readme(model, name, golden.seed).encode()]
    for kind, arrays in (("in", golden.inputs), ("out", golden.outputs)):
        for i, array in enumerate(arrays):
            yield f"golden/{kind}{i}.bin", [little(array)]


def readme(model: Model, name: str, seed: int) -> str:
    """What is in the folder, and how it gets onto a device."""
    extras = [text for text, there in (
        ("NNAPI-EX", any(o.op.ex for m in every_model(model) for o in m.operations)),
        ("DENSIFY, which is experimental", model.experimental)) if there]
    words = {"NAME": plain(name), "FOLDER": plain(name).replace(" ", "_"), "SEED": str(seed),
             "PORTS": "\n".join(ports(model)),
             "LEVEL": f"The model takes feature level {' and '.join([level_name(model.level), *extras])}.",
             "PLATFORM": str(min(model.level, int(FeatureLevel.LEVEL_5)))}
    return re.sub("@([A-Z]+)@", lambda found: words[found[1]], template("README.md"))


def ports(model: Model) -> Iterator[str]:
    """A table of the inputs and outputs: as NNAPI has them, as the source file does."""
    yield "| file | NNAPI | the model's file |"
    yield "|---|---|---|"
    for kind, indices, own in (("in", model.inputs, model.rim.inputs), ("out", model.outputs, model.rim.outputs)):
        for n, (i, port) in enumerate(zip(indices, own, strict=True)):
            o = model.operands[i]
            grid = f" scale {o.quant.scale:.9g} zero {o.quant.zero}" if isinstance(o.quant, Quant) else ""
            state = ", a state: what a run leaves is what the next one takes" if port.state else ""
            shape = "[?]" if port.shape is None else list(port.shape)
            yield (f"| golden/{kind}{n}.bin | {o.type.name} {list(o.dims)}{grid} "
                   f"| {plain(port.name)}: {port.dtype} {shape}{state} |")


def plain(text: str) -> str:
    """A name in a page, or in a path: letters, digits and little more."""
    return re.sub(r"[^\w .:/-]", "_", text, flags=re.ASCII)
