"""Measures the models of this folder with nnx_convert: `python models/evaluate.py`.

It prints the first columns of README.md's table: file, bytes, accuracy on the held-out images of digits_test.npz.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import nnx_convert
import numpy as np
from nnx_convert.types import Quant

Array = np.ndarray[Any, np.dtype[Any]]
HERE = Path(__file__).resolve().parent


def held_out() -> tuple[Array, Array]:
    """The images that training never saw, float32 [N, 8, 8, 1] in 0..1, and their labels [N]."""
    with np.load(HERE / "digits_test.npz") as data:
        return (data["images"][..., None] / 16).astype(np.float32), data["labels"]


def run(path: Path, images: Array) -> Array:
    """The outputs [N, 10] as the file stores them; images are put on the input's grid where it has one."""
    compiled = nnx_convert.compile(path)
    spec = compiled.inputs[0]
    if isinstance(spec.quantization, Quant):
        limits, grid = np.iinfo(spec.dtype), spec.quantization
        images = np.clip(np.rint(images / grid.scale) + grid.zero, limits.min, limits.max).astype(spec.dtype)
    channels_first = path.suffix == ".onnx"
    shaped = np.moveaxis(images, -1, 1) if channels_first else images
    return np.concatenate([compiled.run([image[None]])[0] for image in shaped])


def accuracy(path: Path) -> float:
    """The fraction of held-out images whose largest output is the right digit."""
    images, labels = held_out()
    return float((run(path, images).argmax(axis=1) == labels).mean())


def main() -> None:
    """Prints a row per model."""
    for path in (*sorted(HERE.glob("*.tflite")), HERE / "digits_cnn.onnx"):
        print(f"| {path.name:22} | {path.stat().st_size:6,} | {accuracy(path):6.2%} |")


if __name__ == "__main__":
    main()
