"""Native code for aarch64, linked by a cross compiler and run by an emulator, against NumPy."""
from __future__ import annotations

from pathlib import Path

import pytest
from emulated import Emulated
from full import FULL
from placed import Case, Placed, cases, of_file, rows, wrong
from recorded import files, one
from shared import SHARED

from nnx_convert.runtime.codegen.machine import AARCH64, DOTPROD, Machine

MACHINES = {"neon": Machine("aarch64-unknown-linux-gnu", AARCH64),
            "dotprod": Machine("aarch64-unknown-linux-gnu", AARCH64 | DOTPROD)}
#: Cases of each family, and of so many of the table's rows one.
EACH, STEP = (8, 2) if FULL else (2, 24)
MODELS = Path(__file__).resolve().parents[3] / "models"
#: Whole models: the package's own, and of the external suite where it is there.
OWN = ("digits_cnn.tflite", "digits_cnn_int8.tflite", "digits_sparse.tflite")
ZOO = ("mobilenet_v2_1.0_224_int8_perchannel", "vww_96_int8", "hand_recrop_fp32", "micro_kws_fp32",
       "face_landmark_fp16", "movenet_lightning_int8", "silero_vad_16k_sequence_lstm") if SHARED else ()


def faults(found: list[Case], machine: Machine, folder: Path, *, at_end: bool) -> list[str]:
    """What is wrong with the outputs of cases."""
    programs = [Placed(case, machine, 1 + n % 2) for n, case in enumerate(found)]
    assert any(p.tasks for p in programs)
    with Emulated(programs, machine, folder).started(at_end=at_end) as outputs:
        said = [(case.name, wrong(got, case.wanted())) for case, got in zip(found, outputs, strict=True)]
    return [f"{name}: {why}" for name, why in said if why]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("at_end", [True, False])
def test_every_family_gives_what_numpy_gives(machine: str, at_end: bool, tmp_path: Path) -> None:
    found = [*cases(EACH, int(at_end)), *rows(MACHINES[machine], int(at_end), STEP)]
    assert not faults(found, MACHINES[machine], tmp_path, at_end=at_end)


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_models_give_what_numpy_gives(machine: str, tmp_path: Path) -> None:
    found = [of_file(MODELS / name) for name in OWN]
    for name in ZOO:
        path, arrays = files(name)
        found.append(of_file(path, list(one(arrays, "").inputs.values())))
    assert not faults(found, MACHINES[machine], tmp_path, at_end=True)
