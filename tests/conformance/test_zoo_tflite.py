"""All TFLite models of the zoo, run after run: floats closely, integers bit for bit, or refused with the reason."""
from __future__ import annotations


import pytest
from recorded import recording
from shared import SHARED
from zoo import CANCELLING, TOLERANCE, beyond, excess, steps

from nnx_convert import CompiledModel, NnxError, convert

MODELS = sorted(p.parent.name for p in (SHARED / "zoo").glob("*/model.tflite")) if SHARED else []
#: Models that cannot be decoded, and the operator that the error names.
REFUSED = {"edge_fake_custom_op_double": "fake-op-double",
           "posenet_353x481_customdecoder": "PosenetDecoderOp"}


@pytest.mark.parametrize("name", [m for m in MODELS if m not in REFUSED])
def test_a_real_model_gives_its_recorded_outputs(name: str, backend: str) -> None:
    found = recording(name)
    model, before = CompiledModel(convert(found.path)), list[object]()
    assert any(r.outputs for r in found.runs)
    for n, run in enumerate(found.runs):
        count = sum(not p.state for p in model.inputs)
        given = [run.inputs[i] if i in run.inputs else before[found.fed_back[i]] for i in range(count)]
        before = list(model.run(given))
        for i, want in run.outputs.items():
            got = before[i]
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            if want.dtype.kind == "f":
                most, share = CANCELLING.get((name, i, backend), (TOLERANCE, 0.0))
                assert excess(got, want) <= most and beyond(got, want, TOLERANCE) <= share, n
            else:
                assert steps(got, want) == (0, 0), n


@pytest.mark.parametrize("name", [m for m in MODELS if m in REFUSED])
def test_a_model_that_cannot_be_decoded_is_refused_by_name(name: str) -> None:
    assert SHARED is not None
    with pytest.raises(NnxError, match=REFUSED[name]):
        convert(SHARED / "zoo" / name / "model.tflite")
