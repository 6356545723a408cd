"""The three that run a model: the reference runtime of its format, and this package in NumPy and natively."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

import nnx_convert
from nnx_convert.errors import NnxError

from .draw import Array

Tensors = Mapping[str, Array]
#: The package that a format's reference runtime is imported from.
PEERS = {"tflite": "ai_edge_litert", "onnx": "onnxruntime"}


#: What models are converted for: a device, and one where ONNX's codes stay floats between them, rounded as ONNX does.
DEVICE, FLOATS = nnx_convert.Target(), nnx_convert.Target(qdq="floats")


class Model(Protocol):
    """A model with inputs for it; tensors go by their names in the file."""

    @property
    def form(self) -> str:
        """tflite or onnx."""

    @property
    def data(self) -> bytes:
        """The file."""

    @property
    def given(self) -> Tensors:
        """What a run feeds it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs' names."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' names."""

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators' names in order."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The options of the last operator."""

    def parts(self) -> Sequence[Model]:
        """Each operator as a model of its own; what their inputs are given is not there yet."""

    def fed(self, given: Tensors) -> Model:
        """The same with other values for its inputs."""

    def changed(self, change: Callable[[Array], Array]) -> Model:
        """The same with other values for its inputs and constants of single precision."""


class Refused(Exception):
    """A runtime does not take a model, with what it says."""


def installed(form: str) -> bool:
    """Whether the reference runtime of a format is here."""
    return find_spec(PEERS[form]) is not None


def peer(model: Model) -> dict[str, Array]:
    """Every tensor that the reference runtime computes, by name; raises `Refused`."""
    return litert(model, REFERENCE, OPTIMISED) if model.form == "tflite" else _onnxruntime(model)


def ours(model: Model, backend: str, target: nnx_convert.Target = DEVICE) -> dict[str, Array]:
    """The outputs by name; raises `Refused` on what is not supported, and on a fault whatever it is."""
    try:
        compiled = nnx_convert.compile(nnx_convert.convert(model.data, target), backend=backend)
        found = compiled.run(dict(model.given))
    except NnxError as error:
        raise Refused(error.said) from error
    return {n: np.asarray(a) for n, a in found.items()}


#: LiteRT's kernels: those that define what is right, and faster ones.
REFERENCE, OPTIMISED = "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def litert(model: Model, *kernels: str) -> dict[str, Array]:
    """LiteRT with these kernels, the next ones where one of the operators is not among them."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    said = ""
    for each in kernels:
        try:
            lite = Interpreter(model_content=model.data, num_threads=1, experimental_preserve_all_tensors=True,
                               experimental_op_resolver_type=OpResolverType[each])
            lite.allocate_tensors()
            for detail in lite.get_input_details():
                lite.set_tensor(detail["index"], model.given[detail["name"]])
            lite.invoke()
            return _tensors(lite)
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())
            if "Didn't find op" not in said:
                break
    raise Refused(said)


def _tensors(lite: Any) -> dict[str, Array]:
    """What its tensors hold after a run: those that operators wrote, and what it was given."""
    written = {int(i) for op in lite._get_ops_details() for i in op["outputs"]}
    written |= {d["index"] for part in (lite.get_input_details(), lite.get_output_details()) for d in part}
    found = {}
    for detail in lite.get_tensor_details():
        if detail["index"] in written:
            try:
                found[detail["name"]] = np.array(lite.get_tensor(detail["index"]))
            except ValueError:                   # no memory of its own
                continue
    return found


def _onnxruntime(model: Model) -> dict[str, Array]:
    """ONNX Runtime, node by node as the file has them, with what nodes give as outputs more."""
    import onnx
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.inter_op_num_threads = 4, 1, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    proto = onnx.load_from_string(model.data)
    own = {o.name for o in proto.graph.output}
    between = [n for node in proto.graph.node for n in node.output if n and n not in own]
    proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in between)
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, {i.name: model.given[i.name] for i in session.get_inputs()})
    except Exception as error:                   # its own classes of errors have no base but this
        raise Refused(" ".join(f"{type(error).__name__}: {error}".split())) from error
    tensors = {o.name: a for o, a in zip(session.get_outputs(), found, strict=True) if isinstance(a, np.ndarray)}
    return {**tensors, **model.given}
