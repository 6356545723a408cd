"""A folder with all that an app, and a first look at it, need to run a model: see the templates beside this."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact.files import made, write_all
from ..frozen import frozen
from ..model import Model
from ..runtime.backends import backend_of
from ..runtime.codegen.machine import Machine
from ..runtime.rim import Doors, completed, initial
from ..runtime.runner import Runner, call
from ..runtime.steps import Options
from ..types import Array, Tensor
from .code import ALIGN, Code, Side, code
from .interface import filled, identifier, shown, words

#: Each template and the name of what is made of it.
TEMPLATES = {"model.h": "nnx_@name@.h", "weights.S": "nnx_@name@_weights.S", "golden.S": "golden.S",
             "main.c": "main.c", "CMakeLists.txt": "CMakeLists.txt", "README.md": "README.md"}
#: How the example is built and run, by what the triple says of the machine; {0} is the example's name.
RELEASE = "cmake -B build -DCMAKE_BUILD_TYPE=Release"
BUILDS = {
    "x86_64-linux-gnu": f"{RELEASE}\ncmake --build build\nctest --test-dir build",
    "aarch64-linux-gnu": f"{RELEASE} -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \\\n"
                         "    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc    # on an aarch64, without these two lines\n"
                         "cmake --build build\nqemu-aarch64 -L /usr/aarch64-linux-gnu build/{0}",
    "aarch64-linux-android": f"{RELEASE} -DANDROID_ABI=arm64-v8a -DANDROID_PLATFORM=android-24 \\\n"
                             "    -DCMAKE_TOOLCHAIN_FILE=$ANDROID_NDK/build/cmake/android.toolchain.cmake\n"
                             "cmake --build build\nadb push build/{0} /data/local/tmp\n"
                             "adb shell /data/local/tmp/{0}"}
#: What CMake calls the processors, as a pattern.
PROCESSORS = {"x86_64": "^(x86_64|AMD64|amd64)$", "aarch64": "^(aarch64|arm64|ARM64)$"}


@frozen
class Golden:
    """The inputs of runs in a row, those of each in the model's order without its states, as its user gives them."""

    runs: Sequence[Sequence[Any]]


def export(model: Model, machine: Machine, folder: str | Path, name: str, golden: Golden) -> list[Path]:
    """Write a model's code for a machine into a folder, which is made where there is none; the files.

    `name` is the model's, of which symbols and files have a part; inputs have the shapes of the golden ones. Golden
    outputs are those of a run here with the backend "auto". Raises `ExportError` where there is more to the model than
    native code and arrays, `InputError` where golden inputs do not fit, `UsageError` where nothing can be written.
    """
    doors, prefix = Doors(model), identifier(name)
    runs = [doors.enter([initial(p) if a is None and p.state else a for p, a in
                         zip(model.rim.inputs, completed(model.rim.inputs, given), strict=True)])
            for given in golden.runs]
    operands = [model.operands[i] for i in model.inputs]
    tensors = [None if a is None else Tensor(o.type, a.shape, o.quant)
               for o, a in zip(operands, runs[0], strict=True)]
    found = code(model, tensors, machine, f"nnx_{prefix}")
    known = list(golden_bytes(model, found, runs))
    said = {"name": prefix, "NAME": prefix.upper(), "model": shown(Path(name).name), "triple": machine.triple,
            "features": " ".join(sorted(machine.features)), "processor": PROCESSORS[machine.triple.partition("-")[0]],
            "build": BUILDS[machine.triple].format(f"nnx_{prefix}_example"), "runs": str(len(runs)), **words(found)}
    place = made(folder)
    texts = {file: files(__package__).joinpath("templates", template).read_text("utf-8")
             for template, file in TEMPLATES.items()}
    parts: list[tuple[Path, Sequence[bytes | memoryview]]] = [
        (place / f"nnx_{prefix}.o", [found.image]), (place / f"nnx_{prefix}_weights.bin", [found.weights.data]),
        (place / "golden.bin", known),
        *((place / filled(file, said), [filled(text, said).encode()]) for file, text in texts.items())]
    write_all(parts)
    return [path for path, _ in parts]


def golden_bytes(model: Model, found: Code, runs: Sequence[Sequence[Array | None]]) -> Iterator[bytes]:
    """What is given to each run and what that returns, each array from a multiple of 64 bytes on."""
    runner, states = Runner(model, Options(1, call, elsewhere=backend_of("auto").takes)), dict[int, Array]()
    for given in runs:
        whole = [states.get(n, array) for n, array in enumerate(given)]
        out = runner.run(whole)
        states = {before: out[after] for before, after in found.kept.items()}
        yield from padded(found.inputs, whole)
        yield from padded(found.outputs, out)


def padded(sides: Sequence[Side], arrays: Sequence[Array | None]) -> Iterator[bytes]:
    """The arrays of inputs or outputs."""
    for side in sides:
        data = np.ascontiguousarray(arrays[side.number]).tobytes()
        yield data + bytes(-len(data) % ALIGN)
