"""Values, nodes, graphs: named arguments, verdicts, single assignment."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert.graph import Build, Graph, GraphError, Node, Value, merge
from nnx_convert.ops import conv, elementwise as e, host, rnn, shape
from nnx_convert.schema import Checked, OpError
from nnx_convert.types import F32, I32, I64, Q8, UNKNOWN, Quant, Rim, Tensor


def value(*dims: int, type_: Tensor | None = None) -> Value:
    return Value("x", type_ or Tensor(F32, dims))


def test_arguments_are_found_by_position_by_name_and_by_default() -> None:
    g, x = Build(), value(1, 4, 4, 2)
    w, b = g.const(np.ones((3, 2, 2, 2)), F32), g.const(np.zeros(3), F32)
    y = g(conv.CONV_2D, x, w, b, scheme=1, sw=2, sh=2, act=0)
    node = g.nodes[0]
    assert node.form.name == "conv_by_scheme" and y.shape == (1, 2, 2, 3) and len(node.operands) == 7
    assert node.inputs == (x, w, b) and isinstance(node.verdict, Checked) and node.verdict.level == 27


def test_names_that_are_no_form_are_a_fault_of_ours() -> None:
    with pytest.raises(GraphError, match="has no form"):
        Build()(e.ADD, value(2), value(2), activation=0)


def test_a_list_becomes_a_constant_of_the_operands_type() -> None:
    g = Build()
    g(shape.RESHAPE, value(2, 3), (3, -1))
    const = g.nodes[0].args["shape"]
    assert const.type == I32 and const.array.tolist() == [3, -1] and g.nodes[0].outputs[0].shape == (3, 2)


def test_an_illegal_node_is_a_verdict_not_an_exception() -> None:
    g = Build()
    g(e.SIN, value(type_=Tensor(I64, (2,))))
    verdict = g.nodes[0].verdict
    assert isinstance(verdict, OpError) and "TENSOR_INT64 is not accepted" in verdict.text


def test_mapped_keeps_what_is_not_changed() -> None:
    g, x, y = Build(), value(2), value(2)
    g(e.ADD, x, y, act=0)
    node = g.nodes[0]
    assert node.mapped(lambda v: v) is node
    assert node.mapped(lambda v: y if v is x else v).inputs == (y, y)


def test_records_are_mapped_inside() -> None:
    w, other = value(3, 2), value(3, 2)
    cell = rnn.Cell(*[w] * len(rnn.Cell._fields))
    g = Build()
    zeros = g.const(np.zeros((1, 3)), F32)
    g.add(rnn.LSTM, value(1, 2), cell, zeros, zeros, act=4, cell_clip=0.0, proj_clip=0.0, norm=rnn.LateNorm(),
          outs=(None,) * 4)
    new = g.nodes[0].mapped(lambda v: other if v is w else v)
    assert isinstance(new.args["cell"], rnn.Cell) and set(new.args["cell"]) == {other}


#: What breaks single assignment: nodes as (reads, writes) of v0..v3, inputs, outputs, words.
BROKEN = [([((1,), 2)], (0,), (2,), "which nothing wrote"), ([((0,), 1), ((0,), 1)], (0,), (1,), "second time"),
          ([((0,), 0)], (0,), (0,), "second time"), ([((0,), 1)], (0,), (3,), "not written")]


@pytest.mark.parametrize(("nodes", "inputs", "outputs", "words"), BROKEN)
def test_verify(nodes: list[tuple[tuple[int, ...], int]], inputs: tuple[int, ...], outputs: tuple[int, ...],
                words: str) -> None:
    v = [value(2) for _ in range(4)]
    made = tuple(Node(e.RELU, e.RELU.forms[0], {"x": v[reads[0]]}, (v[writes],)) for reads, writes in nodes)
    graph = Graph("g", tuple(v[i] for i in inputs), tuple(v[i] for i in outputs), made, Rim())
    with pytest.raises(GraphError, match=words):
        graph.verify()


#: Inferred, declared, what both say (None: they contradict).
MERGED = [
    (Tensor(F32, (UNKNOWN, 3)), Tensor(F32, (2, UNKNOWN)), Tensor(F32, (2, 3))),
    (Tensor(F32, None), Tensor(F32, (2,)), Tensor(F32, (2,))),
    (Tensor(Q8, (2,)), Tensor(Q8, (2,), Quant(0.5, 3)), Tensor(Q8, (2,), Quant(0.5, 3))),
    (Tensor(F32, (2,)), Tensor(F32, (3,)), None), (Tensor(F32, (2,)), Tensor(I32, (2,)), None)]


@pytest.mark.parametrize(("inferred", "declared", "both"), MERGED)
def test_merge(inferred: Tensor, declared: Tensor, both: Tensor | None) -> None:
    if both is None:
        with pytest.raises(OpError, match="the model says"):
            merge(e.ADD, inferred, declared)
    else:
        assert repr(merge(e.ADD, inferred, declared)) == repr(both)


@pytest.mark.parametrize("size", [UNKNOWN, 1 << 30])
def test_made_up_constants_are_bounded(size: int) -> None:
    for make in (lambda: Build().ramp(size), lambda: Build().full((size,), 0, Tensor(F32, (1,)))):
        with pytest.raises(OpError, match="cannot be made up"):
            make()


def test_composites_have_no_code_and_infer_all_the_same() -> None:
    assert Build()(host.BROADCAST_TO, value(1, 3), (2, 2, 3)).shape == (2, 2, 3)
