"""Profiles: rows of what is done, natively, by NumPy and step by step; multiply-adds, bytes, times that add up."""
from __future__ import annotations

import numpy as np
import pytest
from device_models import counted
from natively import Net, net
from sample_models import SAMPLES

import nnx_convert
from nnx_convert import OperandCode
from nnx_convert.emit.macs import macs
from nnx_convert.errors import InputError
from nnx_convert.runtime.bind import Options, bind
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.program import NativeProgram, Planner, groups, segments, stretches
from nnx_convert.runtime.codegen.tasks import Workshop, taken
from nnx_convert.runtime.profile import Profile

#: Work of `net`: the convolution's image, filters, bias and result, then the chain's.
CONV_BYTES = 4 * (12 * 12 * 8 + 16 * 9 * 8 + 16 + 12 * 12 * 16)
CONV_MACS = 12 * 12 * 16 * 9 * 8


def profiled(backend: str, threads: int = 1) -> Profile:
    """The profile of a convolution and a hyperbolic tangent."""
    made = net()
    return nnx_convert.compile(made.model, backend=backend, threads=threads).profile(made.given, runs=25)


@pytest.mark.parametrize("threads", [1, 2])
def test_native_rows_name_all_that_is_fused(threads: int) -> None:
    found = profiled("native", threads)
    rows = [r for r in found.rows if r.work.origins]
    assert [op for r in rows for op in r.work.operations] == ["CONV_2D", "TANH"]
    assert {r.work.engine for r in rows} == {"native"} and found.macs == CONV_MACS
    assert all(0 < r.seconds <= found.seconds and 0 < r.share <= 1 for r in rows)
    assert sum(r.seconds for r in found.rows) <= 1.5 * found.seconds
    assert rows[0].gflops > 0 and rows[0].work.bytes >= CONV_BYTES


def test_what_is_only_another_view_takes_no_time() -> None:
    made = Net()
    x = made.input(np.ones((4, 6), np.float32))
    y = made.op("TANH", x, shape=(4, 6))
    z = made.op("RESHAPE", y, made.const([3, 8], OperandCode.TENSOR_INT32), shape=(3, 8))
    model = made.finish(made.op("SOFTMAX", z, made.scalar(1.0), shape=(3, 8)))
    found = nnx_convert.compile(model, backend="native", threads=1).profile(made.given, runs=3)
    assert [r.work.operations for r in found.rows] == [("TANH",), ("SOFTMAX",)]
    assert all(0 < r.share <= 1 for r in found.rows)


def test_rows_of_numpy() -> None:
    found = profiled("numpy")
    assert [(r.work.operations, r.work.engine, r.work.macs) for r in found.rows] == [
        (("CONV_2D",), "numpy", CONV_MACS), (("TANH",), "numpy", 0)]
    assert found.rows[0].work.bytes == CONV_BYTES and found.macs == macs(net().model)
    assert 0 < sum(r.seconds for r in found.rows) <= found.seconds


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_loop_runs_graphs(backend: str) -> None:
    given = [np.array([3], np.int32), np.ones(2, np.float32)]
    found = nnx_convert.compile(counted(), backend=backend, threads=1).profile(given, runs=3)
    assert [(r.work.operations, r.work.engine) for r in found.rows] == [(("WHILE",), "graphs")]


def test_only_profiled_code_looks_at_the_clock() -> None:
    for profiled, count in ((False, 0), (True, 2)):
        made = net()
        tensors = [made.model.operands[i].tensor() for i in made.model.inputs]
        program = bind(made.model, tensors, Options(1, elsewhere=lambda b: taken(b, host())))
        planner = Planner(program, host(), 1, profiled)
        layout = planner.layout(groups(program, host()))
        shop = Workshop(host(), layout.places, program.constants, layout.fault)
        text = "".join(segments(stretches(layout, planner, shop), host()))
        assert text.count("call void @stamp_") >= count
        assert ("call i64 @llvm.read" in text) == ("counter" in text) == profiled


def test_a_profiled_program_gives_the_same_outputs() -> None:
    made = net()
    tensors = [made.model.operands[i].tensor() for i in made.model.inputs]
    program = bind(made.model, tensors, Options(1, elsewhere=lambda b: taken(b, host())))
    plain, watched = (NativeProgram(program, host(), 1, profiled=p).run(made.given) for p in (False, True))
    assert all(np.array_equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_a_profile_leaves_the_states_alone_and_refuses_what_a_run_refuses() -> None:
    model = nnx_convert.compile(SAMPLES["per_channel"](), backend="native")
    before = {n: a.copy() for n, a in model.state.items()}
    assert len(model.profile([], runs=2).rows) == 1
    assert before and all(np.array_equal(before[n], a) for n, a in model.state.items())
    with pytest.raises(InputError):
        model.profile([np.zeros(3), np.zeros(3)])
