"""A model's file made ready to be verified: lowered, cut where its reference knows tensors, beside that reference."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import artifact
from ..convert import Data, folder_of, import_graph, kind, read, ready
from ..errors import UsageError
from ..frozen import frozen
from ..graph import Graph
from ..lowering.flatten import flatten
from ..runtime.rim import Doors, by_position
from ..runtime.compiled import CompiledModel, TensorSpec
from ..target import Target
from ..types import Array, Quant, Rim, Shape
from .archives import Recorded
from .metrics import OPERATION, OUTPUT, Tolerance
from .references import LiteRt, OnnxRuntime, Other, Recording, Reference, engine
from .segments import Cut, Program, behind, cut, step_of
from .verdict import Inputs, Verdict, Verification

#: Codes of ONNX are computed on NNAPI's grids, which round halves away from zero: an operation may be off by one step,
#: an output by what two add up to.
ONNX_STEPS, ONNX_STEPS_OUT = 1, 2


@frozen
class Subject:
    """A model to verify: a source file, lowered for a target, or a .nnx file. Raises `NnxError` as converting does."""

    path: str
    target: Target = field(default_factory=Target)
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    @cached_property
    def data(self) -> Data:
        """The file's bytes."""
        return read(self.path)[0]

    @cached_property
    def format(self) -> str:
        """tflite, onnx or nnx."""
        return kind(self.data)

    @cached_property
    def graph(self) -> Graph:
        """The source's graph."""
        return import_graph(self.data, self.shapes, None, folder_of(self.path))

    def compiled(self, backend: str, threads: int | None) -> CompiledModel:
        """The model as it runs."""
        return ready(self.data, folder_of(self.path), self.shapes, threads, backend, target=self.target)

    @cached_property
    def rim(self) -> Rim:
        """How a user sees its inputs and outputs."""
        return artifact.from_bytes(self.data).rim if self.format == "nnx" else self.graph.rim

    @cached_property
    def grids(self) -> Mapping[str, Quant]:
        """What the codes of outputs stand for, and the steps that floats among them lie on."""
        found = {p.name: p.quant for p in self.rim.outputs if isinstance(p.quant, Quant)}
        if self.format != "nnx":
            steps = {p.name: step_of(self.graph, v)
                     for p, v in zip(self.rim.outputs, self.graph.outputs, strict=True)}
            found |= {n: step for n, step in steps.items() if step is not None and n not in found}
        return found

    @cached_property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs that a run is given."""
        return tuple(TensorSpec.of(p) for p in self.rim.inputs if not p.state)

    @cached_property
    def returned(self) -> tuple[TensorSpec, ...]:
        """The outputs that a run gives."""
        return tuple(TensorSpec.of(p) for p in self.rim.outputs if not p.state)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(s.name for s in self.returned)

    @cached_property
    def stateful(self) -> bool:
        """Whether a run leaves something to the next."""
        return any(p.state for p in self.rim.inputs)

    @cached_property
    def random(self) -> frozenset[str]:
        """The outputs that are drawn, or computed from what is."""
        if self.format == "nnx" or all(n.op.pure for n in self.graph.walk()):
            return frozenset()
        return frozenset(p.name for p, v in zip(self.rim.outputs, self.graph.outputs, strict=True) if not all(
            n.op.pure for n in behind(self.graph, v, ())[1]))

    def cut(self, reference: Reference | None = None) -> Cut:
        """The model cut at the tensors that a reference knows, or at all; raises `UsageError` where that is none."""
        if self.format == "nnx":
            raise UsageError("a .nnx file has no names of tensors to compare operation by operation",
                             hint="give the model's source file")
        found = cut(self.graph, self.target,
                    lambda n: bool(n) and (reference is None or n in self.outputs or reference.knows(n)))
        if isinstance(reference, Recording | Other) and found.names <= set(self.outputs):
            raise UsageError(f"{reference.name} has values of outputs only, not of tensors between",
                             hint="--per-op takes litert, onnxruntime, a source file of the same format without "
                                  "states, or an archive that has tensors by their names")
        return found

    def tolerance(self, steps: int | None) -> tuple[Tolerance, Tolerance]:
        """What is taken for equal by default: of outputs, and of what one operation gives."""
        onnx = self.rim.source is not None and self.rim.source.format == "ONNX"
        own, out = (ONNX_STEPS, ONNX_STEPS_OUT) if onnx else (0, 0)
        return (Tolerance(steps=out if steps is None else steps, whole=OUTPUT),
                Tolerance(steps=own if steps is None else steps, whole=OPERATION))


def runtime(subject: Subject, name: str, tensors: bool) -> Reference:
    """An engine on the model's file, the format's own where none is named; raises `UsageError`, `RunError`."""
    ports = [s.name for s in subject.inputs]
    if engine(name, subject.format) == "litert":
        return LiteRt(subject.path, ports, subject.outputs, tensor_names(subject.data) if tensors else ())
    return OnnxRuntime(subject.path, ports, subject.outputs, tensors)


def tensor_names(data: Data) -> list[str]:
    """The names of a TFLite file's tensors in order, each its own: as its graph has them."""
    from ..frontends.tflite import records
    from ..frontends.tflite.guard import File
    return [t.name for t in records.read(File(data)).graphs[0].tensors]


