"""Transforms of signals against NumPy's, whatever is constant, fed or of an open size."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import WAYS, Node, built, check, n

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, Unsupported

F = np.float32
RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(2, 6, 3, 1)).astype(F)
COMPLEX = RNG.normal(size=(2, 6, 3, 2)).astype(F)
SIGNAL = RNG.normal(size=(2, 20)).astype(F)
WINDOW = np.hanning(8).astype(F)


def number(value: Any, kind: Any = np.int64) -> np.ndarray:
    return np.array(value, kind)


def apart(x: np.ndarray, kind: Any = F) -> np.ndarray:
    """Complex numbers as two along a last axis."""
    return np.stack([x.real, x.imag], -1).astype(kind)


def joined(x: np.ndarray) -> np.ndarray:
    """Undoes `apart`."""
    return x[..., 0] + 1j * x[..., 1]


def short(x: np.ndarray, size: int, step: int, window: np.ndarray | None, half: bool = True) -> np.ndarray:
    """The transform of each frame."""
    count = (x.shape[1] - size) // step + 1
    frames = np.stack([x[:, i * step:i * step + size] for i in range(count)], 1) * (1 if window is None else window)
    return apart((np.fft.rfft if half else np.fft.fft)(frames))


HALF = np.fft.rfft(REAL[..., 0], axis=1)
CASES: list[Node] = [
    n("DFT", REAL, opset=17, want=[apart(np.fft.fft(REAL[..., 0], axis=1))]),
    n("DFT", REAL, opset=17, axis=2, onesided=1, want=[apart(np.fft.rfft(REAL[..., 0], axis=2))]),
    n("DFT", COMPLEX, number(4), opset=19, axis=1, want=[apart(np.fft.fft(joined(COMPLEX), 4, 1))]),
    n("DFT", COMPLEX, number(9), opset=17, inverse=1, axis=-2, want=[apart(np.fft.ifft(joined(COMPLEX), 9, 2))]),
    n("DFT", REAL, want=[apart(np.fft.fft(REAL[..., 0], axis=2))]),
    n("DFT", REAL, None, number(1), onesided=1, want=[apart(HALF)]),
    n("DFT", REAL, number(8), number(-3), want=[apart(np.fft.fft(REAL[..., 0], 8, 1))]),
    n("DFT", apart(HALF), number(6), number(1), onesided=1, inverse=1, want=[REAL], fixed=[1, 2]),
    n("DFT", COMPLEX.astype(np.float64), None, number(1), inverse=1,
      want=[apart(np.fft.ifft(joined(COMPLEX.astype(np.float64)), axis=1), np.float64)]),
    n("STFT", SIGNAL[..., None], number(3), None, number(8), opset=17, want=[short(SIGNAL, 8, 3, None)]),
    n("STFT", SIGNAL[..., None], number(4), WINDOW, number(8), opset=17, want=[short(SIGNAL, 8, 4, WINDOW)]),
    n("STFT", SIGNAL[..., None], number(4), WINDOW, opset=17, onesided=0, want=[short(SIGNAL, 8, 4, WINDOW, False)]),
    n("STFT", SIGNAL, number(5), WINDOW, opset=17, want=[short(SIGNAL, 8, 5, WINDOW)])]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_signal_is_transformed(case: Node, way: str) -> None:
    if case.op == "STFT" and way == "open" and case.inputs[2] is not None:
        case = Node(**{**vars(case), "fixed": [i for i in range(1, len(case.inputs)) if case.inputs[i] is not None]})
    if case.op == "DFT" and way == "fed" and len(case.inputs) > 1:
        way = "fixed"                            # a run's length and axis leave all sizes open
    check(case, way, rtol=1e-4)


def test_length_and_axis_of_a_run() -> None:
    made, fed = built(n("DFT", REAL, number(8), number(1), want=[apart(np.fft.fft(REAL[..., 0], 8, 1))]), "fed")
    (found,) = nnx_convert.compile(made.SerializeToString()).run(list(fed.values()))
    np.testing.assert_allclose(found, apart(np.fft.fft(REAL[..., 0], 8, 1)), rtol=1e-4, atol=1e-6)


def cosines(size: int, periodic: bool, *factors: float) -> np.ndarray:
    """A window of cosines."""
    at = np.arange(size) / (size if periodic else size - 1)
    return sum(f * np.cos(2 * np.pi * i * at) for i, f in enumerate(factors)).astype(F)    # type: ignore[union-attr]


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize(("op", "factors"), [
    ("HannWindow", (0.5, -0.5)), ("HammingWindow", (25 / 46, -21 / 46)), ("BlackmanWindow", (0.42, -0.5, 0.08))])
def test_windows(op: str, factors: tuple[float, ...], periodic: int) -> None:
    case = n(op, number(9), periodic=periodic, opset=17, want=[cosines(9, bool(periodic), *factors)], fixed=[0])
    check(case, "fixed", rtol=1e-4)
    check(case, "fed", rtol=1e-4)


def triangles(bins: int, length: int, rate: int, low: float, high: float) -> np.ndarray:
    """ONNX's reference, loop by loop."""
    mel = [2595 * np.log10(1 + f / 700) for f in (low, high)]
    points = [700 * (10 ** ((mel[0] + i * (mel[1] - mel[0]) / (bins + 2)) / 2595) - 1) for i in range(bins + 2)]
    edge = [int((length + 1) * p // rate) for p in points]
    found = np.zeros((length // 2 + 1, bins), F)
    for i in range(bins):
        left, centre, right = edge[i:i + 3]
        if centre == left:
            found[centre, i] = 1
        for j in range(left, centre + 1):
            found[j, i] = 1 if centre == left else (j - left) / (centre - left)
        for j in range(centre, right):
            found[j, i] = (right - j) / (right - centre)
    return found


@pytest.mark.parametrize("way", ["fed", "fixed"])
@pytest.mark.parametrize(("bins", "length", "rate", "low", "high"), [
    (8, 16, 8192, 0.0, 4096.0), (20, 64, 16000, 100.0, 7000.0), (3, 200, 8000, 300.0, 3400.0)])
def test_mel_weights(bins: int, length: int, rate: int, low: float, high: float, way: str) -> None:
    inputs = [number(v) for v in (bins, length, rate)] + [number(v, F) for v in (low, high)]
    check(n("MelWeightMatrix", *inputs, opset=17, want=[triangles(bins, length, rate, low, high)], fixed=range(5)), way)


def test_mel_weights_as_doubles() -> None:
    inputs = [number(8), number(16), number(8192), number(0, F), number(4096, F)]
    made, _ = built(n("MelWeightMatrix", *inputs, opset=17, output_datatype=11, fixed=range(5), want=[
        triangles(8, 16, 8192, 0, 4096).astype(np.float64)]), "fixed")
    assert nnx_convert.compile(made.SerializeToString()).run([])[0].dtype == np.float64


BROKEN: dict[str, tuple[Node, type[NnxError]]] = {
    "no numbers": (n("DFT", REAL.repeat(3, -1), want=[REAL]), FormatError),
    "the numbers' axis": (n("DFT", REAL, None, number(-1), want=[REAL]), FormatError),
    "an axis beyond": (n("DFT", REAL, None, number(7), want=[REAL]), FormatError),
    "an attribute beyond": (n("DFT", REAL, opset=17, axis=-9, want=[REAL]), FormatError),
    "no length": (n("DFT", REAL, number(0), want=[REAL]), NnxError),
    "a length below": (n("DFT", REAL, number(-4), want=[REAL]), NnxError),
    "a length far off": (n("DFT", REAL, number(1 << 60), want=[REAL]), NnxError),
    "no step": (n("STFT", SIGNAL, number(0), WINDOW, opset=17, want=[SIGNAL]), NnxError),
    "a step back": (n("STFT", SIGNAL, number(-1), WINDOW, opset=17, want=[SIGNAL]), NnxError),
    "no frame": (n("STFT", SIGNAL, number(1), opset=17, want=[SIGNAL]), FormatError),
    "a long frame": (n("STFT", SIGNAL, number(1), None, number(21), opset=17, want=[SIGNAL]), NnxError),
    "two sizes": (n("STFT", SIGNAL, number(1), WINDOW, number(6), opset=17, want=[SIGNAL]), FormatError),
    "no bins": (n("MelWeightMatrix", *map(number, (0, 4, 8)), *(number(v, F) for v in (0, 1)), opset=17, want=[SIGNAL],
                  fixed=range(5)), NnxError),
    "no rate": (n("MelWeightMatrix", *map(number, (2, 4, 0)), *(number(v, F) for v in (0, 1)), opset=17, want=[SIGNAL],
                  fixed=range(5)), NnxError),
    "many bins": (n("MelWeightMatrix", *map(number, (1 << 40, 1 << 30, 8)), *(number(v, F) for v in (0, 1)), opset=17,
                    want=[SIGNAL], fixed=range(5)), NnxError)}


@pytest.mark.parametrize("way", ["fed", "fixed"])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_transform_is_refused(name: str, way: str) -> None:
    case, kind = BROKEN[name]
    made, fed = built(case, way)
    with pytest.raises(NnxError if way == "fed" else kind, match=case.op):
        nnx_convert.compile(made.SerializeToString()).run(list(fed.values()))


def test_a_window_of_an_open_size_needs_a_length() -> None:
    made, _ = built(n("STFT", SIGNAL, number(1), WINDOW, opset=17, want=[SIGNAL], fixed=[1]), "open")
    with pytest.raises(Unsupported, match="open size"):
        nnx_convert.compile(made.SerializeToString())
