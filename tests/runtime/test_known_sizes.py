"""Arguments computed from the sizes of inputs: one program per set of shapes, as if they were constants."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from natively import Net

from nnx_convert import CompiledModel, Model, NnxError, OperandCode
from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import convert, elementwise as e, gather, host, host_arrays as h, reduce as r, shape
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, UNKNOWN, Rim, Tensor

FLOAT32 = OperandCode.TENSOR_FLOAT32
Made = Callable[[Build, Value], Value]


def made(build: Made, rank: int = 3) -> Model:
    """A model of one float input with open sizes."""
    g, x = Build("sizes"), Value("x", Tensor(F32, (UNKNOWN,) * rank))
    return flatten(lower(g.finish((x,), (build(g, x),), Rim()), Target(), evaluate)[0])


def size(g: Build, x: Value, axis: int) -> Value:
    """A size of x, as [1]."""
    return g(gather.GATHER, g(h.SHAPE, x), axis=0, indices=g.const([axis], I32))


def flat(g: Build, x: Value) -> Value:
    """[a, b, c] -> [a, b * c] by sizes of a."""
    last = g(e.MUL, size(g, x, 1), size(g, x, 2), act=0)
    return g(shape.RESHAPE, x, g(shape.CONCATENATION, xs=(size(g, x, 0), last), axis=0))


def through_floats(g: Build, x: Value) -> Value:
    """Repeated half as often as its last axis is long, rounded down."""
    half = g(e.MUL, g(convert.CAST, size(g, x, 2), to=F32), g.const([0.5], F32), act=0)
    one = g.const([1, 1], I32)
    times = g(shape.CONCATENATION, xs=(one, g(convert.CAST, g(e.FLOOR, half), to=I32)), axis=0)
    return g(shape.TILE, x, times)


def less_one(g: Build, x: Value) -> Value:
    """Less the last element of every axis."""
    begin = g.const([0, 0, 0], I32)
    return g(shape.SLICE, x, begin, g(e.SUB, g(h.SHAPE, x), g.const([1], I32), act=0))


def counted(g: Build, x: Value) -> Value:
    """x along its first axis, and 0, 1, 2, ... added to the last: a range as long as that is."""
    one = g.const([1], I32)
    numbers = g(h.RANGE, g.const([0], I32), size(g, x, 2), one)
    return g(e.ADD, x, g(convert.CAST, numbers, to=F32), act=0)


def filled(g: Build, x: Value) -> Value:
    """As many ones as x has elements in its first axis, its mean added."""
    ones = g(shape.FILL, size(g, x, 0), 1.0, to=F32)
    return g(e.ADD, ones, g(r.MEAN, x, [0, 1, 2], keep=0), act=0)


def chosen(g: Build, x: Value) -> Value:
    """Sizes of which one is -1 say the other: as a reshape by sizes that are compared and selected."""
    wanted = g.const([-1, 3, 4], I32)
    sizes = g(e.SELECT, g(e.EQUAL, wanted, g.const([-1], I32)), g(h.SHAPE, x), wanted)
    return g(shape.RESHAPE, x, sizes)


CHAINS: dict[str, tuple[Made, Callable[[Any], Any]]] = {
    "RESHAPE": (flat, lambda x: x.reshape(len(x), -1)),
    "TILE": (through_floats, lambda x: np.tile(x, (1, 1, x.shape[2] // 2))),
    "SLICE": (less_one, lambda x: x[:-1, :-1, :-1]),
    "RANGE": (counted, lambda x: x + np.arange(x.shape[2], dtype=np.float32)),
    "FILL": (filled, lambda x: np.ones(len(x), np.float32) + x.mean(dtype=np.float32)),
    "SELECT": (chosen, lambda x: x),
    "BROADCAST_TO": (lambda g, x: g(host.BROADCAST_TO, g(r.REDUCE_MAX, x, [0], keep=True), g(h.SHAPE, x)),
                     lambda x: np.broadcast_to(x.max(0), x.shape)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_sizes_of_inputs_are_known_when_a_program_is_made(name: str) -> None:
    build, want = CHAINS[name]
    model = CompiledModel(made(build))
    for first in (2, 5):
        x = np.random.default_rng(first).random((first, 3, 4), np.float32)
        program = model.prepare({"input0": x.shape})
        assert program is not None and not {s.name for s in program.program.steps} & {"SHAPE", "GATHER", "MUL", "RANGE"}
        np.testing.assert_allclose(model.run([x])[0], want(x), rtol=1e-6)


def test_a_size_that_follows_from_elements_is_not() -> None:
    """The integers of the input are the wanted shape."""
    g, x = Build("values"), Value("x", Tensor(I32, (2,)))
    y = g(shape.FILL, x, 1.0, to=F32)
    model = CompiledModel(flatten(g.finish((x,), (y,), Rim())))
    assert model.prepare() is None and model.run([np.int32([3, 2])])[0].shape == (3, 2)


def test_a_long_chain_is_bound_at_once() -> None:
    def chain(g: Build, x: Value) -> Value:
        sizes = g(h.SHAPE, x)
        for i in range(100):
            sizes = g(e.MAXIMUM, g(e.ADD, sizes, g.const([i % 3 - 1], I32), act=0), g.const([1], I32))
        return g(shape.TILE, x, g(e.MINIMUM, sizes, g.const([2], I32)))
    model = CompiledModel(made(chain))
    model.prepare({"input0": (3, 1, 1)})
    start = time.perf_counter()
    assert model.prepare({"input0": (2, 3, 4)}) is not None
    assert time.perf_counter() - start < 1, "200 operations on three numbers"


def one_hot(depth: int) -> tuple[Net, int]:
    """Rows of 3 of two indices, of a depth that the run gives."""
    net = Net()
    at, count = (net.input(np.array(v), OperandCode.TENSOR_INT32) for v in ([1, -1], [depth]))
    return net, net.op("ONE_HOT", at, count, net.const([0, 1]), net.scalar(-1), shape=(2, 3))


def parts(size: int) -> tuple[Net, int]:
    """The first 2 of 5, of which the run says how many the first are, added to themselves."""
    net = Net()
    x, sizes = net.input(np.arange(5)), net.input(np.array([size, 5 - size]), OperandCode.TENSOR_INT32)
    first, _ = net.ops("SPLIT_BY", x, sizes, net.scalar(0), outs=[((2,), FLOAT32), ((3,), FLOAT32)])
    return net, net.op("ADD", first, first, net.scalar(0), shape=(2,))


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("build", "given", "says"), [
    (one_hot, 3, ""), (one_hot, 4, r"output 0 is TENSOR_FLOAT32\[2, 4\]"), (one_hot, -1, "would have the shape"),
    (parts, 2, ""), (parts, 1, r"output 0 is TENSOR_FLOAT32\[1\]"), (parts, -(1 << 31), "would have the shape")])
def test_sizes_that_the_model_says_are_those_that_a_run_gives(build: Callable[[int], tuple[Net, int]], given: int,
                                                              says: str, backend: str) -> None:
    net, found = build(given)
    model = CompiledModel(net.finish(found), backend=backend)
    if says:
        with pytest.raises(NnxError, match=says):
            model.run(net.given)
    else:
        want = np.eye(3)[[1, 2]] if build is one_hot else [0, 2]
        assert np.array_equal(model.run(net.given)[0], want)
