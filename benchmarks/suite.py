"""The models that are measured, and the bounds: data only, so that NumPy is not loaded yet when this is read."""
from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_GIVEN = Path(os.environ.get("NNX_SHARED") or ROOT.parent / "shared")
ZOO: Path | None = _GIVEN / "zoo" if (_GIVEN / "zoo").is_dir() else None

#: What the page of timings is.
REPORT = ROOT / "docs" / "performance.md"
#: By what a model computes with: the geometric mean of ours in parts of the faster of LiteRT and ONNX Runtime, and
#: of the fastest of these and OpenVINO, at most.
MEANS = {"float": (0.75, 0.85), "int8": (0.50, 0.60)}
#: What a single model may take in parts of LiteRT's or ONNX Runtime's time. Where that is so many seconds, a call is
#: measured: so many more it may take.
WORST, TINY, BEYOND = 1.0, 30e-6, 10e-6
#: The product that `benchmarks.sparse` makes.
PRODUCT = "product of 4 MB, blocks 1 x 4"
#: What models with sparse weights, and a product, may take in parts of the time with dense ones, and of XNNPACK's.
SPARSE: dict[str, tuple[float, float | None]] = {
    "face_detection_full_range_sparse": (0.85, 0.65), PRODUCT: (0.40, None)}
#: Models whose memory is bounded: all that the first release promises to run.
MEMORY = ("hello_world_fp32", "mobilenet_v2_1.0_224_int8_perchannel", "face_landmark_fp16", "hand_landmark_lite_fp16",
          "palm_detection_lite_fp16", "pose_landmark_lite_fp16", "blazeface_short_range_fp16",
          "face_detection_full_range_sparse", "mobilenet_v1_0.25_128_uint8", "resnet8_cifar_fp32",
          "resnet8_cifar_int8", "kws_dscnn_int8", "vww_96_int8", "micro_speech_int8", "person_detect_int8")
#: A run may take its weights, so many arenas and so many bytes.
ARENAS, SPARE = 2, 60 << 20
#: Seconds to compile a model and run it, nothing being in the cache; and those of models that have a bound of their
#: own.
COLDEST, COLD = 2.0, {"mobilenet_v2_1.0_224_int8_perchannel": 0.6}
#: Seconds from the shell.
HELP = 0.25
CONVERT = {"mobilenet_v2_1.0_224_int8_perchannel": 0.6, "magika_v3_3": 1.0, "yolox_nano": 2.0, "ppocrv4_det": 2.0,
           "silero_vad_v6_if": 2.0}


def small() -> dict[str, Path]:
    """The models that come with the package."""
    return {p.stem: p for p in sorted((ROOT / "models").glob("*.tflite"))} | {
        f"{p.stem} (ONNX)": p for p in sorted((ROOT / "models").glob("*.onnx"))}


def found(names: tuple[str, ...], wanted: tuple[str, ...] = ()) -> dict[str, Path]:
    """Files by model name: the package's own, and these of the external suite; of `wanted` only, if any are.

    Raises `KeyError` naming a wanted model that is not there.
    """
    zoo = {n: p for n in names for p in sorted((ZOO / n).glob("model.*"))} if ZOO else {}
    files = small() | zoo
    return {n: files[n] for n in wanted} if wanted else files


def golden(wanted: tuple[str, ...]) -> dict[str, Path]:
    """The models of the external suite that have recorded outputs; the package's own where it is not there.

    Of `wanted` only, if any are, the package's own among them. Raises `KeyError` naming one that is not there.
    """
    zoo = {p.parent.name: next(p.parent.glob("model.*")) for p in sorted(ZOO.glob("*/golden.npz"))} if ZOO else {}
    files = small() | zoo
    return {n: files[n] for n in wanted} if wanted else zoo or small()


def absent() -> str:
    """One line about the external suite where it is not there."""
    return "" if ZOO else "external models: absent ($NNX_SHARED); the package's own only"


def verdict(value: float, bound: float | None) -> str:
    """A bound and whether it is kept, for the last column."""
    return "" if bound is None else f"{'pass' if value <= bound else 'FAIL'} (bound {bound:g})"
