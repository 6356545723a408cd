"""Data movement: hand-made cases, and NumPy's own functions on random shapes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_model import Operand, check, ints, q, run, t

from nnx_convert import NnxError, OperandCode
from nnx_convert.runtime.kernels.shape import merged

RAMP = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
LINE = np.arange(1, 4, dtype=np.float32)
S8 = OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
PAIRS = ints([1, 0], [0, 2])
PADDED = [[7, 7, 7, 7, 7], [0, 1, 2, 7, 7], [3, 4, 5, 7, 7]]

#: Operation, arguments, outputs.
CASES: dict[str, tuple[str, list[Any], list[Operand]]] = {
    "reshape, -1": ("RESHAPE", [t(RAMP), ints(4, -1)], [t(RAMP.reshape(4, 6))]),
    "reshape to a size a run gives": ("RESHAPE", [t(RAMP), t([6, 4], np.int32)], [t(RAMP.reshape(6, 4)).open()]),
    "squeeze all": ("SQUEEZE", [t(LINE.reshape(1, 3, 1)), None], [t(LINE)]),
    "squeeze one": ("SQUEEZE", [t(LINE.reshape(1, 3, 1)), ints(-1)], [t(LINE.reshape(1, 3))]),
    "expand": ("EXPAND_DIMS", [t(MATRIX), -1], [t(MATRIX.reshape(2, 3, 1))]),
    "transpose": ("TRANSPOSE", [t(RAMP), ints(2, 0, 1)], [t(RAMP.transpose(2, 0, 1))]),
    "transpose, no perm": ("TRANSPOSE", [t(MATRIX), None], [t(MATRIX.T)]),
    "transpose, perm of a run": ("TRANSPOSE", [t(MATRIX), t([1, 0], np.int32)], [t(MATRIX.T)]),
    "concatenate": ("CONCATENATION", [t(MATRIX), t(MATRIX + 9), 1], [t(np.concatenate([MATRIX, MATRIX + 9], 1))]),
    # 0.5 * 3 = 1.5 and 0.5 * 5 = 2.5 lie halfway: away from zero.
    "concatenate grids": ("CONCATENATION", [q([0, 3, 5], 0.5), q([7], 1.0, 5), 0], [q([0, 2, 3, 2], 1.0)]),
    "concatenate signed grids": ("CONCATENATION", [q([-128, -3, 127], 0.5, 1, np.int8), q([7], 2.0, 1, np.int8), 0],
                                 [q([-67, -4, 61, 10], 1.0, -2, np.int8)]),
    "pack": ("PACK", [1, t(LINE), t(-LINE)], [t(np.stack([LINE, -LINE], 1))]),
    "split": ("SPLIT", [t(MATRIX), -1, 3], [t(MATRIX[:, i:i + 1]) for i in range(3)]),
    "slice to the end": ("SLICE", [t(RAMP), ints(1, 0, 2), ints(-1, 2, 1)], [t(RAMP[1:, :2, 2:3])]),
    "slice of nothing": ("SLICE", [t(LINE), ints(1), ints(0)], [t(LINE[1:1]).open()]),
    "strided, backwards": ("STRIDED_SLICE", [t(MATRIX), ints(-1, 2), ints(0, -4), ints(-1, -2), 0, 0, 0],
                           [t(MATRIX[-1:0:-1, 2::-2])]),
    "strided, clamped": ("STRIDED_SLICE", [t(LINE), ints(-9), ints(9), ints(2), 0, 0, 0], [t(LINE[::2])]),
    "strided, masks": ("STRIDED_SLICE", [t(MATRIX), ints(1, 1), ints(0, 0), ints(1, 1), 1, 3, 0], [t(MATRIX[:, 1:])]),
    "strided, shrunk": ("STRIDED_SLICE", [t(RAMP), ints(1, -1, 0), ints(2, 3, 4), ints(1, 1, 2), 0, 0, 3],
                        [t(RAMP[1, -1, ::2])]),
    "strided, shrunk to a number": ("STRIDED_SLICE", [t(LINE), ints(1), ints(2), ints(1), 0, 0, 1], [t(LINE[1:2])]),
    "pad": ("PAD", [t(LINE), ints([1, 2])], [t([0, *LINE, 0, 0])]),
    "pad with the zero point": ("PAD", [q([1, 2], 0.5, 9), ints([1, 0])], [q([9, 1, 2], 0.5, 9)]),
    "pad signed": ("PAD", [q([1, 2], 0.5, -9, np.int8), ints([0, 1])], [q([1, 2, -9], 0.5, -9, np.int8)]),
    "pad with a value": ("PAD_V2", [t(MATRIX), PAIRS, 7.0], [t(PADDED)]),
    "pad with a stored byte": ("PAD_V2", [q([1, 2], 0.5, 9), ints([1, 0]), 3], [q([3, 1, 2], 0.5, 9)]),
    "reflect": ("MIRROR_PAD", [t(LINE), ints([2, 1]), 0], [t([3, 2, 1, 2, 3, 2])]),
    "symmetric": ("MIRROR_PAD", [t(LINE), ints([2, 1]), 1], [t([2, 1, 1, 2, 3, 3])]),
    "tile": ("TILE", [t(MATRIX), ints(2, 1)], [t(np.tile(MATRIX, (2, 1)))]),
    "tile by a run's numbers": ("TILE", [t(MATRIX), t([1, 3], np.int32)], [t(np.tile(MATRIX, (1, 3))).open()]),
    "tile no times": ("TILE", [t(MATRIX), ints(0, 1)], [t(np.zeros((0, 3))).open()]),
    "reverse": ("REVERSE", [t(RAMP), ints(1)], [t(RAMP[:, ::-1])]),
    "shuffle": ("CHANNEL_SHUFFLE", [t([[0, 1, 2, 3, 4, 5]]), 2, -1], [t([[0, 3, 1, 4, 2, 5]])]),
    "fill": ("FILL", [ints(2, 2), 4], [t([[4, 4], [4, 4]], np.int32)]),
    "fill sizes of a run": ("FILL", [t([3], np.int32), 0.5], [t([0.5] * 3).open()]),
    "rank": ("RANK", [t(RAMP)], [Operand(np.asarray(3, np.int32), OperandCode.INT32)]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    op, args, outs = CASES[name]
    check(op, args, *outs)


@pytest.mark.parametrize("type_", ["TENSOR_INT64", "TENSOR_FLOAT64", "TENSOR_INT16", "TENSOR_COMPLEX64"])
def test_the_host_moves_any_type(type_: str) -> None:
    code = OperandCode[type_]
    x = Operand(np.array([[1, 2, 3], [4, 5, 6]], code.dtype), code)
    check("host.TRANSPOSE", [x, ints(1, 0)], Operand(x.value.T.copy(), code))
    check("host.CONCATENATION", [x, x, 0], Operand(np.concatenate([x.value, x.value]), code))


#: What a run refuses, and the words it does so with.
REFUSED = {
    "reshape of another size": ("RESHAPE", [t(RAMP), t([5, 5], np.int32)], [t(np.zeros((5, 5))).open()], "sizes agree"),
    "declared of another size": ("RESHAPE", [t(RAMP), t([4, 6], np.int32)], [t(np.zeros((5, 5)))], "does not fit"),
    "slice beyond the end": ("SLICE", [t(LINE), t([2], np.int32), t([2], np.int32)], [t([0, 0]).open()], "within x"),
    "perm of a run": ("TRANSPOSE", [t(MATRIX), t([1, 1], np.int32)], [t(MATRIX)], "permutation"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str) -> None:
    op, args, outs, words = REFUSED[name]
    with pytest.raises(NnxError, match=words):
        run(op, args, outs)


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6).map(tuple), st.randoms())
def test_merging_axes_keeps_a_transposition(shape: tuple[int, ...], random: Any) -> None:
    perm = random.sample(range(len(shape)), len(shape))
    x = np.arange(np.prod(shape)).reshape(shape)
    fewer, order = merged(shape, perm)
    np.testing.assert_array_equal(x.reshape(fewer).transpose(order).reshape(-1), x.transpose(perm).reshape(-1))


@pytest.mark.parametrize("shape, perm", [
    ((130, 200), (1, 0)), ((2, 70, 3, 90), (0, 3, 1, 2)), ((130, 2, 129), (2, 1, 0)),
    ((1, 1), (1, 0)), ((0, 3), (1, 0))])
def test_transposition_in_bands(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    check("host.TRANSPOSE", [t(x, np.int32), ints(*perm)], t(x.transpose(perm), np.int32))


@settings(max_examples=60)
@given(SHAPES, st.sampled_from(["reflect", "symmetric"]), st.data())
def test_mirrors_are_numpys(shape: tuple[int, ...], mode: str, data: st.DataObject) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    most = [n - (mode == "reflect") for n in shape]
    pads = [(data.draw(st.integers(0, m)), data.draw(st.integers(0, m))) for m in most]
    check("MIRROR_PAD", [t(x), ints(*pads), int(mode == "symmetric")], t(np.pad(x, pads, mode)))  # type: ignore[call-overload]


@settings(max_examples=60)
@given(SHAPES, st.data())
def test_strides_are_pythons(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    cuts = [(data.draw(st.integers(-7, 7)), data.draw(st.integers(-7, 7)),
             data.draw(st.integers(-3, 3).filter(bool))) for _ in shape]
    want = x[tuple(slice(*cut) for cut in cuts)]
    begin, end, strides = zip(*cuts, strict=True)
    check("STRIDED_SLICE", [t(x), ints(*begin), ints(*end), ints(*strides), 0, 0, 0], t(want).open())
