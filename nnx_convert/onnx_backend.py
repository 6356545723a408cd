"""ONNX's backend interface, so that ONNX's own suite and whatever else speaks it can run on this compiler.

    import onnx, nnx_convert.onnx_backend as backend
    outputs = backend.prepare(onnx.load("model.onnx")).run([x])
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper
from onnx.backend.base import Backend as Base, BackendRep, namedtupledict

from .convert import compile as compile_model, convert
from .model import Model
from .target import Target


class Prepared(BackendRep):
    """A model that is ready to run; `model` is what it was lowered to."""

    def __init__(self, model: Model) -> None:
        self.model, self._compiled = model, compile_model(model)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the graph's order, for inputs in order, by name, or one alone.

        Sequences are lists, an optional without a value is None. Raises `InputError`, `RunError`.
        """
        names = [spec.name for spec in self._compiled.outputs]
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        found = self._compiled.run(inputs)
        values = list(found.values()) if isinstance(found, dict) else found
        outputs: tuple[Any, ...] = namedtupledict("Outputs", names)(*values)
        return outputs


class Backend(Base):
    """`onnx.backend.base.Backend` on the processor."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be prepared."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", *, target: Target = Target(),  # noqa: B008
                **kwargs: Any) -> Prepared:
        """Convert and compile a model; raises `FormatError` and `Unsupported` as `nnx_convert.convert` does."""
        if not cls.supports_device(device):
            raise ValueError(f"the device is CPU, not {device}")
        return Prepared(convert(model.SerializeToString(), target))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare and run at once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """One node, as a model of its own, in the newest version of the operator set."""
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        arrays = [np.asarray(x) for x in given]
        ports = [_port(n, a) for n, a in zip([n for n in node.input if n], arrays, strict=True)]
        outputs = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        graph = helper.make_graph([node], "node", ports, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The processor is the one device there is."""
        return device.partition(":")[0] == "CPU"


def _port(name: str, array: np.ndarray) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


is_compatible, prepare, run_model = Backend.is_compatible, Backend.prepare, Backend.run_model
run_node, supports_device = Backend.run_node, Backend.supports_device
