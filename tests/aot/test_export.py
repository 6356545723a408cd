"""`--emit object:DIR`: what it writes, built for this machine and for another one, gives what a run gives."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builds import ARM, BUILDS, MISSING, NATIVE, STRICT, Build
from onnx import TensorProto, helper
from recurrent_cases import lstm, whole_lstm
from sample_files import two_entries
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert import aot
from nnx_convert.cli import options
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.runtime.codegen.loader import Image

MODELS = Path(__file__).parents[2] / "models"
natively = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing")
#: Machines of each architecture with what all of its processors have.
FIRST = NATIVE[0], ARM[0]
HOSTILE = 'a "b"\n#error */ \\ ??/ $(x) ü'


def casts() -> bytes:
    """What is cast to each type that C has a name for."""
    w, outs = TFLiteWriter(), []
    x = w.tensor("x", "float32", (2, 3))
    for kind in ("float16", "int8", "uint8", "int16", "int32", "bool"):
        outs.append(w.tensor(kind, kind, (2, 3)))
        w.op("CAST", [x], outs[-1:], "CastOptions", {"InDataType": 0})
    return w.finish([x], outs)


def table(name: str = "rows", height: int = 10) -> bytes:
    """The rows of a table by their numbers: 3 to 5 are in row 1."""
    w = TFLiteWriter()
    rows, y = w.tensor(name, "int32", (2,)), w.tensor("y", "float32", (2, 3))
    data = w.tensor("data", "float32", (height, 3), np.arange(height * 3, dtype=np.float32).reshape(height, 3))
    w.op("GATHER", [data, rows], [y], "GatherOptions", {"Axis": 0})
    return w.finish([rows], [y])


#: Models by the names of their files: what makes them, and runs times outputs.
CASES: dict[str, tuple[Callable[[], bytes], int]] = {
    **{name: ((MODELS / name).read_bytes, 1) for name in (
        "digits_cnn.tflite", "digits_cnn_int8.tflite", "digits_sparse.tflite")},
    "lstm.tflite": (lambda: whole_lstm(0), 3), "floats.tflite": (lambda: lstm(1), 3),
    "casts.tflite": (casts, 6), "table.tflite": (table, 1), "row.tflite": (lambda: table(height=1), 1)}
#: Those for which further features of a machine's processors are other code.
FURTHER = ("digits_cnn_int8.tflite", "lstm.tflite")


def emitted(folder: Path, name: str, data: bytes, build: Build, into: str = "out") -> Path:
    source = folder / name
    source.write_bytes(data)
    place = folder / into
    assert ended([str(source), "-o", str(folder / "m.nnx"), "--quiet", "--emit", f"object:{place}",
                  *build.options]) == ExitCode.GOOD
    return place


@pytest.mark.parametrize(("build", "name"), [
    pytest.param(b, name, id=f"{b.triple}-{b.features}-{name}") for b in BUILDS
    for name in (CASES if b in FIRST else FURTHER)])
def test_the_example_gives_what_a_run_gives(build: Build, name: str, tmp_path: Path) -> None:
    make, lines = CASES[name]
    place = emitted(tmp_path, name, make(), build)
    code, said = build.run(build.program(place, place / "main.c"))
    assert code == 0 and said.count("largest difference") == said.count("\n") == lines, said


@natively
@pytest.mark.parametrize("name", ["digits_cnn.tflite", "floats.tflite"])
def test_it_gives_what_native_code_gives_here_to_the_bit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                         ) -> None:
    monkeypatch.setenv("NNX_BACKEND", "native")
    place = emitted(tmp_path, name, CASES[name][0](), NATIVE[1])
    code, said = NATIVE[1].run(NATIVE[1].program(place, place / "main.c"))
    assert code == 0 and said.count("largest difference 0,") == CASES[name][1], said


@natively
def test_a_file_that_is_converted_and_an_entry_point_of_one_are_exported(tmp_path: Path) -> None:
    source = tmp_path / "early.nnx"
    nnx_convert.convert(MODELS / "digits_cnn_int8.tflite", nnx_convert.Target(27)).save(source)
    (tmp_path / "entries.tflite").write_bytes(two_entries())
    for words, row in ((["early.nnx"], '"image", NNX_UINT8, 4'),
                       (["entries.tflite", "--signature", "negate", "--shape", "p=3,2"], '"p", NNX_FLOAT32, 2, {3, 2')):
        out = tmp_path / words[0].partition(".")[0]
        assert ended([str(tmp_path / words[0]), *words[1:], "-o", str(tmp_path / "m.nnx"), "--quiet",
                      "--emit", f"object:{out}"]) == ExitCode.GOOD
        assert row in next(out.glob("*.h")).read_text()
        assert NATIVE[0].run(NATIVE[0].program(out, out / "main.c"))[0] == 0


@natively
def test_golden_arrays_are_those_of_a_run_and_other_ones_are_told(tmp_path: Path) -> None:
    build = NATIVE[0]
    place = emitted(tmp_path, "digits.tflite", (MODELS / "digits_cnn_int8.tflite").read_bytes(), build)
    data = (place / "golden.bin").read_bytes()
    x = np.frombuffer(data[:64], np.int8).reshape(1, 8, 8, 1)
    y, = nnx_convert.compile(tmp_path / "digits.tflite").run([x])
    assert data[64:64 + y.nbytes] == y.tobytes() and len(data) == 128
    (place / "golden.bin").write_bytes(data[:64] + bytes([data[64] ^ 1]) + data[65:])
    code, said = build.run(build.program(place, place / "main.c"))
    assert code == 1 and "largest difference 1, allowed 0" in said


@natively
@pytest.mark.parametrize("from_file", ["OFF", "ON"])
def test_cmake_builds_it_as_the_readme_says(from_file: str, tmp_path: Path) -> None:
    place = emitted(tmp_path, "digits.tflite", (MODELS / "digits_cnn.tflite").read_bytes(), NATIVE[0], "a folder")
    for words in (["cmake", "-B", "build", f"-DNNX_WEIGHTS_FROM_FILE={from_file}"], ["cmake", "--build", "build"],
                  ["ctest", "--test-dir", "build"]):
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    text = (place / "README.md").read_text()
    assert all(line in text for line in ("cmake -B build", "cmake --build build", "ctest --test-dir build"))


@pytest.mark.parametrize("build", [b for b in BUILDS if b in FIRST], ids=lambda b: b.triple)
def test_an_app_has_several_models_and_learns_of_faults(build: Build, tmp_path: Path) -> None:
    for name in ("lstm.tflite", "table.tflite"):
        place = emitted(tmp_path, name, CASES[name][0](), build)
    (place / "golden.S").unlink()
    code, said = build.run(build.program(place, Path(__file__).with_name("app.c")))
    assert code == 0 and "row 3: 9 10 11\n" in said and "row 0: 0 1 2\n" in said, said
    assert said.count("a value is not in [0, 10)") == 2
    assert "the same after init: 1; kept in between: 1; apart: 1" in said


@pytest.mark.parametrize("name", ["digits_sparse.tflite", "floats.tflite"])
@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "aarch64-linux-gnu", "aarch64-linux-android"])
def test_code_asks_for_no_more_than_bytes_to_be_moved(name: str, triple: str, tmp_path: Path) -> None:
    place = emitted(tmp_path, name, CASES[name][0](), Build(triple, "baseline"))
    stem = name.partition(".")[0]
    image = Image((place / f"nnx_{stem}.o").read_bytes())
    assert {n for n, _, section, _ in image.symbols if n and not section} <= {"memcpy", "memset", "memmove"}
    shared = {n for n, shared, section, _ in image.symbols if shared and section}
    assert shared == {f"nnx_{stem}_{part}" for part in ("init", "run", "segment")}


@natively
def test_no_name_is_code(tmp_path: Path) -> None:
    place = emitted(tmp_path, "a;rm -rf $HOME `x` \\ \"q\".tflite", table(HOSTILE), NATIVE[0])
    (place / "app.cpp").write_text('#include "nnx_a_rm_rf_home_x_q.h"\n#include <cstdio>\n'
                                   'int main() { std::puts(nnx_a_rm_rf_home_x_q_inputs[0].name); }\n')
    subprocess.run(["g++", *STRICT[1:], "-o", "app", "app.cpp"], cwd=place, check=True)
    said = subprocess.run([place / "app"], capture_output=True, check=True).stdout
    assert said.decode() == f"{HOSTILE}\n"
    assert NATIVE[0].run(NATIVE[0].program(place, place / "main.c"))[0] == 0


def test_what_only_numpy_does_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (2, 3, 3)), ("y", (2,))))
    graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"], name="d")], "g", [x], [y])
    path = tmp_path / "det.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    code = ended([str(path), "-o", str(tmp_path / "m.nnx"), "--quiet", "--emit", f"object:{tmp_path / 'out'}"])
    said = capsys.readouterr().err
    assert code == ExitCode.UNSUPPORTED and not (tmp_path / "out").exists()
    assert said.startswith("NNX302 det.onnx: ") and "DET" in said.upper() and "bench --per-op" in said


def test_the_command_has_the_machines_that_there_are() -> None:
    assert (options.TRIPLES, options.FEATURES) == (aot.TRIPLES, aot.FEATURES)


@pytest.mark.parametrize(("words", "said"), [
    (["--triple", "aarch64-linux-gnu"], "give --emit object:DIR"),
    (["--cpu-features", "avx2"], "give --emit object:DIR"),
    (["--emit", "object:OUT", "--triple", "x86_64-linux-gnu", "--cpu-features", "neon"], "baseline, avx2, avx512"),
    (["--emit", "object:OUT", "--triple", "aarch64-linux-gnu", "--cpu-features", "avx2"], "baseline, neon, dotprod"),
    (["--emit", "object:m.tflite/x"], "m.tflite/x: cannot be a folder")])
def test_what_makes_no_sense_is_said(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(table())
    assert ended(["m.tflite", "--quiet", *words]) == ExitCode.USAGE
    assert said in capsys.readouterr().err and not Path("OUT").exists()
