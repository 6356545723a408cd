"""DENSIFY: every order, block map and format of random tensors comes back; every broken list is refused by its rule."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_model import Operand, check, ints, model, run, t

from nnx_convert import ModelError, OperandCode, ResultCode, RunError

Array = np.ndarray[Any, Any]
#: The nine types, with a grid where they have one: its zero point is what is not stored.
TYPES = {"TENSOR_FLOAT16": (0, 0), "TENSOR_FLOAT32": (0, 0), "TENSOR_QUANT8_SYMM": (0.25, 0),
         "TENSOR_QUANT8_ASYMM": (0.5, 7), "TENSOR_QUANT8_ASYMM_SIGNED": (0.5, -9), "TENSOR_BOOL8": (0, 0),
         "TENSOR_INT32": (0, 0), "TENSOR_QUANT16_SYMM": (0.25, 0), "TENSOR_QUANT16_ASYMM": (0.5, 300)}


@dataclass(frozen=True)
class Coded:
    """DENSIFY's operands as lists; `pairs` has None for the lists of a dense level."""

    stored: list[Any]
    order: list[int]
    blocks: list[int] | None
    formats: list[int]
    dims: list[int]
    pairs: list[list[int] | None]


def encode(dense: Array, order: Sequence[int], blocks: Sequence[int], sizes: Sequence[int], formats: Sequence[int],
           zero: int) -> Coded:
    """The coding of a tensor, element by element: what the header says, read literally.

    `sizes` are the block sizes of `blocks`' dimensions; the tensor is split into those and laid out by `order`.
    """
    n = dense.ndim
    outer = list(dense.shape)
    split: list[int] = []
    block_of = dict(zip(blocks, sizes, strict=True))
    for axis in range(n):
        outer[axis] //= block_of.get(axis, 1)
        split += [outer[axis], block_of[axis]] if axis in block_of else [outer[axis]]
    where = {axis: axis + sum(b < axis for b in blocks) for axis in range(n)}
    where |= {n + i: where[b] + 1 for i, b in enumerate(blocks)}
    laid = dense.reshape(split).transpose([where[axis] for axis in order])
    parts: list[tuple[int, ...]] = [()]
    pairs: list[list[int] | None] = []
    for level, format_ in enumerate(formats):
        segments, indices, after = [0], list[int](), list[tuple[int, ...]]()
        for part in parts:
            for i in range(laid.shape[level]):
                if format_ == 0 or np.any(laid[(*part, i)] != zero):
                    indices.append(i)
                    after.append((*part, i))
            segments.append(len(indices))
        pairs += [segments, indices] if format_ else [None, None]
        parts = after
    return Coded([laid[p] for p in parts], list(order), list(blocks) or None, list(formats), list(laid.shape), pairs)


def operands(c: Coded, code: OperandCode = OperandCode.TENSOR_FLOAT32, scale: float = 0, zero: int = 0) -> list[Any]:
    """The coding as arguments; what cannot be a constant, because it is empty, is an input."""
    lists = (c.order, c.blocks, c.formats, c.dims, *c.pairs)
    return [Operand(np.array(c.stored, code.dtype), code, scale, zero),
            *(None if v is None else ints(*v) if v else t([], np.int32).open() for v in lists)]


def one(dense: Array, c: Coded, code: OperandCode = OperandCode.TENSOR_FLOAT32, scale: float = 0,
        zero: int = 0) -> None:
    """The coding gives the tensor."""
    check("DENSIFY", operands(c, code, scale, zero), Operand(dense, code, scale, zero))


