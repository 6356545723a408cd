"""`--emit KIND:PATH`: what a conversion writes beside the .nnx file."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..arrays import gathered
from ..artifact.files import write
from ..convert import compile
from ..emit.facts import Emitted, Facts
from ..errors import NnxError, UsageError
from ..frozen import frozen
from ..model import Model
from ..runtime.profile import Profile
from ..target import Target
from ..types import Shape

#: Runs that a page's times are medians of.
RUNS = 10


@frozen
class Asked:
    """What was converted, and how: all that something beside the .nnx file is made from."""

    source: str
    model: Model
    target: Target
    shapes: Mapping[str, Shape]
    signature: str | None
    facts: Facts
    triple: str | None = None            # of the machines that code is for; None: of this one
    features: str = "baseline"           # of their processors


def html(path: str, asked: Asked, progress: Callable[[str], None]) -> Sequence[Path]:
    """A page: the model, its graph, its memory, the device's verdict, and how long it takes here."""
    from ..check import check
    from ..inspection import inspect
    from ..page import page
    found = inspect(asked.source, shapes=asked.shapes, signature=asked.signature)
    checked = check(asked.source, asked.target, shapes=asked.shapes, signature=asked.signature)
    progress("measuring")
    profile, why = measured(asked)
    progress("drawing")
    write(path, [page(found, checked, asked.facts, profile, why).encode()])
    return [Path(path)]


def measured(asked: Asked) -> tuple[Profile | None, str]:
    """Where the time of a run on drawn inputs goes; else why that is not known."""
    if asked.signature is not None:
        return None, "runs of a signature are not timed"
    try:
        model = compile(asked.source, threads=1, shapes=asked.shapes or None)
        inputs = gathered(model.inputs, asked.shapes, {}, None, 0)
        return model.profile({g.name: g.array for g in inputs}, RUNS), ""
    except NnxError as error:
        return None, error.text


def ndk(path: str, asked: Asked, progress: Callable[[str], None]) -> Sequence[Path]:
    """A folder: C++ that builds and runs the model on a device through NNAPI, and what to test it by."""
    from .device import write_ndk
    return write_ndk(path, asked.model, Path(asked.source).name, asked.shapes, progress)


def code(path: str, asked: Asked, progress: Callable[[str], None]) -> Sequence[Path]:
    """A folder: the model as native code for an app without NNAPI, and what to test it by."""
    from .exporting import write_object
    return write_object(path, asked.source, asked.shapes, asked.signature, asked.triple, asked.features, progress)


def as_json(path: str, asked: Asked, progress: Callable[[str], None]) -> Sequence[Path]:
    """The model as a JSON file, its longer constants beside it."""
    from ..artifact.as_json import save_json, weights_of
    untouched(asked.source, weights_of(path))
    return save_json(asked.model, path)


def untouched(source: str, output: str | Path) -> None:
    """Raise `UsageError` where writing would destroy the file that is read."""
    if os.path.exists(output) and os.path.samefile(source, output):
        raise UsageError(f"the output {output} is the model itself", hint="give another name with -o")


#: What there is to emit: each writes a path, and gives the files that it wrote.
KINDS: dict[str, Callable[[str, Asked, Callable[[str], None]], Sequence[Path]]] = {
    "html": html, "json": as_json, "object": code, "ndk": ndk}


def emit(kind: str, path: str, asked: Asked, progress: Callable[[str], None]) -> Emitted:
    """Write it; raises `NnxError`, also where that would destroy the file that is read."""
    untouched(asked.source, path)
    files = KINDS[kind](path, asked, progress)
    return Emitted(kind, path, tuple(map(str, files)), sum(map(os.path.getsize, files)))


def wanted(texts: Sequence[str], triple: str | None = None, features: str = "baseline") -> tuple[tuple[str, str], ...]:
    """KIND:PATH as pairs; raises `UsageError`, also on what no code is made for."""
    found = []
    for text in texts:
        kind, _, path = text.partition(":")
        if kind not in KINDS or not path:
            raise UsageError(f"--emit does not know {text!r}", hint=f"it takes {', '.join(f'{k}:PATH' for k in KINDS)}")
        found.append((kind, path))
    if any(KINDS[kind] is code for kind, _ in found):
        from ..aot import machine
        machine(triple, features)
    elif triple or features != "baseline":
        raise UsageError("--triple and --cpu-features say what code is for", hint="give --emit object:DIR with them")
    return tuple(found)
