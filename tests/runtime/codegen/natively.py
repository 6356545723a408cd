"""A model run by native code for a machine, and by NumPy: both answers."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nnx_convert import Model, ModelBuilder, OperandCode
from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.bind import Options, Program, bind
from nnx_convert.runtime.codegen.machine import AARCH64, AVX2, AVX512, BASELINE, DOTPROD, Machine, host
from nnx_convert.runtime.codegen.program import NativeProgram
from nnx_convert.runtime.codegen.tasks import taken
from nnx_convert.runtime.runner import Compiled, call
from nnx_convert.schema import OPS
from nnx_convert.types import Tensor

Array = np.ndarray[Any, Any]
#: |got - want| <= NEAR * the largest |want| of floats.
NEAR = 1e-5
#: This machine, and what it is with fewer features.
MACHINES = {"host": host(), "avx2": host().only(AVX2), "baseline": host().only(BASELINE)}
#: The same, and one with wide vectors that does not multiply bytes.
WIDE = MACHINES | {"avx512": host().only(AVX512)}
#: All that differ where bytes are multiplied, too.
EVERY = WIDE | {"vnni": host().only(AVX512 | {"avx512vnni"})}
#: Another architecture's machines: code for them is compiled anywhere, and run by an emulator.
ARM = {name: Machine("aarch64-unknown-linux-gnu", AARCH64 | more)
       for name, more in (("neon", frozenset[str]()), ("dotprod", DOTPROD))}


class Net:
    """A model in the making: FLOAT32 tensors, constants, operations by their names."""

    def __init__(self) -> None:
        self.builder, self.shapes = ModelBuilder(), dict[int, tuple[int, ...]]()
        self.inputs: list[int] = []
        self.given: list[Array] = []
        self.model: Model

    def input(self, value: Array, kind: OperandCode = OperandCode.TENSOR_FLOAT32, grid: tuple[float, int] = (0, 0)
              ) -> int:
        """A model input of this value; `grid` is its scale and its zero point."""
        index = self.builder.add_operand(kind, value.shape, *grid)
        self.inputs.append(index)
        self.given.append(value.astype(kind.dtype))
        return index

    def const(self, value: Any, kind: OperandCode = OperandCode.TENSOR_FLOAT32, grid: tuple[float, int] = (0, 0)
              ) -> int:
        """A constant tensor."""
        array = np.asarray(value, kind.dtype)
        index = self.builder.add_operand(kind, array.shape, *grid)
        self.builder.set_operand_value(index, array)
        return index

    def nothing(self) -> int:
        """A tensor that is left out."""
        index = self.builder.add_operand(OperandCode.TENSOR_FLOAT32, ())
        self.builder.set_operand_value(index, None)
        return index

    def scalar(self, value: float | bool) -> int:
        """A scalar."""
        kind = OperandCode.BOOL if isinstance(value, bool) else OperandCode.INT32 if isinstance(value, int) else \
            OperandCode.FLOAT32
        index = self.builder.add_operand(kind, ())
        self.builder.set_operand_value(index, value)
        return index

    def op(self, name: str, *operands: int, shape: Sequence[int], kind: OperandCode = OperandCode.TENSOR_FLOAT32,
           grid: tuple[float, int] = (0, 0)) -> int:
        """An operation with one output of a shape."""
        return self.ops(name, *operands, outs=[(tuple(shape), kind)], grid=grid)[0]

    def ops(self, name: str, *operands: int, outs: Sequence[tuple[tuple[int, ...], OperandCode]],
            grid: tuple[float, int] = (0, 0)) -> list[int]:
        """An operation with outputs of these shapes and kinds, on one grid."""
        made = [self.builder.add_operand(kind, shape, *grid) for shape, kind in outs]
        add = self.builder.add_operation_ex if name.endswith("_EX") else self.builder.add_operation
        add(code_of(name), list(operands), made)
        return made

    def finish(self, *outputs: int) -> Model:
        """The model."""
        self.builder.identify_inputs_and_outputs(self.inputs, list(outputs))
        return self.builder.finish()


def net() -> Net:
    """A small network."""
    made, rng = Net(), np.random.default_rng(0)
    x = made.input(rng.standard_normal((1, 12, 12, 8)))
    y = made.op("CONV_2D", x, made.const(rng.standard_normal((16, 3, 3, 8))), made.const(np.zeros(16)),
                *map(made.scalar, (1, 1, 1, 1, 1, 1, 1)), shape=(1, 12, 12, 16))
    made.model = made.finish(made.op("TANH", y, shape=(1, 12, 12, 16)))
    return made


def code_of(name: str) -> int:
    """The code of an operation, the host's twins included."""
    found = OPS[name] if name in OPS else host_twin(OPS[name.removeprefix("host.")])
    assert found.code is not None
    return found.code


def tensors(model: Model, given: Sequence[Array]) -> list[Tensor]:
    """A model's inputs as these arrays make them: types and shapes."""
    operands = [model.operands[i] for i in model.inputs]
    return [Tensor(o.type, a.shape, o.quant) for o, a in zip(operands, given, strict=True)]


def left_to(model: Model, given: Sequence[Array], machine: Machine) -> Program:
    """The program in which what a machine does natively is left to it."""
    return bind(model, tensors(model, given), Options(1, call, elsewhere=lambda b: taken(b, machine)))


def runs(make: Callable[[np.random.Generator], Net | None], machine: str, seed: int, here: int, elsewhere: int
         ) -> Iterator[tuple[Net, list[Array], list[Array]]]:
    """Models that are drawn, NumPy's answers, and native code's, which does all of them: so many tries for this
    machine, and for another one of `EVERY`; at least two of which are models."""
    rng, ran = np.random.default_rng(seed), 0
    for n in range(here if machine == "host" else elsewhere):
        net = make(rng)
        if net is not None:
            want, got, native = both(net.model, net.given, EVERY[machine], 1 + n % 2)
            assert native == len(net.model.operations)
            yield net, want, got
            ran += 1
    assert ran > 1


def both(model: Model, given: Sequence[Array], machine: Machine, threads: int) -> tuple[list[Array], list[Array], int]:
    """What NumPy gives, what native code gives, and how many operations were native."""
    plain, program = Compiled(bind(model, tensors(model, given), Options(1, call))), left_to(model, given, machine)
    native = NativeProgram(program, machine, threads)
    with np.errstate(all="ignore"):
        native.run(given)                        # the second run meets what the first one left in the arena
        return plain.run(given), native.run(given), sum(step.elsewhere for step in program.steps)


def apart(got: Sequence[Array], want: Sequence[Array]) -> float:
    """The largest difference, relative to the largest value of each output."""
    return max(float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
               for a, b in zip(got, want, strict=True))


def draw(rng: np.random.Generator, low: int, high: int, count: int) -> list[int]:
    """So many integers, the last bound not among them."""
    return [int(n) for n in rng.integers(low, high, count)]


def reach(size: int, k: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How many windows there are along an axis."""
    return (size + before + after - (k - 1) * dilation - 1) // stride + 1
