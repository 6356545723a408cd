"""ONNX models with recorded outputs: those of the zoo, of exporters, of single operators, and from bug reports.

    python tests/conformance/onnx_models.py          # a line for each model: the largest difference, what is left
    python tests/conformance/onnx_models.py yolox    # those whose names have the word
"""
from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from recorded import files, runs
from shared import SHARED

Array = np.ndarray[Any, Any]
#: Whose outputs count, best first: what the file's own makers recorded, the unoptimised runtime, the default one.
SOURCES = ("np_out{}", "wheel_out{}", "ref_out{}", "out{}", "out_{}")


@dataclass(frozen=True)
class Run:
    """One run: inputs by position or by name, outputs by position."""

    inputs: dict[str, Array] | dict[int, Array]
    outputs: dict[int, Array]


@dataclass(frozen=True)
class Recording:
    """A model with its runs."""

    name: str
    path: Path
    runs: tuple[Run, ...]


def zoo() -> Iterator[str]:
    """The names of the zoo's ONNX models."""
    yield from sorted(p.parent.name for p in (SHARED / "zoo").glob("*/model.onnx")) if SHARED else []


def exported() -> Iterator[str]:
    """The names of the exporters' models."""
    yield from sorted(p.stem for p in (SHARED / "torch").glob("*.onnx")) if SHARED else []


def units() -> Iterator[str]:
    """The names of the models of one operator that have recorded outputs."""
    yield from sorted(p.stem for p in (SHARED / "zoo/onnx_unit/goldens").glob("*.npz")) if SHARED else []


def recording(name: str) -> Recording:
    """A model by its name, wherever it is."""
    assert SHARED is not None
    if (SHARED / "zoo" / name).exists():
        path, arrays = files(name)
        return Recording(name, path, tuple(Run(r.inputs, r.outputs) for r in runs(arrays)))
    folders = [(SHARED / "torch", SHARED / "torch"), (SHARED / "cases", SHARED / "cases"),
               (SHARED / "zoo/onnx_unit/models", SHARED / "zoo/onnx_unit/goldens")]
    models, goldens = next((m, g) for m, g in folders if (m / f"{name}.onnx").exists())
    golden = goldens / f"{name}.npz"
    if not golden.exists():
        return Recording(name, models / f"{name}.onnx", ())
    with np.load(golden, allow_pickle=False) as npz:
        return Recording(name, models / f"{name}.onnx", (run(dict(npz)),))


def run(arrays: dict[str, Array]) -> Run:
    """The arrays of one run."""
    named: dict[Any, Array] = {k.removeprefix("in_"): a for k, a in arrays.items() if k.startswith("in_")}
    placed: dict[Any, Array] = {int(k[2:]): a for k, a in arrays.items() if k[:2] == "in" and k[2:].isdigit()}
    outputs = {}
    for i in range(len(arrays)):
        found = [s.format(i) for s in SOURCES if s.format(i) in arrays]
        if found:
            a = arrays[found[0]]
            outputs[i] = a.astype(str).astype(object) if a.dtype.kind == "S" else a
    return Run(named or placed, outputs)


def given(ports: Any, inputs: dict[Any, Array]) -> Any:
    """The inputs as a model takes them."""
    return [inputs.get(i, inputs.get(p.name)) for i, p in enumerate(ports)]


def stepped(path: Path) -> bool:
    """Whether a model computes in steps: differences count by the output's step then."""
    import onnx
    proto = onnx.load(path, load_external_data=False)
    return any("Quant" in n.op_type or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer")
               for n in proto.graph.node)


def main(words: list[str]) -> None:
    """Print a line for each model."""
    from nnx_convert import CompiledModel, convert
    names = [*zoo(), *exported(), *units(), *(e["name"] for e in cases())]
    good = 0
    chosen = [n for n in names if not words or any(w in n for w in words)]
    for name in chosen:
        found, began = recording(name), time.perf_counter()
        try:
            model = convert(found.path)
            took, compiled = time.perf_counter() - began, CompiledModel(model)
            worst = 0.0
            for r in found.runs:
                got = compiled.run(given(compiled.inputs, r.inputs))
                worst = max(worst, *(apart(got[i], want) for i, want in r.outputs.items()))
            ops = [o.op.name for o in model.operations]
            host = sorted({o.op.name for o in model.operations if o.op.host})
            good += worst < 1e-4
            print(f"{name:36} {worst:8.1e}  {took:5.2f} s  {len(ops):4} ops, {ops.count('TRANSPOSE')} TRANSPOSE, "
                  f"host {sum(o.op.host for o in model.operations)} {' '.join(host)[:90]}", flush=True)
        except Exception as error:
            print(f"{name:36} {type(error).__name__}: {' '.join(str(error).split())[:170]}", flush=True)
    print(f"{good} of {len(chosen)} within 1e-4")


def apart(got: Array, want: Array) -> float:
    """The largest |got - want| / (1 + |want|); infinite where shapes or types differ."""
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return float("inf")
    if want.dtype.kind not in "fiub":
        return float(not np.array_equal(got, want))
    differ = (got != want) & ~(np.isnan(got) & np.isnan(want))     # what is infinite or no number is equal, or far
    a, b = (v[differ].astype(np.float64) for v in (got, want))
    return float((np.abs(a - b) / (1 + np.abs(b))).max(initial=0.0))


def cases() -> list[dict[str, Any]]:
    """The index of the ONNX models from bug reports."""
    found: list[dict[str, Any]] = json.loads((SHARED / "cases/index.json").read_text()) if SHARED else []
    return [e for e in found if e["file"].endswith(".onnx")]


if __name__ == "__main__":
    main(sys.argv[1:])
