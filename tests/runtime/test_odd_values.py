"""Values that no model was meant to meet: NumPy and native code give the same, or say the same, for every operation."""
from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases_elementwise import CASES as ELEMENTWISE
from cases_image import CASES as IMAGE
from cases_models import CASES as MODELS
from cases_shape import CASES as SHAPE
from full import FULL
from odd import Array, answer, apart, bent, outcome
from row_case import GRIDS, Case, Instance, instances, keys, listed
from row_runs import usual
from row_twins import twin

from nnx_convert import CompiledModel, Model, NnxError
from nnx_convert.signature import Param
from nnx_convert.types import F16, F32, F64, I16, I32, I64, Q8S, U64, UNKNOWN, Tensor

CASES: list[Case] = [*ELEMENTWISE, *IMAGE, *SHAPE, *MODELS]
#: The types of the table's rows that are tried, and those of their twins.
KEYS, TWINS = (F32, F16, I32, Q8S), (I64, U64, I16, F64)
#: Operations that choose one of two values, or keep one within bounds: of two zeros, that is either.
CHOOSING = {"MAXIMUM", "MINIMUM", "RELU", "RELU1", "RELU6", "PRELU", "PRELU_EX", "ELU", "LEAKY_RELU", "RELU_0_TO_1",
            "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN"}
#: Sums and products in an order that is nobody's: of zeros, and of what cancels or overflows on the way, they give what
#: that order gives. So none of their numbers is finite and larger than this.
FOLDED = re.compile("CONV|MATMUL|FULLY|POOL|REDUCE_(SUM|PROD)|MEAN|LSTM|RNN|SVDF|NORMAL")
LARGE = 1e3
#: Of so many cases and types one is tried.
STEP = 1 if FULL else 8


def signed(i: Instance) -> bool:
    """Whether a zero has the sign that the formula gives it."""
    return i.op.name.removeprefix("host.") not in CHOOSING and not FOLDED.search(i.op.name) and not i.args.get("act")


def made(case: Case) -> Iterator[Instance]:
    """The case for some of the types that its row has, and for some that only the host's has."""
    for i in instances(case, {"middle": GRIDS["middle"]}):
        if i.key in KEYS and "channel" not in i.variant:
            yield i
    plain = next((i for i in instances(case, {"middle": GRIDS["middle"]}) if i.key in (F32, I32)), None)
    if plain is not None:
        yield from filter(None, (twin(plain, t) for t in TWINS))


def drawn(i: Instance, given: list[Array]) -> Iterator[list[Array]]:
    """Its inputs with odd numbers among them, few and many."""
    rng = np.random.default_rng(zlib.crc32(str(i).encode()))
    for share in (0.3, 1.0):
        found = [bent(x, rng, share) for x in given]
        yield [np.where(np.isfinite(x) & (np.abs(x) > LARGE), x.dtype.type(1), x)
               if x.dtype.kind == "f" and FOLDED.search(i.op.name) else x for x in found]


def full(i: Instance) -> Instance:
    """The case without weights of 0, which native code leaves out, whatever they meet: docs/values.md."""
    def of(p: Param, a: Any) -> Any:
        zero = isinstance(a, Tensor) and p.name == "w" and a.data is not None and not np.all(a.data)
        return replace(a, data=np.where(a.data == 0, a.type.dtype.type(1), a.data)) if zero else a
    return replace(i, inputs=tuple(of(p, a) for (p, _), a in zip(listed(i.case), i.inputs, strict=True)))


ROWS = sorted({c.op for c in CASES})


@pytest.mark.parametrize("name", ROWS)
def test_a_row_gives_the_same_natively(name: str) -> None:
    wrong = {}
    for i in [i for case in CASES if case.op == name for i in made(case)][::STEP]:
        model, given = usual(full(i))
        numpy, native = (CompiledModel(model, backend=b, threads=1) for b in ("numpy", "native"))
        for values in drawn(i, given):
            if why := apart(answer(numpy, values), answer(native, values), signed(i)):
                wrong[f"{i}"] = why
    assert not wrong


def emptied(i: Instance) -> Iterator[tuple[str, Model, list[Array]]]:
    """The case with a size of 0 in place of each size of each tensor that is fed: models, as far as they are any."""
    for n, a in enumerate(i.inputs):
        for axis in range(a.rank) if isinstance(a, Tensor) and i.fed[n] and a.data is not None else ():
            shape = (*a.shape[:axis], 0, *a.shape[axis + 1:])
            inputs = (*i.inputs[:n], replace(a, dims=shape, data=np.zeros(shape, a.type.dtype)), *i.inputs[n + 1:])
            outs = tuple(replace(t, dims=t.dims and (UNKNOWN,) * t.rank) for t in i.outs)
            with suppress(NnxError):
                yield f"{i} input {n} axis {axis}", *usual(replace(i, inputs=inputs, outs=outs))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_without_elements_gives_the_same_natively(name: str) -> None:
    cases = [c for c in CASES if c.op == name]
    some = cases if FULL else {c.form: c for c in cases}.values()
    tried = [each for case in some for i in made(case) if i.key == keys(case)[0] for each in emptied(i)]
    found = {label: (outcome(m, given, "numpy"), outcome(m, given, "native")) for label, m, given in tried}
    assert not {label: why for label, (one, other) in found.items() if (why := apart(one, other))}
