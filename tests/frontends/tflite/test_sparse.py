"""Sparse constants: every order, block map, level format, index width and type, against the dense tensor."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tflite_writer import Level, Sparsity, TFLiteWriter, sparsify

from nnx_convert.errors import FormatError
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.graph import Sparse, Value
from nnx_convert.types import ChannelQuant, Quant

Array = np.ndarray[Any, np.dtype[Any]]
DENSE = (np.arange(96) % 7 % 3 * (np.arange(96) % 5 // 2)).reshape(4, 3, 8)
#: traversal, formats, blocks
LAYOUTS: list[tuple[tuple[int, ...], str, dict[int, int]]] = [
    ((0, 1, 2), "ddd", {}), ((0, 1, 2), "dds", {}), ((0, 1, 2), "sss", {}), ((0, 1, 2), "dsd", {}),
    ((2, 1, 0), "dss", {}),
    ((1, 2, 0), "sds", {}), ((2, 0, 1), "dds", {}), ((0, 1, 2, 3), "ddsd", {2: 4}), ((2, 0, 1, 3), "sdsd", {0: 2}),
    ((0, 1, 2, 3, 4), "ddsdd", {0: 2, 2: 4}), ((1, 2, 0, 4, 3), "dssdd", {0: 2, 2: 4}),
    ((2, 1, 0, 5, 3, 4), "sssddd", {0: 2, 1: 3, 2: 4})]


def spread(s: Sparse, shape: tuple[int, ...]) -> Array:
    """The dense tensor, element by element as DENSIFY's description reads."""
    n, dense, stored = len(shape), np.zeros(shape, s.data.dtype), iter(s.data)

    def walk(level: int, position: int, at: dict[int, int]) -> None:
        if level == len(s.order):
            index = [at[axis] for axis in range(n)]
            for i, axis in enumerate(s.blocks):
                index[axis] = index[axis] * s.sizes[s.order.index(n + i)] + at[n + i]
            dense[tuple(index)] = next(stored)
            return
        segments, indices = s.pairs[2 * level:2 * level + 2]
        if segments is None or indices is None:
            places = [(position * s.sizes[level] + i, i) for i in range(s.sizes[level])]
        else:
            places = [(i, int(indices[i])) for i in range(segments[position], segments[position + 1])]
        for below, i in places:
            walk(level + 1, below, at | {s.order[level]: i})

    walk(0, 0, {})
    assert next(stored, None) is None
    return dense


def constant(dtype: str, sparsity: Sparsity, values: Array, densify: bool = False, **quant: Any) -> Value:
    """The sparse constant of a file that adds it to its input, by way of DENSIFY or not."""
    w = TFLiteWriter()
    x, y = (w.tensor(n, dtype, DENSE.shape, scale=1.0 if quant else None) for n in "xy")
    m = w.tensor("m", dtype, DENSE.shape, values, sparsity=sparsity, **quant)
    if densify:
        m, sparse = w.tensor("d", dtype, DENSE.shape, **quant), m
        w.op("DENSIFY", [sparse], [m])
    w.op("ADD", [x, m], [y], "AddOptions")
    found: Value = load(w.finish([x], [y])).nodes[0].args["y"]
    return found


