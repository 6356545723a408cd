"""Rules and the one driver that applies them.

A rule is `(g, node) -> replacement | None | Refusal`: it emits nodes by calling `g` and returns the
values that stand for the node's outputs. The driver replays a graph into a new one, offers each node
to the rules of its op, and offers what they emit again. A rule edits nothing, and it cannot change
what a value is: the replacement must agree in type, shape and quantisation.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import FormatError
from ..frozen import frozen
from ..graph import At, Build, Evaluate, Graph, GraphError, Node, Value, Values, merge
from ..resources import tick
from ..schema import OpDef, OpError, describe
from ..target import Target
from ..types import Tensor, Undecided, known

#: How deep replacements of replacements may go before rules must be going in circles.
DEEPEST = 16


@frozen
class Refusal:
    """Why a rule that was meant for a node leaves it alone; it goes into the trace."""

    reason: str


@frozen
class Event:
    """One line of the trace: what a rule did to a node (`did`), or that it leaves it alone and `why`.

    `op` is the node's operation, `at` where it comes from in the source file, `step` the pass that the rule is of.
    """

    rule: str
    at: At
    op: str
    did: bool
    why: str = ""
    step: str = ""

    def __str__(self) -> str:
        return f"{self.at}: {self.rule} {'on' if self.did else 'refused'} {self.op}{self.why and ': ' + self.why}"


Pass = Callable[[Graph, Target, list[Event]], Graph]
Result = Value | Sequence[Value] | Refusal | None
RuleFn = Callable[["Rewriter", Node], Result]


@frozen
class Rules:
    """A pass made of rules, keyed by op name; "*" is every op. Rules that compute something use `evaluate`.

    How to write one is told in docs/passes.md.
    """

    name: str
    by_op: dict[str, list[RuleFn]] = field(default_factory=dict)
    evaluate: Evaluate | None = None

    def using(self, evaluate: Evaluate) -> Rules:
        """The same rules with a way to compute constants."""
        return replace(self, evaluate=evaluate)

    def on(self, *ops: OpDef | str) -> Callable[[RuleFn], RuleFn]:
        """Register a rule for these operations."""
        def register(rule: RuleFn) -> RuleFn:
            for op in ops:
                self.by_op.setdefault(op if isinstance(op, str) else op.name, []).append(rule)
            return rule
        return register

    def of(self, node: Node) -> list[RuleFn]:
        """The rules a node is offered to, in order."""
        return self.by_op.get(node.op.name, []) + self.by_op.get("*", [])

    def __call__(self, graph: Graph, target: Target, trace: list[Event]) -> Graph:
        if "*" not in self.by_op and all(n.op.name not in self.by_op for n in graph.nodes):
            return graph
        return Rewriter(self, graph, target, trace, Build(graph.name)).run()


@dataclass
class Rewriter:
    """The driver; to a rule, what it sees of the graph and the way it emits nodes."""

    rules: Rules
    graph: Graph
    target: Target
    trace: list[Event]
    build: Build
    became: dict[Value, Value] = field(default_factory=dict)
    readers: dict[Value, int] = field(default_factory=dict)
    producers: dict[Value, Node] = field(default_factory=dict)
    since: int = 0                               # where the nodes of the rule at work begin
    why: str = ""                                # what it wants said in the trace

    # What rules use.
    def __call__(self, op: OpDef, *args: Any, out: Tensor | None = None, **named: Any) -> Value:
        """Emit an operation."""
        return self.build(op, *args, out=out, **named)

    def add(self, op: OpDef, *args: Any, outs: Sequence[Tensor | None] = (), **named: Any) -> Values:
        """Emit an operation with several outputs; `outs` says what is known of them."""
        return self.build.add(op, *args, outs=outs, **named)

    def again(self, node: Node, op: OpDef, outs: Sequence[Tensor | None] = ()) -> Values:
        """Emit a node with another operation that has the same operands."""
        form = op.forms[node.op.forms.index(node.form)]
        if outs:
            return self.add(op, outs=outs, **node.args)
        self.build.nodes.append(replace(node, op=op, form=form))
        return node.outputs

    def named(self, v: Value, name: str) -> Value:
        """A value that was emitted, under a name: it holds what the source's tensor of that name does."""
        return self.build.rename(self.since, {v: (name, v.tensor)})[v]

    def producer(self, v: Value) -> Node | None:
        """The node of the new graph that writes a value; None for inputs and constants."""
        return self.producers.get(v)

    def sole(self, v: Value) -> bool:
        """Whether exactly one node reads the value."""
        return self.readers.get(v, 0) == 1

    def fault(self, node: Node) -> str:
        """Why the target does not take a node; empty when it does."""
        return self.target.fault(node.op, node.verdict)

    def legal(self, result: Result) -> Result:
        """The result if the target takes all that this rule has emitted; else the reason why not."""
        faults = (self.fault(n) for n in self.build.nodes[self.since:] if n.op.code is not None)
        return next((Refusal(f) for f in faults if f), result)

    def attempt(self, emit: Callable[[Build], Value]) -> Value | Refusal:
        """What something emits if the target takes all of it; else the reason why not, and nothing is emitted."""
        since = len(self.build.nodes)
        made = emit(self.build)
        found = self.legal(made)
        if isinstance(found, Refusal):
            del self.build.nodes[since:]
            return found
        return made

    @property
    def evaluate(self) -> Evaluate:
        """The way to compute constants that the pass was given."""
        if self.rules.evaluate is None:
            raise GraphError(f"{self.rules.name} was given no way to compute constants")
        return self.rules.evaluate

    # The driver.
    def run(self) -> Graph:
        """Replay the graph through the rules."""
        for v in (*self.graph.inputs, *(v for n in self.graph.nodes for v in n.inputs if v.constant)):
            self.readers[v] = self.graph.uses.get(v, 0)
        for node in self.graph.nodes:
            tick(str(node.at))
            self._node(self._renewed(node), node.outputs, 0)
            for v in node.outputs:
                now = self._now(v)
                self.readers[now] = self.readers.get(now, 0) + self.graph.uses.get(v, 0)
        outputs = tuple(map(self._now, self.graph.outputs))
        return self.build.finish(self.graph.inputs, outputs, self.graph.rim)

    def _node(self, node: Node, outputs: Values, depth: int) -> None:
        """Offer a node to its rules; the first that gives a replacement has it."""
        self.build.at = node.at
        for rule in self.rules.of(node):
            self.since, self.why = since, _ = len(self.build.nodes), ""
            try:
                result = rule(self, node)
            except OpError as error:
                result = Refusal(str(error))
            except Undecided:
                result = Refusal("a size is open")
            if isinstance(result, Refusal):
                self.trace.append(Event(rule.__name__, node.at, node.op.name, False, result.reason))
            if result is None or isinstance(result, Refusal):
                del self.build.nodes[since:]
                continue
            self.trace.append(Event(rule.__name__, node.at, node.op.name, True, self.why))
            self._replace(rule.__name__, node, since, (result,) if isinstance(result, Value) else tuple(result), depth)
            return
        self.build.nodes.append(node)
        self.producers.update(dict.fromkeys(node.outputs, node))

    def _replace(self, rule: str, node: Node, since: int, results: Values, depth: int) -> None:
        """Take over what a rule emitted, under the names of what it stands for."""
        if depth > DEEPEST:
            raise GraphError(f"{node.at}: {rule} and others replace each other without end")
        for old, new in zip(node.outputs, results, strict=True):
            if not old.tensor.agrees(new.tensor):
                raise GraphError(f"{node.at}: {rule} turns {old} into {describe(new.tensor)}")
        final = {new: (old.name, merge(node.op, new.tensor, old.tensor))
                 for old, new in zip(node.outputs, results, strict=True)}
        orders = {new: old.order for old, new in zip(node.outputs, results, strict=True)}
        renamed = self.build.rename(since, final, orders)
        fresh = self.build.nodes[since:]
        del self.build.nodes[since:]
        for n in fresh:
            self._node(self._renewed(n), n.outputs, depth + 1)
        for old, new in zip(node.outputs, results, strict=True):
            self._became(old, self._now(renamed.get(new, new)))

    def _became(self, old: Value, new: Value) -> None:
        if old is not new:
            self.became[old] = new

    def _renewed(self, node: Node) -> Node:
        """A node that reads what values have become; most have become nothing else.

        A size that is known now may be none that the node takes: then the file contradicts itself.
        """
        if not any(v in self.became for v in node.inputs):
            return node
        new = node.mapped(self._now)
        pairs = (pair for v, w in zip(node.inputs, new.inputs, strict=False)
                 for pair in zip(v.tensor.dims or (), w.tensor.dims or (), strict=False))
        if any(known(b) and not known(a) for a, b in pairs) and (fault := new.impossible) is not None:
            raise FormatError(f"{node.at}: {fault}")
        return new

    def _now(self, v: Any) -> Any:
        """What a value of the old graph is in the new one; a subgraph is done already (`throughout`)."""
        while v in self.became:
            v = self.became[v]
        return v


def throughout(step: Pass, graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """A pass over one graph applied to its subgraphs first, to each once."""
    done: dict[Graph, Graph] = {}

    def change(v: Any) -> Any:
        return within(v) if isinstance(v, Graph) else v

    def within(g: Graph) -> Graph:
        if g not in done:
            nodes = tuple(n.mapped(change) if n.graphs else n for n in g.nodes)
            done[g] = step(replace(g, nodes=nodes), target, trace)
        return done[g]

    return within(graph)


def prune(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph less the nodes whose outputs nothing reads."""
    needed, kept = set(graph.outputs), list[Node]()
    for n in reversed(graph.nodes):
        if not needed.isdisjoint(n.outputs):
            kept.append(n)
            needed.update(n.inputs)
    if len(kept) == len(graph.nodes):
        return graph
    return replace(graph, nodes=tuple(reversed(kept))).verify()
