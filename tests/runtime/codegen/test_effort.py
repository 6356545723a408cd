"""How many threads a program is worth."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert import OperandCode
from nnx_convert.ops import conv, elementwise
from nnx_convert.runtime.bind import Bound
from nnx_convert.runtime.codegen.effort import LEAST, effort, worth
from nnx_convert.types import F32, Q8S, Quant, Tensor


def product(rows: int, depth: int, units: int, type_: OperandCode = F32) -> Bound:
    """A product by a constant matrix."""
    grid = Quant(0.5, 0) if type_ is Q8S else None
    x, w, out = (Tensor(type_, shape, grid) for shape in ((rows, depth), (units, depth), (rows, units)))
    return Bound(op=conv.FULLY_CONNECTED, args={"x": x, "w": w, "b": None, "act": 0}, slots={"x": 0, "w": 1, "b": 2},
                 outs=(out,), outputs=(3,), origin="")


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (4096, 8)])
def test_a_small_program_has_one_thread(rows: int, threads: int) -> None:
    assert worth(8, [product(rows, 64, 64)]) == threads


def test_many_small_operations_are_worth_several() -> None:
    one = product(1, 256, 256)
    assert worth(2, [one]) == 1
    assert worth(2, [one] * int(LEAST / effort(one) + 2)) == 2


def test_bytes_take_less_than_floats() -> None:
    assert effort(product(64, 64, 64, Q8S)) < effort(product(64, 64, 64)) / 2


def test_what_multiplies_nothing_counts_by_its_elements() -> None:
    out = Tensor(F32, (1, 1024, 1024, 4))
    add = Bound(op=elementwise.ADD, args={"x": out, "y": out, "act": 0}, slots={"x": 0, "y": 1}, outs=(out,),
                outputs=(2,), origin="")
    assert effort(add) > LEAST
    assert np.isclose(effort(add), out.size / 3000)
