"""Recurrent operations in floats against their definitions, with every part that may be left out."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_op import run_op, tensor
from recurrent import ACTS, NO_AUX, NO_LATE_NORM, NO_NORM, Plan, Step, lstm, real, rnn_pass, run_late

from nnx_convert import CompiledModel, ModelBuilder
from nnx_convert.ops import rnn
from nnx_convert.ops.host import host_twin
from nnx_convert.types import F16, F32, F64, Tensor

Array = np.ndarray[Any, Any]
CLOSE = {F32: {"rtol": 2e-5, "atol": 2e-5}, F16: {"rtol": 4e-3, "atol": 4e-3}, F64: {"rtol": 1e-12, "atol": 1e-12}}
TYPES = [F32, F16]
PLANS = {
    "plain": Plan(), "coupled": Plan(coupled=True), "peephole": Plan(peephole=True),
    "projection": Plan(projection=True, width=2), "wide projection": Plan(projection=True, width=7),
    "projection with a bias": Plan(projection=True, width=2, projection_bias=True), "norm": Plan(norm=True, units=6),
    "coupled norm": Plan(coupled=True, norm=True, peephole=True), "one unit": Plan(inputs=1, units=1),
    "everything": Plan(5, 6, 3, peephole=True, projection=True, projection_bias=True, norm=True)}
STEPS = [Step(), Step(0), Step(1, 0.3), Step(3, 0.0, 0.2), Step(6, 0.5, 0.1)]


def code_name(code: Any) -> str:
    return str(code.name)


def normal(rng: np.random.Generator, code: Any, *shape: int) -> Tensor:
    return tensor(rng.standard_normal(shape), code)


def flipped(x: Array, time_major: bool) -> Array:
    """A sequence with time first, or back."""
    return x if time_major else x.swapaxes(0, 1)


def agree(found: list[Array], wanted: list[Array], code: Any) -> None:
    assert [f.dtype for f in found] == [code.dtype] * len(found)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, w, **CLOSE[code])


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_one_step_of_an_lstm(plan: Plan, step: Step, code: Any) -> None:
    rng = np.random.default_rng(1)
    cell, norm, _ = plan.draw(rng, code)
    x, h, c = normal(rng, code, 2, plan.inputs), normal(rng, code, 2, plan.out), normal(rng, code, 2, plan.units)
    args = {"x": x, "cell": cell, "h": h, "c": c, "act": step.act, "cell_clip": step.cell_clip,
            "proj_clip": step.proj_clip, "norm": rnn.LateNorm(*norm)}
    scratch, *found = run_op(rnn.LSTM, args)
    assert scratch.shape == (2, plan.units * (3 if plan.coupled else 4))
    out, h_after, c_after = lstm(real(x)[None], (real(cell), real(norm), NO_AUX), real(h), real(c), step)
    agree(found, [h_after, c_after, out[0]], code)


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("time", [1, 5])
@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_a_sequence_of_an_lstm(plan: Plan, time: int, time_major: bool, code: Any) -> None:
    rng = np.random.default_rng(2)
    cell, norm, _ = plan.draw(rng, code)
    x = normal(rng, code, *((time, 3) if time_major else (3, time)), plan.inputs)
    h, c = normal(rng, code, 3, plan.out), normal(rng, code, 3, plan.units)
    step = Step(4, 0.7, 0.4)
    args = {"x": x, "cell": cell, "h": h, "c": c, "act": 4, "cell_clip": 0.7, "proj_clip": 0.4,
            "time_major": time_major, "norm": norm}
    out, *after = lstm(flipped(real(x), time_major), (real(cell), real(norm), NO_AUX), real(h), real(c), step)
    found = run_op(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, args)
    agree(found, [flipped(out, time_major), *after], code)
    late = run_late(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, args, found)
    assert all(np.array_equal(a, b) for a, b in zip(found, late, strict=True))


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6),
       st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from(STEPS), st.integers(0, 10**6))
def test_any_sequence_of_an_lstm(time: int, count: int, inputs: int, units: int, width: int, parts: list[bool],
                                 step: Step, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coupled, peephole, projection, bias, norm, time_major = parts
    # A single unit has no variance to be normalised by, and its rounding errors would be.
    plan = Plan(inputs, units, width, coupled, peephole, projection, bias, norm and units > 2)
    cell, norms, _ = plan.draw(rng, F64)
    x = normal(rng, F64, *((time, count) if time_major else (count, time)), inputs)
    h, c = normal(rng, F64, count, plan.out), normal(rng, F64, count, units)
    args = {"x": x, "cell": cell, "h": h, "c": c, "act": step.act, "cell_clip": step.cell_clip,
            "proj_clip": step.proj_clip, "time_major": time_major, "norm": norms}
    out, *after = lstm(flipped(real(x), time_major), (real(cell), real(norms), NO_AUX), real(h), real(c), step)
    agree(run_op(host_twin(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM), args), [flipped(out, time_major), *after], F64)


#: What the auxiliary input does: nothing, feed the backward cell, or both cells through weights of its own.
LINKS = ["none", "parallel", "cross"]


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("plan", [PLANS[n] for n in ("plain", "coupled", "everything")], ids=str)
def test_an_lstm_both_ways(plan: Plan, link: str, time_major: bool, merge: bool, code: Any) -> None:
    rng = np.random.default_rng(3)
    plan = Plan(**vars(plan) | {"aux": 2 if link == "cross" else 0})
    fw, bw = plan.draw(rng, code), plan.draw(rng, code, inputs=2 if link == "parallel" else None)
    lead = (4, 2) if time_major else (2, 4)
    x, aux = normal(rng, code, *lead, plan.inputs), normal(rng, code, *lead, 2)
    h, c = [normal(rng, code, 2, plan.out) for _ in "fb"], [normal(rng, code, 2, plan.units) for _ in "fb"]
    args = {"x": x, "fw": fw[0], "bw": bw[0], "fw_h": h[0], "fw_c": c[0], "bw_h": h[1], "bw_c": c[1],
            "aux": None if link == "none" else aux, "fw_aux": fw[2], "bw_aux": bw[2], "act": 4, "cell_clip": 0.0,
            "proj_clip": 0.0, "merge": merge, "time_major": time_major, "fw_norm": fw[1], "bw_norm": bw[1]}
    ahead, side = flipped(real(x), time_major), flipped(real(aux), time_major)
    first = lstm(ahead, real(fw), real(h[0]), real(c[0]), Step(), side)
    second = lstm(side if link == "parallel" else ahead, real(bw), real(h[1]), real(c[1]), Step(), side, backward=True)
    outs = [flipped(o, time_major) for o in (first[0], second[0])]
    found = run_op(rnn.BIDIRECTIONAL_SEQUENCE_LSTM, args)
    agree(found, [*([np.concatenate(outs, 2)] if merge else outs), *first[1:], *second[1:]], code)


def test_a_cell_at_its_limits() -> None:
    plan, big = Plan(2, 2), np.finfo(np.float32).max / 4
    cell, _, _ = plan.draw(np.random.default_rng(4), F32)
    args = {"x": tensor([[big, -big], [0, 0]], F32), "cell": cell, "h": tensor(np.zeros((2, 2)), F32),
            "c": tensor([[1e30, -1e30], [0, 0]], F32), "act": 4, "cell_clip": 3.0, "proj_clip": 0.0,
            "norm": NO_LATE_NORM}
    with np.errstate(over="ignore"):
        _, h, c, out = run_op(rnn.LSTM, args)
    assert np.isfinite(out).all() and np.array_equal(h, out)
    assert np.abs(c[0]).max() <= 3 and np.abs(out).max() <= 1


def test_weights_that_come_with_a_run_are_compiled_for_ahead() -> None:
    rng, plan = np.random.default_rng(10), PLANS["everything"]
    cell, norm, _ = plan.draw(rng, F32)
    args = {"x": normal(rng, F32, 2, 4, 5), "cell": cell, "h": normal(rng, F32, 2, 3), "c": normal(rng, F32, 2, 6),
            "act": 4, "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False, "norm": norm}
    op, b = rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, ModelBuilder()
    operands = op.forms[0].operands(args, op.types)
    given = [o for o in operands if isinstance(o, Tensor)]
    indices = [b.add_operand(o.type, o.shape if isinstance(o, Tensor) else ()) for o in operands]
    for i, o in zip(indices, operands, strict=True):
        if not isinstance(o, Tensor):
            b.set_operand_value(i, o.value)
    outs = [b.add_operand(F32, s) for s in ((2, 4, 3), (2, 3), (2, 6))]
    b.add_operation(op.code or 0, indices, outs)
    b.identify_inputs_and_outputs([i for i, o in zip(indices, operands, strict=True) if isinstance(o, Tensor)], outs)
    compiled = CompiledModel(b.finish())
    assert compiled.prepare() is not None
    for found, want in zip(compiled.run([t.data for t in given]), run_op(op, args), strict=True):
        assert np.array_equal(found, want)


def test_no_steps_leave_the_states_as_they_are() -> None:
    rng, plan = np.random.default_rng(5), Plan()
    cell, norm, _ = plan.draw(rng, F32)
    h, c = normal(rng, F32, 2, 4), normal(rng, F32, 2, 4)
    args = {"x": tensor(np.zeros((0, 2, 3)), F32), "cell": cell, "h": h, "c": c, "act": 4, "cell_clip": 0.0,
            "proj_clip": 0.0, "time_major": True, "norm": norm}
    out, h_after, c_after = run_op(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, args)
    assert out.shape == (0, 2, 4)
    assert np.array_equal(h_after, h.data) and np.array_equal(c_after, c.data)


def rnn_weights(rng: np.random.Generator, code: Any, units: int, inputs: int) -> list[Tensor]:
    """w, r, b and h for a batch of 2."""
    return [tensor(rng.normal(0, 0.5, s), code) for s in ((units, inputs), (units, units), (units,), (2, units))]


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("act", [0, 1, 2, 3])
def test_one_step_of_an_rnn(act: int, code: Any) -> None:
    rng = np.random.default_rng(6)
    w, r, b, h = rnn_weights(rng, code, 5, 3)
    x = normal(rng, code, 2, 3)
    found = run_op(rnn.RNN, {"x": x, "w": w, "r": r, "b": b, "h": h, "act": act})
    out, after = rnn_pass([(real(x)[None], real(w))], real(r), real(b), real(h), act)
    agree(found, [after, out[0]], code)


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("time_major", [0, 1])
@pytest.mark.parametrize("time", [1, 6])
def test_a_sequence_of_an_rnn(time: int, time_major: int, code: Any) -> None:
    rng = np.random.default_rng(7)
    w, r, b, h = rnn_weights(rng, code, 4, 3)
    x = normal(rng, code, *((time, 2) if time_major else (2, time)), 3)
    args = {"x": x, "w": w, "r": r, "b": b, "h": h, "act": 2, "time_major": time_major}
    out, after = rnn_pass([(flipped(real(x), time_major > 0), real(w))], real(r), real(b), real(h), 2)
    found = run_op(rnn.UNIDIRECTIONAL_SEQUENCE_RNN, args)
    agree(found, [flipped(out, time_major > 0), after], code)
    agree(run_late(rnn.UNIDIRECTIONAL_SEQUENCE_RNN, args, found), found, code)


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.sampled_from(LINKS),
       st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from([F32, F16]), st.integers(0, 10**6))
def test_any_rnn_both_ways(time: int, inputs: int, fw_units: int, bw_units: int, link: str, act: int,
                           time_major: bool, merge: bool, code: Any, seed: int) -> None:
    rng, side = np.random.default_rng(seed), 3
    fw = rnn_weights(rng, code, fw_units, inputs)
    bw = rnn_weights(rng, code, bw_units, side if link == "parallel" else inputs)
    lead = (time, 2) if time_major else (2, time)
    x, aux = normal(rng, code, *lead, inputs), normal(rng, code, *lead, side)
    own = [tensor(rng.normal(0, 0.5, (u, side)), code) if link == "cross" else None for u in (fw_units, bw_units)]
    names = ("fw_w", "fw_r", "fw_b", "fw_h", "bw_w", "bw_r", "bw_b", "bw_h")
    args = dict(zip(names, (*fw, *bw), strict=True)) | {
        "x": x, "aux": None if link == "none" else aux, "fw_aw": own[0], "bw_aw": own[1], "act": act,
        "time_major": time_major, "merge": merge}
    ahead, beside = flipped(real(x), time_major), flipped(real(aux), time_major)
    more = [[] if a is None else [(beside, real(a))] for a in own]
    (w, r, b, h), (w2, r2, b2, h2) = real(tuple(fw)), real(tuple(bw))
    first = rnn_pass([(ahead, w), *more[0]], r, b, h, act)
    second = rnn_pass([(beside if link == "parallel" else ahead, w2), *more[1]], r2, b2, h2, act, backward=True)
    outs = [flipped(o, time_major) for o in (first[0], second[0])]
    found = run_op(rnn.BIDIRECTIONAL_SEQUENCE_RNN, args)
    for f, want in zip(found, [*([np.concatenate(outs, 2)] if merge else outs), first[1], second[1]], strict=True):
        np.testing.assert_allclose(f, want, rtol=1e-4 if code is F32 else 1e-2, atol=1e-4 if code is F32 else 1e-2)


@pytest.mark.parametrize("code", TYPES, ids=code_name)
@pytest.mark.parametrize("rank", [1, 2, 6])
@pytest.mark.parametrize("act", [0, 1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_svdf(bias: bool, act: int, rank: int, code: Any) -> None:
    rng, (count, inputs, filters, memory) = np.random.default_rng(8), (2, 3, 6, 4)
    x, wf, wt = (normal(rng, code, *s) for s in ((count, inputs), (filters, inputs), (filters, memory)))
    b = normal(rng, code, filters // rank) if bias else None
    state = normal(rng, code, count, filters * memory)
    after, out = run_op(rnn.SVDF, {"x": x, "wf": wf, "wt": wt, "b": b, "state": state, "rank": rank, "act": act})
    held = real(state).reshape(count, filters, memory).copy()
    held[:, :, -1] = real(x) @ real(wf).T
    total = (held * real(wt)).sum(2).reshape(count, -1, rank).sum(2) + (real(b) if b else 0)
    shifted = np.concatenate([held[:, :, 1:], np.zeros((count, filters, 1))], 2)
    agree([after, out], [shifted.reshape(count, -1), ACTS[act](total)], code)


def test_norms_left_out_are_no_norms() -> None:
    assert run_op(rnn.LSTM, {"x": tensor([[1.0]], F32), "cell": Plan(1, 1).draw(np.random.default_rng(9), F32)[0],
                             "h": tensor([[0.0]], F32), "c": tensor([[0.0]], F32), "act": 4, "cell_clip": 0.0,
                             "proj_clip": 0.0, "norm": rnn.LateNorm(*NO_NORM)})[3].shape == (1, 1)
