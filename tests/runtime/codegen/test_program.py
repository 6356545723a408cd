"""Programs of very many operations: functions of some each, whose threads wait for each other all the same."""
from __future__ import annotations

import re

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, left_to

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen import program
from nnx_convert.runtime.codegen.machine import Machine, host

#: Operations of which each reads the two before it, turned: none joins another one's loop.
COUNT, SIDE = 23, 20


def woven() -> Net:
    net, rng = Net(), np.random.default_rng(0)
    values = [net.input(rng.standard_normal((SIDE, SIDE))) for _ in range(2)]
    order = net.const([1, 0], OperandCode.TENSOR_INT32)
    for n in range(COUNT):
        turned = net.op("TRANSPOSE", values[-1], order, shape=(SIDE, SIDE))
        values.append(net.op("MAXIMUM" if n % 2 else "MINIMUM", turned, values[-2], shape=(SIDE, SIDE)))
    net.model = net.finish(*values[-2:])
    return net


@pytest.mark.parametrize("together", [1, 5, 1000])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("machine", MACHINES)
def test_functions_of_some_operations_each_do_the_same(machine: str, threads: int, together: int,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TOGETHER", together)
    net = woven()
    want, got, native = both(net.model, net.given, MACHINES[machine], threads)
    assert native == 2 * COUNT and apart(got, want) <= NEAR


def test_no_function_calls_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    net, found, texts = woven(), list[int](), list[str]()

    def kept(stretches: list[program.Stretch], machine: Machine) -> list[str]:
        texts[:] = segments(stretches, machine)
        return texts
    segments = program.segments
    monkeypatch.setattr(program, "segments", kept)
    monkeypatch.setattr(program, "TOGETHER", 4)
    program.NativeProgram(left_to(net.model, net.given, host()), host(), 1)
    for text in texts:
        found += [len(re.findall(r"call void @(?!llvm)", body)) for body in text.split("\n}\n")]
    assert max(found) <= -(-2 * COUNT // 4) + 1
