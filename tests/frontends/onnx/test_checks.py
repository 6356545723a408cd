"""What must hold of a file: each rule with a model that breaks it, and models that are odd and in order."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, defs, helper

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, Oversized, Unsupported
from nnx_convert.frontends.onnx import checks
from nnx_convert.frontends.onnx.reader import Model, read
from nnx_convert.types import F32, I64, LIST, UNKNOWN, known, same, symbol

X, Y = (helper.make_tensor_value_info(name, 1, (2,)) for name in "xy")
RELU = helper.make_node("Relu", ["x"], ["y"])


def graph(*nodes: NodeProto, inputs: Sequence[Any] = (X,), outputs: Sequence[Any] = (Y,), **more: Any) -> GraphProto:
    """A graph from x to y."""
    return helper.make_graph(list(nodes) or [RELU], "g", list(inputs), list(outputs), **more)


def model(*nodes: NodeProto, ir: int = 8, opsets: Sequence[tuple[str, int]] = (("", 17),),
          functions: Sequence[FunctionProto] = (), **more: Any) -> ModelProto:
    """A model of one graph from x to y."""
    imports = [helper.make_opsetid(*o) for o in opsets]
    return helper.make_model(graph(*nodes, **more), ir_version=ir, opset_imports=imports, functions=list(functions))


def function(name: str, *nodes: NodeProto, inputs: Sequence[str] = "a", outputs: Sequence[str] = "b",
             opsets: Sequence[tuple[str, int]] = (("", 17), ("f", 1)), **more: Any) -> FunctionProto:
    """A function of the domain f."""
    return helper.make_function("f", name, inputs, outputs, list(nodes), [helper.make_opsetid(*o) for o in opsets],
                                **more)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> NodeProto:
    """A node."""
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def chosen(name: str, *then: NodeProto) -> NodeProto:
    """An If between a graph of these nodes and another, both without inputs and with the output y."""
    return node("If", ["c"], [name], then_branch=graph(*then, inputs=()), else_branch=graph(RELU, inputs=()))


def nested(depth: int) -> NodeProto:
    """An If in an If, and so on."""
    return chosen("y", nested(depth - 1) if depth else node("Relu", ["x"], ["y"]))


def referring(inner: str) -> NodeProto:
    """A node whose attribute is that of the function around it."""
    made = node("Elu", ["x"], ["y"])
    made.attribute.append(AttributeProto(name="alpha", ref_attr_name=inner, type=AttributeProto.FLOAT))
    return made


def edited(change: Callable[[ModelProto], Any], *nodes: NodeProto) -> ModelProto:
    """A model with something changed by hand."""
    made = model(*nodes)
    change(made)
    return made


def calls(*names: str) -> list[NodeProto]:
    """Nodes that call functions of the domain f, one after the other, from a to b."""
    ends = ["a", *(f"t{i}" for i in range(len(names) - 1)), "b"]
    return [node(n, [ends[i]], [ends[i + 1]], "f") for i, n in enumerate(names)]


IDENTITY = function("I", node("Identity", ["a"], ["b"]))
CALL = node("I", ["x"], ["y"], "f")
BOTH = (("", 17), ("f", 1))
C = helper.make_tensor_value_info("c", 9, ())

WRONG: dict[str, tuple[ModelProto, type[NnxError], str]] = {
    "no IR version": (edited(lambda m: m.ClearField("ir_version")), FormatError, "has no IR version"),
    "IR version 0": (model(ir=0), FormatError, "has the IR version 0"),
    "IR version 15": (model(ir=15), Unsupported, "has the IR version 15; 14 is the newest"),
    "no graph": (edited(lambda m: m.ClearField("graph")), FormatError, "has no graph"),
    "version 0": (model(opsets=[("", 0)]), FormatError, "imports version 0 of the operator set 'ai.onnx'"),
    "version -3": (model(opsets=[("ai.onnx", -3)]), FormatError, "imports version -3"),
    "version 29": (model(opsets=[("", 29)]), Unsupported, "imports version 29 of the operator set 'ai.onnx'; 28"),
    "version 6 of ml": (model(opsets=[("", 17), ("ai.onnx.ml", 6)]), Unsupported, "set 'ai.onnx.ml'; 5 is"),
    "two versions": (model(opsets=[("", 17), ("ai.onnx", 18)]), FormatError, "'ai.onnx' in two versions"),
    "nothing imported": (model(opsets=[]), FormatError,
                         "op 0 Relu: is of the domain 'ai.onnx', of which the file imports no version"),
    "microsoft not imported": (model(node("Gelu", ["x"], ["y"], "com.microsoft")), FormatError,
                               "op 0 Gelu: is of the domain 'com.microsoft', of which the file imports no version"),
    "unknown domain": (model(node("Magic", ["x"], ["y"], "org.pytorch", name="m"), opsets=[("", 17), (
        "org.pytorch", 1)]), Unsupported, "op 0 Magic 'm': is of the domain 'org.pytorch', which is not known here"),
    "unknown domain, not imported": (model(node("Magic", ["x"], ["y"], "a.b")), Unsupported, "domain 'a.b'"),
    "no operator": (model(node("", ["x"], ["y"])), FormatError, "op 0 : is no operator"),
    "no outputs": (model(outputs=[]), Unsupported, "the graph has no outputs"),
    "an input twice": (model(inputs=[X, X]), FormatError, "has the input 'x' twice"),
    "an input without a name": (model(inputs=[X, helper.make_tensor_value_info("", 1, ())]), FormatError,
                                "has an input without a name"),
    "an input without a type": (model(inputs=[helper.make_empty_tensor_value_info("x")]), FormatError,
                                "the input 'x' has no type"),
    "an initializer twice": (model(initializer=[helper.make_tensor("w", 1, (), [1])] * 2), FormatError,
                             "has the initializer 'w' twice"),
    "an initializer without a name": (model(initializer=[helper.make_tensor("", 1, (), [1])]), FormatError,
                                      "has an initializer without a name"),
    "nothing defines it": (model(node("Relu", ["z"], ["y"])), FormatError,
                           "op 0 Relu: reads 'z', which nothing defines"),
    "order": (model(node("Relu", ["z"], ["y"]), node("Abs", ["x"], ["z"], name="later")), FormatError,
              "op 0 Relu: reads 'z', which only op 1 Abs 'later' defines: nodes must stand in the order"),
    "a cycle": (model(node("Add", ["x", "z"], ["t"]), node("Relu", ["t"], ["u"]), node("Abs", ["u"], ["z"]), node(
        "Abs", ["z"], ["y"])), FormatError, "op 0 Add: reads 'z', which op 2 Abs computes from the result: a cycle"),
    "itself": (model(node("Add", ["x", "y"], ["y"])), FormatError, "computes from the result: a cycle"),
    "defined twice": (model(RELU, RELU), FormatError, "op 1 Relu: defines 'y', which is defined before"),
    "defines an input": (model(node("Relu", ["x"], ["x"]), RELU), FormatError, "op 0 Relu: defines 'x'"),
    "an output is nowhere": (model(outputs=[Y, helper.make_tensor_value_info("z", 1, ())]), FormatError,
                             "the output 'z' is computed nowhere"),
    "an attribute without a name": (edited(lambda m: m.graph.node[0].attribute.add()), FormatError,
                                    "op 0 Relu: has an attribute without a name"),
    "a reference outside": (model(referring("alpha")), FormatError,
                            "op 0 Elu: its attribute 'alpha' refers to one of a function, and it is in none"),
    "in a branch": (model(chosen("y", node("Relu", ["z"], ["y"])), inputs=[X, C]), FormatError,
                    "op 0 If: in its 'then_branch': op 0 Relu: reads 'z', which nothing defines"),
    "a branch without its output": (model(chosen("y", node("Relu", ["x"], ["t"])), inputs=[X, C]), FormatError,
                                    "op 0 If: in its 'then_branch': the output 'y' is computed nowhere"),
    "deep": (model(nested(17), inputs=[X, C]), Oversized, "graphs are nested more than 16 deep"),
    "a function twice": (model(CALL, opsets=BOTH, functions=[IDENTITY, IDENTITY]), FormatError,
                         "has the function 'f.I' twice"),
    "a function without its output": (model(CALL, opsets=BOTH, functions=[function("I")]), FormatError,
                                      "function 'f.I': the output 'b' is computed nowhere"),
    "a function with an input twice": (model(CALL, opsets=BOTH, functions=[
        function("I", node("Identity", ["a"], ["b"]), inputs=["a", "a"])]), FormatError, "has the input 'a' twice"),
    "a function in two versions": (model(CALL, opsets=BOTH, functions=[
        function("I", opsets=[("", 16), ("", 17)])]), FormatError, "function 'f.I': imports the operator set"),
    "a fault in a function": (model(CALL, opsets=BOTH, functions=[
        function("I", node("Identity", ["x"], ["b"]))]), FormatError, "function 'f.I': op 0 Identity: reads 'x'"),
    "a function that calls itself": (model(CALL, opsets=BOTH, functions=[function("I", *calls("I"))]), FormatError,
                                     "the function 'f.I' calls itself"),
    "functions in a circle": (model(CALL, opsets=BOTH, functions=[
        function("I", *calls("J")), function("J", *calls("K")), function("K", *calls("I"))]), FormatError,
        "calls itself"),
    "functions that multiply": (model(CALL, opsets=BOTH, functions=[function("I", *calls("J0", "J0"))] + [
        function(f"J{i}", *calls(f"J{i + 1}", f"J{i + 1}")) for i in range(30)] + [
        function("J30", node("Identity", ["a"], ["b"]))]), Oversized, "more than 262144 nodes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    proto, kind, said = WRONG[name]
    with pytest.raises(NnxError) as found:
        read(proto.SerializeToString())
    assert said in str(found.value) and type(found.value) is kind and len(str(found.value)) < 700


RIGHT = {
    "the first version of the format": model(ir=2, opsets=[]),
    "both names of the default domain": model(opsets=[("", 17), ("ai.onnx", 17)]),
    "a domain nobody uses": model(opsets=[("", 17), ("org.pytorch.aten", 1)]),
    "an initializer that is an input": model(initializer=[helper.make_tensor("x", 1, (2,), [1, 2])]),
    "outputs left out": model(node("Dropout", ["x", ""], ["y", ""])),
    "an output that is an input": model(outputs=[X]),
    "a name used again in a branch": model(chosen("y", node("Relu", ["x"], ["y"])), inputs=[X, C]),
    "16 deep": model(nested(14), inputs=[X, C]),
    "functions, one in another": model(CALL, opsets=BOTH, functions=[
        function("I", *calls("J", "J")), function("J", node("Identity", ["a"], ["b"]))]),
    "a function without imports": model(CALL, opsets=BOTH, functions=[
        function("I", node("Identity", ["a"], ["b"]), opsets=[])]),
    "a function of an unknown domain": model(node("I", ["x"], ["y"], "f"), functions=[IDENTITY]),
    "a function with an attribute": model(CALL, opsets=BOTH, functions=[
        function("I", *[referring("alpha")], inputs="x", outputs="y", attributes=["alpha"])]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_odd_and_in_order(name: str) -> None:
    assert isinstance(read(RIGHT[name].SerializeToString()), Model)


@pytest.mark.parametrize("name", [n for n in RIGHT if "deep" not in n and "function of" not in n])
def test_what_is_odd_runs(name: str) -> None:
    compiled = nnx_convert.compile(RIGHT[name].SerializeToString())
    given = {"x": np.float32([1, -2]), "c": np.array(True)}
    found = compiled.run({p.name: given[p.name] for p in compiled.inputs})
    assert [v.shape for v in found.values()] == [(2,)]


def test_the_newest_versions_are_those_of_the_package_or_newer() -> None:
    assert onnx.IR_VERSION <= checks.NEWEST_IR
    for schema in defs.get_all_schemas_with_history():
        assert schema.since_version <= checks.NEWEST[schema.domain], schema.domain


def declared(kind: Any) -> Any:
    """What is read of a value of this type, called v."""
    return checks.declared(helper.make_value_info("v", kind))


@pytest.mark.parametrize(("kind", "want"), [
    (helper.make_tensor_type_proto(1, (2, 3)), (F32, (2, 3))), (helper.make_tensor_type_proto(7, ()), (I64, ())),
    (helper.make_tensor_type_proto(7, None), (I64, None)), (helper.make_tensor_type_proto(1, (-1, 0)), (F32, (-1, 0))),
    (helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, (2,))), (LIST, None)),
    (helper.make_optional_type_proto(helper.make_tensor_type_proto(1, (2,))), (LIST, None)),
    (helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, ())), (LIST, None)),
    (onnx.TypeProto(), (None, None))], ids=lambda v: str(v)[:16])
def test_what_a_file_declares(kind: Any, want: Any) -> None:
    found, dims = declared(kind)
    assert (found, dims and tuple(n if known(n) else -1 for n in dims)) == want


def test_named_sizes_are_symbols() -> None:
    _, dims = declared(helper.make_tensor_type_proto(1, ("batch", None, "batch")))
    assert same(dims[0], symbol("batch")) and dims[1] is UNKNOWN and same(dims[0], dims[2])
    _, dims = declared(helper.make_tensor_type_proto(1, ("?", "*", "None", "N")))
    assert all(n is UNKNOWN for n in dims[:3]) and same(dims[3], symbol("N"))


@pytest.mark.parametrize(("kind", "said"), [
    (helper.make_tensor_type_proto(99, ()), "has the type 99"), (helper.make_tensor_type_proto(27, ()), "FLOAT6E2M3"),
    (helper.make_sparse_tensor_type_proto(1, (2,)), "is a sparse_tensor")], ids=["99", "float6", "sparse"])
def test_types_without_a_counterpart(kind: Any, said: str) -> None:
    with pytest.raises(NnxError, match="value 'v'") as found:
        declared(kind)
    assert said in str(found.value)
