"""Native code for aarch64, linked by a cross compiler and run by an emulator, against NumPy."""
from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from cross import COMPILER, EMULATOR
from emulated import MAIN, Emulated
from full import FULL
from natively import ARM
from placed import Case, Placed, cases, of_file, rows, wrong
from recorded import files, one
from shared import SHARED

from nnx_convert.runtime.codegen.ir import Function, Module
from nnx_convert.runtime.codegen.loader import Loaded, field_of
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.objects import compiled

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


@pytest.mark.parametrize("machine", ARM)
@pytest.mark.parametrize("at_end", [True, False])
def test_every_family_gives_what_numpy_gives(machine: str, at_end: bool, tmp_path: Path) -> None:
    found = [*cases(EACH, int(at_end)), *rows(ARM[machine], int(at_end), STEP)]
    assert not faults(found, ARM[machine], tmp_path, at_end=at_end)


@pytest.mark.parametrize("machine", ARM)
def test_whole_models_give_what_numpy_gives(machine: str, tmp_path: Path) -> None:
    found = [of_file(MODELS / name) for name in OWN]
    for name in ZOO:
        path, arrays = files(name)
        found.append(of_file(path, list(one(arrays, "").inputs.values())))
    assert not faults(found, ARM[machine], tmp_path, at_end=True)


def chain(machine: Machine, count: int) -> list[bytes]:
    """Object files of one function each, which calls the next one with its argument times a constant, plus one."""
    found = list[bytes]()
    for n in range(count):
        m = Module(machine)
        f = Function(m, f"f{n}", (("i64", "%x"),), exported=True)
        given = f.splat("<4 x i32>", f.let("trunc i64 %x to i32"))
        scaled = f.let(f"mul <4 x i32> {given}, <i32 1, i32 2, i32 {n + 3}, i32 5>")
        value = f.let(f"sext i32 {f.let(f'extractelement <4 x i32> {scaled}, i64 %x')} to i64")
        if n + 1 < count:
            m.declare(f"declare i64 @f{n + 1}(i64)")
            value = f.let(f"call i64 @f{n + 1}(i64 {value})")
        f.finish(f"i64 {f.add(value, 1)}")
        found += compiled(m.text(), machine)
    return found


def test_the_loader_lays_out_what_the_machine_runs(tmp_path: Path) -> None:
    loaded = Loaded(chain(ARM["neon"], 3))
    code, program = tmp_path / "code", tmp_path / "run"
    code.write_bytes(ctypes.string_at(loaded._base, len(loaded._memory)))
    subprocess.run([COMPILER, "-static", "-o", str(program), str(MAIN.with_name("loaded.c"))], check=True)
    for name, x, want in (("f2", 2, 11), ("f1", 0, 2), ("f0", 0, 3), ("f1", 1, 12)):
        words = [EMULATOR, str(program), str(code), str(code.stat().st_size), str(loaded.address(name) - loaded._base)]
        done = subprocess.run([*words, str(x)], check=True, capture_output=True, text=True)
        assert int(done.stdout) == want, name


@pytest.mark.parametrize(("kind", "at", "to", "field"), [
    (283, 0x1000, 0x1010, 4), (283, 0x1010, 0x1000, (1 << 26) - 4), (275, 0x1FFC, 0x5008, 1 << 5),
    (275, 0x3000, 0x1000, 2 << 29 | ((1 << 19) - 1) << 5), (277, 0, 0x1234, 0x234 << 10), (299, 0, 0x2230, 0x23 << 10)])
def test_distances_as_instructions_hold_them(kind: int, at: int, to: int, field: int) -> None:
    assert field_of(kind, at, to) == field


def test_a_distance_that_no_instruction_holds_is_told() -> None:
    with pytest.raises(ValueError, match="of kind 999"):
        field_of(999, 0, 0)
