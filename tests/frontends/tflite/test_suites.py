"""Files nobody here wrote: each is imported, lowered for three targets and flattened, or refused with a reason."""
from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from shared import SHARED

from nnx_convert.convert import evaluate
from nnx_convert.errors import NnxError
from nnx_convert.frontends.tflite import records
from nnx_convert.frontends.tflite.guard import File
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.graph import Graph
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.target import Target
from nnx_convert.types import known

FILES = sorted(p for group in ("zoo", "sparse", "cases") for p in (SHARED / group).rglob("*.tflite")) if SHARED else []
TARGETS = (Target(27, False, False), Target(29), Target(30))
#: How many of the files are imported, and how the others are refused.
PINNED = {"imported": 303, "FormatError": 13, "Unsupported": 15}
MOBILENET = "mobilenet_v2_1.0_224_int8_perchannel"
FASTEST_OF, LIMIT = 150, 0.060


def name(path: Path) -> str:
    """A file's path within the suites."""
    return str(path.relative_to(SHARED)) if SHARED else path.name


def imported(path: Path) -> Graph | None:
    """The graph, or None where the file is refused."""
    try:
        return load(path.read_bytes())
    except NnxError:
        return None


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_imported_and_lowered_or_refused(path: Path) -> None:
    graph = imported(path)
    for target in TARGETS if graph is not None else ():
        legal, _ = lower(graph, target, evaluate)
        assert len(flatten(legal).operations) == len(legal.nodes)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_inference_agrees_with_what_the_file_declares(path: Path) -> None:
    graph = imported(path)
    if graph is None:
        return
    record = records.read(File(path.read_bytes())).graphs[0]
    declared = {t.name: t for t in record.tensors if t.shape and not any(n < 0 for n in t.signature)}
    found = {v.name: v.tensor.dims for n in graph.nodes for v in n.outputs if v.name in declared}
    wrong = {n: d for n, d in found.items() if d is not None and all(map(known, d)) and d != declared[n].shape}
    assert not wrong


@pytest.mark.parametrize("files", [FILES] if FILES else [], ids=len)
def test_as_many_files_are_imported_as_were(files: list[Path]) -> None:
    ends: Counter[str] = Counter()
    for path in files:
        try:
            load(path.read_bytes())
            ends["imported"] += 1
        except NnxError as error:
            ends[type(error).__name__] += 1
    assert ends == PINNED


@pytest.mark.parametrize("path", [p for p in FILES if MOBILENET in str(p)], ids=name)
def test_a_large_model_is_imported_in_a_moment(path: Path) -> None:
    data, spent = path.read_bytes(), list[float]()
    while len(spent) < FASTEST_OF and (not spent or min(spent) >= LIMIT):
        start = time.process_time()
        load(data)
        spent.append(time.process_time() - start)
    assert min(spent) < LIMIT