def recording(subject: Subject, name: str, runs: Sequence[Recorded]) -> Reference:
    """The runs of an archive; raises `UsageError` where it has no output of the model."""
    if not any(r.outputs for r in runs):
        held = ", ".join(list(runs[0].tensors)[:8]) if runs else ""
        raise UsageError(f"{name} has no output of the model; it holds {held or 'nothing'}",
                         hint=f"the outputs are {', '.join(subject.outputs)}")
    return Recording(name, runs)


def another(path: str, subject: Subject, tensors: bool, backend: str, threads: int | None) -> Reference:
    """Another model, run by this package; with its tensors where both are source files of one format."""
    other = replace(subject, path=path)
    found = Other(Path(path).name, other.compiled(backend, threads), subject.inputs, subject.returned)
    if tensors and other.format == subject.format != "nnx" and not other.stateful:
        values = Values(other, threads)
        found.between, found.tensors = values, {a.name: a.grid for a in values.cut.anchors}
    return found


class Values:
    """The tensors of a source file by name, as this package computes them from inputs."""

    def __init__(self, subject: Subject, threads: int | None = None) -> None:
        self.cut = subject.cut()
        self._doors = Doors(flatten(self.cut.legal))
        self._program = Program(self.cut, self.cut.anchors, "numpy", threads or 0, fed=False)

    def __call__(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        arrays = self._doors.enter(by_position(self.cut.legal.rim.inputs, inputs))
        return dict(self._program.run(dict(zip(self.cut.legal.inputs, arrays, strict=True)), {}))


def verify(subject: Subject, reference: Reference, runs: Sequence[Inputs], *, per_op: bool = False,
           tolerance: tuple[Tolerance, Tolerance] | None = None, backend: str = "auto", threads: int | None = None,
           feed: Mapping[str, str] | None = None) -> Verdict:
    """A model's runs in a row beside a reference's.

    `per_op` compares every tensor between, too: each operation is fed with the reference's own inputs, and computed in
    NumPy where `backend` is "auto". `tolerance`: of outputs, and of what one operation gives. `feed`: inputs that are
    an output of the run before. Raises `NnxError` where the file, the inputs or the reference are at fault.
    """
    parts = subject.cut(reference) if per_op else None
    if parts:
        compiled = CompiledModel(flatten(parts.legal), threads=threads, backend=backend)
    else:
        compiled = subject.compiled(backend, threads)
    outputs, between = tolerance or subject.tolerance(None)
    found = Verification(compiled, reference, outputs, between, subject.grids, subject.random, parts, backend, threads,
                         feed or {})
    return found.run(runs)
