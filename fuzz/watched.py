"""The modules whose coverage counts, by target: known before anything of the package is imported."""
from __future__ import annotations

_TABLE = ("artifact", "builder", "contents", "model", "ops", "schema", "signature", "symbols", "types")
_READING = ("convert", "graph", "lowering", *_TABLE)
_WATCHED = {
    "tflite": ("frontends.tflite", "frontends.sensible", *_READING),
    "onnx": ("frontends.onnx", "frontends.sensible", *_READING),
    "nnx": ("convert", *_TABLE),
    "run": ("runtime",),
}
WATCHED = {target: tuple(f"nnx_convert.{m}" for m in modules) for target, modules in _WATCHED.items()}
