"""What the table says is elementwise is: turned operands give the turned result."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op

from nnx_convert.errors import RunError
from nnx_convert.lowering.elements import elementwise
from nnx_convert.ops import classical, conv, elementwise as e, gather, host, host_math, norm, shape
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OPS, OpDef
from nnx_convert.signature import Param
from nnx_convert.types import B8, F32, I32, Q8, STR, Quant, Tensor, Type

FOUND = [op.name for op in OPS.values() if elementwise(op)]
SIZES, TURN = (2, 3, 5), (2, 0, 1)
NUMBERS = {"float": 0.5, "int": 1, "bool": False}


def operand(op: OpDef, p: Param, key: Type, rng: np.random.Generator) -> Any:
    """Something for a parameter: a tensor of small positive numbers, or a number."""
    types = p.kind.allowed(key, op.types)
    if p.kind.output == "type" or p.name == "to":
        return Q8 if Q8 in types else next(iter(types), key)
    groups = p.kind.groups(op.types)
    if "tensor" not in groups:
        return p.default if p.default is not p.required else NUMBERS[sorted(groups)[0]]
    code = key if key in types else next(iter(types))
    data: Any = rng.uniform(0.1, 0.9, SIZES) if code.dtype.kind in "fc" else rng.integers(1, 7, SIZES)
    data = data > 3 if code.dtype == bool else np.frompyfunc(bytes, 1, 1)(data) if code == STR else data
    quant = None if code.dtype.kind in "fcb" or code.dtype.itemsize > 2 else Quant(0.125, 0)
    return Tensor(code, SIZES, quant, np.asarray(data, code.dtype))


def answers(op: OpDef, key: Type) -> list[Any]:
    """What the kernel makes of tensors, and of the same turned; nothing where it takes no such type."""
    rng = np.random.default_rng(len(op.name))
    args = {p.name: operand(op, p, key, rng) for p in op.params}
    turned = {n: a if not isinstance(a, Tensor) or a.data is None else Tensor(
        a.type, tuple(SIZES[i] for i in TURN), a.quant, np.ascontiguousarray(a.data.transpose(TURN)))
        for n, a in args.items()}
    inferred = op.infer(args, 1)[0]
    if inferred.dims != SIZES:
        return []
    quant = inferred.quant or (Quant(0.25, 0) if inferred.type.dtype.itemsize == 1 else None)
    try:
        return [run_op(op, a, Tensor(inferred.type, None, quant))[0] for a in (args, turned)]
    except (RunError, AttributeError, AssertionError):       # of kernels that are never given this type
        return []


@pytest.mark.parametrize("name", FOUND)
def test_turned_operands_give_the_turned_result(name: str) -> None:
    found = [pair for key in dict.fromkeys([F32, I32, Q8, B8, *OPS[name].types][:5])
             if key in OPS[name].types and (pair := answers(OPS[name], key))]
    assert found
    for want, got in found:
        assert got.shape == want.transpose(TURN).shape
        if want.dtype == object:
            np.testing.assert_array_equal(got, want.transpose(TURN))
        else:
            np.testing.assert_allclose(got, want.transpose(TURN), rtol=1e-6)


@pytest.mark.parametrize("op", [
    e.ADD, e.SELECT, host.WHERE, host_math.GELU, host_twin(e.PRELU), host_twin(host.SQUARE)], ids=lambda op: op.name)
def test_it_is(op: OpDef) -> None:
    assert elementwise(op)


@pytest.mark.parametrize("op", [
    norm.SOFTMAX, norm.INSTANCE_NORMALIZATION, host_math.CUMSUM, host.MATMUL, host.NON_ZERO, host.TOPK_FIRST,
    conv.CONV_2D, gather.GATHER, classical.LOOKUP, shape.RESHAPE, shape.CONCATENATION, shape.TRANSPOSE,
    host_math.RANDOM_UNIFORM], ids=lambda op: op.name)
def test_it_is_not(op: OpDef) -> None:
    assert not elementwise(op)
