"""Resource variables that branches, loops and composites read and assign: the runs of a file, one after another.

What LiteRT's runs give stands beside each file; where ai-edge-litert is installed it is asked again.
"""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

from nnx_convert import FormatError, NnxError, Unsupported, compile, convert

Array = np.ndarray[Any, Any]
ONE = np.ones(2, np.float32)
F = "float32"
INSTALLED = find_spec("ai_edge_litert") is not None


class Maker(TFLiteWriter):
    """A writer of operators on float vectors [2]."""

    def vector(self, name: str, data: Any = None) -> int:
        """A tensor; a constant where it has data."""
        return self.tensor(name, F, (2,), None if data is None else np.full(2, data, np.float32))

    def handle(self, name: str = "total") -> int:
        """The handle of a variable."""
        h = self.tensor(f"h_{name}", "resource", ())
        self.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": name})
        return h

    def read(self, h: int, name: str = "v") -> int:
        """What a variable is."""
        v = self.vector(name)
        self.op("READ_VARIABLE", [h], [v])
        return v

    def assign(self, h: int, v: int) -> None:
        """Set a variable."""
        self.op("ASSIGN_VARIABLE", [h, v], [])

    def both(self, op: str, a: int, b: int, name: str) -> int:
        """An operator on two vectors."""
        y = self.vector(name)
        self.op(op, [a, b], [y], f"{op.capitalize()}Options")
        return y

    def start(self, value: float, name: str = "total") -> None:
        """What CALL_ONCE runs: the variable is `value`."""
        self.subgraph("init")
        self.assign(self.handle(name), self.vector("c", value))
        self.ends([], [])

    def branch(self, op: str, value: float | None, given: bool = False) -> int:
        """A subgraph of x: total = op(total, x), or where there is a value `value`; its output is x + x."""
        index = self.subgraph(op)
        h = self.tensor("given", "resource", ()) if given else self.handle()
        x = self.vector("x")
        new = self.both(op, self.read(h), x, "new") if value is None else self.vector("k", value)
        self.assign(h, new)
        self.ends([h, x] if given else [x], [self.both("ADD", x, x, "y")])
        return index

    def quiet(self, reads: bool = False, given: bool = False) -> int:
        """A subgraph of x that assigns nothing: x, beside total where it reads."""
        index = self.subgraph("quiet")
        h = self.tensor("given", "resource", ()) if given else self.handle() if reads else -1
        x = self.vector("x")
        self.ends([h, x] if given else [x], [self.both("ADD", x, self.read(h) if reads else x, "y")])
        return index

    def below(self, limit: float) -> int:
        """The condition of a loop: the first of i is less; i is x of the body."""
        index = self.subgraph("cond")
        x, c = self.vector("i"), self.tensor("c", "bool", ())
        start, size = (self.tensor(n, "int32", (1,), np.array([v])) for n, v in (("b", 0), ("e", 1)))
        first, scalar = self.tensor("first", F, (1,)), self.tensor("scalar", F, ())
        limited = self.tensor("limit", F, (), np.array(limit, np.float32))
        self.op("SLICE", [x, start, size], [first], "SliceOptions")
        self.op("SQUEEZE", [first], [scalar], "SqueezeOptions", {"SqueezeDims": [0]})
        self.op("LESS", [scalar, limited], [c])
        self.ends([x], [c])
        return index


