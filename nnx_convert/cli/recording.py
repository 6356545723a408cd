"""`nnx-convert record-lib DIR` and `nnx-convert record-run FOLDER`."""
from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from ..artifact.files import write
from ..emit.ndk.header import header
from ..emit.report import LABEL
from ..record import hand_over
from .device import made
from .screen import show

PACKAGE = "nnx_convert.record"


def write_library(folder: str) -> None:
    """Write the recording library's sources, and an example; raises `UsageError` where the place takes none."""
    lines = [*written(folder)]
    show(iter(lines), LABEL)


def written(folder: str) -> Iterator[tuple[str, str]]:
    """Write them, and say each."""
    texts = {"include/android/NeuralNetworks.h": header(), "include/NeuralNetworks.h": header()}
    for name in ("recorder.cpp", "CMakeLists.txt", "README.md", "example.cpp"):
        texts[name] = files(PACKAGE).joinpath(name).read_text(encoding="utf-8")
    for name, text in texts.items():
        place = Path(folder, name)
        made(place.parent)
        write(place, [text.encode()])
        yield "wrote", str(place)


def run_record(folder: str) -> None:
    """Do what a record asks for; nothing is said, as this is a program's library at work."""
    hand_over(folder)
