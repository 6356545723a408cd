"""`python -m benchmarks.measure FILE`: times of one model as JSON, a line for each number of threads.

A process of its own for each model, as an engine that crashes takes its process along.
"""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import nnx_convert
from nnx_convert import CompiledModel
from nnx_convert.errors import NnxError
from nnx_convert.measuring import Contender, compared, joined, theirs
from nnx_convert.ops.macs import multiplied
from nnx_convert.peers import PEERS
from nnx_convert.runtime.bind import Bound
from nnx_convert.types import Tensor

from .rows import FAST


def inputs_of(model: CompiledModel, path: Path) -> list[Any]:
    """Those recorded beside a model; else arrays as the file declares them, the same ones each time."""
    specs = [s for s in model.inputs if not s.state]
    recorded = path.with_name("golden.npz")
    if recorded.is_file():
        with np.load(recorded) as arrays:
            given = [arrays[f"in{i}"] for i in range(len(arrays.files)) if f"in{i}" in arrays.files]
        if len(given) == len(specs):
            return given
    rng = np.random.default_rng(0)
    shapes = [tuple(n or 1 for n in s.shape or ()) for s in specs]
    return [rng.random(shape).astype(s.dtype) if s.dtype.kind == "f" else
            rng.integers(0, 100, shape).astype(s.dtype) for s, shape in zip(specs, shapes, strict=True)]


def random_inputs(path: Path) -> list[Any]:
    """The inputs of a model's file."""
    return inputs_of(nnx_convert.compile(path, backend="numpy"), path)


def kind(model: CompiledModel, inputs: Sequence[Any]) -> str:
    """"int8" where most multiply-adds are of weights or values of 8 bits, else "float"."""
    specs = [s for s in model.inputs if not s.state]
    program = model.prepare({s.name: a.shape for s, a in zip(specs, inputs, strict=True)})
    bound = [b for step in program.program.steps if (b := step.bound) is not None] if program else []
    work = [(multiplied(b.op, b.args, b.outs), of_bytes(b)) for b in bound]
    return "int8" if 2 * sum(n for n, small in work if small) > sum(n for n, _ in work) else "float"


def of_bytes(b: Bound) -> bool:
    """Whether an operation multiplies tensors of 8 bits or less."""
    return any(t.type.dtype.itemsize == 1 for t in tensors(tuple(b.args.values())) if t.rank > 1)


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a structure of arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for v in value:
            yield from tensors(v)


def measured(path: Path, threads: int, runs: int, backend: str, peers: Sequence[str]) -> dict[str, Any]:
    """The engines' times with so many threads, in turns: threads, kind, engines (see `nnx_convert.measuring`).

    Ours are there twice where most is of 8 bits: with exact rounding, and with that of XNNPACK.
    """
    model = nnx_convert.compile(path, threads=threads, backend=backend)
    inputs = inputs_of(model, path)
    model.run(inputs)
    what = kind(model, inputs)
    found = [Contender("ours", nnx_convert.__version__, lambda: model.run(inputs)),
             *([rounded(path, threads, inputs)] if what == "int8" and backend != "numpy" else []),
             *(theirs(str(path), name, threads, inputs) for name in peers if path.suffix[1:] in PEERS[name].formats)]
    rows = joined(found, compared([c.run for c in found if c.run], runs))
    return {"threads": threads, "kind": what, "engines": [asdict(r) for r in rows]}


def rounded(path: Path, threads: int, inputs: Sequence[Any]) -> Contender:
    """Ours with the rounding of XNNPACK, run once."""
    model = nnx_convert.compile(path, threads=threads, backend="native", rounding="fast")
    model.run(inputs)
    return Contender(FAST, nnx_convert.__version__, lambda: model.run(inputs))


def main(words: Sequence[str]) -> int:
    """Print the lines; 1 and a line on stderr where the model does not run here."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure", description="Times of one model.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--peers", default=",".join(PEERS))
    given = parser.parse_args(words)
    try:
        for n in given.threads.split(","):
            row = measured(given.file, int(n), given.runs, given.backend, list(filter(None, given.peers.split(","))))
            print(json.dumps(row), flush=True)
    except NnxError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
