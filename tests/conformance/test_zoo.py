"""The real models of the first slice give their recorded outputs: floats closely, integers bit for bit."""
from __future__ import annotations

import pytest
from zoo import CANCELLING, TOLERANCE, beyond, excess, golden, steps

import nnx_convert
from nnx_convert import CompiledModel, Target

FLOATS = ("hello_world_fp32", "blazeface_short_range_fp16", "face_landmark_fp16", "hand_landmark_lite_fp16",
          "palm_detection_lite_fp16", "pose_landmark_lite_fp16", "face_detection_full_range_sparse",
          "resnet8_cifar_fp32")
INTEGERS = ("mobilenet_v2_1.0_224_int8_perchannel", "mobilenet_v1_0.25_128_uint8", "micro_speech_int8",
            "resnet8_cifar_int8", "kws_dscnn_int8", "vww_96_int8", "person_detect_int8")


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("target", [Target(), Target(30, ex=False, experimental=False)], ids=str)
def test_a_real_model_gives_its_recorded_outputs(name: str, target: Target, backend: str) -> None:
    g = golden(name)
    found = CompiledModel(nnx_convert.convert(g.path, target)).run(g.inputs)
    assert g.outputs
    for i, want in g.outputs.items():
        assert (found[i].shape, found[i].dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "f":
            most, share = CANCELLING.get((name, i, backend), (TOLERANCE, 0.0))
            assert excess(found[i], want) <= most and beyond(found[i], want, TOLERANCE) <= share
        else:
            assert steps(found[i], want) == (0, 0)
