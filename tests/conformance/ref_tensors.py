"""What the reference kernels had in every tensor of a real model: checksums and statistics, beside our own run."""
from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
from recorded import recording
from shared import SHARED

from nnx_convert import CompiledModel, Target
from nnx_convert.convert import evaluate
from nnx_convert.frontends.tflite import records
from nnx_convert.frontends.tflite.guard import File
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.frontends.tflite.tensors import DTYPES
from nnx_convert.graph import Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.types import Port, Rim

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
#: |min, max or mean - recorded| <= CLOSE * (1 + |recorded|) on floats.
CLOSE = 1e-3


def named() -> list[str]:
    """The models with such a recording."""
    return sorted(p.parent.name for p in (SHARED / "zoo").glob("*/ref_tensors.json")) if SHARED else []


def compared(name: str) -> tuple[int, list[str]]:
    """How many tensors of a model are compared, and those that differ, in words."""
    assert SHARED is not None
    rows: list[Row] = json.loads((SHARED / "zoo" / name / "ref_tensors.json").read_text())
    found = recording(name)
    inputs = [a for _, a in sorted(found.runs[0].inputs.items())]
    ours = values(found.path.read_bytes(), [row["tensor"] for row in rows], inputs)
    wrong = [f"op {r['op']} {r['type']}: {why}" for r in rows if r["tensor"] in ours
             and (why := difference(ours[r["tensor"]], r))]
    return len(ours), wrong


def values(data: bytes, tensors: list[int], inputs: list[Array]) -> dict[int, Array]:
    """The tensors of a file, by index, as a run on inputs has them; those the graph has no value for are left out."""
    graph = load(data, {})
    record = records.read(File(data)).graphs[0]
    computed: dict[str, Value] = {v.name: v for n in graph.nodes for v in n.outputs}
    wanted = [i for i in dict.fromkeys(tensors) if record.tensor(i).name in computed]
    outputs = tuple(computed[record.tensor(i).name] for i in wanted)
    ports = tuple(Port(f"tensor {i}", DTYPES[record.tensor(i).type], None, v.tensor.quant)  # type: ignore[arg-type]
                  for i, v in zip(wanted, outputs, strict=True))
    states = tuple(p for p in graph.rim.outputs if p.state)
    kept = graph.outputs[len(graph.outputs) - len(states):] if states else ()
    whole = replace(graph, outputs=(*outputs, *kept), rim=Rim(graph.rim.inputs, (*ports, *states)))
    legal, _ = lower(whole, Target(), evaluate)
    return dict(zip(wanted, CompiledModel(flatten(legal)).run(inputs), strict=True))


def difference(got: Array, row: Row) -> str:
    """How a tensor differs from its row, in words; empty where it does not."""
    if got.dtype.name != row["dtype"] or got.size != np.prod(row["shape"], dtype=int):
        return f"{got.dtype}{list(got.shape)}, not {row['dtype']}{row['shape']}"
    if "mean" not in row:                                   # of complex numbers nothing is recorded
        return ""
    if got.dtype.kind != "f":
        found = f"{zlib.crc32(np.ascontiguousarray(got).tobytes()):08x}"
        return "" if found == row["crc32"] else f"mean {got.mean()}, not {row['mean']}"
    for kind, number in (("min", got.min()), ("max", got.max()), ("mean", got.mean(dtype=np.float64))):
        if abs(float(number) - row[kind]) > CLOSE * (1 + abs(row[kind])):
            return f"{kind} {number}, not {row[kind]}"
    return ""
