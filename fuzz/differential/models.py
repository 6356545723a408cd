"""A model from a format and a seed."""
from __future__ import annotations

from .engines import Model
from .tflite import model as tflite


def model(form: str, seed: int) -> Model:
    """The model of a seed, "tflite" or "onnx"."""
    return MODELS[form](seed)


MODELS = {"tflite": tflite.model}
