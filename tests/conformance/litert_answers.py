"""What LiteRT's reference kernels make of a model, and inputs to compare them by."""
from __future__ import annotations

import json
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from litert_cases import CASES as PRODUCTS
from one_operator import Case, write
from recurrent_cases import FILES
from wide_cases import CASES as WIDE

from nnx_convert import CompiledModel, convert

Array = np.ndarray[Any, Any]
CASES = PRODUCTS | WIDE
#: Checksums of what the reference kernels gave: name -> of each case, or of each seed and run.
ANSWERS = Path(__file__).with_name("litert_answers.json")
SEEDS, RUNS = 6, 3


def drawn(case: Case, seed: int) -> list[Array]:
    """An input for each tensor that is fed."""
    r, found = np.random.default_rng(seed), list[Array]()
    for t in case.inputs:
        if t is not None and t.data is None and not t.variable:
            kind = np.dtype(t.dtype)
            info = None if kind.kind == "f" else np.iinfo(kind)
            values = r.normal(size=t.shape) if info is None else r.integers(info.min, info.max + 1, t.shape)
            found.append(values.astype(kind))
    return found


def expected(file: bytes, runs: list[list[Array]]) -> list[list[Array]]:
    """What the reference kernels give, run after run."""
    litert = import_module("ai_edge_litert.interpreter")
    kernels = litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model_content=file, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    found = []
    for values in runs:
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found.append([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()])
    return found


def cases(name: str) -> list[tuple[bytes, list[list[Array]]]]:
    """Models of a name, each with the inputs of its runs."""
    if name in CASES:
        return [(write(case), [drawn(case, seed)]) for seed, case in enumerate(CASES[name])]
    return [(file, in_a_row(file, seed)) for seed in range(SEEDS) for file in (FILES[name][0](seed),)]


def in_a_row(file: bytes, seed: int) -> list[list[Array]]:
    """Inputs for runs of a recurrent model."""
    port = CompiledModel(convert(file)).inputs[0]
    r, shape, kind = np.random.default_rng(seed), port.shape or (), port.dtype
    info = None if kind.kind == "f" else np.iinfo(kind)
    return [[(r.normal(size=shape) if info is None else r.integers(info.min, info.max + 1, shape)).astype(kind)]
            for _ in range(RUNS)]


def checksum(outputs: list[Array]) -> str:
    """Of the outputs of a run; a zero has no sign."""
    return f"{zlib.crc32(b''.join(np.ascontiguousarray(a + a.dtype.type(0)).tobytes() for a in outputs)):08x}"


def exact(name: str) -> bool:
    """Whether nothing may differ."""
    return name in CASES or FILES[name][1] == 0


def record() -> None:
    """Write the checksums down; needs ai-edge-litert."""
    found = {name: [checksum(o) for file, runs in cases(name) for o in expected(file, runs)]
             for name in (*CASES, *FILES) if exact(name)}
    lines = (f"  {json.dumps(name)}: {json.dumps(sums)}" for name, sums in found.items())
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
