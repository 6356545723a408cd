"""Cases of ONNX's own suite with every size of every input open: the same answer, or refused for want of sizes."""
from __future__ import annotations

import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import nnx_convert
from nnx_convert.errors import Unsupported

#: Every so many cases; and those whose answer is drawn, is not a number, or holds for the suite's own rounding only.
STEP, PARTS = 16, 4
APART = re.compile("bernoulli|random|dropout|image_decoder|bf16|fp16|FLOAT8|BFLOAT16|FLOAT4|INT4|INT2|gradient")


@cache
def cases() -> dict[str, Any]:
    """The cases on tensors, by name."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")          # the suite's own sums overflow
        found = [c for c in load_model_tests(kind="node") if not APART.search(c.name)]
    tensors = [c for c in found if all(
        p.type.WhichOneof("value") == "tensor_type" for p in (*c.model.graph.input, *c.model.graph.output))]
    return {c.name: c for c in tensors[::STEP]}


def opened(model: onnx.ModelProto) -> bytes:
    """The model with a name for each size of its inputs, and nothing said of other values."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for p in made.graph.input:
        for i, dim in enumerate(p.type.tensor_type.shape.dim):
            dim.dim_param = f"{p.name}_{i}"
    for p in made.graph.output:
        p.type.tensor_type.ClearField("shape")
    del made.graph.value_info[:]
    return bytes(made.SerializeToString())


def answer(case: Any) -> str:
    """What is wrong with the answer at open sizes; empty where it is right, or refused for want of sizes."""
    try:
        compiled = nnx_convert.compile(opened(case.model), threads=1)
    except Unsupported as error:
        return "" if any(word in error.text for word in ("open", "computed", "no counterpart")) else str(error)
    for inputs, outputs in case.data_sets:
        given, want = ([numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
                       for values in (inputs, outputs))
        for found, expected in zip(compiled.run(given), map(np.asarray, want), strict=True):
            if found.shape != expected.shape or expected.dtype not in (found.dtype, object):
                return f"{found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
            if not close(found, expected, case):
                return f"{found} is not {expected}"
    return ""


def close(found: Any, expected: Any, case: Any) -> bool:
    """Whether numbers are equal, floats as far as the case wants."""
    if expected.dtype.kind in "fc":
        return np.allclose(found, expected, rtol=case.rtol, atol=max(case.atol, 1e-6), equal_nan=True)
    return np.array_equal(found.astype(expected.dtype), expected)


@pytest.mark.parametrize("part", range(PARTS))
def test_open_sizes_do_not_change_the_answer(part: int) -> None:
    found = {name: answer(case) for name, case in list(cases().items())[part::PARTS]}
    assert not {name: why for name, why in found.items() if why}
