"""Sizes that a file names: kept, given by a caller for one input and taken for all, believed only of inputs."""
from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import nnx_convert
from nnx_convert import CompiledModel
from nnx_convert.convert import evaluate
from nnx_convert.emit.facts import port
from nnx_convert.emit.report import shaped
from nnx_convert.frontends.onnx.importer import Op, load
from nnx_convert.frontends.onnx.scope import Scope, Session
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.target import Target
from nnx_convert.types import F32, Rim, Shape, Tensor, symbol

from .one_node import Port, model, run

F = TensorProto.FLOAT


def two_inputs(*dims: tuple[str | int | None, ...]) -> bytes:
    """A model of two inputs and their product."""
    ports: list[Port] = [(name, F, d) for name, d in zip("xy", dims, strict=True)]
    made = model([helper.make_node("Mul", ["x", "y"], ["z"])], ports, [("z", F, None)])
    return bytes(made.SerializeToString())


#: The shapes a caller wants, and those the inputs get.
WANTED: list[tuple[dict[str, Shape], str]] = [
    ({}, "(batch, n) (batch, n)"), ({"x": (2, 3)}, "(2, 3) (2, 3)"), ({"y": (2, 3)}, "(2, 3) (2, 3)"),
    ({"x": (2, 1), "y": (2, 3)}, "(2, 1) (2, 3)")]


@pytest.mark.parametrize(("shapes", "want"), WANTED)
def test_a_size_given_for_one_input_is_that_of_all(shapes: dict[str, Shape], want: str) -> None:
    graph = load(two_inputs(("batch", "n"), ("batch", "n")), shapes, evaluate)
    assert " ".join(str(v.shape) for v in graph.inputs) == want


def test_sizes_that_are_not_named_are_each_their_own() -> None:
    graph = load(two_inputs((None, "?"), ("?", "?")), {"x": (2, 3)}, evaluate)
    assert [str(v.shape) for v in graph.inputs] == ["(2, 3)", "('y.0', 'y.1')"]


def test_names_go_through_a_graph() -> None:
    """[n, c, h] -> [n, c * h], whatever n is: no shape is left to compute."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Split", ["s"], ["n", "c", "h"], num_outputs=3),
             helper.make_node("Mul", ["c", "h"], ["ch"]), helper.make_node("Concat", ["n", "ch"], ["wanted"], axis=0),
             helper.make_node("Reshape", ["x", "wanted"], ["y"])]
    made = model(nodes, [("x", F, ("n", 3, 4))], [("y", F, ("n", "k"))], opset=18)
    assert [o.op.name for o in nnx_convert.convert(made.SerializeToString()).operations] == ["RESHAPE"]
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(made, x)[0], x.reshape(2, 12))


def test_a_declared_name_that_does_not_hold_is_let_be() -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    made = model([node], [("x", F, ("batch",))], [("y", F, ("batch",))])
    assert run(made, np.ones(3, np.float32))[0].shape == (6,)


def test_ports_show_names_and_what_is_computed_of_them() -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    found = nnx_convert.convert(model([node], [("x", F, ("batch", 3, None))], [("y", F, None)]).SerializeToString())
    again = nnx_convert.Model.__reduce__(found)[0](*nnx_convert.Model.__reduce__(found)[1])
    for ports in (found.rim, again.rim):
        assert ports.inputs[0].shape == (None, 3, None) and ports.inputs[0].sizes == ("batch", "", "")
        assert ports.outputs[0].sizes == ("2*batch", "", "x.2")
    assert [shaped(port(p)) for p in (*found.rim.inputs, *found.rim.outputs)] == [
        "float32 [batch,3,?]", "float32 [2*batch,3,x.2]"]


def test_one_name_is_one_size_in_a_run() -> None:
    compiled = nnx_convert.compile(two_inputs(("batch", 3), ("batch", 3)))
    assert compiled.run([np.ones((2, 3), np.float32)] * 2)[0].shape == (2, 3)
    with pytest.raises(nnx_convert.InputError, match="batch is 2 in 'x' and 1 in 'y'"):
        compiled.run([np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)])
    program = compiled.prepare({"y": (4, 3)})
    assert program is not None and program.program.inputs[0] is not None
    with pytest.raises(nnx_convert.InputError, match="are open"):
        compiled.prepare()


#: Shapes of x, and of what it is reshaped to by the sizes of a and b, all of it open.
RESHAPED = {"a product": ("abc", ["a", "b*c"]), "a product of others": ("abc", ["a*c", "b"]),
            "cut apart": ("ab", ["a//2", "2*b"]), "all of them": ("abc", ["a*b*c", "1"])}


@pytest.mark.parametrize("name", RESHAPED)
def test_several_open_sizes_are_computed_in_a_run(name: str) -> None:
    own, wanted = RESHAPED[name]
    scope = Scope(Session(None, {}, evaluate), Build("open"), {"": 18})       # type: ignore[arg-type]
    sizes = {c: symbol(c) for c in own}
    x = Value("x", Tensor(F32, tuple(sizes.values())))
    y = Op(scope, "", "Reshape", ("y",), 18).reshape(x, tuple(eval(w, sizes.copy()) for w in wanted))
    legal = lower(scope.build.finish((x,), (y,), Rim()), Target(), evaluate)[0]
    numbers = dict(zip(own, (4, 6, 5), strict=False))
    compiled = CompiledModel(flatten(legal))
    found = compiled.run([np.zeros(tuple(numbers.values()), np.float32)])[0]
    assert found.shape == tuple(eval(w, numbers.copy()) for w in wanted)
    assert compiled.prepare({"input0": tuple(numbers.values())}) is not None
