"""Constants as they are stored: packed, and quantised by blocks."""
from __future__ import annotations

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

from nnx_convert import CompiledModel, convert
from nnx_convert.errors import FormatError, NnxError
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.types import F32, Q8, Q8S

LIMITS = {"int4": (-8, 8), "int2": (-2, 2), "uint4": (0, 16)}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 31])
@pytest.mark.parametrize("dtype", LIMITS)
def test_packed_elements_get_a_byte_of_their_own(dtype: str, size: int) -> None:
    w, values = TFLiteWriter(), np.random.default_rng(size).integers(*LIMITS[dtype], size)
    x, c = w.tensor("x", "float32", (size,)), w.tensor("c", dtype, (size,), values, scale=0.5, zero=0)
    real, out = w.tensor("real", "float32", (size,)), w.tensor("out", "float32", (size,))
    w.op("DEQUANTIZE", [c], [real])
    w.op("ADD", [x, real], [out], "AddOptions")
    file = w.finish([x], [out])
    held = load(file).nodes[0].inputs[0]
    assert held.type == (Q8 if dtype == "uint4" else Q8S)
    np.testing.assert_array_equal(held.array, values)
    np.testing.assert_array_equal(CompiledModel(convert(file)).run([np.zeros(size, np.float32)])[0], values * 0.5)


def blockwise(scales: np.ndarray, zeros: np.ndarray | None, size: int, depth: int = 12, details: int = 0) -> bytes:  # type: ignore[type-arg]
    """FULLY_CONNECTED with int4 weights [3, depth] of blocks; `details` moves the index of the scales."""
    w, weights = TFLiteWriter(), np.arange(3 * depth).reshape(3, depth) % 16 - 8
    x, s = w.tensor("x", "float32", (2, depth)), w.tensor("s", "float16", scales.shape, scales)
    z = -1 if zeros is None else w.tensor("z", "int32", zeros.shape, zeros)
    c = w.tensor("c", "int4", (3, depth), weights, blocks=(s + details, z, size))
    out = w.tensor("out", "float32", (2, 3))
    w.op("FULLY_CONNECTED", [x, c, -1], [out], "FullyConnectedOptions")
    return w.finish([x], [out])


@pytest.mark.parametrize(("size", "depth"), [(4, 12), (6, 12), (12, 12), (4, 10)])
@pytest.mark.parametrize("moved", [False, True])
def test_blocks_have_scales_of_their_own(size: int, depth: int, moved: bool) -> None:
    count = -(-depth // size)
    scales = (np.arange(3 * count).reshape(3, count) + 1).astype(np.float16) / 8
    zeros = np.arange(3 * count, dtype=np.int32).reshape(3, count) % 3 if moved else None
    w = load(blockwise(scales, zeros, size, depth)).nodes[-1].args["w"]
    block = np.arange(depth) // size
    ints = np.arange(3 * depth).reshape(3, depth) % 16 - 8.0
    assert w.type == F32
    np.testing.assert_array_equal(w.array, (ints - (0 if zeros is None else zeros[:, block])) * scales[:, block])


@pytest.mark.parametrize(("scales", "size", "details"), [
    ((3, 3), 7, 0), ((3, 2), 4, 0), ((3, 3), 0, 0), ((3, 3), -4, 0), ((3, 3), 4, 1), ((3, 3), 4, 99)])
def test_blocks_that_do_not_fit_are_refused(scales: tuple[int, ...], size: int, details: int) -> None:
    with pytest.raises(FormatError if details != 1 else NnxError):
        load(blockwise(np.ones(scales, np.float16), None, size, details=details))
