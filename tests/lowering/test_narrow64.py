"""64-bit integers as INT32: only where that is the same, and then with the same answer."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert import CompiledModel, InputError, UsageError
from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.intervals import MOST_NUMBERS, intervals
from nnx_convert.lowering.narrow64 import narrow64
from nnx_convert.lowering.pipeline import lower, own_outputs
from nnx_convert.lowering.rewrite import Event
from nnx_convert.ops import (
    control, convert, elementwise as e, folds, functions, gather, host, host_arrays as h, host_math, indexing,
    reduce as r, shape)
from nnx_convert.ops.loop import LOOP
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, I64, UNKNOWN, Port, Rim, Tensor, Type, known, symbol

Made = Callable[[Build, Value], Value]
DTYPES = {I64: "int64", I32: "int32", F32: "float32", B8: "bool"}
FAR = 1 << 40


def graph_of(build: Made, x: Tensor | None = None) -> Graph:
    """A graph of one input, INT64 [2, 3] unless another is given, and of what is built on it."""
    g, v = Build("narrow64"), Value("x", x or Tensor(I64, (2, 3)))
    return finished(g, (v,), (build(g, v),))


def finished(g: Build, inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Graph:
    """A graph with ports as its types have them."""
    return g.finish(inputs, outputs, Rim(*(tuple(
        Port(f"{side}{i}", DTYPES[v.type], None) for i, v in enumerate(values))
        for side, values in (("in", inputs), ("out", outputs)))))


def cast(g: Build, v: Value, to: Type) -> Value:
    return g(convert.CAST, v, to=to)


def long(g: Build, *values: int) -> Value:
    return g.const(np.array(values), I64)


def looked_up(g: Build, x: Value) -> Value:
    return g(gather.GATHER, g.const(np.arange(9), F32), axis=0, indices=cast(g, x, I32))


#: What becomes of an input of 64 bits: the graph on it, and the operand types of the operations that are left, or ...
ENTERS: dict[str, tuple[Made, bool]] = {
    "indices": (looked_up, True),
    "indices, negative ones wrapped": (lambda g, x: looked_up(g, g(e.SELECT, g(e.LESS, x, long(g, 0)), g(
        e.MINIMUM, g(e.MAXIMUM, x, long(g, 1)), long(g, 8)), g(e.MAXIMUM, x, long(g, 0)))), True),
    "a mask as floats": (lambda g, x: cast(g, g(shape.RESHAPE, x, (3, 2)), F32), True),
    "compared with a number": (lambda g, x: g(e.EQUAL, x, long(g, 7)), True),
    "compared with one beyond": (lambda g, x: g(e.EQUAL, x, long(g, FAR)), False),
    "compared with another's sum": (lambda g, x: g(e.EQUAL, x, g(e.ADD, x, x, act=0)), False),
    "one more": (lambda g, x: g(e.ADD, x, long(g, 1), act=0), False),
    "one more, as a float": (lambda g, x: cast(g, g(e.ADD, x, long(g, 1), act=0), F32), False),
    "only moved": (lambda g, x: g(shape.RESHAPE, x, (3, 2)), False),
    "where the largest is": (lambda g, x: g(r.ARGMAX, x, axis=1), True),
    "moved to a search": (lambda g, x: g(r.ARGMAX, g(shape.TRANSPOSE, x, [1, 0]), axis=0), True),
    "negated": (lambda g, x: cast(g, g(e.NEG, x), I32), False),
    "held below a limit": (lambda g, x: looked_up(g, g(e.MINIMUM, g(e.MAXIMUM, x, long(g, 0)), long(g, 8))), True),
    "without effect": (lambda g, x: g(h.SHAPE, g(e.ADD, x, x, act=0)), False),
}


@pytest.mark.parametrize("name", ENTERS)
def test_an_input_enters_as_int32_where_all_that_reads_it_takes_no_more(name: str) -> None:
    build, narrow = ENTERS[name]
    legal, trace = lower(graph_of(build), Target(), evaluate)
    assert (legal.inputs[0].type == I32) is narrow, [str(ev) for ev in trace]
    assert any("has to hold numbers of 32 bits" in ev.why for ev in trace) is narrow
    model = CompiledModel(flatten(legal))
    x = np.array([[1, 0, 7], [8, 3, 3]])
    np.testing.assert_array_equal(model.run([x])[0], as_it_is(graph_of(build), x))
    beyond = x + FAR
    if narrow:
        with pytest.raises(InputError, match="int32 cannot hold"):
            model.run([beyond])
    else:
        np.testing.assert_array_equal(model.run([beyond])[0], as_it_is(graph_of(build), beyond))


def as_it_is(graph: Graph, *inputs: Any) -> Any:
    """What the host computes in 64 bits."""
    return CompiledModel(flatten(HOST(graph, Target(8), []))).run(list(inputs))[0]


#: What comes of 32 bits: nothing that is left works on INT64, or something does.
INNER: dict[str, tuple[Made, bool]] = {
    "a search": (lambda g, x: cast(g, g(r.ARGMAX, x, axis=1), I64), True),
    "a search, scaled": (lambda g, x: g(e.MUL, cast(g, g(r.ARGMAX, x, axis=1), I64), long(g, 1 << 29), act=0), True),
    "a search, scaled too far": (
        lambda g, x: g(e.MUL, cast(g, g(r.ARGMAX, x, axis=1), I64), long(g, 1 << 31), act=0), False),
    "twice the places": (lambda g, x: g(shape.CONCATENATION, xs=(
        cast(g, g(r.ARGMAX, x, axis=0), I64), long(g, 3, -4)), axis=0), True),
    "a place less the number of places": (lambda g, x: g(e.SUB, cast(
        g, g(r.ARGMAX, x, axis=1), I64), long(g, 1 << 31), act=0), False),
    "truths counted": (lambda g, x: g(host_math.CUMSUM, cast(g, g(e.GREATER, x, g.const([[0]], F32)), I64), axis=1,
                                      exclusive=False, reverse=False), True),
    "truths counted, plus one": (lambda g, x: g(e.ADD, g(r.REDUCE_SUM, cast(g, g(
        e.GREATER, x, g.const([[0]], F32)), I64), [1], keep=False), long(g, 1), act=0), True),
    "floats": (lambda g, x: cast(g, x, I64), False),
    "a remainder of floats": (lambda g, x: g(host.FLOOR_MOD, cast(g, x, I64), long(g, 10)), False),
    "sizes": (lambda g, x: g(e.ADD, cast(g, g(h.SHAPE, x), I64), long(g, 1), act=0), True),
    "a product of sizes": (lambda g, x: g(e.MUL, *[cast(g, g(gather.GATHER, g(h.SHAPE, x), axis=0, indices=g.const(
        [i], I32)), I64) for i in (0, 1)], act=0), True),
    "places that are not zero": (lambda g, x: g(shape.TRANSPOSE, g(host.NON_ZERO, x), [1, 0]), False),
    "of a table": (lambda g, x: g(gather.GATHER, long(g, 5, 6, 7), axis=0, indices=g(r.ARGMAX, x, axis=1)), True),
    "of a table of far numbers": (
        lambda g, x: g(gather.GATHER, long(g, FAR, 6, 7), axis=0, indices=g(r.ARGMAX, x, axis=1)), False),
    "quotient": (lambda g, x: g(host.TRUNC_DIV, cast(g, g(r.ARGMAX, x, axis=1), I64), long(g, -2)), True),
    "quotient by what may be 0": (lambda g, x: g(host.TRUNC_DIV, long(g, 4), g(e.ADD, long(g, 1), cast(
        g, g(r.ARGMAX, x, axis=1), I64), act=0)), True),
}


def left(graph: Graph) -> set[str]:
    """The operations that work on INT64."""
    return {n.op.name for n in graph.nodes if any(v.type == I64 for v in (*n.inputs, *n.outputs))}


@pytest.mark.parametrize("dims", [(2, 3), (symbol("n"), symbol("m"))], ids=str)
@pytest.mark.parametrize("name", INNER)
def test_what_fits_is_computed_in_int32(name: str, dims: tuple[int, ...]) -> None:
    build, narrow = INNER[name]
    graph = graph_of(build, Tensor(F32, dims))
    legal, trace = lower(graph, Target(), evaluate)
    if all(map(known, dims)):
        assert bool(left(legal)) is not narrow, [str(ev) for ev in trace]
    free, _ = lower(graph, Target(int64="narrow"), evaluate)
    far = any(v.type == I64 and v.constant and abs(v.array).max() >= 2**31 for n in graph.nodes for v in n.inputs)
    assert far or left(free) <= {"NON_ZERO", "host.CAST"}
    x = np.float32([[1, -2, 7], [-8, 0, 3]])
    found, want = CompiledModel(flatten(legal)).run([x])[0], as_it_is(graph, x)
    assert found.dtype == want.dtype and legal.outputs[0].type in (I32, I64)
    np.testing.assert_array_equal(found, want)


def test_the_trace_says_why_not() -> None:
    _, trace = lower(graph_of(lambda g, x: g(e.ADD, x, long(g, 1), act=0)), Target(), evaluate)
    (why,) = (ev.why for ev in trace if ev.rule == "to_host")
    assert "INT32 does not hold x, -9223372036854775808 to" in why and "int64='narrow'" in why


def test_numbers_are_taken_to_fit_where_that_is_wished() -> None:
    graph = graph_of(lambda g, x: g(e.ADD, x, long(g, 1), act=0))
    legal, _ = lower(graph, Target(int64="narrow"), evaluate)
    assert [n.op.name for n in legal.nodes] == ["ADD"] and legal.inputs[0].type == I32
    (found,) = CompiledModel(flatten(legal)).run([np.array([[1, 2, 3]] * 2)])
    assert found.dtype == np.int64 and found.tolist() == [[2, 3, 4]] * 2
    with pytest.raises(UsageError, match="int64 is"):
        Target(int64="short")  # type: ignore[arg-type]


def test_states_and_what_crosses_into_graphs_keep_their_type() -> None:
    inner, v = Build("body"), Value("v", Tensor(I64, (1,)))
    body = inner.finish((v,), (inner(e.MINIMUM, inner(e.MAXIMUM, v, long(inner, 0)), long(inner, 9)),), Rim())
    g, x = Build("main"), Value("x", Tensor(F32, (3,)))
    place = cast(g, g(r.ARGMAX, x, axis=0), I64)
    yes = g(e.GREATER, g.const([1], F32), g.const([0], F32))
    (y,) = g.add(control.IF, yes, body, body, args=(place,), outs=(None,))
    legal, _ = lower(finished(g, (x,), (y,)), Target(), evaluate)
    assert CompiledModel(flatten(legal)).run([np.float32([1, 5, 2])])[0].tolist() == [1]
    assert legal.outputs[0].type == I64
    g = Build("main")
    on = Build("round")
    i, go, last = Value("i", Tensor(I64, (1,))), Value("go", Tensor(B8, (1,))), Value("last", Tensor(I64, (1,)))
    rounds = on.finish((i, go, last), (go, on(e.MAXIMUM, last, i)), Rim())
    place = cast(g, g(r.ARGMAX, x, axis=0), I64)
    (y,) = g.add(LOOP, body=rounds, trip=long(g, 3), cond=None, states=1, values=(place,), count=1, outs=(None,))
    legal, _ = lower(finished(g, (x,), (y,)), Target(), evaluate)
    assert CompiledModel(flatten(legal)).run([np.float32([1, 5, 2])])[0].tolist() == [2]
    state = Value("s", Tensor(I64, (2,)))
    port = Port("s", "int64", (2,), state=True)
    g = Build("stateful")
    graph = g.finish((state,), (g(e.MINIMUM, state, long(g, 3)), looked_up(g, state)), Rim(
        (port,), (port, Port("y", "float32", (2,)))))
    assert narrow64(graph, Target(), []).inputs[0].type == I64


def test_what_crosses_is_narrowed_where_that_is_wished() -> None:
    """A loop on INT64: x + 2 while that is below 9, its bound from without."""
    def graph(out: Callable[[Build, Value, Value], Value]) -> Graph:
        b, v, most = Build("part"), Value("v", Tensor(I64, (1,))), Value("most", Tensor(I64, (1,)))
        made = out(b, v, most)
        return b.finish((v, most), (made,), Rim())
    cond = graph(lambda b, v, most: b(e.LESS, v, most))
    body = graph(lambda b, v, most: b(e.ADD, v, long(b, 2), act=0))
    g, x = Build("main"), Value("x", Tensor(I64, (1,)))
    (y,) = g.add(control.WHILE, cond=cond, body=body, values=(x, long(g, 9)), count=1, outs=(None,))
    whole = finished(g, (x,), (y,))
    exact, free = (lower(whole, Target(int64=way), evaluate)[0] for way in ("exact", "narrow"))
    assert any(n.op.host for n in exact.walk()) and not any(n.op.host for n in free.walk())
    assert I64 not in {v.type for n in free.walk() for v in (*n.inputs, *n.outputs)}
    for legal in (exact, free):
        (found,) = CompiledModel(flatten(legal)).run([np.array([2])])
        assert found.dtype == np.int64 and found.tolist() == [10]


def test_intervals_of_open_sizes() -> None:
    g, x = Build("sizes"), Value("x", Tensor(F32, (UNKNOWN, 4)))
    sizes, place = g(h.SHAPE, x), g(r.ARGMAX, x, axis=0)
    found = intervals(g.finish((x,), (sizes, place), Rim()), {})
    assert found[sizes] == (0, MOST_NUMBERS) and found[place] == (0, MOST_NUMBERS - 1)


#: Steps of a random graph: from one or two values of INT64 [4] another one.
STEPS: list[Callable[[Build, Value, Value], Value]] = [
    *[lambda g, x, y, op=op: g(op, x, y, act=0) for op in (e.ADD, e.SUB, e.MUL)],
    *[lambda g, x, y, op=op: g(op, x, y) for op in (e.MAXIMUM, e.MINIMUM, host_math.BITWISE_XOR)],
    *[lambda g, x, y, op=op: g(op, x) for op in (e.NEG, e.ABS, host.SQUARE, host_math.SIGN)],
    *[lambda g, x, y, op=op, n=n: g(op, x, long(g, n)) for n in (3, -7) for op in (
        host.TRUNC_DIV, host.FLOOR_DIV, host.FLOOR_MOD, functions.TRUNC_MOD)],
    *[lambda g, x, y, op=op, n=n: g(op, x, long(g, n)) for op in (e.MAXIMUM, e.MINIMUM) for n in (0, 100)],
    lambda g, x, y: g(e.SELECT, g(e.LESS, x, y), x, y),
    lambda g, x, y: g(gather.GATHER, x, axis=0, indices=g.const([3, 0, 0, 1], I32)),
    lambda g, x, y: g(shape.SLICE, g(shape.CONCATENATION, xs=(x, y), axis=0), [2], [4]),
    lambda g, x, y: g(host_math.CUMSUM, x, axis=0, exclusive=True, reverse=False),
    lambda g, x, y: g(folds.CUMULATE, x, [0], exclusive=False, reverse=True, product=False),
    lambda g, x, y: g(host.BROADCAST_TO, g(r.REDUCE_SUM, x, [0], keep=True), [4]),
    lambda g, x, y: cast(g, cast(g, x, I32), I64),
    lambda g, x, y: cast(g, g(e.EQUAL, x, y), I64),
    lambda g, x, y: g(host.WHERE, g(e.GREATER_EQUAL, x, long(g, 5)), y, long(g, -1)),
    lambda g, x, y: g(indexing.TRILU, g(shape.RESHAPE, x, (2, 2)), [0], upper=True),
]
EXTREMES = [0, 1, -1, 5, 100, 2**31 - 1, -2**31, 2**31, 2**62, 2**63 - 1, -2**63]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random graph on integers of 64 bits and some that come of 32 bits or of truths."""
    g = Build("random")
    inputs = (Value("a", Tensor(I64, (4,))), Value("b", Tensor(I32, (4,))), Value("c", Tensor(B8, (4,))))
    values = [inputs[0], cast(g, inputs[1], I64), cast(g, inputs[2], I64),
              long(g, *draw(st.lists(st.sampled_from(EXTREMES), min_size=4, max_size=4)))]
    for step in draw(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=9)):
        made = STEPS[step](g, *(draw(st.sampled_from(values[-4:])) for _ in "xy"))
        values.append(made if len(made.shape) == 1 else g(shape.RESHAPE, made, (4,)))
    outs = draw(st.lists(st.sampled_from([v for v in values if not v.constant and v not in inputs]),
                         min_size=1, max_size=3, unique=True))
    return finished(g, inputs, tuple(outs))


@settings(max_examples=100)
@given(graphs(), st.lists(st.sampled_from(EXTREMES), min_size=4, max_size=4),
       st.lists(st.integers(-2**31, 2**31 - 1) | st.sampled_from([0, 1, -2**31, 2**31 - 1]), min_size=4, max_size=4))
def test_the_answer_is_that_of_64_bits(graph: Graph, a: list[int], b: list[int]) -> None:
    trace: list[Event] = []
    found = narrow64(graph, Target(), trace)
    if found.inputs[0].type == I32:
        a = [int(np.int32(n & 0x7fffffff)) for n in a]
    given_ = [np.array(a), np.int32(b), np.array([True, False, True, True])]
    want, got = (CompiledModel(flatten(HOST(own_outputs(v, Target(8), []), Target(8), []))).run(given_)
                 for v in (graph, found))
    for m, n in zip(want, got, strict=True):
        assert m.dtype == n.dtype
        np.testing.assert_array_equal(m, n)