def random_tensor(shape: Sequence[int], code: OperandCode, zero: int, seed: int) -> Array:
    """A tensor, mostly of what is not stored."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 100, shape)
    return np.where(random.random(shape) < 0.3, values, zero).astype(code.dtype)


@st.composite
def codings(draw: st.DrawFn) -> tuple[str, Array, Coded]:
    """A type, a tensor and one of its codings."""
    name = draw(st.sampled_from(sorted(TYPES)))
    n = draw(st.integers(1, 4))
    blocks = sorted(draw(st.sets(st.integers(0, n - 1))))
    sizes = draw(st.lists(st.integers(1, 3), min_size=len(blocks), max_size=len(blocks)))
    shape = [draw(st.integers(1, 3)) * dict(zip(blocks, sizes, strict=True)).get(axis, 1) for axis in range(n)]
    order = [*draw(st.permutations(range(n))), *draw(st.permutations(range(n, n + len(blocks))))]
    formats = draw(st.lists(st.integers(0, 1), min_size=len(order), max_size=len(order)))
    zero = TYPES[name][1]
    dense = random_tensor(shape, OperandCode[name], zero, draw(st.integers(0, 2**32)))
    return name, dense, encode(dense, order, blocks, sizes, formats, zero)


@settings(max_examples=300)
@given(codings())
def test_every_coding_gives_the_tensor(coding: tuple[str, Array, Coded]) -> None:
    name, dense, coded = coding
    one(dense, coded, OperandCode[name], *TYPES[name])


@pytest.mark.parametrize("order", list(itertools.permutations((3, 4, 5))), ids=str)
@pytest.mark.parametrize("outer", [(0, 1, 2), (1, 2, 0), (2, 0, 1)], ids=str)
def test_blocks_of_unequal_sizes_in_any_order(outer: tuple[int, ...], order: tuple[int, ...]) -> None:
    """A cycle of three is not its own inverse: block sizes must be found by level, not by dimension."""
    dense = random_tensor((4, 9, 5), OperandCode.TENSOR_FLOAT32, 0, 5)
    one(dense, encode(dense, [*outer, *order], (0, 1, 2), (2, 3, 5), [1, 0, 1, 0, 0, 0], 0))


@pytest.mark.parametrize("name", TYPES)
def test_what_is_not_stored_is_the_zero_point(name: str) -> None:
    scale, zero = TYPES[name]
    dense = np.full((2, 3), zero, OperandCode[name].dtype)
    one(dense, encode(dense, [0, 1], [], [], [0, 1], zero), OperandCode[name], scale, zero)


def test_sizes_of_levels_are_in_traversal_order() -> None:
    """AOSP's tests: order [0, 2, 1] with sizes [3, 4, 2] is a tensor of shape [3, 2, 4]."""
    dense = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    coded = encode(dense, [0, 2, 1], [], [], [0, 0, 0], 0)
    assert coded.dims == [3, 4, 2]
    one(dense, coded)


#: A matrix [4, 6] in blocks of [2, 3], rows sparse: two of the four blocks are stored.
GOOD = Coded(list(range(1, 13)), [0, 1, 2, 3], [0, 1], [0, 1, 0, 0], [2, 2, 2, 3],
             [None, None, [0, 1, 2], [1, 0], None, None, None, None])
