"""Every row of the table, for every type it accepts: against float64, and the same bits whatever way it runs."""
from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from cases_elementwise import CASES as ELEMENTWISE
from cases_image import CASES as IMAGE
from cases_models import CASES as MODELS
from cases_shape import CASES as SHAPE
from judge import prepared, wrong
from row_case import Case, Instance, complete, instances, keys
from row_runs import WAYS, run, told, usual

from nnx_convert import ops  # noqa: F401  (fills the table)
from nnx_convert.schema import OPS
from nnx_convert.types import Tensor, Type, known

TESTS = Path(__file__).resolve().parent.parent
CASES: list[Case] = [*ELEMENTWISE, *IMAGE, *SHAPE, *MODELS]
ROWS = {o.name: o for o in OPS.values() if o.code is not None and not o.host}
#: The variants of a case that run in every way; the others are there for the numbers.
THOROUGH = ("", "middle", "high", "per channel")
#: Operations that no small float64 function says, and the tests that hold them against what does.
ELSEWHERE = {
    "IF": "test_control.py", "WHILE": "test_control.py", "RANDOM_MULTINOMIAL": "../test_draws.py",
    "LSH_PROJECTION": "test_rnn_lsh.py", "DENSIFY": "test_sparse.py",
    **dict.fromkeys(["RNN", "SVDF", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM",
                     "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"], "test_rnn.py"),
    **dict.fromkeys(["QUANTIZED_LSTM", "QUANTIZED_16BIT_LSTM"], "test_rnn_integers.py"),
    **dict.fromkeys(["AXIS_ALIGNED_BBOX_TRANSFORM", "BOX_WITH_NMS_LIMIT", "DETECTION_POSTPROCESSING",
                     "GENERATE_PROPOSALS", "HEATMAP_MAX_KEYPOINT", "ROI_ALIGN", "ROI_POOLING"], "test_detect.py")}


def rows() -> list[tuple[str, Type]]:
    """Every operation with every type it accepts."""
    return [(name, key) for name, op in ROWS.items() for key in op.types]


def of(name: str, key: Type) -> list[Case]:
    """The cases of an operation that are made for a type."""
    return [c for c in CASES if c.op == name and key in keys(c)]


def faults(i: Instance) -> list[str]:
    """What is wrong with one case: its numbers, its outputs' shapes and types, a way that gives other bits."""
    want = None
    if i.op.name not in ELSEWHERE:
        i, want = prepared(i)
    found = run(usual(i))
    said = [f"{n}: {why}" for n, w in enumerate(want or []) if (why := wrong(i, n, found[n], w))]
    said += [f"{n}: inferred {t}" for n, (t, got) in enumerate(zip(i.outs, found, strict=True)) if complete(t)
             and (got.shape, got.dtype) != (t.shape, t.type.dtype)]
    if i.variant.partition("to ")[0].strip() not in THOROUGH:
        return said
    return said + [way for way, make in WAYS.items() if told(run(make(i))) != told(found)]


@pytest.mark.parametrize(("name", "key"), rows(), ids=lambda v: v.name if isinstance(v, Type) else v)
def test_a_row_gives_what_it_means_whatever_way_it_runs(name: str, key: Type) -> None:
    made = [i for case in of(name, key) for i in instances(case) if i.key == key]
    assert made, "there is no case"
    found = {str(i): why for i in made if (why := faults(i))}
    assert not found


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_cases_of_every_operand_order_and_layout(name: str) -> None:
    op, cases = ROWS[name], [c for c in CASES if c.op == name]
    assert {c.form for c in cases} == set(range(len(op.forms)))
    for n, form in enumerate(op.forms):
        if any(p.name == "nchw" for p in form.params):
            assert {c.args.get("nchw", False) for c in cases if c.form == n} >= {False, True}


#: Operations without a case that has a tensor without elements: control flow hands over whatever there is; the rest
#: finds or remembers something for each of a batch that is never empty.
NEVER_EMPTY = {"IF", "WHILE", "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "QUANTIZED_LSTM",
               "QUANTIZED_16BIT_LSTM", "DETECTION_POSTPROCESSING", "GENERATE_PROPOSALS"}


def empty(i: Instance) -> bool:
    """Whether a tensor of a case has no elements."""
    return any(isinstance(a, Tensor) and any(known(n) and n == 0 for n in a.shape) for a in (*i.inputs, *i.outs))


@pytest.mark.parametrize("name", sorted(ROWS.keys() - NEVER_EMPTY))
def test_a_row_has_a_case_without_elements(name: str) -> None:
    assert any(empty(i) for c in CASES if c.op == name for i in instances(c))


def test_every_row_has_an_oracle_or_a_test_that_stands_for_it() -> None:
    assert ROWS.keys() == oracle.REAL.keys() | oracle.MOVED.keys() | ELSEWHERE.keys()
    assert not oracle.REAL.keys() & oracle.MOVED.keys() and not ELSEWHERE.keys() & (oracle.REAL | oracle.MOVED).keys()


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_test_that_stands_for_an_oracle_names_its_operation(name: str) -> None:
    text = (TESTS / "runtime" / "kernels" / ELSEWHERE[name]).read_text("utf-8")
    assert name in text
