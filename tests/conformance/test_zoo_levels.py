"""Quantised models of the zoo give the same bits on targets that have no signed bytes."""
from __future__ import annotations

import pytest
from shared import SHARED
from zoo import golden, steps

import nnx_convert
from nnx_convert import CompiledModel, Target

#: Model -> how many operations level 29 without EX leaves to the host.
HOSTED = {"mobilenet_v2_1.0_224_int8_perchannel": 0, "deeplabv3_mnv2_dm05_uint8": 3, "resnet8_cifar_int8": 0,
          "kws_dscnn_int8": 0, "vww_96_int8": 0, "person_detect_int8": 0, "micro_speech_int8": 0,
          "mobilenet_v1_0.25_128_uint8": 0}
NAMES = list(HOSTED) if SHARED else []


@pytest.mark.parametrize("level", [27, 29])
@pytest.mark.parametrize("name", NAMES)
def test_a_lower_level_gives_the_recorded_bits(name: str, level: int) -> None:
    g = golden(name)
    model = nnx_convert.convert(g.path, Target(level, ex=False, experimental=False))
    if level == 29:
        assert sum(o.op.host for o in model.operations) == HOSTED[name]
    found = CompiledModel(model).run(g.inputs)
    assert g.outputs
    for i, want in g.outputs.items():
        assert (found[i].dtype, steps(found[i], want)) == (want.dtype, (0, 0))
