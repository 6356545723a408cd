"""The golden NNAPI cases of the external suites as models made by `ModelBuilder`."""
from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from shared import SHARED

from nnx_convert.builder import ModelBuilder
from nnx_convert.codes import OperandCode, OperationCodeEx
from nnx_convert.model import Model
from nnx_convert.ops.host import op_of

CASES: Path | None = SHARED and SHARED / "vectors" / "public" / "cases"
FAMILIES = sorted(p.name.removesuffix(".json.gz") for p in CASES.glob("*.json.gz")) if CASES else []
EX = frozenset(int(c) for c in OperationCodeEx)
Case = dict[str, Any]


@cache
def listed() -> frozenset[str]:
    """The names of the cases that count: a file may hold others."""
    assert CASES is not None
    return frozenset(entry["name"] for entry in json.loads(CASES.with_name("INDEX.json").read_text("utf-8")))


def cases(family: str) -> list[Case]:
    """The cases of one file, arrays in place of references; those with operations nobody gave a code are left out."""
    return [c for c in _family(family) if all(
        o["code"] is not None and op_of(o["code"]) for g in (c, *c["subgraphs"]) for o in g["operations"])]


@lru_cache(maxsize=4)
def _family(family: str) -> list[Case]:
    assert CASES is not None
    with np.load(CASES / f"{family}.npz") as npz:
        pools = {name: npz[name] for name in npz.files}
    with gzip.open(CASES / f"{family}.json.gz", "rt", encoding="utf-8") as handle:
        found: list[Case] = [c for c in json.load(handle) if c["name"] in listed()]
    for case in found:
        for graph in (case, *case["subgraphs"]):
            for o in graph["operands"]:
                if o["lifetime"] == "const":
                    o["data"] = array(o["data"], pools)
        for example in case["examples"]:
            for side in ("inputs", "outputs"):
                example[side] = {int(i): array(r, pools) for i, r in example[side].items()}
    return found


def array(reference: list[Any], pools: dict[str, np.ndarray]) -> np.ndarray:
    """The array a reference [dtype, offset, shape] stands for."""
    dtype, offset, shape = reference
    return pools[dtype][offset:offset + int(np.prod(shape, dtype=np.int64))].reshape(shape)


def build(case: Case, graph: Case | None = None) -> Model:
    """The case as a model, call by call; raises what the builder raises."""
    graph = graph or case
    b = ModelBuilder()
    for o in graph["operands"]:
        i = b.add_operand(o["code"], o["dims"], o["scale"], o["zero_point"])
        if o["channel_quant"]:
            b.set_operand_symm_per_channel_quant_params(i, o["channel_quant"]["axis"], o["channel_quant"]["scales"])
        if o["lifetime"] == "const":
            b.set_operand_value(i, np.asarray(o["data"], OperandCode(o["code"]).dtype))
        elif o["lifetime"] == "no_value":
            b.set_operand_value(i, None)
        elif o["lifetime"] == "subgraph":
            b.set_operand_value_from_model(i, build(case, case["subgraphs"][o["data"]]))
    for o in graph["operations"]:
        add = b.add_operation_ex if o["code"] in EX else b.add_operation
        add(o["code"], o["inputs"], o["outputs"])
    b.identify_inputs_and_outputs(graph["inputs"], graph["outputs"])
    b.relax_computation_float32_to_float16(case["relaxed"])
    return b.finish()


def legal_models(family: str) -> Iterator[Model]:
    """The models of the cases that are meant to run."""
    yield from (build(c) for c in cases(family) if not c["expect_failure"])
