"""What gives the values that a model's are compared with: a runtime of its format, an archive, another model.

The runtimes are packages of their own, the extra `verify`; they are imported where one is asked for.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import RunError, UsageError, near
from ..frozen import frozen
from ..peers import PEERS
from ..types import Array, Quant
from .archives import Recorded
from .metrics import dequantised, fits, quantised

if TYPE_CHECKING:
    from ..runtime.compiled import CompiledModel, TensorSpec

#: The engines that are a format's own reference, the format each reads, the package it is imported from.
ENGINES = {name: (PEERS[name].formats[0], PEERS[name].package) for name in ("litert", "onnxruntime")}
INSTALL = "pip install 'nnx-convert[verify]', or give an archive or a model with --against"


@frozen
class Answer:
    """What a reference gives for one run: outputs by the names of ports, tensors by those of the source file.

    `grids` says what tensors of integers stand for, where they may be compared with real numbers; `inputs` are those
    that it has been given otherwise, on a grid of its own. What a model keeps from run to run is each one's own affair.
    """

    outputs: Mapping[str, Any]
    tensors: Mapping[str, Array] = field(default_factory=dict)
    grids: Mapping[str, Quant] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)


class Reference(Protocol):
    """Gives runs in a row. `name` is what a screen calls it, `tensors` the names it has values for between."""

    name: str

    def knows(self, tensor: str) -> bool:
        """Whether it gives the values of a tensor that is no output."""

    def run(self, number: int, inputs: Mapping[str, Any], wanted: Collection[str]) -> Answer:
        """The run of this number, on inputs by the names of ports; `wanted`: the tensors between that are asked for."""


class LiteRt:
    """LiteRT on a TFLite file, its state kept from run to run.

    Files that compute in integers are run by the reference kernels, which define them to the bit; others by the
    optimised ones without a delegate, which are as good and many times faster. `tensors`: the names of the file's
    tensors in order, where those between are asked for.
    """

    def __init__(self, path: str, ports: Sequence[str], outputs: Sequence[str], tensors: Sequence[str] = ()) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
        self._ports, self._outputs = tuple(ports), tuple(outputs)
        with answering("LiteRT"):
            lite = Interpreter(model_path=path, num_threads=1, experimental_preserve_all_tensors=bool(tensors),
                               experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
            integers = {d["index"] for d in lite.get_tensor_details()
                        if np.dtype(d["dtype"]).name in ("int8", "uint8", "int16") and d["quantization"][0]}
            written = {i for op in lite._get_ops_details() for i in op["outputs"]}
            if integers & written:
                lite = Interpreter(model_path=path, num_threads=1, experimental_preserve_all_tensors=bool(tensors),
                                   experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        self.name = f"LiteRT, {'reference' if integers & written else 'optimised'} kernels"
        self._lite = lite
        # To ask for a resource ends the process.
        self._index = {tensors[d["index"]]: d["index"] for d in lite.get_tensor_details()
                       if d["index"] < len(tensors) and np.dtype(d["dtype"]).kind in "biufc"}
        self._shapes: tuple[tuple[int, ...], ...] | None = None

    def knows(self, tensor: str) -> bool:
        """Whether the file has a tensor of numbers with this name."""
        return tensor in self._index

    def run(self, number: int, inputs: Mapping[str, Any], wanted: Collection[str]) -> Answer:
        """Invoke it once more; raises `RunError`."""
        lite, arrays = self._lite, [np.asarray(inputs[p]) for p in self._ports]
        with answering("LiteRT"):
            self._resize([a.shape for a in arrays])
            for detail, array in zip(lite.get_input_details(), arrays, strict=True):
                lite.set_tensor(detail["index"], array)
            lite.invoke()
            found = [lite.get_tensor(d["index"]) for d in lite.get_output_details()]
            tensors = {n: a for n in wanted if (a := self._tensor(n)) is not None}
        return Answer(dict(zip(self._outputs, found, strict=True)), tensors)

    def _resize(self, shapes: Sequence[tuple[int, ...]]) -> None:
        if self._shapes == tuple(shapes):
            return
        for detail, shape in zip(self._lite.get_input_details(), shapes, strict=True):
            if tuple(detail["shape"]) != shape:
                self._lite.resize_tensor_input(detail["index"], shape)
        self._lite.allocate_tensors()
        self._shapes = tuple(shapes)

    def _tensor(self, name: str) -> Array | None:
        """What a tensor holds now; None where it has no memory, or no one name."""
        try:
            found: Array | None = self._lite.get_tensor(self._index[name]) if name in self._index else None
        except ValueError:
            return None
        return found


class OnnxRuntime:
    """ONNX Runtime on an ONNX file, the values between as outputs more, node by node as the file has them."""

    def __init__(self, path: str, ports: Sequence[str], outputs: Sequence[str], tensors: bool) -> None:
        import onnx
        import onnxruntime as ort
        self.name = "ONNX Runtime"
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        with answering(self.name):
            model: Any = path
            self._between: frozenset[str] = frozenset()
            if tensors:
                proto = onnx.load(path)
                own = {o.name for o in proto.graph.output}
                made = [n for node in proto.graph.node for n in node.output if n and n not in own]
                proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in made)
                model, self._between = proto.SerializeToString(), frozenset(made)
                options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._outputs = [o.name for o in self._session.get_outputs()]
        self._given = [i.name for i in self._session.get_inputs()]
        self._ports, self._ours = tuple(ports), tuple(outputs)

    def knows(self, tensor: str) -> bool:
        """Whether a node of the main graph gives it."""
        return tensor in self._between

    def run(self, number: int, inputs: Mapping[str, Any], wanted: Collection[str]) -> Answer:
        """Run it once; raises `RunError`."""
        names = self._outputs[:len(self._ours)]
        more = [n for n in wanted if n in self._between]
        given = {theirs: inputs[ours] for theirs, ours in zip(self._given, self._ports, strict=False)
                 if inputs.get(ours) is not None}
        with answering(self.name):
            found = self._session.run([*names, *more], given)
        arrays = {n: a for n, a in zip(more, found[len(names):], strict=True) if isinstance(a, np.ndarray)}
        return Answer(dict(zip(self._ours, found, strict=False)), arrays)


@dataclass
class Recording:
    """Runs that were recorded: see `archives`."""

    name: str
    runs: Sequence[Recorded]

    def knows(self, tensor: str) -> bool:
        """Whether there is an array of this name."""
        return tensor in self.runs[0].tensors

    def run(self, number: int, inputs: Mapping[str, Any], wanted: Collection[str]) -> Answer:
        """What was recorded of a run."""
        found = self.runs[number]
        return Answer(found.outputs, {n: found.tensors[n] for n in wanted if n in found.tensors})


@dataclass
class Other:
    """Another model, run by this package; ports go by their names, else by their places.

    Inputs and outputs of the same numbers in another form are taken over: real numbers for codes, channels elsewhere.
    `ports` and `outputs` are those of the model that is verified. `between` gives the other's tensors by name, for
    inputs by the names of its ports, `tensors` their names and grids; nothing where names mean something else there.
    """

    name: str
    model: CompiledModel
    ports: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]
    between: Callable[[Mapping[str, Any]], Mapping[str, Array]] | None = None
    tensors: Mapping[str, Quant | None] = field(default_factory=dict)

    def knows(self, tensor: str) -> bool:
        """Whether the other file has it, too."""
        return tensor in self.tensors

    def run(self, number: int, inputs: Mapping[str, Any], wanted: Collection[str]) -> Answer:
        """Run the other model; raises `NnxError` where the inputs are none for it."""
        own = [s for s in self.model.inputs if not s.state]
        theirs = matched([s.name for s in own], [s.name for s in self.ports])
        specs = {s.name: s for s in self.ports}
        given = {s.name: converted(inputs[theirs[s.name]], specs[theirs[s.name]], s) for s in own
                 if theirs.get(s.name) in inputs}
        found = self.model.run(given)
        made = {s.name: s for s in self.model.outputs}
        back = matched([s.name for s in self.outputs], list(found))
        outputs = {s.name: converted(found[back[s.name]], made[back[s.name]], s) for s in self.outputs
                   if s.name in back}
        tensors = self.between(given) if self.between and wanted else {}
        grids = {n: grid for n, grid in self.tensors.items() if grid is not None}
        seen = {theirs[s.name]: converted(given[s.name], s, specs[theirs[s.name]]) for s in own if s.name in given}
        return Answer(outputs, {n: a for n, a in tensors.items() if n not in outputs}, grids=grids, inputs=seen)


def matched(names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Which of the others each name is: the same where all are there, else by place."""
    if set(names) <= set(others):
        return {n: n for n in names}
    return dict(zip(names, others, strict=False))


