"""Every tensor of the real models: integers are those of the reference kernels, byte for byte; floats are close."""
from __future__ import annotations

import pytest
from ref_tensors import compared, named

#: The tensors that are compared: all that are recorded, but for weights (DENSIFY) and an output that is INT32 inside.
COMPARED = {
    "ad01_dynrange": 10, "ad01_fp32": 10, "blazeface_short_range_fp16": 164, "deeplabv3_mnv2_dm05_uint8": 71,
    "dtln_lstm_int8": 4, "face_detection_full_range_sparse": 342, "face_landmark_fp16": 210,
    "hand_landmark_lite_fp16": 167, "hand_recrop_fp32": 63, "hello_world_fp32": 3, "keyword_svdf_int16_int8": 15,
    "kws_dscnn_int8": 13, "lstm_ssd_traffic_uint8_postprocess": 206, "micro_speech_int8": 4, "mnist_lstm_fp32": 4,
    "mobilenet_v1_0.25_128_uint8": 31, "mobilenet_v2_1.0_224_int8_perchannel": 68, "movenet_lightning_int8": 159,
    "palm_detection_lite_fp16": 232, "pose_landmark_lite_fp16": 305, "qwen_fc_int4_blockwise": 1,
    "resnet8_cifar_fp32": 16, "resnet8_cifar_int8": 16, "streaming_wakeword_int8": 11, "torchaudio_conformer_fp32": 138,
    "vww_96_int8": 31, "yamnet_rfft_hybrid": 44}
#: Models whose recording is wrong: the reference kernels give zeros for weights by blocks.
FAULTY = {"qwen_fc_int4_blockwise": ["op 0 FULLY_CONNECTED: min "]}


@pytest.mark.parametrize("name", named())
def test_every_tensor_is_the_reference_s(name: str) -> None:
    count, wrong = compared(name)
    assert count == COMPARED[name]
    assert len(wrong) == len(FAULTY.get(name, ()))
    assert all(w.startswith(says) for w, says in zip(wrong, FAULTY.get(name, ()), strict=True)), wrong
