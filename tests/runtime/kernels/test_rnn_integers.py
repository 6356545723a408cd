"""Recurrent operations in integers, to the bit, against arithmetic in Python integers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_op import run_op, tensor
from recurrent import run_late
from recurrent_integers import (
    FIXED, Q12, Cell, by, clamp, divided, logistic, multiplier, numbers, scaled, tanh, wrapped)

from nnx_convert.errors import RunError
from nnx_convert.ops import rnn
from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.bind import once
from nnx_convert.schema import OpDef
from nnx_convert.types import I32, Q8, Q8S, Q16S, QS, Quant, Tensor

Array = np.ndarray[Any, Any]
#: Parts of a cell: coupled gates, peepholes, projection, its bias, layer norm.
PARTS = {"plain": "", "coupled": "c", "peephole": "p", "coupled peephole": "cp", "projection": "r",
         "projection with a bias": "rb", "norm": "n", "coupled norm": "cn", "everything": "prbn"}


def whole(rng: np.random.Generator, code: Any, size: tuple[int, ...], scale: float = 0.0, zero: int = 0,
          most: int = 0) -> Tensor:
    """Random integers of a type's whole range, or within +-most; one time in four just extremes."""
    info = np.iinfo(code.dtype)
    low, high = (-most, most) if most else (int(info.min), int(info.max))
    found = rng.choice([low, high, 0], size) if rng.random() < 0.25 else rng.integers(low, high + 1, size)
    return tensor(found, code, Quant(float(np.float32(scale)), zero) if scale else None)


def drawn(rng: np.random.Generator, parts: str, inputs: int, units: int,
          out: int) -> tuple[rnn.QuantCell, rnn.QuantNorm]:
    """A cell with some parts, of random weights on random grids."""
    def weight(there: bool, *size: int) -> Tensor | None:
        return whole(rng, QS, size, rng.uniform(0.002, 0.02), most=127) if there else None

    def wide(there: bool) -> Tensor | None:
        return whole(rng, Q16S, (units,), rng.uniform(1e-5, 1e-4)) if there else None
    own = "c" not in parts
    gates, p, n = (own, True, True, True), "p" in parts, "n" in parts
    return rnn.QuantCell(
        *[weight(g, units, inputs) for g in gates], *[weight(g, units, out) for g in gates],
        *[wide(g) for g in (p and own, p, p)],
        *[whole(rng, I32, (units,), most=4000) if g else None for g in gates],
        weight("r" in parts, out, units), whole(rng, I32, (out,), most=500) if "b" in parts else None,
    ), rnn.QuantNorm(*[wide(n and g) for g in gates])


def on_host(op: OpDef, args: dict[str, Any], *outs: Tensor) -> list[Array]:
    """The host's twin of an operation, with outputs of these types and shapes."""
    found = once(host_twin(op), args, outs)
    assert found is not None
    return found


@settings(max_examples=10)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(9, 14), st.booleans(),
       st.integers(0, 10**6))
@pytest.mark.parametrize("parts", PARTS.values(), ids=list(PARTS))
def test_quantized_lstm(parts: str, count: int, inputs: int, units: int, exponent: int, clipped: bool,
                        seed: int) -> None:
    rng = np.random.default_rng(seed)
    out = int(rng.integers(1, units + 1)) if "r" in parts else units
    cell, norm = drawn(rng, parts, inputs, units, out)
    x = whole(rng, Q8S, (count, inputs), rng.uniform(0.005, 0.05), int(rng.integers(-128, 128)))
    h = whole(rng, Q8S, (count, out), rng.uniform(0.004, 0.01), int(rng.integers(-20, 20)))
    c = whole(rng, Q16S, (count, units), 2.0**-exponent)
    grids = tuple(float(np.float32(v)) for v in (rng.uniform(1e-4, 1e-3, 4) if norm.f else [Q12] * 4))
    hidden = Quant(float(np.float32(rng.uniform(0.004, 0.01))), int(rng.integers(-20, 20)))
    clips = (2.5, 0.4) if clipped else (0.0, 0.0)
    args = {"x": x, "cell": cell, "h": h, "c": c, "norm": norm, "cell_clip": clips[0] or None,
            "proj_clip": clips[1],
            **dict(zip(("i_scale", "f_scale", "c_scale", "o_scale"), grids, strict=True)),
            "h_zero": hidden.zero, "h_scale": hidden.scale}
    whole_clips = min(int(2.5 / c.scale), 32767), min(int(np.float32(0.4) / np.float32(h.scale)), 127)
    oracle = Cell(cell, norm, x.quant, h.quant, c.quant, grids, hidden, whole_clips if clipped else (0, 0))
    after, cells = oracle.step(numbers(x), numbers(h), numbers(c))
    found = run_op(rnn.QUANTIZED_LSTM, args)
    assert [f.dtype for f in found] == [np.int8, np.int16, np.int8]
    assert found[0].tolist() == found[2].tolist() == after.tolist()
    assert found[1].tolist() == cells.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(found, run_late(rnn.QUANTIZED_LSTM, args, found), strict=True))


