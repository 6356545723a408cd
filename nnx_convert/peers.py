"""Other engines of the same files, to be timed beside this one. They are packages of their own: extra `bench`."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from .frozen import frozen

Run = Callable[[], Any]


def litert(path: str, threads: int, inputs: Sequence[Any]) -> Run:
    """A run of LiteRT with its default delegate, XNNPACK, setting inputs and fetching outputs as ours does.

    `inputs` are in the file's order; open sizes become those of the arrays.
    """
    from ai_edge_litert.interpreter import Interpreter
    lite = Interpreter(model_path=path, num_threads=threads)
    for detail, array in zip(lite.get_input_details(), inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            lite.resize_tensor_input(detail["index"], array.shape)
    lite.allocate_tensors()
    ins, outs = ([d["index"] for d in details] for details in (lite.get_input_details(), lite.get_output_details()))

    def run() -> list[Any]:
        for index, array in zip(ins, inputs, strict=True):
            lite.set_tensor(index, array)
        lite.invoke()
        return [lite.get_tensor(index) for index in outs]
    return run


def onnxruntime(path: str, threads: int, inputs: Sequence[Any]) -> Run:
    """A run of ONNX Runtime on the processor, as it comes; `inputs` are in the file's order."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4                # what it says of a file's shapes is no fault
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {i.name: a for i, a in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, given)


def openvino(path: str, threads: int, inputs: Sequence[Any]) -> Run:
    """A run of OpenVINO on the processor, floats in 32 bits; `inputs` are in the file's order."""
    import openvino as ov
    core = ov.Core()
    model = core.read_model(path)
    if any(port.get_partial_shape().is_dynamic for port in model.inputs):
        model.reshape({n: array.shape for n, array in enumerate(inputs)})
    request = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1}).create_infer_request()
    given = dict(enumerate(inputs))
    return lambda: list(request.infer(given).values())


@frozen
class Peer:
    """An engine: the formats it reads, the package it is in and what that is called where it is installed from."""

    formats: tuple[str, ...]
    package: str
    distribution: str
    open: Callable[[str, int, Sequence[Any]], Run]

    @property
    def there(self) -> bool:
        """Whether it is installed."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Its version; "" where that is not known."""
        from importlib.metadata import PackageNotFoundError, version
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return ""


PEERS = {"litert": Peer(("tflite",), "ai_edge_litert", "ai-edge-litert", litert),
         "onnxruntime": Peer(("onnx",), "onnxruntime", "onnxruntime", onnxruntime),
         "openvino": Peer(("tflite", "onnx"), "openvino", "openvino", openvino)}


@contextmanager
def unheard() -> Iterator[None]:
    """What libraries write to stderr meanwhile goes nowhere: engines greet there."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
