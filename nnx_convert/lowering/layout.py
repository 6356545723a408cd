"""The order of axes in memory: from the source's, channels before the image, to the one that moves the fewest bytes.

Importers speak the source's order and say `nchw`; NNAPI's images have the channels last. Nothing is guessed from
sizes: every value gets an order by the rules of the operations around it (`layout_rules`), by the choice that moves
the least (`layout_search`). Transposes are then names for orders, and stand only where two ends of an edge disagree.
Inputs and outputs of the graph keep the source's order.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..graph import Build, Graph, Node, Value
from ..ops import gather, shape
from ..symbols import same
from ..target import Target
from ..types import ChannelQuant, Tensor, known, rebuilt
from .axes import Perm, as_written, ident, in_memory, inverse, stored, turn
from .layout_rules import X, Picked, Plan, Slot, memory, plans, slots
from .layout_search import chosen, weight
from .rewrite import Event, prune
from .sinks import SINKS, TIDY


#: EXPAND_DIMS comes with it.
LEVEL_OF_NEW_AXES = min(shape.EXPAND_DIMS.types.values())


def layout(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph with every value in its order; the same object where it has no images and less cannot be moved."""
    images = any(n.args.get("nchw") is True for n in graph.nodes)
    if not images and not any(n.op is shape.TRANSPOSE for n in graph.nodes):
        return graph
    graph, said = prune(graph, target, trace), list[Event]()
    sunk = prune(SINKS(graph, target, said), target, said)
    plans, cost = chosen(sunk, target)
    if not images and cost >= sum(weight(n.outputs[0]) for n in graph.nodes if n.op is shape.TRANSPOSE):
        return graph
    trace += said
    return prune(TIDY(_Relaid(sunk, plans, target).run(), target, trace), target, trace)


@dataclass
class _Relaid:
    """Replays a graph by its nodes' plans."""

    graph: Graph
    plans: Mapping[Node, Plan]
    target: Target
    build: Build = field(init=False)
    have: dict[tuple[Value, Perm], Value] = field(default_factory=dict)    # values of the old graph, by order
    orders: dict[Value, Perm] = field(default_factory=dict)                # the order each is stored in

    def run(self) -> Graph:
        """The new graph."""
        self.build = Build(self.graph.name)
        for v in self.graph.inputs:
            self.made(v, ident(len(v.tensor.dims or ())), v)
        for n in self.graph.nodes:
            self.build.at = n.at
            self.node(n, self.plans[n])
        outputs = tuple(self.fetch(v, None) for v in self.graph.outputs)
        return self.build.finish(self.graph.inputs, outputs, self.graph.rim)

    def made(self, v: Value, order: Perm, now: Value) -> None:
        self.have[v, order] = now
        self.orders[v] = order

    def node(self, n: Node, plan: Plan) -> None:
        """A node in the orders of its plan."""
        plan = self.settled(n, plan)
        ins = {s: self.fetch(v, plan.ins.get(s)) for s, v in slots(n)}
        if plan.named:
            self.made(n.outputs[0], plan.outs[0], ins[X])
            return
        args = replaced(n, ins) | {name: self.argument(ins, name, a) for name, a in plan.args.items()}
        if plan.picked:
            v = n.outputs[0]
            self.made(v, plan.outs[0], self.build(gather.GATHER, self.build(n.op, **args), axis=0,
                                                  indices=list(plan.picked), out=v.tensor))
            return
        outs = tuple(self.output(v, q) for v, q in zip(n.outputs, plan.outs, strict=True))
        same = outs == n.outputs and all(args[name] is arg for name, arg in n.args.items())
        self.build.nodes.append(n if same else replace(n, args=args, outputs=outs))

    def settled(self, n: Node, plan: Plan) -> Plan:
        """The plan, with axes of size 1 where they stand in what comes in: so that none has to be moved."""
        for s, v in slots(n):
            p = plan.ins.get(s)
            if p is None or v.constant:
                continue
            now = self.orders[v]
            if now == p or memory(v, now) != memory(v, p):
                return plan
            return next((other for other in plans(n, now, (), self.target) if alike(n, plan, other)), plan)
        return plan

    def output(self, v: Value, q: Perm) -> Value:
        """What stands for an output stored in an order."""
        now = v if q == ident(len(q)) else Value(v.name, reordered(v.tensor, q), order=q)
        self.made(v, q, now)
        return now

    def argument(self, ins: Mapping[Slot, Value], name: str, a: Any) -> Any:
        """An argument as a plan gives it."""
        if isinstance(a, list):
            return self.build.const(a, ins[name, -1].type)
        if not isinstance(a, Picked):
            return a
        v = ins[name, -1]
        if a.order == ident(len(a.order)):
            return v
        if v.tensor.data is not None:
            return self.build.const(v.array[list(a.order)], v.type, v.tensor)
        return self.build(gather.GATHER, v, axis=0, indices=list(a.order))

    def fetch(self, v: Value, p: Perm | None) -> Value:
        """A value in an order, by default the source's: what is there, or a constant or a transpose that is made."""
        p = ident(len(v.tensor.dims or ())) if p is None else p
        if (v, p) not in self.have:
            self.have[v, p] = v if v.constant and p == ident(len(p)) else constant(v, p) if v.constant else \
                self.turned(v, self.have[v, self.orders[v]], self.orders[v], p)
        return self.have[v, p]

    def turned(self, v: Value, x: Value, now: Perm, want: Perm) -> Value:
        """A value stored in one order in another, without a transpose where only axes of size 1 move."""
        out = reordered(v.tensor, want)
        if in_memory(v.shape, now) != in_memory(v.shape, want):
            return self.build(shape.TRANSPOSE, x, list(turn(now, want)), out=out)
        sizes = [n for n in v.shape if known(n)]
        if len(sizes) == len(v.shape) or len(sizes) == len(v.shape) - 1 and 0 not in sizes:
            return self.build(shape.RESHAPE, x, as_written(stored(v.shape, want)), out=out)
        if isinstance(out.quant, ChannelQuant) or self.target.level < LEVEL_OF_NEW_AXES:
            return self.build(shape.TRANSPOSE, x, list(turn(now, want)), out=out)
        ones = {a for a in want if same(v.shape[a], 1)}
        x = self.build(shape.SQUEEZE, x, [i for i, a in enumerate(now) if a in ones])
        for i in (i for i, a in enumerate(want) if a in ones):
            x = self.build(shape.EXPAND_DIMS, x, axis=i)
        return x


