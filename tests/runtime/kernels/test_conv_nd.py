"""Convolutions over any axes, by hand: whole numbers, padding that cuts, columns; ONNX's answers are the importers'."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.ops import conv_nd as c
from nnx_convert.schema import OpDef, OpError
from nnx_convert.types import C64, F16, F32, F64, I32, I64, Tensor

ROW = np.arange(1, 6).reshape(1, 1, 5)


def slides(pads: list[int], strides: list[int], dilations: list[int]) -> dict[str, Tensor]:
    """The arguments that say where a kernel goes."""
    return {n: tensor(v, I32) for n, v in (("pads", pads), ("strides", strides), ("dilations", dilations))}


def row(kind: Any, w: Any, pads: list[int], stride: int = 1, dilation: int = 1, b: Any = None,
        groups: int = 1) -> dict[str, Any]:
    """The arguments of a convolution of a row."""
    return {"x": tensor(ROW, kind), "w": tensor(w, kind), "b": None if b is None else tensor(b, kind),
            "groups": groups, **slides(pads, [stride], [dilation])}


PAIR = [[[1, 10]]]
CASES: list[tuple[OpDef, dict[str, Any], Any]] = [
    *((c.CONV_ND, row(kind, PAIR, [0, 0]), [[[21, 32, 43, 54]]]) for kind in (F32, F64, F16, I64, C64)),
    (c.CONV_ND, row(I64, PAIR, [1, 1], 2, b=[100]), [[[110, 132, 154]]]),
    (c.CONV_ND, row(I64, PAIR, [1, 0], 1, 3), [[[30, 41, 52]]]), (c.CONV_ND, row(I64, PAIR, [-1, -1]), [[[32, 43]]]),
    (c.CONV_ND, row(I64, np.zeros((1, 1, 0)), [0, 0], b=[3]), [[[3] * 6]]),
    (c.TRANSPOSE_CONV_ND, row(I64, PAIR, [0, 0]), [[[1, 12, 23, 34, 45, 50]]]),
    (c.TRANSPOSE_CONV_ND, row(I64, PAIR, [-1, -1]), [[[0, 1, 12, 23, 34, 45, 50, 0]]]),
    (c.TRANSPOSE_CONV_ND, row(I64, PAIR, [1, 2], 2, 3), [[[0, 2, 10, 3, 20, 4, 30, 5, 40]]]),
    (c.TRANSPOSE_CONV_ND, row(F32, [[[1], [2]]], [0, 0], b=[0.5, 0]), [[[1.5, 2.5, 3.5, 4.5, 5.5], [2, 4, 6, 8, 10]]]),
    (c.COL2IM, {"x": tensor([[[1, 2], [3, 4]]], I64), "sizes": tensor([3], I32), "kernel": tensor([2], I32),
                **slides([0, 0], [1], [1])}, [[[1, 5, 4]]]),
    (c.COL2IM, {"x": tensor([[[1, 2, 3], [4, 5, 6]]], I64), "sizes": tensor([2], I32), "kernel": tensor([2], I32),
                **slides([1, 1], [1], [1])}, [[[6, 8]]])]


@pytest.mark.parametrize(("op", "args", "want"), CASES, ids=[f"{o.name} {i}" for i, (o, _, _) in enumerate(CASES)])
def test_case(op: OpDef, args: dict[str, Any], want: Any) -> None:
    np.testing.assert_allclose(run_op(op, args)[0], want, rtol=1e-3)


def test_a_place_between_cells_is_interpolated_and_zeros_are_outside() -> None:
    offset = np.zeros((1, 2, 1, 3))
    offset[0, :, 0] = [[0, 0, -0.5], [0.25, -1, 0]]
    made = run_op(c.DEFORM_CONV, {
        "x": tensor([[[[1, 2, 3]]]], F32), "w": tensor([[[[1]]]], F32), "offset": tensor(offset, F32), "b": None,
        "mask": tensor(np.full((1, 1, 1, 3), 2), F32), "groups": 1, "offset_groups": 1,
        **slides([0, 0, 0, 0], [1, 1], [1, 1])})[0]
    assert made.reshape(-1).tolist() == [2.5, 2.0, 3.0]


#: What the table refuses, and with which words.
WRONG: list[tuple[OpDef, dict[str, Any], str]] = [
    (c.CONV_ND, row(F32, PAIR, [0]), "pads are two for each axis"),
    (c.CONV_ND, row(F32, PAIR, [0, 0], 0), "pads are two for each axis"),
    (c.CONV_ND, row(F32, PAIR, [0, 0], groups=2), "w is as deep as x / groups"),
    (c.TRANSPOSE_CONV_ND, row(F32, [*PAIR, *PAIR], [0, 0]), "w has a filter for each channel of x"),
    (c.COL2IM, {"x": tensor([[[1, 2]]], F32), "sizes": tensor([9], I32), "kernel": tensor([1], I32),
                **slides([0, 0], [1], [1])}, "x has the positions of the kernel")]


@pytest.mark.parametrize(("op", "args", "said"), WRONG, ids=[f"{o.name} {s}" for o, _, s in WRONG])
def test_what_does_not_fit_is_refused(op: OpDef, args: dict[str, Any], said: str) -> None:
    with pytest.raises(OpError, match=said):
        op.check(op.forms[0].operands(args, op.types), [])
