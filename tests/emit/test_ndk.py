"""`--emit ndk:DIR`: it compiles without a warning, records as the model it was made from, and gives the goldens."""
from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cxx import MISSING, STRICT, compiled, linked, ran, recorder
from device_models import MADE, extended
from sample_models import SAMPLES, finished

import nnx_convert as nnx
from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op
from nnx_convert.cli.entry import ended
from nnx_convert.emit.ndk import for_device
from nnx_convert.record import read_record

MODELS = Path(__file__).resolve().parents[2] / "models"
FILES = ("digits_cnn.tflite", "digits_cnn.onnx", "digits_cnn_int8.tflite", "digits_sparse.tflite")
#: What is the same for every model.
STATIC = ("nnapi", "network", "main")
#: A recorder's command that does nothing: what the run before left counts.
AGAIN = {"NNX_RECORD_RUN": "true"}
needs_cxx = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing")


@dataclass(frozen=True)
class Built:
    """What is compiled once: the recorder for each level, and what all emitted programs share."""

    recorders: dict[int, Path]
    objects: list[Path]

    def program(self, folder: Path) -> Path:
        """The `check` of an emitted folder."""
        return linked(self.objects, folder / "model.cpp", folder, folder / "check")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    at = tmp_path_factory.mktemp("built")
    assert ended(["record-lib", str(at / "lib")]) == 0
    emit(MODELS / FILES[0], at)
    objects = [at / f"{name}.o" for name in STATIC]
    with ThreadPoolExecutor(2) as pool:
        libraries = pool.submit(recorder, at / "lib", at)
        for done in [pool.submit(compiled, "-c", at / "ndk" / f"{o.stem}.cpp", "-o", o) for o in objects]:
            done.result()
        return Built(libraries.result(), objects)


def emit(source: Path, at: Path, *words: str) -> Path:
    """The folder that is emitted for a file."""
    assert ended([str(source), "-o", str(at / "model.nnx"), "--emit", f"ndk:{at / 'ndk'}", "--quiet", *words]) == 0
    return at / "ndk"


def saved(model: Model, at: Path) -> Path:
    model.save(at / "made.nnx")
    return at / "made.nnx"


def operands(model: Model) -> Iterator[object]:
    """Everything of the operands but their constants; subgraphs as models are compared."""
    for o in model.operands:
        yield o.type, o.dims, o.quant, o.lifetime
        if isinstance(o.value, Model):
            yield [*told(o.value)]
        elif o.value is not None:
            yield str(o.value.dtype), o.value.shape, o.value.tobytes()


def told(model: Model) -> Iterator[object]:
    """Everything that a device is told of a model."""
    yield from operands(model)
    yield [(o.op.code, o.inputs, o.outputs) for o in model.operations]
    yield model.inputs, model.outputs, model.relaxed


def arrays(model: Model, indices: tuple[int, ...], files: Path, kind: str) -> list[np.ndarray]:
    return [np.fromfile(files / f"{kind}{n}.bin", model.operands[i].type.dtype).reshape(model.operands[i].dims)
            for n, i in enumerate(indices)]


