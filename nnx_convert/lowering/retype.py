"""Signed bytes as unsigned ones, for targets below level 30: q + 128, zero point + 128."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..graph import Build, Graph, Node, Value
from ..ops import shape
from ..ops.convert import CAST
from ..ops.elementwise import ADD
from ..signature import Args
from ..types import F32, Q8, Q8S, Quant, Tensor
from .rewrite import Event
from ..target import Target

SIGNED_FROM = 30
#: Arguments in raw units of a quantised x, which move with it.
RAW: dict[str, Callable[[Args], Args]] = {shape.PAD_V2.name: lambda a: {"value": a["value"] + 128}}


def unsigned(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph with TENSOR_QUANT8_ASYMM for each TENSOR_QUANT8_ASYMM_SIGNED, its rim included."""
    if target.level >= SIGNED_FROM:
        return graph
    shift, build = _Shift({}), Build(graph.name)
    for n in graph.nodes:
        shift.node(build, n)
    return build.finish(tuple(map(shift.now, graph.inputs)), tuple(map(shift.now, graph.outputs)), graph.rim)


@dataclass(frozen=True)
class _Shift:
    """Values in the old graph -> in the new."""

    values: dict[Value, Value]

    def node(self, build: Build, old: Node) -> None:
        if old.op is CAST and Q8S in (old.args["x"].type, old.args["to"]):
            self.cast(build, old)
            return
        new = old.mapped(self.now)
        signed = [v for v in (*old.inputs, *old.outputs) if v.type == Q8S]
        if signed:
            args = {n: Q8 if a is Q8S else a for n, a in new.args.items()}
            args |= RAW[old.op.name](args) if old.op.name in RAW else {}
            new = replace(new, args=args, outputs=tuple(map(self.now, old.outputs)))
        build.nodes.append(new)

    def cast(self, build: Build, old: Node) -> None:
        """CAST counts in plain integers: the shift is undone before it, or done before it, as floats."""
        x, to, out = self.now(old.args["x"]), old.args["to"], self.now(old.outputs[0])
        build.at, since = old.at, len(build.nodes)
        offset = 128.0 * ((to == Q8S) - (old.args["x"].type == Q8S))
        y = build(ADD, build(CAST, x, to=F32), build.const([offset], F32), act=0)
        y = build(CAST, y, to=out.type, out=out.tensor) if out.type != F32 else y
        self.values[old.outputs[0]] = build.rename(since, {y: (out.name, out.tensor)})[y]

    def now(self, v: Any) -> Any:
        if isinstance(v, Graph) or v not in self.values and v.type != Q8S:
            return v
        if v not in self.values:
            sparse = v.sparse and replace(v.sparse, data=_up(v.sparse.data), implicit=v.sparse.implicit + 128)
            self.values[v] = Value(v.name, shifted(v.tensor), sparse)
        return self.values[v]


def shifted(t: Tensor) -> Tensor:
    """The tensor with its bytes moved up by 128."""
    quant = Quant(t.quant.scale, t.quant.zero + 128) if isinstance(t.quant, Quant) else None
    return replace(t, type=Q8, quant=quant, data=None if t.data is None else _up(t.data))


def _up(data: np.ndarray) -> np.ndarray:
    return (data.view(np.uint8) ^ 0x80).view(np.uint8)