@pytest.mark.parametrize("densify", [False, True])
@pytest.mark.parametrize("index", ["int32", "uint16", "uint8"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: f"{x[0]}{x[1]}{x[2]}".replace(" ", ""))
def test_every_layout_is_read(layout: tuple[tuple[int, ...], str, dict[int, int]], index: str, densify: bool) -> None:
    order, formats, blocks = layout
    sparsity, values = sparsify(DENSE.astype(np.float32), order, formats, blocks=blocks, index=index)
    v = constant("float32", sparsity, values, densify)
    assert v.tensor.data is None and v.sparse is not None
    assert (v.sparse.order, v.sparse.blocks) == (order, tuple(blocks))
    np.testing.assert_array_equal(spread(v.sparse, DENSE.shape), DENSE)


@pytest.mark.parametrize(("dtype", "quant", "want"), [
    ("float32", {}, None), ("float16", {}, None), ("int32", {}, None), ("bool", {}, None),
    ("int8", {"scale": 0.5, "zero": 0}, Quant(0.5, 0)), ("uint8", {"scale": 0.5, "zero": 7}, Quant(0.5, 7)),
    ("int8", {"scale": [0.5, 1.0, 0.25], "zero": [0] * 3, "axis": 1}, ChannelQuant((0.5, 1.0, 0.25), 1)),
    ("int64", {}, None)])
def test_every_type_is_kept_compressed(dtype: str, quant: dict[str, Any], want: Quant | ChannelQuant | None) -> None:
    dense = np.minimum(DENSE, 1).astype(dtype)
    sparsity, values = sparsify(dense, (0, 1, 2, 3), "ddsd", blocks={2: 2})
    v = constant(dtype, sparsity, values, **quant)
    assert v.sparse is not None and v.sparse.data.dtype == np.dtype(dtype) and v.tensor.quant == want
    np.testing.assert_array_equal(spread(v.sparse, DENSE.shape), dense)


def test_sizes_the_file_leaves_out_follow_from_the_shape() -> None:
    sparsity, values = sparsify(DENSE.astype(np.float32), (1, 2, 0, 4, 3), "dssdd", blocks={0: 2, 2: 4})
    v = constant("float32", sparsity, values)
    assert v.sparse is not None and v.sparse.sizes == (3, 2, 2, 4, 2) and v.sparse.formats == (0, 1, 1, 0, 0)


def test_a_compressed_constant_is_a_view() -> None:
    sparsity, values = sparsify(DENSE.astype(np.float32), (0, 1, 2), "dds")
    v = constant("float32", sparsity, values)
    assert v.sparse is not None and not v.sparse.data.flags.owndata and not v.sparse.data.flags.writeable


SOUND, VALUES = sparsify(DENSE.astype(np.float32), (0, 1, 2, 3, 4), "ddsdd", blocks={0: 2, 2: 4})
PLAIN, PLAIN_VALUES = sparsify(DENSE.astype(np.float32), (0, 1, 2), "dds")


def level(s: Sparsity, at: int, new: Level) -> Sparsity:
    """The sparsity with one level exchanged."""
    return replace(s, levels=(*s.levels[:at], new, *s.levels[at + 1:]))


CSR = PLAIN.levels[2]
SEGMENTS, INDICES = CSR.segments or (), CSR.indices or ()
BROKEN = [
    ("traversal order", replace(SOUND, traversal=(0, 1, 2, 3, 3)), VALUES),
    ("traversal order", replace(SOUND, traversal=(0, 3, 1, 2, 4)), VALUES),
    ("traversal order", replace(SOUND, levels=SOUND.levels[:4]), VALUES),
    ("block map", replace(SOUND, block_map=(2, 0)), VALUES), ("block map", replace(SOUND, block_map=(0, 9)), VALUES),
    ("block map", replace(SOUND, block_map=(0, 0)), VALUES), ("do not divide", level(SOUND, 3, Level(3)), VALUES),
    ("not dense", level(SOUND, 3, Level(0)), VALUES), ("not dense", level(SOUND, 3, Level(-2)), VALUES),
    ("not dense", level(SOUND, 4, Level(4, (0, 1), (0,))), VALUES), ("dense levels", level(SOUND, 0, Level(3)), VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, SEGMENTS[:-1], INDICES)), PLAIN_VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, (1, *SEGMENTS[1:]), INDICES)), PLAIN_VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, (0, 99, *SEGMENTS[2:]), INDICES)), PLAIN_VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, SEGMENTS, (*INDICES[:-1], 8))), PLAIN_VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, SEGMENTS, (*INDICES[:-1], -1))), PLAIN_VALUES),
    ("segments or indices", level(PLAIN, 2, Level(8, SEGMENTS, INDICES[:-1])), PLAIN_VALUES),
    ("its buffer has", PLAIN, PLAIN_VALUES[:-1])]


@pytest.mark.parametrize(("says", "sparsity", "values"), BROKEN, ids=lambda x: x if isinstance(x, str) else "")
def test_a_sparsity_that_does_not_fit_is_refused(says: str, sparsity: Sparsity, values: Array) -> None:
    with pytest.raises(FormatError, match=says):
        constant("float32", sparsity, values)
