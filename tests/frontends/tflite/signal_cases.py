"""TFLite-Micro's audio operators, each as a model and a sequence of inputs; what its own runtime gave is recorded.

`python -m tests.frontends.tflite.signal_cases` records anew, where the package `tflite-micro` is installed.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from tflite_writer import TFLiteWriter

Array = np.ndarray[Any, Any]
GOLDENS = Path(__file__).with_name("signal_goldens.npz")
RNG = np.random.default_rng(3)
ARENA = 1 << 20
SHORT, WORD, LONG = np.int16, np.uint32, np.uint64


@dataclass(frozen=True, eq=False)
class Case:
    """An operator with its inputs, which have a step per index of the first axis; types and shapes of its outputs."""

    name: str
    op: str
    inputs: Sequence[Array]
    outputs: Sequence[tuple[str, tuple[int, ...]]]
    options: dict[str, Any]
    constants: Sequence[Array] = field(default_factory=list[Array])
    prefix: str = "Signal"

    def model(self, options: bytes | None = None) -> bytes:
        """The file, with other options where they are given."""
        w = TFLiteWriter()
        ins = [w.tensor(f"x{i}", x.dtype.name, x.shape[1:]) for i, x in enumerate(self.inputs)]
        fixed = [w.tensor(f"c{i}", c.dtype.name, c.shape, c) for i, c in enumerate(self.constants)]
        outs = [w.tensor(f"y{i}", dtype, shape) for i, (dtype, shape) in enumerate(self.outputs)]
        w.custom(self.prefix + self.op, ins + fixed, outs, packed(self.options) if options is None else options)
        return w.finish(ins, outs)


def packed(options: dict[str, Any]) -> bytes:
    """Options as a FlexBuffer map."""
    b = flexbuffers.Builder()
    with b.Map():
        for key, value in sorted(options.items()):
            b.Key(key)
            if isinstance(value, list):
                b.TypedVectorFromElements(value)
            else:
                {bool: b.Bool, int: b.Int, float: b.Float, str: b.String}[type(value)](value)
    found: bytes = bytes(b.Finish())
    return found


def drawn(dtype: Any, *shape: int, low: int | None = None, high: int | None = None) -> Array:
    """Whole numbers over all of a type, or from low to high."""
    info = np.iinfo(dtype)
    ends = info.min if low is None else low, info.max if high is None else high
    return RNG.integers(*ends, shape, dtype, endpoint=True)


def powers(dtype: Any, most: float, *shape: int) -> Array:
    """Numbers of all magnitudes."""
    return (2 ** RNG.uniform(0, most, shape)).astype(dtype)


def fourier(length: int) -> list[Case]:
    """Both transforms of a length, in all types."""
    half, real = drawn(SHORT, 2, length - 5), RNG.standard_normal((2, length + 2)).astype(np.float32)
    return [
        Case(f"rfft{length}", "Rfft", [half], [("int16", (length + 2,))], {"T": 7, "fft_length": length}),
        Case(f"rfft32_{length}", "Rfft", [drawn(np.int32, 2, length)], [("int32", (length + 2,))],
             {"T": 2, "fft_length": length}),
        Case(f"rfft_float{length}", "Rfft", [real[:, :length]], [("float32", (length + 2,))],
             {"T": 0, "fft_length": length}),
        Case(f"irfft{length}", "Irfft", [drawn(SHORT, 2, length + 2)], [("int16", (length,))],
             {"T": 7, "fft_length": length}),
        Case(f"irfft32_{length}", "Irfft", [drawn(np.int32, 2, length + 2)], [("int32", (length,))],
             {"T": 2, "fft_length": length}),
        Case(f"irfft_float{length}", "Irfft", [real], [("float32", (length,))], {"T": 0, "fft_length": length})]


ROOTS = np.array([[0, 1, 2, 3, 4, 2**32 - 1, 2**32, 2**64 - 1, (2**32 - 1)**2, (2**32 - 1)**2 + 2**32, 65535**2,
                   65535**2 + 65536, 2**53 + 1, 2**62, 2**63, 7], RNG.integers(0, 2**63, 16, dtype=np.uint64)], LONG)
NOISE = {"alternate_one_minus_smoothing": 15401, "alternate_smoothing": 983, "min_signal_remaining": 819,
         "num_channels": 9, "one_minus_smoothing": 15975, "smoothing": 409, "smoothing_bits": 10,
         "spectral_subtraction_bits": 14}
BANK = [drawn(SHORT, 16), drawn(SHORT, 16), *(np.array(v, SHORT) for v in ([1, 4, 8, 12], [0, 4, 8, 12], [3, 4, 4, 2]))]
CASES = [
    *(c for length in (64, 128, 256) for c in fourier(length)),
    Case("rows", "Rfft", [drawn(SHORT, 1, 3, 64)], [("int16", (3, 66))], {"T": 7, "fft_length": 64}),
    Case("window", "Window", [drawn(SHORT, 2, 2, 16)], [("int16", (2, 16))], {"shift": 12}, [drawn(SHORT, 16)]),
    Case("scale", "FftAutoScale", [np.stack([drawn(SHORT, 16, low=-n, high=n) for n in (0, 1, 7, 300, 20000, 32767)])],
         [("int16", (16,)), ("int32", ())], {}),
    Case("energy", "Energy", [drawn(SHORT, 2, 34)], [("uint32", (17,))], {"start_index": 0, "end_index": 17}),
    Case("bank", "FilterBank", [drawn(WORD, 3, 20)], [("uint64", (3,))], {"num_channels": 3}, BANK),
    Case("root", "FilterBankSquareRoot", [ROOTS, np.array([0, 3], np.int32)], [("uint32", (16,))], {}),
    Case("noise", "FilterBankSpectralSubtraction", [drawn(WORD, 6, 9, high=1 << 22)], [("uint32", (9,))] * 2,
         NOISE | {"clamping": False}),
    Case("clamped", "FilterBankSpectralSubtraction", [drawn(WORD, 6, 9)], [("uint32", (9,))] * 2,
         NOISE | {"clamping": True}),
    Case("pcan", "PCAN", [powers(WORD, 32, 3, 40), powers(WORD, 32, 3, 40)], [("uint32", (40,))], {"snr_shift": 6},
         [drawn(SHORT, 125)]),
    Case("log", "FilterBankLog", [powers(WORD, 32, 3, 40)], [("int16", (40,))],
         {"input_correction_bits": 3, "output_scale": 64}),
    Case("small", "FilterBankLog", [np.arange(120, dtype=WORD).reshape(3, 40)], [("int16", (40,))],
         {"input_correction_bits": 0, "output_scale": 1600}),
    Case("stacker", "Stacker", [drawn(SHORT, 9, 3)], [("int16", (15,)), ("bool", ())],
         {"num_channels": 3, "stacker_left_context": 2, "stacker_right_context": 2, "stacker_step": 2}),
    Case("late", "Stacker", [drawn(SHORT, 7, 3)], [("int16", (9,)), ("bool", ())],
         {"num_channels": 3, "stacker_left_context": 0, "stacker_right_context": 2, "stacker_step": 1}),
    *(Case(f"framer{n}{'_filled' * p}", "Framer", [drawn(SHORT, 6, *given)],
           [("int16", (*given[:-1], given[-1] // step, n)), ("bool", ())],
           {"frame_size": n, "frame_step": step, "prefill": p})
      for n, step, given in ((7, 3, (2, 6)), (10, 4, (4,))) for p in (False, True)),
    *(Case(f"delay{n}", "Delay", [drawn(SHORT, 6, 2, 5)], [("int16", (2, 5))], {"delay_length": n})
      for n in (3, 5, 12)),
    Case("overlap", "OverlapAdd", [drawn(SHORT, 5, 2, 3, 6)], [("int16", (2, 6))], {"T": 7, "frame_step": 2}),
    Case("overlap_float", "OverlapAdd", [RNG.standard_normal((3, 3, 6)).astype(np.float32)], [("float32", (12,))],
         {"T": 0, "frame_step": 4}),
]


def record() -> None:
    """Write what TFLite-Micro gives."""
    from tflite_micro import runtime
    found: dict[str, Array] = {}
    for case in CASES:
        interpreter = runtime.Interpreter.from_bytes(case.model(), arena_size=ARENA)
        steps: list[list[Array]] = [[] for _ in case.outputs]
        for given in zip(*case.inputs, strict=True):
            for i, x in enumerate(given):
                interpreter.set_input(x, i)
            interpreter.invoke()
            for i, row in enumerate(steps):
                row.append(np.array(interpreter.get_output(i)))
        found |= {f"{case.name}/{i}": np.stack(row) for i, row in enumerate(steps)}
    np.savez_compressed(GOLDENS, **found)


if __name__ == "__main__":
    record()