def branches(then: Callable[[Maker], int], orelse: Callable[[Maker], int], initial: float | None = None,
             given: bool = False) -> bytes:
    """IF on c, x; the outputs are its own and the variable after it."""
    w = Maker()
    if initial is not None:
        w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 3})
    c, x, y = w.tensor("c", "bool", ()), w.vector("x"), w.vector("y")
    h = w.handle()
    w.op("IF", [c, h, x] if given else [c, x], [y], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
    after = w.read(h, "after")
    then(w), orelse(w)
    if initial is not None:
        w.start(initial)
    return w.finish([c, x], [y, after])


def loop(inner: bool = False) -> bytes:
    """While the first of x is below 5: total = total + x, or that in a branch; x = x + x. Starts with 10."""
    w = Maker()
    w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 3})
    x, y = w.vector("x"), w.vector("y")
    h = w.handle()
    w.op("WHILE", [x], [y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    after = w.read(h, "after")
    w.below(5)
    if inner:
        w.subgraph("body")
        a, b, c = w.vector("a"), w.vector("b"), w.tensor("c", "bool", (), np.array(True))
        w.op("IF", [c, a], [b], "IfOptions", {"ThenSubgraphIndex": 4, "ElseSubgraphIndex": 5})
        w.ends([a], [b])
    else:
        w.branch("ADD", None)
    w.start(10)
    if inner:
        w.branch("ADD", None), w.quiet()
    return w.finish([x], [y, after])


def loop_until() -> bytes:
    """While the first of total is below x: total = total + 1, the handle being an argument of the loop."""
    w = Maker()
    w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 3})
    x, y, g = w.vector("x"), w.vector("y"), w.tensor("g", "resource", ())
    h = w.handle()
    w.op("WHILE", [h, x], [g, y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    after = w.read(h, "after")
    w.subgraph("cond")
    g, a = w.tensor("g", "resource", ()), w.vector("a")
    axis, least, c = w.tensor("axis", "int32", (1,), np.array([0])), w.tensor("least", F, ()), w.tensor("c", "bool", ())
    w.op("REDUCE_MIN", [w.both("SUB", w.read(g), a, "d"), axis], [least], "ReducerOptions")
    w.op("LESS", [least, w.tensor("zero", F, (), np.array(0, np.float32))], [c])
    w.ends([g, a], [c])
    w.subgraph("body")
    g, a = w.tensor("g", "resource", ()), w.vector("a")
    w.assign(g, w.both("ADD", w.read(g), w.vector("one", 1), "new"))
    w.ends([g, a], [g, w.both("ADD", a, w.vector("none", 0), "b")])
    w.start(10)
    return w.finish([x], [y, after])


def composite() -> bytes:
    """An operator of operators, which adds x to total."""
    w = Maker()
    w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 2})
    x, y = w.vector("x"), w.vector("y")
    h = w.handle()
    w.op("STABLEHLO_COMPOSITE", [x], [y], "StableHLOCompositeOptions", {"DecompositionSubgraphIndex": 1, "Name": "sum"})
    after = w.read(h, "after")
    w.branch("ADD", None)
    w.start(10)
    return w.finish([x], [y, after])


def adds(w: Maker) -> int:
    """A branch that adds x to the variable."""
    return w.branch("ADD", None)


def given_adds(w: Maker) -> int:
    """The same, the variable being an argument."""
    return w.branch("ADD", None, given=True)


YES, NO = np.array(True), np.array(False)
#: Files, their runs' inputs, and the first elements of the outputs.
RUNS: dict[str, tuple[bytes, list[tuple[Array, ...]], list[tuple[float, float]]]] = {
    "one branch assigns": (branches(adds, Maker.quiet, 10), [(YES, ONE), (NO, ONE), (YES, 3 * ONE)],
                           [(2, 11), (2, 11), (6, 14)]),
    "both read, one assigns": (branches(lambda w: w.quiet(reads=True), adds, 10),
                               [(YES, ONE), (NO, ONE), (YES, 3 * ONE)], [(11, 10), (2, 11), (14, 11)]),
    "both assign": (branches(adds, lambda w: w.branch("MUL", None), 10), [(NO, 3 * ONE), (YES, ONE), (NO, 2 * ONE)],
                    [(6, 30), (2, 31), (4, 62)]),
    "both assign and neither reads": (branches(lambda w: w.branch("A", 7), lambda w: w.branch("B", 8)),
                                      [(NO, ONE), (YES, ONE)], [(2, 8), (2, 7)]),
    "none assigns": (branches(Maker.quiet, lambda w: w.quiet(reads=True), 10), [(NO, ONE), (YES, ONE)],
                     [(11, 10), (2, 10)]),
    "the handle is an argument": (branches(given_adds, lambda w: w.quiet(given=True), 10, given=True),
                                  [(YES, ONE), (NO, ONE), (YES, 3 * ONE)], [(2, 11), (2, 11), (6, 14)]),
    "a loop assigns": (loop(), [(ONE,), (9 * ONE,), (2 * ONE,)], [(8, 17), (9, 17), (8, 23)]),
    "a branch in a loop assigns": (loop(inner=True), [(ONE,), (9 * ONE,), (2 * ONE,)], [(8, 17), (9, 17), (8, 23)]),
    "a loop's condition reads": (loop_until(), [(12 * ONE,), (ONE,), (15.5 * ONE,)], [(12, 12), (1, 12), (15.5, 16)]),
    "a composite assigns": (composite(), [(ONE,), (ONE,)], [(2, 11), (2, 12)])}

