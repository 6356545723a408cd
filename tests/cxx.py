"""C++ for tests: what is emitted is compiled and run with the recorder in NNAPI's place; what is missing of it here."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COMPILER, BUILDER = "g++", "cmake"
#: Feature levels that the recorder has the calls of.
LEVELS = (27, 28, 29, 30, 31)
MISSING = tuple(name for name in (COMPILER, BUILDER) if shutil.which(name) is None)
STRICT = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-pedantic")
RECORD_RUN = f"'{sys.executable}' -m nnx_convert record-run"


def compiled(*words: str | Path) -> None:
    """Call the compiler; what it says is an assertion's text."""
    done = subprocess.run([COMPILER, *STRICT, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def recorder(sources: Path, at: Path) -> dict[int, Path]:
    """The recording library from what `record-lib` wrote, by feature level: what later levels have is hidden in it."""
    objects = [at / "calls.o", at / "recorder.o"]
    for found in objects:
        compiled("-fPIC", "-c", f"-I{sources / 'include'}", sources / f"{found.stem}.cpp", "-o", found)
    calls = by_level((sources / "include" / "NeuralNetworks.h").read_text())
    for level in LEVELS:
        names = "; ".join(name for since, name in calls if since <= level)
        (at / f"{level}.map").write_text(f"{{ global: {names}; local: *; }};")
        compiled("-shared", *objects, f"-Wl,--version-script={at / f'{level}.map'}", "-o", at / f"{level}.so")
    return {level: at / f"{level}.so" for level in LEVELS}


def by_level(header: str) -> list[tuple[int, str]]:
    """The calls that a header declares, each with the level that has it."""
    found, since = list[tuple[int, str]](), LEVELS[0]
    for line in header.splitlines():
        if level := re.match(r"#if NNX_LEVEL >= (\d+)", line):
            since = int(level[1])
        elif line == "#endif":
            since = LEVELS[0]
        found += [(since, name) for name in re.findall(r"\b(ANeuralNetworks\w*_\w+)\(", line)]
    return found


def environment() -> dict[str, str]:
    """What a program with the recorder for its NNAPI runs in: this project's command, which computes in NumPy."""
    return os.environ | {"NNX_BACKEND": "numpy", "NNX_RECORD_RUN": RECORD_RUN}


def ran(program: Path, folder: Path, library: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program in a folder, with the recorder for its NNAPI; records go to the folder's `record`."""
    wanted = {"NNX_NNAPI": str(library), "NNX_RECORD_DIR": str(folder / "record")}
    return subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False,
                          env=environment() | wanted | variables)


def linked(objects: Sequence[Path], source: Path, include: Path, out: Path) -> Path:
    """A program of objects and of one source more."""
    compiled(f"-I{include}", source, *objects, "-ldl", "-o", out)
    return out
