"""Lines, columns and numbers of a report."""
from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, strategies as st
from sample_models import SAMPLES

from nnx_convert.emit.facts import Facts, HostFacts, facts
from nnx_convert.emit.levels import Reason
from nnx_convert.emit.report import WIDTH, because, counted, scaled, size, text

FACTS = {name: facts(make(), source=name, format="NNX", source_bytes=1234, seconds=0.5, arena_bytes=None)
         for name, make in SAMPLES.items()}

NUMBERS = [(0, "0 "), (7, "7 "), (999, "999 "), (1000, "1.0 k"), (9949, "9.9 k"), (9950, "10 k"), (999_499, "999 k"),
           (999_500, "1.0 M"), (212_345_678, "212 M"), (3 * 10 ** 9, "3.0 G"), (5 * 10 ** 15, "5000 T")]


@pytest.mark.parametrize(("count", "shown"), NUMBERS)
def test_a_number_is_short(count: int, shown: str) -> None:
    assert scaled(count) == shown
    assert size(count) == f"{shown}B"


@given(st.integers(0, 10 ** 15))
def test_a_number_is_right_to_five_percent(count: int) -> None:
    value, _, unit = scaled(count).partition(" ")
    assert abs(float(value) * 1000 ** " kMGT".index(unit or " ") - count) <= count * 0.051


@pytest.mark.parametrize(("n", "shown"), [(0, "0 notes"), (1, "1 note"), (2, "2 notes")])
def test_a_plural(n: int, shown: str) -> None:
    assert counted(n, "note") == shown


SENTENCES = [
    (Reason("takes X from 29", {"A": 1}), "A takes X from 29 (1 operation)"),
    (Reason("is there from 30", {"A": 2, "B": 1}), "A, B are there from 30 (3 operations)"),
    (Reason("has all its outputs from 30", dict.fromkeys("ABCDE", 1)),
     "A, B, C and 2 more have all its outputs from 30 (5 operations)")]


@pytest.mark.parametrize(("reason", "said"), SENTENCES)
def test_a_reason_is_a_sentence(reason: Reason, said: str) -> None:
    assert because(reason) == said


LONG = replace(FACTS["host"], operations={"base": {f"OPERATION_{n}": n for n in range(40)}, "EX": {}, "DENSIFY": {},
                                          "host": {"COS": 9}},
               host=tuple(HostFacts("COS", n, "op", "because " * 30) for n in range(9)),
               reasons=tuple(Reason(f"takes X{n} from 30", {"A": 1}) for n in range(9)),
               notes=tuple("a note " * 30 for _ in range(9)))


@pytest.mark.parametrize("found", [*FACTS.values(), LONG], ids=[*FACTS, "long"])
def test_lines_fit_a_screen(found: Facts) -> None:
    lines = text(found).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert len(lines[0]) == WIDTH


def test_what_is_long_is_counted() -> None:
    said = text(LONG)
    assert "and 4 more reasons" in said
    assert "and 4 more notes: --report json has them all" in said
    assert "and 26 more host operations" in said


def test_columns_align() -> None:
    lines = [line for line in text(FACTS["branch"]).splitlines() if line.startswith(("  in", "  out"))]
    assert len({min(line.index(t) for t in ("bool", "float32") if t in line) for line in lines}) == 1


@pytest.mark.parametrize("name", FACTS)
def test_facts_survive_json(name: str) -> None:
    found = FACTS[name].json()
    assert list(found) == [f.name for f in fields(Facts)]
    assert json.loads(json.dumps(found, allow_nan=False))["source"] == name


def test_sparse_and_dense_sizes() -> None:
    found = FACTS["sparse"]
    assert found.dense_bytes == 4 * 8 * 4
    assert found.sparse_bytes == 12 * 4 + 3 * 2 * 4 + 5 * 4 + 12
    assert FACTS["dense"].sparse_bytes == FACTS["dense"].dense_bytes == 0


def test_equal_weights_count_by_array() -> None:
    assert FACTS["dense"].weight_bytes == 2 * (16 + 4) * 4
