"""What docs/values.md says that an operation gives, it gives: in NumPy and natively."""
from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd import apart, outcome
from row_case import GRIDS, Case, Instance, made
from row_runs import model
from row_twins import twin

from nnx_convert.schema import OPS
from nnx_convert.types import Tensor, Type

PAGE = Path(__file__).resolve().parent.parent / "docs" / "values.md"
#: A row of a table: an operation, the type of its numbers, and what it becomes; what is given, by name; what comes out.
ROW = re.compile(r"\| ([A-Z_0-9]+) \| (\w+)(?: to (\w+))? \| (.+?) \| (.+?) \|(?:.*\|)?$", re.MULTILINE)
ROWS = [m.groups() for m in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
TYPES = {t.dtype.name: t for t in Type if t.group == "tensor" and not re.search("QUANT", t.name)}
#: Arguments that a run gives beside the numbers themselves.
GIVEN = {"indices", "lookups", "ids"}
#: What inference looks at.
PLAIN = {"axes"}


def instance(op: str, of: str, to: str | None, given: str) -> tuple[Instance, list[bool]]:
    """The operation on such numbers, and what a run gives of them."""
    args = {name: json.loads(value) for name, value in (part.split(" = ") for part in given.split("; "))}
    row, key = OPS[op], TYPES[of]
    listed = row.forms[0].inputs
    own = key if key in row.types else next(t for t in TYPES.values() if t in row.types)
    zeros = {n: np.zeros_like(v).tolist() if isinstance(v, list) and n not in PLAIN else v
             for n, v in args.items()}
    found = made(Case(op, zeros), own, GRIDS["middle"], "", TYPES[to] if to in TYPES and own == key else None)
    if own != key:
        other = twin(found, key)
        assert other is not None, f"{op} takes no {of}"
        found = other
    inputs = tuple(replace(a, data=np.array(args[p.name], a.type.dtype)) if isinstance(a, Tensor) else a
                   for p, a in zip(listed, found.inputs, strict=False))
    return replace(found, inputs=inputs), [p.kind.is_key or p.name in GIVEN for p in listed]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: " ".join(filter(None, r[:4])))
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_row_is_true(row: tuple[Any, ...], backend: str) -> None:
    op, of, to, given, gives = row
    found, fed = instance(op, of, to, given)
    made_, values = model(found, lambda n: fed[n] and isinstance(found.inputs[n], Tensor))
    got = outcome(made_, values, backend)
    if gives.startswith("error: "):
        assert isinstance(got, str) and gives.removeprefix("error: ") in got
    else:
        assert not isinstance(got, str), got
        want = [np.array(json.loads(part), got[n].dtype) for n, part in enumerate(gives.split("; "))]
        assert not apart(got[:len(want)], want)


def test_there_are_rows() -> None:
    assert len(ROWS) > 40
