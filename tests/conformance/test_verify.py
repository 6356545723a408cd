"""The command on every model of the zoo beside its recorded outputs: all that can be read is equal, and quick."""
from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from recorded import recording
from shared import SHARED

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

MODELS = sorted(p.parent.name for p in (SHARED / "zoo").glob("*/model.*")) if SHARED else []
#: Models with operators that nobody knows.
REFUSED = {"edge_fake_custom_op_double", "posenet_353x481_customdecoder"}
#: Seconds of processor time: others may keep this process waiting. Native code, of which nothing is kept from before,
#: is compiled in less than five, and twice as long where others use the same caches.
SECONDS = {"numpy": 5.0, "native": 10.0}


def feeding(name: str) -> list[str]:
    """The options that say which output an input is in the next run."""
    from nnx_convert.verify.opening import Subject
    found = recording(name)
    subject = Subject(str(found.path))
    return [word for i, o in found.fed_back.items()
            for word in ("--feed", f"{subject.inputs[i].name}={subject.outputs[o]}")]


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_is_verified_against_its_recorded_outputs(name: str, backend: str,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(name).path if name not in REFUSED else Path(f"{SHARED}/zoo/{name}/model.tflite")
    options = feeding(name) if name not in REFUSED else []
    begun = time.process_time()
    code = ended(["verify", str(path), "--against", str(path.parent / "golden.npz"), "--json", "--backend", backend,
                  *options])
    taken = time.process_time() - begun
    out, err = capsys.readouterr()
    if name in REFUSED:
        assert (code, out, err.count("\n")) == (ExitCode.UNREADABLE, "", 1)
        return
    found = json.loads(out)
    assert (code, found["good"], err) == (ExitCode.GOOD, True, ""), found
    assert found["runs"] == len(recording(name).runs)
    assert taken < SECONDS[backend]
