"""The audio front end against TFLite-Micro's own runtime, step by step; what its operators keep is a state."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert.convert import compile as compiled, convert
from nnx_convert.errors import FormatError

from .signal_cases import CASES, GOLDENS, SHORT, Array, Case, packed

RECORDED = dict(np.load(GOLDENS))
STATES = {"noise": {"y0/noise"}, "stacker": {"y0/queue", "y0/filled"}, "framer7": {"y0/queue", "y0/filled"},
          "delay3": {"y0/late"}, "overlap": {"y0/rest"}, "window": set[str]()}


def outputs(case: Case) -> list[list[Array]]:
    """What a compiled model gives, step by step."""
    m = compiled(convert(case.model()))
    return [m.run(list(given)) for given in zip(*case.inputs, strict=True)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_an_operator_gives_what_tflite_micro_gives(case: Case) -> None:
    for step, found in enumerate(outputs(case)):
        want = [RECORDED[f"{case.name}/{i}"][step] for i in range(len(found))]
        assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in want]
        if want[-1].dtype == bool:
            assert found[-1] == want[-1]
        if want[-1].dtype != bool or want[-1]:           # what is not valid is whatever lay there
            for a, b in zip(found, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4 * (a.dtype.kind == "f"), atol=1e-4 * (a.dtype.kind == "f"))


@pytest.mark.parametrize("name", STATES)
def test_what_an_operator_keeps_is_a_state(name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    m = compiled(convert(case.model()))
    first, before = m.run([x[0] for x in case.inputs]), m.state
    assert set(m.state) == STATES[name]
    m.run([x[-1] for x in case.inputs])
    m.reset()
    again = m.run([x[0] for x in case.inputs])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(np.array_equal(m.state[n], before[n]) for n in before)


@pytest.mark.parametrize(("op", "options", "out", "says"), [
    ("Window", b"", (2, 16), "no FlexBuffer map"), ("Window", b"\xff" * 9, (2, 16), "FlexBuffer"),
    ("Window", packed({"size": 3}), (2, 16), "its options lack 'shift'"),
    ("Window", packed({"shift": "three"}), (2, 16), "'shift' is no number"),
    ("Window", packed({"shift": 1 << 40}), (2, 16), "'shift' is no number"),
    ("Rfft", packed({"fft_length": 48}), (2, 50), "power of two"),
    ("Framer", packed({"frame_size": 4, "frame_step": 9}), (2, 1, 4), "every 9"),
    ("Delay", packed({"delay_length": 1 << 30}), (2, 16), "would be"),
    ("OverlapAdd", packed({"frame_step": 99}), (198,), "within a frame")])
def test_options_that_make_no_sense_are_refused(op: str, options: bytes, out: tuple[int, ...], says: str) -> None:
    x, weights = np.zeros((1, 2, 16), SHORT), np.zeros(16, SHORT)
    case = Case("x", op, [x], [("int16", out)], {}, [weights] * (op == "Window"))
    with pytest.raises(FormatError, match=says):
        convert(case.model(options))
