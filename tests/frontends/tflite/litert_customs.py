"""The custom operators that LiteRT has built in, each as a model and inputs; what it gave is recorded.

`python -m tests.frontends.tflite.litert_customs` records anew, where `ai-edge-litert` is installed.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .signal_cases import Array, Case

GOLDENS = Path(__file__).with_name("litert_customs.npz")
RNG = np.random.default_rng(11)


def named(name: str, op: str, *given: Any, **named: Any) -> Case:
    """A case whose operator has no prefix, of one step."""
    return Case(name, op, *given, prefix="", **named)


def floats(*shape: int, low: float = -1, high: float = 1) -> Array:
    """One step of numbers between low and high."""
    return RNG.uniform(low, high, (1, *shape)).astype(np.float32)


def boxes(name: str, classes: int, columns: int, **options: Any) -> Case:
    """Detections among 30 anchors."""
    anchors = np.concatenate([RNG.uniform(0, 1, (30, 2)), RNG.uniform(0.05, 0.4, (30, 2))], 1).astype(np.float32)
    o = {"num_classes": classes, "max_detections": 6, "max_classes_per_detection": 1, "detections_per_class": 4,
         "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5, "use_regular_nms": False, "y_scale": 10.0,
         "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0} | options
    most = 6 * int(o["max_classes_per_detection"]) if not o["use_regular_nms"] else 6
    outs = [("float32", (1, most, 4)), ("float32", (1, most)), ("float32", (1, most)), ("float32", (1,))]
    return named(name, "TFLite_Detection_PostProcess", [floats(1, 30, 4), floats(1, 30, columns, low=0)], outs, o,
                 [anchors])


WAVE = {"window_size": 25, "stride": 10}
MEL = {"upper_frequency_limit": 4000.0, "lower_frequency_limit": 20.0, "filterbank_channel_count": 40,
       "dct_coefficient_count": 13}
CASES = [
    boxes("fast", 3, 4), boxes("no_background", 3, 3), boxes("regular", 3, 4, use_regular_nms=True),
    boxes("two_classes", 3, 4, max_classes_per_detection=2), boxes("below_zero", 2, 3, nms_score_threshold=-20.0),
    boxes("nothing", 2, 3, nms_score_threshold=2.0), boxes("loose", 2, 3, nms_iou_threshold=0.95),
    named("magnitudes", "AudioSpectrogram", [floats(100, 2)], [("float32", (2, 8, 17))],
          WAVE | {"magnitude_squared": False}),
    named("squares", "AudioSpectrogram", [floats(64, 1)], [("float32", (1, 1, 33))],
          {"window_size": 64, "stride": 7, "magnitude_squared": True}),
    named("mfcc", "Mfcc", [floats(2, 3, 257, low=0, high=9)], [("float32", (2, 3, 13))], MEL,
          [np.array([16000], np.int32)]),
    named("narrow", "Mfcc", [floats(1, 2, 129, low=0)], [("float32", (1, 2, 5))],
          MEL | {"dct_coefficient_count": 5, "lower_frequency_limit": 300.0}, [np.array([8000], np.int32)]),
]


def record() -> None:
    """Write what LiteRT gives."""
    from ai_edge_litert.interpreter import Interpreter
    found: dict[str, Array] = {}
    for case in CASES:
        interpreter = Interpreter(model_content=case.model())
        interpreter.allocate_tensors()
        for detail, x in zip(interpreter.get_input_details(), case.inputs, strict=True):
            interpreter.set_tensor(detail["index"], x[0])
        interpreter.invoke()
        found |= {f"{case.name}/{i}": interpreter.get_tensor(d["index"])
                  for i, d in enumerate(interpreter.get_output_details())}
    np.savez_compressed(GOLDENS, **found)


if __name__ == "__main__":
    record()
