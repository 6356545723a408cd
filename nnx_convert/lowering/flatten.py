"""A legal graph as an NNAPI model."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..graph import At, Graph, GraphError, Value
from ..builder import ModelBuilder
from ..model import Model
from ..schema import OpError
from ..types import ChannelQuant, Quant, Rim, Scalar, Type, known


def flatten(graph: Graph, notes: tuple[str, ...] = ()) -> Model:
    """Operands for values, operations for nodes, in order; each operand once. `notes` go into the model."""
    return _Flat({}).model(graph, notes)


@dataclass
class _Flat:
    models: dict[Graph, Model]                   # of subgraphs, each made once
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    index: dict[object, int] = field(default_factory=dict)

    def model(self, graph: Graph, notes: tuple[str, ...] = ()) -> Model:
        inputs = [self.operand(v) for v in graph.inputs]
        for n in graph.nodes:
            if n.op.code is None:
                raise GraphError(f"{n.at}: {n.op.name} is a composite")
            if isinstance(n.verdict, OpError):
                raise GraphError(f"{n.at}: {n.verdict}")
            args = [self.operand(a) for a in n.operands]
            origin = "" if n.at == At() else str(n.at)
            self.builder.add(n.op, args, [self.operand(v) for v in n.outputs], checked=n.verdict, origin=origin)
        self.builder.identify_inputs_and_outputs(inputs, [self.operand(v) for v in graph.outputs])
        return self.builder.finish(graph.rim if graph.rim != Rim() else None, notes)

    def operand(self, a: Value | Scalar | Graph | None) -> int:
        """The index of an operand; equal scalars share one."""
        key = (a.type, np.array(a.value, a.type.dtype).tobytes()) if isinstance(a, Scalar) else a    # -0.0 is not 0.0
        if key not in self.index:
            self.index[key] = self.add(a)
        return self.index[key]

    def add(self, a: Value | Scalar | Graph | None) -> int:
        b = self.builder
        if a is None:
            i = b.add_operand(Type.TENSOR_FLOAT32)
            b.set_operand_value(i, None)
        elif isinstance(a, Scalar):
            i = b.add_operand(a.type)
            b.set_operand_value(i, np.array(a.value, a.type.dtype))
        elif isinstance(a, Graph):
            i = b.add_operand(Type.MODEL)
            if a not in self.models:
                self.models[a] = _Flat(self.models).model(a)
            b.set_operand_value_from_model(i, self.models[a])
        else:
            i = self.value(a)
        return i

    def value(self, v: Value) -> int:
        t, b = v.tensor, self.builder
        dims = tuple(n if known(n) else 0 for n in t.dims or ())
        quant = t.quant if isinstance(t.quant, Quant) else Quant(0.0)
        i = b.add_operand(t.type, dims, quant.scale, quant.zero)
        if isinstance(t.quant, ChannelQuant):
            b.set_operand_symm_per_channel_quant_params(i, t.quant.axis, t.quant.scales)
        if t.data is not None:
            b.set_operand_value(i, t.data)
        return i
