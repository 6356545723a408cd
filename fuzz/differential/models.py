"""A model from a format and a seed."""
from __future__ import annotations

from collections.abc import Callable

from .engines import Model
from .onnx import model as onnx
from .tflite import model as tflite


def model(form: str, seed: int) -> Model:
    """The model of a seed, "tflite" or "onnx"."""
    return MODELS[form](seed)


#: How a format's models are made.
MODELS: dict[str, Callable[[int], Model]] = {"tflite": tflite.model, "onnx": onnx.model}
