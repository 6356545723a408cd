"""What XNNPACK gives for models of 8-bit numbers, as checksums: what `rounding="fast"` has to give, to the bit.

They were recorded from LiteRT with its default delegate: `python tests/conformance --xnnpack`. XNNPACK computes these
models in integers and in FLOAT32 operations that are rounded alike everywhere.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from litert_answers import checksum
from shared import SHARED

from nnx_convert.runtime.compiled import TensorSpec

Array = np.ndarray[Any, Any]
ANSWERS = Path(__file__).with_name("xnnpack_answers.json")
#: Models of the zoo all of whose operations have a closed form there.
MODELS = ("kws_dscnn_int8", "mobilenet_v1_0.25_128_uint8", "mobilenet_v2_1.0_224_int8_perchannel",
          "resnet8_cifar_int8", "vww_96_int8")
#: Sets of inputs for each.
SEEDS = 3


def path_of(name: str) -> Path:
    """The file of a model of the zoo."""
    if SHARED is None:
        raise FileNotFoundError("the zoo")
    return SHARED / "zoo" / name / "model.tflite"


def drawn(ports: Sequence[TensorSpec], seed: int) -> list[Array]:
    """Any values; a size that is open is 1."""
    rng, found = np.random.default_rng(seed), []
    for port in ports:
        info = np.iinfo(port.dtype)
        found.append(rng.integers(info.min, info.max + 1, [n or 1 for n in port.shape or ()]).astype(port.dtype))
    return found


def record() -> None:
    """Write the checksums down; needs ai-edge-litert."""
    litert, compile = import_module("ai_edge_litert.interpreter"), import_module("nnx_convert").compile
    found: dict[str, list[str]] = {}
    for name in MODELS:
        engine, ports = litert.Interpreter(model_path=str(path_of(name))), compile(path_of(name)).inputs
        engine.allocate_tensors()
        for seed in range(SEEDS):
            for detail, value in zip(engine.get_input_details(), drawn(ports, seed), strict=True):
                engine.set_tensor(detail["index"], value)
            engine.invoke()
            given = [engine.get_tensor(d["index"]) for d in engine.get_output_details()]
            found.setdefault(name, []).append(checksum(given))
    ANSWERS.write_text(json.dumps(found, indent=2) + "\n")


def recorded() -> Mapping[str, list[str]]:
    """The checksums, by model."""
    found: dict[str, list[str]] = json.loads(ANSWERS.read_text())
    return found
