"""`nnx-convert run FILE`: inputs in, outputs out, compared with what was expected."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..archived import read_archive
from ..arrays import Given, gathered, plain, taken_apart, write_archive
from ..convert import compile, convert, kind, read
from ..emit.report import LABEL, headed, size
from ..errors import ExitCode, NnxError
from ..frozen import frozen
from ..model import Model
from ..runtime.compiled import CompiledModel, TensorSpec
from ..types import Array, Shape
from ..verify.metrics import Tolerance
from .compare import Difference, compared
from .profiles import form_of, write_profile
from .screen import Progress, show, show_json


@frozen
class Ran:
    """A run in numbers."""

    source: str
    seconds: float
    inputs: tuple[Given, ...]
    outputs: dict[str, Array]
    expected: str | None
    differences: tuple[Difference, ...]
    output: str | None
    output_bytes: int | None

    @property
    def good(self) -> bool:
        """Whether nothing differs."""
        return not any(d.differing for d in self.differences)


def run_file(file: str, given: Mapping[str, str], archive: str | None, seed: int | None,
             output: str | None, expect: str | None, atol: float | None, rtol: float | None, backend: str,
             rounding: str, threads: int | None, signature: str | None, shapes: Mapping[str, Shape],
             profile_to: str | None, report: str, taps: Sequence[str] = ()) -> ExitCode:
    """Do it; raises `NnxError`."""
    begun = time.perf_counter()
    if profile_to:
        form_of(profile_to)
    with Progress() as progress:
        progress("compiling")
        model = compile(entered(file, signature, shapes), threads=threads, shapes=shapes or None, backend=backend,
                        rounding=rounding)
        inputs = gathered(*asked(model, signature, shapes), given, archive, seed)
        golden = read_archive(expect) if expect else {}
        progress("running")
        outputs = outputs_of(model, inputs, signature, Path(file).name, taps)
        if profile_to:
            progress("profiling")
            ports = dict(model.entry(signature).inputs) if signature else {}
            write_profile(profile_to, model.profile({ports.get(g.name, g.name): g.array for g in inputs}),
                          Path(file).name)
    differences = compared(outputs, golden, Tolerance(atol, rtol), expect) if expect else ()
    written = write_archive(output, outputs) if output else None
    ran = Ran(Path(file).name, time.perf_counter() - begun, inputs, outputs, expect, differences, output, written)
    if report == "json":
        show_json(as_json(ran))
    else:
        show(lines(ran, model), LABEL)
    return ExitCode.GOOD if ran.good else ExitCode.DIFFERENT


def outputs_of(model: CompiledModel, inputs: Sequence[Given], signature: str | None, name: str,
               taps: Sequence[str] = ()) -> dict[str, Array]:
    """The outputs by name, then the tensors that are tapped; a fault names the file."""
    try:
        found = model.run({g.name: g.array for g in inputs}, signature, tap=taps)
    except NnxError as error:
        raise error.at(name) from error
    return {n: array for output, value in found.items() for n, array in taken_apart(output, value).items()}


def entered(file: str, signature: str | None, shapes: Mapping[str, Shape]) -> str | Model:
    """What to compile: the file, or the graph that a signature of a source file leads to."""
    if signature is None:
        return file
    return file if kind(read(file)[0]) == "nnx" else convert(file, shapes=shapes, signature=signature)


def asked(model: CompiledModel, signature: str | None, shapes: Mapping[str, Shape]
          ) -> tuple[Sequence[TensorSpec], Mapping[str, Shape]]:
    """The inputs and the sizes wanted for them, by the names that a signature gives them where there is one."""
    if signature is None:
        return model.inputs, shapes
    own, specs = model.entry(signature).inputs, {s.name: s for s in model.inputs}
    return ([replace(specs[port], name=name) for name, port in own],
            {name: shapes[port] for name, port in own if port in shapes})


def lines(ran: Ran, model: CompiledModel) -> Iterator[tuple[str, str]]:
    """The screen."""
    yield from headed(ran.source, f"{ran.seconds:.2f} s")
    width = min(48, max(len(s.name) for s in (*model.inputs, *model.outputs)))
    for g in ran.inputs:
        yield "  in", f"{g.name:<{width}}   {described(g.array)}   from {g.origin}"
    for name, array in ran.outputs.items():
        yield "  out", f"{name:<{width}}   {described(array)}   {summary(array)}"
    if ran.differences:
        yield "expected", f"{ran.expected}: {'equal' if ran.good else 'the numbers differ'}"
    for d in ran.differences:
        yield "", f"{d.output:<{width}}   {d.sentence()}"
    if ran.output is not None:
        yield "wrote", f"{ran.output}  {size(ran.output_bytes or 0)}"


def described(array: Any) -> str:
    """Type and shape; of a list, how many arrays."""
    if array is None or isinstance(array, list):
        return "nothing" if array is None else f"list of {len(array)}"
    return f"{array.dtype} [{','.join(map(str, array.shape))}]"


def summary(array: Array) -> str:
    """The range of the values; the values themselves where they are few."""
    if array.dtype.kind == "O":
        return " ".join(f"{t!r:.20}" for t in array.reshape(-1)[:4].tolist())
    array = plain(array)
    if array.size <= 4:
        return " ".join(f"{v:.6g}" for v in array.reshape(-1).tolist())
    if array.dtype.kind == "c":
        return ""
    return f"{array.min():.6g} to {array.max():.6g}, mean {array.mean(dtype=np.float64):.6g}"


def as_json(ran: Ran) -> dict[str, Any]:
    """The same as what `json.dumps` takes; a number that JSON has no word for becomes null."""
    return {
        "source": ran.source, "seconds": ran.seconds,
        "inputs": [{"name": g.name, "from": g.origin, **shape_fields(g.array)} for g in ran.inputs],
        "outputs": [{"name": n, **shape_fields(a), **range_fields(a)} for n, a in ran.outputs.items()],
        "expected": ran.expected, "good": ran.good,
        "differences": [asdict(d) | {"largest": finite(d.largest)} for d in ran.differences],
        "output": ran.output, "output_bytes": ran.output_bytes}


def shape_fields(array: Any) -> dict[str, Any]:
    """Type and shape; of a list, those of its arrays."""
    if array is None or isinstance(array, list):
        return {"list": [shape_fields(a) for a in array or ()]}
    return {"dtype": str(array.dtype), "shape": list(array.shape)}


def range_fields(array: Array) -> dict[str, Any]:
    """The range of real values."""
    array = plain(array)
    real = array.size > 0 and array.dtype.kind in "biuf"
    return {"min": finite(array.min()) if real else None, "max": finite(array.max()) if real else None,
            "mean": finite(array.mean(dtype=np.float64)) if real else None}


def finite(value: Any) -> float | int | None:
    """The number, or None where it is infinite or not a number."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if np.isfinite(number) else None
