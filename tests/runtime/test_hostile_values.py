"""Indices, axes and sizes that only a run tells and that make no sense: an error with words, or an answer, the same in
NumPy and natively."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases_elementwise import CASES as ELEMENTWISE
from cases_image import CASES as IMAGE
from cases_models import CASES as MODELS
from cases_shape import CASES as SHAPE
from odd import apart, outcome
from row_case import GRIDS, Case, Instance, c, instances, keys, listed
from row_runs import run, whole
from scarce import scarce

from nnx_convert import RunError
from nnx_convert.resources import VARIABLE
from nnx_convert.types import I32, UNKNOWN, Scalar, Tensor, Type

CASES: list[Case] = [*ELEMENTWISE, *IMAGE, *SHAPE, *MODELS]
HOSTILE = [-2 ** 31, -5, -2, -1, 0, 1, 2, 3, 5, 7, 64, 2 ** 31 - 1]
#: Tries for each case, and what a kernel may take for itself.
TRIES, ROOM = 2, 2 << 30


def bent(i: Instance, rng: np.random.Generator) -> Instance:
    """The same with some of its whole numbers changed; what follows for the outputs is left to the run."""
    inputs = list(i.inputs)
    for n, a in enumerate(inputs):
        if isinstance(a, Tensor) and a.type == I32 and a.quant is None and a.data is not None and rng.random() < 0.6:
            changed = rng.random(a.data.shape) < 0.5
            inputs[n] = replace(a, data=np.where(changed, rng.choice(HOSTILE, a.data.shape), a.data).astype(np.int32))
        elif isinstance(a, Scalar) and a.type == Type.INT32 and rng.random() < 0.3:
            inputs[n] = Scalar(a.type, int(rng.choice(HOSTILE)))
    outs = i.outs if rng.random() < 0.5 else tuple(replace(t, dims=t.dims and (UNKNOWN,) * t.rank) for t in i.outs)
    return replace(i, inputs=tuple(inputs), outs=outs)


def whole_numbers(i: Instance) -> bool:
    """Whether there is something to change."""
    return any(isinstance(a, Tensor | Scalar) and a.type in (I32, Type.INT32) for a in i.inputs)


def first(case: Case) -> Instance:
    """The case for the first type it is made for."""
    return next(i for i in instances(case, {"middle": GRIDS["middle"]}) if i.key == keys(case)[0])


MADE = [i for i in map(first, CASES) if whole_numbers(i)]


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Little memory, and short loops."""
    monkeypatch.setenv(VARIABLE, "total_bytes=64M,loop_seconds=0.2")
    with scarce(ROOM):
        yield


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("name", sorted({i.op.name for i in MADE}))
def test_numbers_of_a_run_that_make_no_sense(name: str) -> None:
    rng, wrong = np.random.default_rng(1), dict[str, str]()
    for i in (bent(i, rng) for i in MADE if i.op.name == name for _ in range(TRIES)):
        model, given = whole(i)
        numpy, native = (outcome(model, given, backend) for backend in ("numpy", "native"))
        late = name == "WHILE" and "runs longer" in f"{numpy}{native}"
        if not late and (why := apart(numpy, native, signs=False)):
            wrong[f"{i}"] = why
    assert not wrong


WINDOW = {"w": (1, 3, 3, 1), "b": (1,), "act": 0, "sw": 1, "sh": 1}
AMOUNTS = WINDOW | {"pl": 0, "pr": 0, "pt": 0, "pb": 0}
#: A case, what a run changes in it, and what is said then.
REFUSED: list[tuple[Case, dict[str, Any], str]] = [
    (c("TILE", x=(2, 3), multiples=[2, 1]), {"multiples": [2, -1]}, r"output 0 would have the shape \[4, -3\]"),
    (c("FILL", dims=[2, 3], value=1), {"dims": [2, -3]}, r"output 0 would have the shape \[2, -3\]"),
    (c("BATCH_TO_SPACE_ND", x=(12, 1, 1, 1), blocks=[2, 3]), {"blocks": [2, 7]}, "blocks divides the batch"),
    (c("CONV_2D", 1, x=(1, 4, 4, 1), **WINDOW, scheme=2, nchw=False, dw=1, dh=1), {"dw": 3, "dh": 3},
     r"output 0 would have the shape \[1, -2, -2, 1\]"),
    (c("CONV_2D", x=(0, 4, 4, 1), **AMOUNTS), {"pl": 2 ** 31 - 1}, "bytes, 67,108,864 at most"),
    (c("DEPTHWISE_CONV_2D", x=(0, 4, 4, 1), **AMOUNTS, mult=1), {"pl": 2 ** 31 - 1}, "bytes, 67,108,864 at most"),
    (c("GATHER", x=(2, 3), axis=0, indices=[1]), {"indices": [2]}, "2"),
    (c("REDUCE_SUM", x=(2, 3), axes=[0], keep=False), {"axes": [2]}, r"axes are in \[-rank, rank\) of x")]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("case", "changed", "says"), REFUSED, ids=lambda v: v.op if isinstance(v, Case) else "")
def test_what_is_said_of_them(case: Case, changed: dict[str, Any], says: str) -> None:
    i = first(case)
    inputs = [a if p.name not in changed else replace(a, data=np.array(changed[p.name], np.int32))
              if isinstance(a, Tensor) else replace(a, value=changed[p.name])
              for a, (p, _) in zip(i.inputs, listed(case), strict=True)]
    outs = tuple(replace(t, dims=(UNKNOWN,) * t.rank) for t in i.outs)
    run(whole(i))
    with pytest.raises(RunError, match=says):
        run(whole(replace(i, inputs=tuple(inputs), outs=outs)))
