"""`nnx-convert record-lib DIR` and `nnx-convert record-run FOLDER`."""
from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ..artifact.files import made, write_all
from ..emit.ndk.header import header
from ..emit.report import LABEL
from ..record import hand_over
from ..record.running import MODEL
from .screen import Volume, show, show_json, volume

PACKAGE = "nnx_convert.record"


def write_library(folder: str, report: str) -> None:
    """Write the recording library's sources, and an example; raises `UsageError` where the place takes none."""
    paths = written(folder)
    if report == "json":
        show_json({"files": paths})
    elif volume.get() is not Volume.QUIET:
        show((("wrote", path) for path in paths), LABEL)


def written(folder: str) -> list[str]:
    """Write them; their paths."""
    texts = {"include/android/NeuralNetworks.h": header(), "include/NeuralNetworks.h": header()}
    for name in ("calls.cpp", "recorder.cpp", "recorder.hpp", "CMakeLists.txt", "README.md", "example.cpp"):
        texts[name] = files(PACKAGE).joinpath(name).read_text(encoding="utf-8")
    places = {Path(folder, name): [text.encode()] for name, text in texts.items()}
    for place in places:
        made(place.parent)
    write_all(places.items())
    return [*map(str, places)]


def run_record(folder: str, report: str) -> None:
    """Do what a record asks for. Nothing is said but with --json, as stdout is that of the program at work."""
    model = hand_over(folder)
    if report == "json":
        show_json({"model": str(Path(folder, MODEL)), "operations": len(model.operations)})
