"""Signed bytes as unsigned ones, for targets below level 30: q + 128, zero point + 128."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import numpy as np

from ..frozen import frozen
from ..graph import Evaluate, Build, Graph, Node, Value
from ..ops import shape
from ..ops.convert import CAST
from ..ops.elementwise import ADD
from ..ops.host import REQUANTIZE, host_twin
from ..signature import Args
from ..target import Target
from ..types import F32, I32, Q8, Q8S, Quant, Tensor
from .host import because
from .rewrite import Event, Pass
from .signed import PRODUCTS, REWRITES, WHY, by_channels, neutral, same_products

SIGNED_FROM = 30
#: Arguments in raw units of a quantised x, which move with it.
RAW: dict[str, Callable[[Args], Args]] = {shape.PAD_V2.name: lambda a: {"value": a["value"] + 128}}
BACK = "what the host computed on signed bytes becomes unsigned"
STAYS = "has no exact counterpart on unsigned bytes"


def unsigning(evaluate: Evaluate) -> Pass:
    """The pass that puts TENSOR_QUANT8_ASYMM for each TENSOR_QUANT8_ASYMM_SIGNED, the rim included.

    An operation that is not the same on both is rewritten, or stays on signed bytes as a host operation, between
    two that move its operands; the trace says so.
    """
    def unsigned(graph: Graph, target: Target, trace: list[Event]) -> Graph:
        if target.level >= SIGNED_FROM:
            return graph
        shift = _Shift(Build(graph.name), target, trace, evaluate)
        for n in graph.nodes:
            shift.node(n)
        return shift.build.finish(tuple(map(shift.now, graph.inputs)), tuple(map(shift.now, graph.outputs)), graph.rim)
    return unsigned


@frozen
class _Shift:
    """Values in the old graph -> in the new: `values`, and `signed` for what is there on signed bytes."""

    build: Build
    target: Target
    trace: list[Event]
    evaluate: Evaluate
    values: dict[Value, Value] = field(default_factory=dict)
    signed: dict[Value, Value] = field(default_factory=dict)

    def node(self, old: Node) -> None:
        """Take over a node."""
        self.build.at = old.at
        if not any(v.type == Q8S for v in (*old.inputs, *old.outputs)):
            self.build.nodes.append(old.mapped(self.now))
        elif weights_only(old):                  # signed weights of something that is no NNAPI operation yet
            self.build.nodes.append(old.mapped(lambda v: v if isinstance(v, Value) and v.constant else self.now(v)))
        elif old.op is CAST:
            self.cast(old)
        elif neutral(old):
            self.build.nodes.append(self.moved(old))
        elif old.op.plain.name in PRODUCTS:
            self.product(old)
        elif not self.rewritten(old):
            self.stay(old)

    def moved(self, old: Node) -> Node:
        """The same operation on unsigned bytes."""
        new = old.mapped(self.now)
        args = {n: Q8 if a is Q8S else a for n, a in new.args.items()}
        args |= RAW[old.op.plain.name](args) if old.op.plain.name in RAW else {}
        return replace(new, args=args, outputs=tuple(map(self.now, old.outputs)))

    def product(self, old: Node) -> None:
        """A convolution with one scale: as it is if that is exact, else with equal scales for all channels."""
        if old.args["w"].type != Q8S or old.outputs[0].type != Q8S:
            self.stay(old)
            return
        new = self.moved(old)
        if same_products(self.evaluate, old, new):
            self.build.nodes.append(new)
            return
        equal = by_channels(old)
        if equal is None or self.target.fault(equal.op, self.moved(equal).verdict):
            self.stay(old)
            return
        self.build.nodes.append(self.moved(equal))
        self.say("unsigned", old, f"{WHY[old.op.plain.name]}, so each channel has a scale of its own")

    def rewritten(self, old: Node) -> bool:
        """Whether a rewrite of the operation that the target takes has been put in its place."""
        if old.op.plain.name not in REWRITES:
            return False
        x, out = self.now(old.args["x"]), old.outputs[0]     # may move x over, which stays whatever comes of it
        since, want = len(self.build.nodes), self.now(out)
        made = REWRITES[old.op.plain.name](self.build, old, x, want.tensor)
        fresh = self.build.nodes[since:]
        if made is None or any(self.target.fault(n.op, n.verdict) for n in fresh):
            del self.build.nodes[since:], self.values[out]
            return False
        self.values[out] = self.build.rename(since, {made: (out.name, want.tensor)})[made]
        self.say("unsigned", old, f"on floats, since {WHY[old.op.plain.name]}")
        return True

    def stay(self, old: Node) -> None:
        """The operation on signed bytes, on the host."""
        twin = host_twin(old.op)
        form = twin.forms[old.op.forms.index(old.form)]
        new = old.mapped(self.as_signed)
        self.build.nodes.append(replace(new, op=twin, form=form))
        for v in old.outputs:
            self.values.pop(v, None)             # of an attempt
            if v.type == Q8S:
                self.signed[v] = v
        self.say("to_host", old, because(old) if old.op.host else "on signed bytes: " + WHY.get(old.op.name, STAYS))

    def cast(self, old: Node) -> None:
        """CAST counts in plain integers: the shift is undone after it, or done after the fraction is cut off."""
        x, to, out = self.now(old.args["x"]), old.args["to"], self.now(old.outputs[0])
        since = len(self.build.nodes)
        offset = 128.0 * ((to == Q8S) - (old.args["x"].type == Q8S))
        x = self.build(CAST, x, to=I32) if to == Q8S and x.type != I32 else x
        y = self.build(ADD, self.build(CAST, x, to=F32), self.build.const([offset], F32), act=0)
        y = self.build(CAST, y, to=out.type, out=out.tensor) if out.type != F32 else y
        self.values[old.outputs[0]] = self.build.rename(since, {y: (out.name, out.tensor)})[y]

    def say(self, rule: str, old: Node, why: str) -> None:
        self.trace.append(Event(rule, old.at, old.op.name, True, why))

    def now(self, v: Any) -> Any:
        """What stands for a value: on unsigned bytes where it was on signed ones."""
        if isinstance(v, Graph) or v not in self.values and v.type != Q8S:
            return v
        if v not in self.values:
            self.values[v] = self.up(v)
        return self.values[v]

    def up(self, v: Value) -> Value:
        if v in self.signed:
            self.trace.append(Event("to_host", self.build.at, REQUANTIZE.name, True, BACK))
            return self.across(self.signed[v], v.name, shifted(v.tensor))
        sparse = v.sparse and replace(v.sparse, data=_up(v.sparse.data), implicit=v.sparse.implicit + 128)
        return Value(v.name, shifted(v.tensor), sparse)

    def as_signed(self, v: Any) -> Any:
        """What stands for a value, on signed bytes where it was."""
        if isinstance(v, Graph) or v.type != Q8S or v.constant:
            return v if isinstance(v, Graph) or v.constant else self.now(v)
        if v not in self.signed:
            self.signed[v] = self.across(self.now(v), f"{v.name}.signed", v.tensor)
        return self.signed[v]

    def across(self, v: Value, name: str, to: Tensor) -> Value:
        """The same numbers on the other kind of bytes, which the host moves."""
        since = len(self.build.nodes)
        y = self.build(host_twin(REQUANTIZE), v, to=to.type, out=to)
        return self.build.rename(since, {y: (name, to)})[y]


def weights_only(node: Node) -> bool:
    """Whether only constants are on signed bytes, in what is no operation of NNAPI."""
    return (node.op.code is None or node.op.host) and not neutral(node) and all(
        v.constant or v.type != Q8S for v in (*node.inputs, *node.outputs))


def shifted(t: Tensor) -> Tensor:
    """The tensor with its bytes moved up by 128."""
    quant = Quant(t.quant.scale, t.quant.zero + 128) if isinstance(t.quant, Quant) else None
    return replace(t, type=Q8, quant=quant, data=None if t.data is None else _up(t.data))


def _up(data: np.ndarray) -> np.ndarray:
    return (data.view(np.uint8) ^ 0x80).view(np.uint8)