def proven(folder: Path, built: Built) -> None:
    """The record is the model, operand by operand, and gives the goldens, in the program and in the oracle.

    The library has no more calls than the model's level has.
    """
    want = for_device(nnx.load(folder.parent / "model.nnx"))
    done = ran(built.program(folder), folder, built.recorders[min(want.level, 31)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("largest difference 0" in line for line in done.stdout.splitlines()) and done.stdout
    got = read_record(folder / "record" / "0")
    assert [*told(got)] == [*told(want)] and len(done.stdout.splitlines()) == len(want.outputs)
    outputs = nnx.compile(got, backend="numpy").run(arrays(got, got.inputs, folder / "golden", "in"))
    for n, found in enumerate(outputs):
        assert found.tobytes() == (folder / "golden" / f"out{n}.bin").read_bytes()


@needs_cxx
@pytest.mark.parametrize(("name", "words"), [(f, ()) for f in FILES] + [(FILES[2], ("--target", "29"))])
def test_a_source_file(name: str, words: tuple[str, ...], built: Built, tmp_path: Path) -> None:
    proven(emit(MODELS / name, tmp_path, *words), built)


@needs_cxx
@pytest.mark.parametrize("name", MADE)
def test_a_model(name: str, built: Built, tmp_path: Path) -> None:
    proven(emit(saved(MADE[name](), tmp_path), tmp_path), built)


@needs_cxx
def test_an_older_device_is_told_apart(built: Built, tmp_path: Path) -> None:
    folder = emit(saved(MADE["loop"](), tmp_path), tmp_path)
    done = ran(built.program(folder), folder, built.recorders[31], NNX_RECORD_LEVEL="29")
    assert (done.returncode, done.stdout) == (2, "") and "takes feature level 30" in done.stderr


@needs_cxx
@pytest.mark.parametrize(("level", "name", "call"), [
    (27, "relaxed", "relaxComputationFloat32toFloat16"), (28, "per_channel", "SymmPerChannelQuantParams"),
    (29, "loop", "setOperandValueFromModel")])
def test_a_call_that_a_level_has_not_is_named(level: int, name: str, call: str, built: Built, tmp_path: Path) -> None:
    folder = emit(saved(MADE[name](), tmp_path), tmp_path)
    done = ran(built.program(folder), folder, built.recorders[level])
    assert done.returncode == 2 and call in done.stderr


@needs_cxx
def test_what_is_wrong_is_told(built: Built, tmp_path: Path) -> None:
    folder, library = emit(MODELS / FILES[0], tmp_path), built.recorders[31]
    program, weights = built.program(folder), (folder / "weights.bin").read_bytes()

    def code(*words: str, **more: str) -> tuple[int, str]:
        done = ran(program, folder, library, *words, **AGAIN | more)
        return done.returncode, done.stdout + done.stderr
    assert ran(program, folder, library, "--device", "nnx-recorder", "--rtol", "0").returncode == 0
    assert code("--list") == (0, "nnx-recorder\n")
    for words, said in ((("--device", "no"), "no device"), (("--what",), "--what"), (("--rtol", "x"), "x is no"),
                        (("--rtol",), "takes a value"), (("nowhere",), "nowhere/weights.bin")):
        found = code(*words)
        assert found[0] == 2 and said in found[1], words
    assert code(NNX_NNAPI="none.so")[0] == code(NNX_RECORD_RUN="false")[0] == 2
    golden = np.fromfile(folder / "golden" / "out0.bin", np.float32)
    for wrong in (golden[3] + 1e-2, np.nan, -np.inf):
        np.where(np.arange(golden.size) == 3, np.float32(wrong), golden).tofile(folder / "golden" / "out0.bin")
        assert code()[0] == 1 and "TOO FAR" in code()[1]
    (folder / "weights.bin").write_bytes(weights[:-1])
    assert code()[0] == 2


@needs_cxx
def test_steps_of_a_grid(built: Built, tmp_path: Path) -> None:
    folder = emit(MODELS / FILES[2], tmp_path)
    program, path = built.program(folder), folder / "golden" / "out0.bin"
    golden = np.fromfile(path, np.int8)
    (golden ^ np.int8(1)).tofile(path)
    library = built.recorders[31]
    found = [ran(program, folder, library), ran(program, folder, library, "--steps", "0", **AGAIN)]
    assert [f.returncode for f in found] == [0, 1] and "largest difference 1 steps" in found[0].stdout


@needs_cxx
def test_names_do_no_harm(built: Built, tmp_path: Path) -> None:
    source = tmp_path / 'a"b\\\n*/ @PORTS@ ??/ }$(x) é.nnx'.replace("/", "_")
    MADE["per_channel"]().save(source)
    proven(emit(source, tmp_path), built)


@needs_cxx
def test_it_builds_as_its_page_says(built: Built, tmp_path: Path) -> None:
    folder = emit(saved(MADE["relaxed"](), tmp_path), tmp_path)
    for words in (["cmake", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], ["cmake", "--build", "build"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert ran(folder / "build" / "check", folder, built.recorders[28]).returncode == 0


@needs_cxx
def test_the_header_is_c_as_well(tmp_path: Path) -> None:
    folder = emit(MODELS / FILES[0], tmp_path)
    done = subprocess.run(["g++", "-x", "c", "-std=c11", *STRICT[2:], "-fsyntax-only", folder / "NeuralNetworks.h"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def unread() -> Model:
    """An input of a type that NNAPI has not, which nothing reads."""
    b = ModelBuilder()
    x, more, y = b.add_operand(T.TENSOR_FLOAT32, (2,)), b.add_operand(T.TENSOR_INT64, (2,)), b.add_operand(
        T.TENSOR_FLOAT32, (2,))
    b.add_operation(Op.RELU, [x], [y])
    return finished(b, [x, more], [y])


@pytest.mark.parametrize(("model", "code", "said"), [
    (SAMPLES["host"], 4, "no device runs COS"), (unread, 4, "TENSOR_INT64"), (SAMPLES["sparse"], 5, "sizes")])
def test_what_no_device_takes_is_refused(model: Model, code: int, said: str, tmp_path: Path,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    source = saved(model(), tmp_path)
    assert ended([str(source), "--emit", f"ndk:{tmp_path / 'ndk'}"]) == code
    assert said in capsys.readouterr().err and not (tmp_path / "ndk").exists()


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert ended([str(saved(extended(), tmp_path)), "--emit", f"ndk:{tmp_path / 'file' / 'ndk'}"]) == 2
    assert "cannot be a folder" in capsys.readouterr().err


def test_the_page_tells_what_a_device_needs(tmp_path: Path) -> None:
    text = (emit(saved(extended(), tmp_path), tmp_path) / "README.md").read_text()
    assert "feature level 27 and NNAPI-EX" in text and "adb push" in text and "golden/out3.bin" in text
    assert "DENSIFY" in (emit(MODELS / FILES[3], tmp_path) / "README.md").read_text() and "@" not in text
