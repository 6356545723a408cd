"""Indices, axes and sizes that a run gives where files have constants, and that make no sense: the command gives one
line, or an answer, the same in NumPy and natively."""
from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from odd import apart, bent

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.resources import VARIABLE as LIMITS
from nnx_convert.runtime.backends import VARIABLE

from .cases import CASES
from .host_cases import HOST
from .one_operator import Array, Case, T, write


def opened(case: Case) -> Case:
    """The case with its whole numbers given by a run, and nothing said of its outputs' sizes."""
    def of(t: T | None) -> T | None:
        whole = t is not None and t.data is not None and np.dtype(t.dtype).kind in "iu" and t.scale is None
        return replace(t, data=None, fed=t.data) if t is not None and whole else t
    outputs = [replace(t, signature=t.shape and (-1,) * len(t.shape)) for t in case.outputs]
    return replace(case, inputs=[of(t) for t in case.inputs], outputs=outputs)


def given(case: Case, share: float) -> dict[str, Array]:
    """An array for each input by its name, a share of the whole numbers that were constants being odd ones."""
    rng, found = np.random.default_rng(zlib.crc32(f"{case}{share}".encode())), {}
    for i, t in enumerate(case.inputs):
        if t is not None and t.data is None and not t.variable:
            plain = rng.normal(size=t.shape) * 3 if t.fed is None else np.reshape(t.fed, t.shape or ())
            array = np.asarray(plain).astype(t.dtype)
            found[f"x{i}"] = bent(array, rng, share, floats=False) if t.fed is not None else array
    return found


OPENED = [(case, opened(case)) for case in (*CASES, *HOST)]
NAMED = {name: [o for c, o in OPENED if c.name == name and any(a is not b for a, b in zip(
    c.inputs, o.inputs, strict=True))] for name in {c.name for c, _ in OPENED}}


@pytest.mark.parametrize("name", sorted(name for name, cases in NAMED.items() if cases))
def test_numbers_of_a_run_that_make_no_sense(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(LIMITS, "total_bytes=64M")
    for case in NAMED[name]:
        Path("m.tflite").write_bytes(write(case))
        for share in (0.3, 1.0):
            np.savez("in.npz", **given(case, share))
            found = []
            for backend in ("numpy", "native"):
                monkeypatch.setenv(VARIABLE, backend)
                code = ended(["run", "m.tflite", "--inputs", "in.npz", "--output", f"{backend}.npz", "--quiet"])
                said = capsys.readouterr().err
                assert (said.count("\n") == 1) is (code != ExitCode.GOOD), said
                found.append((code, said))
            assert found[0] == found[1], case
            if found[0][0] == ExitCode.GOOD:
                with np.load("numpy.npz") as one, np.load("native.npz") as other:
                    assert not apart([*one.values()], [*other.values()], signs=False), case
