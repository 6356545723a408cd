"""The models that mutation begins with, by name: this repository's, ONNX's own, those of $NNX_SHARED where it is."""
from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from operator import itemgetter

from . import ROOT, reach

reach("models", "tests", "tests/frontends/onnx", "tests/frontends/tflite")

#: What the names of models begin with that are not this repository's: files, and the cases of ONNX's own suite.
FILE, SUITE = "file-", "suite-"
#: Larger files teach nothing that a smaller one does not, and take longer.
LARGEST = 1 << 14
#: Models of the same operators.
ALIKE = 2
#: Of so many files one is converted, to be a seed in our own format.
OWN = 6


def tflite() -> Iterator[tuple[str, bytes]]:
    """TFLite files: one for each case of the importers' tests, some with subgraphs, states and sparse weights."""
    from frontends.tflite.cases import CASES
    from frontends.tflite.host_cases import HOST
    from frontends.tflite.importers import test_control as control
    from frontends.tflite.one_operator import write
    from sample_files import two_entries
    yield from ((f"case-{i}-{case}", write(case)) for i, case in enumerate((*CASES, *HOST)))
    yield "two_entries", two_entries()
    for make in (control.loop, control.loop_until, control.composite, control.assigning_condition,
                 control.stateful_branch):
        yield make.__name__, make()
    yield from _sparse()


def _sparse() -> Iterator[tuple[str, bytes]]:
    """A pruned filter, compressed in several ways."""
    import numpy as np
    from tflite_writer import TFLiteWriter, sparsify
    rng = np.random.default_rng(0)
    values = (rng.integers(-4, 5, (8, 16)) * (rng.random((8, 16)) < 0.2)).astype(np.float32)
    for order, formats, blocks, index in (((0, 1), "ds", {}, "int32"), ((0, 1, 2), "dsd", {1: 4}, "uint16"),
                                          ((1, 0), "ss", {}, "uint8")):
        w = TFLiteWriter()
        sparsity, stored = sparsify(values, order, formats, blocks=blocks, index=index)
        x, s, d, y = (w.tensor("x", "float32", (2, 16)), w.tensor("s", "float32", (8, 16), stored, sparsity=sparsity),
                      w.tensor("d", "float32", (8, 16)), w.tensor("y", "float32", (2, 8)))
        w.op("DENSIFY", [s], [d], "DensifyOptions")
        w.op("FULLY_CONNECTED", [x, d, -1], [y], "FullyConnectedOptions")
        yield f"sparse-{formats}-{'-'.join(map(str, order))}", w.finish([x], [y])


def onnx() -> Iterator[tuple[str, bytes]]:
    """ONNX files: models of many operators."""
    from mutants import sources
    for name, model in sources().items():
        yield name, model.SerializeToString()


@cache
def suite() -> dict[str, bytes]:
    """ONNX's own cases of one operator, some of each; making them takes some seconds."""
    from onnx.backend.test.case.node import collect_testcases
    seen: Counter[tuple[str, ...]] = Counter()
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")          # the suite's own sums overflow
        cases = collect_testcases(None)
    for name, model in sorted(((str(c.name), c.model) for c in cases if c.model is not None), key=itemgetter(0)):
        operators = tuple(sorted({n.op_type for n in model.graph.node}))
        if seen[operators] < ALIKE:
            seen[operators] += 1
            found[f"{SUITE}{name}"] = model.SerializeToString()
    return found


def nnx() -> Iterator[tuple[str, bytes]]:
    """Files of our own format: built call by call, and converted; some in the JSON form."""
    import sample_models

    from nnx_convert import artifact
    for make in (sample_models.dense, sample_models.per_channel, sample_models.branch, sample_models.sparse,
                 sample_models.host):
        yield make.__name__, artifact.to_bytes(make())
    yield from _converted("of", [*tflite(), *onnx()][::OWN])


def _converted(prefix: str, models: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Models in our own format, as far as they convert."""
    import nnx_convert
    from nnx_convert import artifact
    for name, data in models:
        with suppress(nnx_convert.NnxError):
            yield f"{prefix}-{name}", artifact.to_bytes(nnx_convert.convert(data))


def outside(suffix: str) -> Iterator[tuple[str, bytes]]:
    """The small files of one format under $NNX_SHARED, and this repository's own models."""
    from shared import SHARED
    places = [ROOT / "models", *([SHARED / "zoo", SHARED / "cases", SHARED / "sparse"] if SHARED else [])]
    for place in places:
        for path in sorted(place.rglob(f"*.{suffix}")):
            if path.stat().st_size <= LARGEST:
                yield str(path.relative_to(place.parent)), path.read_bytes()


FORMATS = {"tflite": tflite, "onnx": onnx, "nnx": nnx}


@cache
def seeds(format: str, foreign: bool = True) -> dict[str, bytes]:
    """The seeds of a format by name, each at most `LARGEST` bytes; without `foreign`, those this repository makes."""
    found = dict(FORMATS[format]())
    if foreign:
        found |= {f"{FILE}{n}": d for n, d in outside(format)}
        found |= suite() if format == "onnx" else dict(_converted(
            SUITE, list(suite().items())[::OWN])) if format == "nnx" else {}
    return {n: d for n, d in found.items() if len(d) <= LARGEST}