DENSE = np.zeros((4, 6), np.float32)
DENSE[0:2, 3:6], DENSE[2:4, 0:3] = [[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]


def pairs(segments: list[int] | None, indices: list[int] | None) -> list[list[int] | None]:
    return [None, None, segments, indices, None, None, None, None]


ONE_LIST, PAIR, MAP, ORDER = "one length", r"5 \+ 2", "block_map", "order is a permutation"
SEGMENTS, INDICES, STORED, GIVEN = "segments number", "indices lie", "as many elements", "a pair is given"
BROKEN: dict[str, tuple[Coded, str]] = {
    "one list more": (replace(GOOD, pairs=[*GOOD.pairs, None]), PAIR),
    "one list fewer": (replace(GOOD, pairs=GOOD.pairs[:-1]), PAIR),
    "no lists": (replace(GOOD, pairs=[]), PAIR),
    "formats too short": (replace(GOOD, formats=[0, 1, 0]), ONE_LIST),
    "dims too long": (replace(GOOD, dims=[2, 2, 2, 3, 1]), ONE_LIST),
    "no block map": (replace(GOOD, blocks=None), "output 0"),
    "a block map too short": (replace(GOOD, blocks=[0]), "output 0"),
    "a block map too long": (replace(GOOD, blocks=[0, 1, 2]), MAP),
    "blocks of every level": (replace(GOOD, blocks=[0, 1, 2, 3]), MAP),
    "a block map that falls": (replace(GOOD, blocks=[1, 0]), MAP),
    "a block map that repeats": (replace(GOOD, blocks=[1, 1]), MAP),
    "a block map beyond the tensor": (replace(GOOD, blocks=[0, 2]), MAP),
    "a negative block map": (replace(GOOD, blocks=[-1, 0]), MAP),
    "blocks before dimensions": (replace(GOOD, order=[2, 3, 0, 1]), ORDER),
    "a dimension among the blocks": (replace(GOOD, order=[0, 2, 1, 3]), ORDER),
    "a dimension twice": (replace(GOOD, order=[0, 0, 2, 3]), ORDER),
    "a dimension too many": (replace(GOOD, order=[0, 1, 2, 4]), ORDER),
    "a third format": (replace(GOOD, formats=[0, 2, 0, 0]), "formats are"),
    "a size of 0": (replace(GOOD, dims=[0, 2, 2, 3]), "positive"),
    "a negative size": (replace(GOOD, dims=[2, 2, -2, 3]), "positive"),
    "an absurd size": (replace(GOOD, dims=[2**16, 2, 2**16, 3]), "at most"),
    "an absurd size beyond 64 bits": (replace(GOOD, dims=[2**31 - 1] * 4), "at most"),
    "lists of a dense level": (replace(GOOD, formats=[0, 0, 0, 0]), GIVEN),
    "no lists of a sparse level": (replace(GOOD, pairs=pairs(None, None)), GIVEN),
    "no indices": (replace(GOOD, pairs=pairs([0, 1, 2], None)), GIVEN),
    "no segments": (replace(GOOD, pairs=pairs(None, [1, 0])), GIVEN),
    "segments too short": (replace(GOOD, pairs=pairs([0, 2], [1, 0])), SEGMENTS),
    "segments too long": (replace(GOOD, pairs=pairs([0, 1, 2, 2], [1, 0])), SEGMENTS),
    "segments from 1": (replace(GOOD, pairs=pairs([1, 1, 2], [1, 0])), SEGMENTS),
    "segments that fall": (replace(GOOD, pairs=pairs([0, 3, 2], [1, 0])), SEGMENTS),
    "segments beyond the indices": (replace(GOOD, pairs=pairs([0, 1, 3], [1, 0])), SEGMENTS),
    "segments short of the indices": (replace(GOOD, pairs=pairs([0, 1, 1], [1, 0])), SEGMENTS),
    "an index beyond its level": (replace(GOOD, pairs=pairs([0, 1, 2], [1, 2])), INDICES),
    "a negative index": (replace(GOOD, pairs=pairs([0, 1, 2], [-1, 0])), INDICES),
    "indices that fall": (replace(GOOD, pairs=pairs([0, 2, 2], [1, 0])), INDICES),
    "an index twice": (replace(GOOD, pairs=pairs([0, 2, 2], [1, 1])), INDICES),
    "an element too many": (replace(GOOD, stored=[*GOOD.stored, 1]), STORED),
    "an element too few": (replace(GOOD, stored=GOOD.stored[:-1]), STORED),
}


def test_the_matrix_that_is_broken_below() -> None:
    one(DENSE, GOOD)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_constants_are_bad_data(name: str) -> None:
    coded, rule = BROKEN[name]
    with pytest.raises(ModelError, match=rule) as error:
        model("DENSIFY", operands(coded), [t(DENSE)])
    assert error.value.result == ResultCode.BAD_DATA


@pytest.mark.parametrize("name", BROKEN)
def test_the_same_lists_as_inputs_fail_in_the_run(name: str) -> None:
    coded, rule = BROKEN[name]
    args = [a and replace(a, fed=True) for a in operands(coded)]
    with pytest.raises((RunError, ModelError), match=rule):
        run("DENSIFY", args, [t(DENSE)])


def test_lists_may_come_from_the_run() -> None:
    args = [a and replace(a, fed=True).open() for a in operands(GOOD)]
    check("DENSIFY", args, t(DENSE).open())


#: Operands of types, ranks or grids that DENSIFY does not take.
WRONG: dict[str, tuple[list[Any], Operand]] = {
    "per-channel values": ([Operand(np.zeros(12, np.int8), OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL),
                            *operands(GOOD)[1:]], t(DENSE)),
    "values of rank 2": ([t(np.zeros((12, 1))), *operands(GOOD)[1:]], t(DENSE)),
    "order of rank 2": ([operands(GOOD)[0], ints([0, 1, 2, 3]), *operands(GOOD)[2:]], t(DENSE)),
    "a float order": ([operands(GOOD)[0], t([0, 1, 2, 3]).const(), *operands(GOOD)[2:]], t(DENSE)),
    "float segments": ([*operands(GOOD)[:7], t([0, 1, 2]).const(), *operands(GOOD)[8:]], t(DENSE)),
    "an output of another type": (operands(GOOD), t(DENSE, np.float16)),
    "an output of another shape": (operands(GOOD), t(DENSE.T)),
    "no order": ([operands(GOOD)[0], None, *operands(GOOD)[2:]], t(DENSE)),
    "four inputs": (operands(GOOD)[:4], t(DENSE)),
    "another grid": (operands(GOOD, OperandCode.TENSOR_QUANT8_ASYMM, 0.5, 3),
                     Operand(DENSE.astype(np.uint8), OperandCode.TENSOR_QUANT8_ASYMM, 0.5, 4)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_operands_are_bad_data(name: str) -> None:
    args, out = WRONG[name]
    with pytest.raises(ModelError) as error:
        model("DENSIFY", args, [out])
    assert error.value.result == ResultCode.BAD_DATA
