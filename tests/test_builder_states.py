"""`ModelBuilder` under random calls, against an oracle of a few sets: who writes what, what is named, what is done."""
from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from nnx_convert.builder import ModelBuilder
from nnx_convert.codes import OperandCode, OperationCode, ResultCode
from nnx_convert.errors import ModelError

INDEX = st.integers(0, 7)


class Builder(RuleBasedStateMachine):
    """Operands are float vectors of two elements, operations MAXIMUM of two of them into a third."""

    def __init__(self) -> None:
        super().__init__()
        self.builder = ModelBuilder()
        self.count = 0
        self.constant: set[int] = set()
        self.operations: list[tuple[int, int, int]] = []
        self.named: tuple[list[int], list[int]] | None = None
        self.finished = False

    @property
    def written(self) -> set[int]:
        return {z for _, _, z in self.operations}

    def bound(self) -> set[int]:
        return set().union(*self.named) if self.named else set()

    def expect(self, good: bool, call: Callable[[], object]) -> bool:
        """Make the call; it must succeed exactly where the oracle says so."""
        try:
            call()
        except ModelError as error:
            assert error.result is (ResultCode.BAD_STATE if self.finished else ResultCode.BAD_DATA)
            assert self.finished or not good, error
            return False
        assert good and not self.finished
        return True

    @rule()
    def add(self) -> None:
        if self.expect(True, lambda: self.builder.add_operand(OperandCode.TENSOR_FLOAT32, (2,))):
            self.count += 1

    @rule(i=INDEX)
    def value(self, i: int) -> None:
        good = i < self.count and i not in self.written | self.bound()
        if self.expect(good, lambda: self.builder.set_operand_value(i, [1.0, 2.0])):
            self.constant.add(i)

    @rule(x=INDEX, y=INDEX, z=INDEX)
    def operation(self, x: int, y: int, z: int) -> None:
        inputs = set(self.named[0]) if self.named else set()
        good = max(x, y, z) < self.count and z not in self.written | self.constant | inputs
        if self.expect(good, lambda: self.builder.add_operation(OperationCode.MAXIMUM, [x, y], [z])):
            self.operations.append((x, y, z))

    @rule(inputs=st.lists(INDEX, max_size=2), outputs=st.lists(INDEX, min_size=1, max_size=2))
    def name(self, inputs: list[int], outputs: list[int]) -> None:
        both = inputs + outputs
        good = (self.named is None and max(both) < self.count and len(set(both)) == len(both)
                and self.constant.isdisjoint(both) and self.written.isdisjoint(inputs))
        if self.expect(good, lambda: self.builder.identify_inputs_and_outputs(inputs, outputs)):
            self.named = inputs, outputs

    def whole(self) -> bool:
        """Whether everything is used, written before it is read, and named."""
        if self.named is None:
            return False
        inputs, outputs = self.named
        have, waiting = {*inputs, *self.constant}, list(self.operations)
        while ready := [o for o in waiting if {o[0], o[1]} <= have]:
            have |= {o[2] for o in ready}
            waiting = [o for o in waiting if o not in ready]
        used = {*inputs, *(i for o in self.operations for i in o)}
        return not waiting and self.written >= set(outputs) and used == set(range(self.count))

    @rule()
    def finish(self) -> None:
        if self.count < 3:
            return
        good = self.whole()
        self.expect(good, self.builder.finish)
        self.finished = True


TestBuilder = Builder.TestCase
TestBuilder.settings = settings(max_examples=60, stateful_step_count=30)
