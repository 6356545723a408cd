"""Random models of one operator give what LiteRT's reference kernels give, bit for bit, where LiteRT is installed."""
from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from litert_cases import CASES
from one_operator import Case, write
from recurrent_cases import FILES
from wide_cases import CASES as WIDE

from nnx_convert import CompiledModel, convert

INSTALLED = find_spec("ai_edge_litert") is not None
Array = np.ndarray[Any, Any]


def drawn(case: Case, seed: int) -> list[Array]:
    """An input for each tensor that is fed."""
    r, found = np.random.default_rng(seed), list[Array]()
    for t in case.inputs:
        if t is not None and t.data is None and not t.variable:
            kind = np.dtype(t.dtype)
            info = None if kind.kind == "f" else np.iinfo(kind)
            values = r.normal(size=t.shape) if info is None else r.integers(info.min, info.max + 1, t.shape)
            found.append(values.astype(kind))
    return found


def expected(file: bytes, runs: list[list[Array]]) -> list[list[Array]]:
    """What the reference kernels give, run after run."""
    litert = import_module("ai_edge_litert.interpreter")
    kernels = litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model_content=file, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    found = []
    for values in runs:
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found.append([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()])
    return found


@pytest.mark.parametrize("name", CASES | WIDE if INSTALLED else [])
def test_an_operator_gives_what_litert_gives(name: str) -> None:
    for seed, case in enumerate((CASES | WIDE)[name]):
        file, values = write(case), drawn(case, seed)
        for got, want in zip(CompiledModel(convert(file)).run(values), expected(file, [values])[0], strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{name} {seed}")


@pytest.mark.parametrize("name", FILES if INSTALLED else [])
def test_a_recurrent_operator_gives_what_litert_gives(name: str) -> None:
    make, tolerance = FILES[name]
    for seed in range(6):
        file, r = make(seed), np.random.default_rng(seed)
        model = CompiledModel(convert(file))
        shape, dtype = model.inputs[0].shape or (), model.inputs[0].dtype
        runs = [[(r.normal(size=shape) if dtype.kind == "f" else r.integers(-128, 128, shape)).astype(dtype)]
                for _ in range(3)]
        for n, (values, want) in enumerate(zip(runs, expected(file, runs), strict=True)):
            for got, one in zip(model.run(values), want, strict=True):
                np.testing.assert_allclose(got, one, rtol=0, atol=tolerance, err_msg=f"{name} {seed} {n}")
