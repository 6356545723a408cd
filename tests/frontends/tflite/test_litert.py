"""The importers' cases, run: LiteRT's reference kernels are the oracle where ai-edge-litert is installed."""
from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from nnx_convert import CompiledModel, convert

from .cases import CASES
from .host_cases import HOST
from .one_operator import Case, T, write

Array = np.ndarray[Any, Any]
INSTALLED = find_spec("ai_edge_litert") is not None
#: |got - want| <= TOLERANCE * (1 + |want|).
TOLERANCE = 1e-5


#: What the reference kernels do wrong, and the others right: a window of channels lacks its last one.
FAULTY = {"LOCAL_RESPONSE_NORMALIZATION"}
#: Cases that LiteRT refuses, by words of its reason.
REFUSED = {
    "LOGISTIC-host.LOGISTIC": "1. / 256", "L2_NORMALIZATION-L2_NORMALIZATION+RELU": "kTfLiteActNone",
    "CONCATENATION-CONCATENATION+RELU6": "kTfLiteActNone", "FAKE_QUANT-FAKE_QUANT": "narrow_range",
    "STRIDED_SLICE-STRIDED_SLICE": "INT64", "CONV_2D-CONV_2D": "quantized_dimension|has_bias"}
#: Cases it is not asked about: it passes over that activation in silence, dies of a computed offset, and draws others.
IGNORED = {"SUB-SUB+TANH", "STRIDED_SLICE-ADD+STRIDED_SLICE", "MULTINOMIAL-RANDOM_MULTINOMIAL"}


def drawn(t: T, r: np.random.Generator) -> Array:
    """Values for an input: what its case says; else bytes over their whole range, other integers small."""
    kind = np.dtype("int8" if t.dtype == "int4" else t.dtype)
    if t.fed is not None:
        return np.asarray(t.fed, kind)
    if kind.kind == "b":
        return np.asarray(r.integers(0, 2, t.shape)).astype(kind)
    if kind.kind in "fc":
        parts = 2 * r.normal(size=(2, *(t.shape or ())))
        return np.asarray(parts[0] + 1j * parts[1] if kind.kind == "c" else parts[0]).astype(kind)
    whole = np.iinfo(kind)
    low, high = (whole.min, whole.max) if kind.itemsize == 1 else (-5, 5)
    return np.asarray(r.integers(low, high + 1, t.shape)).astype(kind)


def expected(file: bytes, inputs: Sequence[Array], kernels: str) -> list[Array] | str:
    """The outputs LiteRT gives, or why it refuses the model. `kernels`: BUILTIN_REF, or another set."""
    litert = import_module("ai_edge_litert.interpreter")
    try:
        interpreter = litert.Interpreter(
            model_content=file, experimental_op_resolver_type=litert.OpResolverType[kernels])
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    except (RuntimeError, ValueError) as error:
        return str(error)


def oracle(case: Case, file: bytes, inputs: Sequence[Array]) -> list[Array] | str:
    """The reference kernels' outputs; those of the others where there is none, or a faulty one."""
    others = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    found = expected(file, inputs, others if case.name in FAULTY else "BUILTIN_REF")
    return expected(file, inputs, others) if isinstance(found, str) and "Didn't find op" in found else found


@pytest.mark.parametrize("case", [c for c in (*CASES, *HOST) if str(c) not in IGNORED] if INSTALLED else [], ids=str)
def test_an_operator_gives_what_litert_gives(case: Case) -> None:
    r = np.random.default_rng(0)
    inputs = [drawn(t, r) for t in case.inputs if t is not None and t.data is None and not t.variable]
    file = write(case)
    want = oracle(case, file, inputs)
    if isinstance(want, str):
        assert re.search(REFUSED.get(str(case), "^$"), want)
        return
    for got, golden in zip(CompiledModel(convert(file)).run(inputs), want, strict=True):
        assert (got.shape, got.dtype) == (golden.shape, golden.dtype)
        if golden.dtype.kind in "fc":
            np.testing.assert_allclose(got, golden, rtol=TOLERANCE, atol=TOLERANCE)
        else:
            np.testing.assert_array_equal(got, golden)
