"""`python -m benchmarks.first ENGINE FILE INPUTS.npz THREADS`: from the start of a process to the first output.

Prints JSON: seconds to compile and to run, and the most bytes resident. Only what the engine itself needs is imported.
"""
from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def opened(engine: str, path: str, inputs: list[Any], threads: int) -> Callable[[], Any]:
    """A run of "ours" or of a peer."""
    if engine == "ours":
        import nnx_convert
        model = nnx_convert.compile(path, threads=threads)
        return lambda: model.run(inputs)
    from nnx_convert.peers import PEERS
    return PEERS[engine].open(path, threads, inputs)


def main(words: Sequence[str]) -> int:
    """Do it; 0."""
    engine, path, archive, threads = words
    with np.load(archive) as arrays:
        inputs = [arrays[f"in{i}"] for i in range(len(arrays.files))]
    begun = time.perf_counter()
    run = opened(engine, path, inputs, int(threads))
    ready = time.perf_counter()
    run()
    done = time.perf_counter()
    from .memory import peak
    print(json.dumps({"compile": ready - begun, "run": done - ready, "peak": peak()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
