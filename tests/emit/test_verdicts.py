"""What a target makes of operations, and the pieces a driver would see."""
from __future__ import annotations

from collections.abc import Sequence

import pytest

import nnx_convert as nnx
from nnx_convert.codes import OperandCode, OperationCode
from nnx_convert.emit.verdicts import HOLDS, partitions, span, taker, verdicts
from nnx_convert.model import Model


def chain(edges: Sequence[tuple[int, ...]]) -> Model:
    """A model in which operation n adds up what the operations of `edges[n]` give; -1 is the input."""
    b = nnx.ModelBuilder()
    x = b.add_operand(OperandCode.TENSOR_FLOAT32, (2,))
    none = b.add_operand(OperandCode.INT32)
    b.set_operand_value(none, 0)
    made: list[int] = []
    for given in edges:
        out = b.add_operand(OperandCode.TENSOR_FLOAT32, (2,))
        ins = [x if n < 0 else made[n] for n in given]
        b.add_operation(OperationCode.ADD, [*(ins if len(ins) > 1 else ins * 2), none], [out])
        made.append(out)
    b.identify_inputs_and_outputs([x], [made[-1]])
    return b.finish()


#: What reads what, what the device takes, and the pieces it is given.
PIECES: list[tuple[list[tuple[int, ...]], str, list[tuple[int, ...]]]] = [
    ([(-1,), (0,), (1,)], "yyy", [(0, 1, 2)]), ([(-1,), (0,), (1,)], "nnn", []),
    ([(-1,), (0,), (1,)], "yny", [(0,), (2,)]), ([(-1,), (0,), (1,)], "nyn", [(1,)]),
    # two branches, one of which leaves the device: the other waits for nothing
    ([(-1,), (0,), (0,), (1, 2)], "ynyy", [(0, 2), (3,)]),
    ([(-1,), (0,), (1,), (0,), (2, 3)], "ynyyy", [(0, 3), (2, 4)])]


@pytest.mark.parametrize(("edges", "taken", "pieces"), PIECES)
def test_partitions(edges: list[tuple[int, ...]], taken: str, pieces: list[tuple[int, ...]]) -> None:
    assert partitions(chain(edges), [t == "y" for t in taken]) == tuple(pieces)


def test_each_piece_is_ready_when_it_begins() -> None:
    """All that a piece reads is made by itself or by what ran before: whatever sides operations are on."""
    edges: list[tuple[int, ...]] = [(-1,), (0,), (0,), (1, 2), (2,), (3, 4), (5,)]
    model = chain(edges)
    for sides in range(1 << len(edges)):
        taken = [bool(sides >> n & 1) for n in range(len(edges))]
        found = [n for piece in partitions(model, taken) for n in piece]
        assert sorted(found) == [n for n, t in enumerate(taken) if t]


def test_a_span_without_a_source_file_counts() -> None:
    assert span(chain([(-1,), (0,)]), (0, 1)) == ("operation 0", "operation 1")


@pytest.mark.parametrize(("level", "taken", "rule"), [(27, False, "is there from 28"), (28, True, "is there from 28")])
def test_the_level_and_the_rule(level: int, taken: bool, rule: str) -> None:
    b = nnx.ModelBuilder()
    x, y, none, out = (b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)), b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)),
                       b.add_operand(OperandCode.INT32), b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)))
    b.set_operand_value(none, 0)
    b.add_operation(OperationCode.DIV, [x, y, none], [out])
    b.identify_inputs_and_outputs([x, y], [out])
    found, = verdicts(b.finish(), nnx.Target(level))
    assert (found.taken, found.level, found.rule, found.kind) == (taken, 28, rule, "base")
    assert found.partition == (0 if taken else None)


def branching(code: OperationCode) -> Model:
    """An IF whose branches are of one operation of two inputs."""
    def branch() -> Model:
        b = nnx.ModelBuilder()
        x, none, out = (b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)), b.add_operand(OperandCode.INT32),
                        b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)))
        b.set_operand_value(none, 0)
        b.add_operation(code, [x, x, none], [out])
        b.identify_inputs_and_outputs([x], [out])
        return b.finish()
    b = nnx.ModelBuilder()
    p, x, out = (b.add_operand(OperandCode.TENSOR_BOOL8, (1,)), b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)),
                 b.add_operand(OperandCode.TENSOR_FLOAT32, (2,)))
    then, other = b.add_operand(OperandCode.MODEL), b.add_operand(OperandCode.MODEL)
    b.set_operand_value_from_model(then, branch())
    b.set_operand_value_from_model(other, branch())
    b.add_operation(OperationCode.IF, [p, then, other, x], [out])
    b.identify_inputs_and_outputs([p, x], [out])
    return b.finish()


def test_what_holds_operations_that_are_not_taken_is_not_taken() -> None:
    model = branching(OperationCode.DIV)
    assert all(v.taken for v in verdicts(model, nnx.Target(30)))
    assert taker(nnx.Target(30))(model, 0) and not taker(nnx.Target(29))(model, 0)
    found = verdicts(model, nnx.Target(27))
    assert [v.taken for v in found] == [False] * 3 and {v.place.subgraph for v in found} == {0, 1, 2}
    assert HOLDS not in {v.rule for v in found[1:]}