def alike(n: Node, a: Plan, b: Plan) -> bool:
    """Whether two plans differ in where axes of size 1 stand alone."""
    ins = ((v, a.ins.get(s), b.ins.get(s)) for s, v in slots(n) if v.tensor.data is None)
    return all((p is None) == (q is None) and (p is None or q is None or memory(v, p) == memory(v, q))
               for v, p, q in (*ins, *zip(n.outputs, a.outs, b.outs, strict=True)))


def replaced(n: Node, ins: Mapping[Slot, Value]) -> dict[str, Any]:
    """The arguments of a node with other values in their slots; what stays is the same object."""
    args = dict[str, Any]()
    for name, arg in n.args.items():
        items = [ins.get((name, i), a) for i, a in enumerate(arg)] if isinstance(arg, tuple) else []
        if isinstance(arg, tuple) and any(a is not b for a, b in zip(items, arg, strict=True)):
            args[name] = rebuilt(arg, items)
        else:
            args[name] = ins.get((name, -1), arg)
    return args


def reordered(t: Tensor, p: Perm) -> Tensor:
    """What is known of a tensor stored in an order."""
    quant = t.quant
    if isinstance(quant, ChannelQuant):
        quant = ChannelQuant(quant.scales, inverse(p)[quant.axis])
    return replace(t, dims=stored(t.shape, p), quant=quant, data=None)


def constant(v: Value, p: Perm) -> Value:
    """A constant stored in an order, of fewer axes than that has, too: those it lacks are its first."""
    t, more = v.tensor, len(p) - len(v.shape)
    quant = ChannelQuant(t.quant.scales, t.quant.axis + more) if isinstance(t.quant, ChannelQuant) else t.quant
    whole = replace(t, dims=(1,) * more + v.shape, quant=quant)
    data = np.ascontiguousarray(v.array.reshape(whole.shape).transpose(p))
    return Value(v.name, replace(reordered(whole, p), data=data))