def converted(value: Any, of: TensorSpec, to: TensorSpec) -> Any:
    """A port's array as another port has the same numbers: on its grid, in its type, in its order of channels."""
    if not isinstance(value, np.ndarray) or of.holds or to.holds:
        return value
    real = value
    if value.dtype != to.dtype:
        if isinstance(of.quantization, Quant) and value.dtype.kind in "iu":
            real = dequantised(value, of.quantization)
        if isinstance(to.quantization, Quant) and to.dtype.kind in "iu" and real.dtype.kind == "f":
            real = quantised(real, to.quantization, to.dtype)
    for order in ((0, 2, 3, 1), (0, 3, 1, 2)):
        if real.ndim == 4 and not fits(real.shape, to.shape) and fits(real.transpose(order).shape, to.shape):
            return np.ascontiguousarray(real.transpose(order))
    return real


def engine(name: str, form: str) -> str:
    """The engine to compare a file of a format with: the one named, or the format's own.

    Raises `UsageError` where it is not installed or reads other files.
    """
    name = name or next((n for n, (reads, _) in ENGINES.items() if reads == form), "")
    if name not in ENGINES:
        if not name:
            raise UsageError("a .nnx file has no runtime of its own to be compared with",
                             hint="give an archive or a model with --against")
        raise UsageError(f"there is neither a file nor an engine {name!r}",
                         hint=near(name, ENGINES, f"engines are {', '.join(ENGINES)}"))
    reads, package = ENGINES[name]
    if reads != form:
        raise UsageError(f"{name} reads no .{form} file", hint=f"it reads .{reads} files")
    if find_spec(package) is None:
        raise UsageError(f"{name} is not installed", hint=INSTALL)
    return name


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Whatever another engine raises is a `RunError` in a line; what it writes to stderr goes nowhere."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise RunError(f"{name} does not run this file: {said[:200]}",
                       hint="give an archive or a model with --against") from error
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
