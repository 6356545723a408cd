"""`nnx-convert MODEL`: convert, write, report."""
from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact import from_bytes, save
from ..artifact.container import Buffer
from ..convert import at_size_1, convert, kind, read
from ..emit.facts import Facts, facts
from ..emit.report import LABEL, lines
from ..errors import NnxError, UsageError
from ..model import Model
from ..runtime.compiled import CompiledModel
from ..target import Target
from ..types import Shape
from . import emitting
from .screen import Progress, Volume, show, show_json, volume
from .tracing import as_json, told

if TYPE_CHECKING:
    from ..lowering.rewrite import Event

FORMATS = {"tflite": "TFLite", "onnx": "ONNX", "nnx": "NNX"}
#: The options of a target's fields that are not called as these.
NAMED = {"level": "--target", "ex": "--no-ex", "experimental": "--no-experimental", "limits": "--target"}


def convert_file(model: str, output: str | None, target: Target, strict: bool, signature: str | None,
                 emits: Sequence[str], shapes: Mapping[str, Shape], report: str, triple: str | None = None,
                 cpu_features: str = "baseline", traced: bool = False) -> None:
    """Do it; raises `NnxError`. The file is written before anything is said, so what is said is so."""
    begun, beside = time.perf_counter(), emitting.wanted(emits, triple, cpu_features)
    with Progress() as progress, told(traced, report) as events:
        data, name = read(model)
        form = kind(data)
        if form == "nnx":
            nothing_to_obey(name, ways(target) | {"--strict": strict, "--signature": signature is not None,
                                                  "--shape": bool(shapes), "--trace-passes": traced})
            converted = loaded(data, name)
        else:
            output = output or f"{Path(model).stem}.nnx"
            emitting.untouched(model, output)
            converted = convert(model, target, shapes=shapes, strict=strict, progress=progress, signature=signature,
                                trace=events)
        progress("planning")
        measured = converted if form == "nnx" else closed(converted, model, target, signature)
        arena = arena_bytes(measured)
        progress("writing")
        if output:
            save(converted, output)
        found = facts(converted, source=name, format=FORMATS[form], source_bytes=len(data),
                      seconds=time.perf_counter() - begun, arena_bytes=arena, measured=measured)
        asked = emitting.Asked(model, converted, target, shapes, signature, found, triple, cpu_features)
        found = replace(found, emitted=tuple(emitting.emit(k, path, asked, progress) for k, path in beside))
    say(found if not output else replace(found, output=output, output_bytes=os.path.getsize(output)), report, events)


def ways(target: Target) -> dict[str, bool]:
    """The options that a target's fields come from, where these are not what they are by default."""
    return {NAMED.get(f.name, f"--{f.name}"): True for f in fields(Target) if getattr(target, f.name) != f.default}


def nothing_to_obey(name: str, given: Mapping[str, bool]) -> None:
    """Raise `UsageError` on options that a conversion obeys and a model that is converted already cannot."""
    if options := ", ".join(option for option, there in given.items() if there):
        raise UsageError(f"is converted already and cannot follow {options}", name,
                         "give it with the model's source file")


def loaded(data: Buffer, name: str) -> Model:
    """A model that was converted before."""
    try:
        return from_bytes(data)
    except NnxError as error:
        raise error.at(name) from error


def closed(model: Model, source: str, target: Target, signature: str | None) -> Model:
    """The model with every open input size 1, which is what can be measured of it; itself where none is open."""
    shapes = at_size_1(model.rim.inputs)
    try:
        return convert(source, target, shapes=shapes, signature=signature) if shapes else model
    except NnxError:
        return model


def arena_bytes(model: Model) -> int | None:
    """What a run needs beside the weights; None where sizes are open or no run is possible."""
    try:
        found = CompiledModel(model).footprint()
    except NnxError:
        return None
    return None if found is None else found.arena


def say(found: Facts, report: str, events: Sequence[Event] | None = None) -> None:
    """The report on stdout; with --quiet the file that was written is all there is to say."""
    if volume.get() is Volume.QUIET and report == "text" and found.output:
        return
    if report == "json":
        show_json({**found.json(), **as_json(events)})
    else:
        show(lines(found), LABEL)