#: LiteRT takes a composite only with attributes, a FlexBuffer.
UNASKED = {"a composite assigns"}


@pytest.mark.parametrize(("file", "runs", "want"), RUNS.values(), ids=RUNS)
def test_variables_pass_through_subgraphs(file: bytes, runs: list[tuple[Array, ...]],
                                          want: list[tuple[float, float]]) -> None:
    m = compile(file)
    found = [m.run(list(inputs)) for inputs in runs]
    assert [tuple(float(a[0]) for a in outputs) for outputs in found] == want
    m.reset()
    assert [float(a[0]) for a in m.run(list(runs[0]))] == list(want[0])


@pytest.mark.parametrize("name", sorted(RUNS.keys() - UNASKED) if INSTALLED else [])
def test_litert_gives_the_same(name: str) -> None:
    file, runs, want = RUNS[name]
    litert = import_module("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(
        model_content=file, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for inputs, outputs in zip(runs, want, strict=True):
        for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        assert tuple(float(interpreter.get_tensor(d["index"])[0]) for d in interpreter.get_output_details()) == outputs


def assigning_condition() -> bytes:
    """A loop whose condition assigns."""
    w = Maker()
    x, y = w.vector("x"), w.vector("y")
    w.op("WHILE", [x], [y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    adds(w), Maker.quiet(w)
    return w.finish([x], [y])


def mistaken() -> bytes:
    """A branch that takes a vector for a handle."""
    w = Maker()
    c, x, y = w.tensor("c", "bool", ()), w.vector("x"), w.vector("y")
    w.op("IF", [c, w.handle(), x], [y], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1})
    w.subgraph("branch")
    a, b = w.vector("a"), w.vector("b")
    w.ends([a, b], [w.both("ADD", a, b, "y")])
    return w.finish([c, x], [y])


def lost() -> bytes:
    """A graph that takes a variable from nowhere."""
    w = Maker()
    h, x = w.tensor("h", "resource", ()), w.vector("x")
    return w.finish([h, x], [w.both("ADD", w.read(h), x, "y")])


def stateful_branch() -> bytes:
    """A branch with a variable tensor, which LiteRT keeps beside the branch."""
    w = Maker()
    c, x, y = w.tensor("c", "bool", ()), w.vector("x"), w.vector("y")
    w.op("IF", [c, x], [y], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1})
    w.subgraph("branch")
    a, kept = w.vector("a"), w.tensor("kept", F, (2,), variable=True)
    w.ends([a], [w.both("ADD", a, kept, "b")])
    return w.finish([c, x], [y])


@pytest.mark.parametrize(("file", "error", "says"), [
    (assigning_condition(), Unsupported, "the condition of a loop assigns the variable 'total'"),
    (mistaken(), FormatError, "'a' is no resource"), (lost(), Unsupported, "'h' is RESOURCE"),
    (stateful_branch(), Unsupported, "the variable 'kept' belongs to a subgraph")])
def test_what_cannot_be_threaded_is_refused_by_name(file: bytes, error: type[NnxError], says: str) -> None:
    with pytest.raises(error, match=says):
        convert(file)