@pytest.mark.parametrize("parts", ["", "c", "p", "cp"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("time", [1, 4])
def test_tflites_sequence_in_integers(parts: str, time: int, time_major: bool) -> None:
    rng, (count, inputs, units) = np.random.default_rng(time + 2 * time_major), (2, 3, 5)
    cell, norm = drawn(rng, parts, inputs, units, units)
    x = whole(rng, Q8S, (time, count, inputs) if time_major else (count, time, inputs), 0.03, -5)
    h, c = whole(rng, Q8S, (count, units), 0.0078, 3), whole(rng, Q16S, (count, units), 2.0**-11)
    args = {"x": x, "cell": rnn.Cell(*cell), "h": h, "c": c, "act": 4, "cell_clip": 0.0, "proj_clip": 0.0,
            "time_major": time_major, "norm": rnn.Norm(*norm)}
    oracle = Cell(cell, norm, x.quant, h.quant, c.quant, (Q12,) * 4, h.quant, rows=not time_major)
    steps, state, cells = [], numbers(h), numbers(c)
    for row in numbers(x) if time_major else numbers(x).swapaxes(0, 1):
        state, cells = oracle.step(row, state, cells)
        steps.append(state)
    out, h_after, c_after = on_host(rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, args,
                                    Tensor(Q8S, (*x.shape[:2], units), h.quant), h, c)
    assert (out if time_major else out.swapaxes(0, 1)).tolist() == np.array(steps).tolist()
    assert (h_after.tolist(), c_after.tolist()) == (state.tolist(), cells.tolist())


def test_one_step_of_tflites_lstm_in_integers() -> None:
    rng = np.random.default_rng(1)
    cell, norm = drawn(rng, "", 3, 4, 4)
    x, h, c = whole(rng, Q8S, (2, 3), 0.02, 9), whole(rng, Q8S, (2, 4), 0.008, -1), whole(rng, Q16S, (2, 4), 2.0**-12)
    oracle = Cell(cell, norm, x.quant, h.quant, c.quant, (Q12,) * 4, h.quant)
    args = {"x": x, "cell": rnn.Cell(*cell), "h": h, "c": c, "act": 4, "cell_clip": 0.0, "proj_clip": 0.0,
            "norm": rnn.LateNorm()}
    _, *found = on_host(rnn.LSTM, args, Tensor(Q8S, (2, 16)), h, c, h)
    after, cells = oracle.step(numbers(x), numbers(h), numbers(c))
    assert [f.tolist() for f in found] == [after.tolist(), cells.tolist(), after.tolist()]


#: (parts of the cell, exponent of the cell's scale, type of x) that no integer kernel takes, and what is said of them.
REFUSED = [("r", 11, Q8S, "projection"), ("n", 11, Q8S, "layer norm"), ("", 8, Q8S, "power of two"),
           ("", 16, Q8S, "power of two"), ("", 10.5, Q8S, "power of two"), ("", 11, Q8, "QUANT8_ASYMM")]


@pytest.mark.parametrize("parts, exponent, code, said", REFUSED)
def test_what_integers_do_not_cover_is_refused(parts: str, exponent: float, code: Any, said: str) -> None:
    rng = np.random.default_rng(2)
    cell, norm = drawn(rng, parts, 3, 4, 4)
    x, h, c = whole(rng, code, (2, 3), 0.02), whole(rng, Q8S, (2, 4), 0.008), whole(rng, Q16S, (2, 4), 2.0**-exponent)
    args = {"x": x, "cell": rnn.Cell(*cell), "h": h, "c": c, "act": 4, "cell_clip": 0.0, "proj_clip": 0.0,
            "norm": rnn.LateNorm(*norm)}
    with pytest.raises(RunError, match=said):
        on_host(rnn.LSTM, args, Tensor(code, (2, 16)), h, c, h)


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.booleans(),
       st.integers(0, 10**6))
def test_svdf_in_integers(count: int, inputs: int, memory: int, outs: int, rank: int, bias: bool, seed: int) -> None:
    rng, filters = np.random.default_rng(seed), outs * rank
    x = whole(rng, Q8S, (count, inputs), 0.03, int(rng.integers(-128, 128)))
    wf, wt = whole(rng, Q8S, (filters, inputs), 0.011), whole(rng, Q16S, (filters, memory), 5e-5, most=20000)
    b = whole(rng, I32, (outs,), most=4000) if bias else None
    state, out = whole(rng, Q16S, (count, filters * memory), 1e-3), Tensor(Q8S, (count, outs), Quant(0.07, -3))
    args = {"x": x, "wf": wf, "wt": wt, "b": b, "state": state, "rank": rank, "act": 1}
    after, found = on_host(rnn.SVDF, args, state, out)
    zero = x.quant.zero if isinstance(x.quant, Quant) else 0
    held = numbers(state).reshape(count, filters, memory)
    first, second = by(x.scale, wf.scale, over=state.scale), by(state.scale, wt.scale, over=0.07)
    for n, f in np.ndindex(count, filters):
        held[n, f, -1] = clamp(scaled(sum((numbers(x)[n] - zero) * numbers(wf)[f]), *first))
    dots = (held * numbers(wt)).sum(2).reshape(count, outs, rank).sum(2) + (numbers(b) if b else 0)
    assert found.tolist() == [[clamp(scaled(wrapped(int(v)), *second) - 3, 8) for v in row] for row in dots]
    shifted = np.concatenate([held[:, :, 1:], np.zeros((count, filters, 1), object)], 2)
    assert after.tolist() == shifted.reshape(count, -1).tolist()


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(0, 255), st.integers(0, 10**6))
def test_the_lstm_of_uint8_states(count: int, inputs: int, units: int, zero: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid, unit = Quant(float(np.float32(0.0041)), zero), Quant(1 / 128, 128)
    ws = [tensor(rng.integers(0, 256, (units, n)), Q8, grid) for n in [inputs] * 4 + [units] * 4]
    bs = [tensor(rng.integers(-60000, 60000, units), I32) for _ in range(4)]
    x, h = (tensor(rng.integers(0, 256, (count, n)), Q8, unit) for n in (inputs, units))
    c = tensor(rng.choice([-32768, 32767, 0, 1000, -900], (count, units)), Q16S, Quant(2**-11))
    names = ("wi", "wf", "wc", "wo", "ri", "rf", "rc", "ro", "bi", "bf", "bc", "bo")
    args = dict(zip(names, [*ws, *bs], strict=True)) | {"x": x, "c": c, "h": h}
    c_after, h_after = run_op(rnn.QUANTIZED_16BIT_LSTM, args)
    m, s = multiplier(4096 * float(np.float32(grid.scale) / np.float32(128)))

    def gate(i: int, n: int, u: int) -> int:
        """The reference lays the recurrent weights first and multiplies by (x, h)."""
        row, values = [*numbers(ws[4 + i])[u], *numbers(ws[i])[u]], [*numbers(x)[n], *numbers(h)[n]]
        total = sum((w - zero) * (v - 128) for w, v in zip(row, values, strict=True)) + int(numbers(bs[i])[u])
        return clamp(scaled(total, m, s))
    for n, u in np.ndindex(count, units):
        i, f, g, o = (gate(k, n, u) for k in range(4))
        fresh = divided(int(FIXED.mul(logistic(i), tanh(g))), 4)
        new = clamp(fresh + int(FIXED.mul(logistic(f), int(numbers(c)[n, u]))))
        assert c_after[n, u] == new
        assert h_after[n, u] == 128 + clamp(divided(int(FIXED.mul(logistic(o), tanh(new, 4))), 8), 8)
