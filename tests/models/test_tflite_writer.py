"""The writer's files read back through the accessors of the `tflite` package."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import tflite
from hypothesis import given, strategies as st
from tflite_writer import Array, Level, Sparsity, TFLiteWriter, sparsify


def read(data: bytes) -> Any:
    return tflite.Model.GetRootAs(data, 0)


def constant(model: Any, tensor: int) -> Array:
    data = model.Buffers(model.Subgraphs(0).Tensors(tensor).Buffer()).DataAsNumpy()
    return np.asarray(data)


CONSTANTS = [
    ("float32", np.array([[1.5, -2.0, 0.1]]), np.array([[1.5, -2.0, 0.1]], np.float32).tobytes()),
    ("float16", np.array([1.5, 0.1]), np.array([1.5, 0.1], np.float16).tobytes()),
    ("int32", np.array([1, -2]), b"\1\0\0\0\xfe\xff\xff\xff"),
    ("int64", np.array([-1]), b"\xff" * 8),
    ("bool", np.array([True, False]), b"\1\0"),
    ("uint8", np.array([255, 0]), b"\xff\0"),
    ("int16", np.array([-2]), b"\xfe\xff"),
    ("int4", np.array([1, -2, 7]), b"\xe1\x07"),
    ("int4", np.array([[-8, -1]]), b"\xf8"),
    ("bfloat16", np.array([1.0]), b"\x80\x3f"),
    ("float32", np.zeros((0, 3)), b""),
]


@pytest.mark.parametrize(("dtype", "values", "stored"), CONSTANTS, ids=lambda v: v if isinstance(v, str) else "")
def test_constants_are_stored_as_the_schema_says(dtype: str, values: Array, stored: bytes) -> None:
    writer = TFLiteWriter()
    index = writer.tensor("c", dtype, values.shape, values)
    model = read(writer.finish([], [index]))
    tensor = model.Subgraphs(0).Tensors(index)
    assert tensor.Type() == getattr(tflite.TensorType, dtype.upper())
    assert [tensor.Shape(i) for i in range(tensor.ShapeLength())] == list(values.shape)
    assert (constant(model, index).tobytes() if stored else b"") == stored


UNFIT = [
    ("int8", (1,), np.array([128]), "does not fit"),
    ("int4", (1,), np.array([8]), "does not fit"),
    ("int32", (1,), np.array([0.5]), "does not fit"),
    ("float32", (3,), np.zeros(2), "2 elements"),
]


@pytest.mark.parametrize(("dtype", "shape", "values", "message"), UNFIT)
def test_constants_that_do_not_fit_are_refused(dtype: str, shape: tuple[int, ...], values: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TFLiteWriter().tensor("c", dtype, shape, values)


UNKNOWN = [
    ("NO_SUCH_OP", None, {}),
    ("CONV_2D", "Conv2DOptions", {"Stride": 1}),
    ("CONV_2D", "NoSuchOptions", {"StrideW": 1}),
]


@pytest.mark.parametrize(("name", "table", "values"), UNKNOWN)
def test_names_the_schema_does_not_have_are_refused(name: str, table: str | None, values: dict[str, int]) -> None:
    with pytest.raises(AttributeError):
        TFLiteWriter().op(name, [], [], table, values)


def test_a_zero_point_needs_a_scale() -> None:
    with pytest.raises(ValueError, match="scale"):
        TFLiteWriter().tensor("x", "int8", (1,), zero=3)


def test_optional_tensor_fields_are_left_out_or_written() -> None:
    writer = TFLiteWriter()
    writer.tensor(None, "float32", None)
    writer.tensor("v", "int8", (1, 2), scale=[0.5, 0.25], zero=0, axis=1, variable=True, signature=(-1, 2))
    graph = read(writer.finish([], [])).Subgraphs(0)
    bare, full = graph.Tensors(0), graph.Tensors(1)
    assert (bare.Name(), bare.ShapeIsNone(), bare.Quantization(), bare.Buffer()) == (None, True, None, 0)
    assert (full.Name(), full.IsVariable(), full.ShapeSignatureAsNumpy().tolist()) == (b"v", True, [-1, 2])
    quantization = full.Quantization()
    assert quantization.ScaleAsNumpy().tolist() == [0.5, 0.25]
    assert quantization.ZeroPointAsNumpy().tolist() == [0, 0]
    assert quantization.QuantizedDimension() == 1


def test_operators_options_custom_codes_and_subgraphs() -> None:
    writer = TFLiteWriter("about")
    x, y, z = (writer.tensor(n, "float32", (1, 4)) for n in "xyz")
    writer.op("RESHAPE", [x, -1], [y], "ReshapeOptions", {"NewShape": [2, -1]})
    writer.op("BUCKETIZE", [x], [z], "BucketizeOptions", {"Boundaries": [0.5, 2.0]})
    writer.custom("Mine", [y], [z], b"\1\2\3", version=2)
    writer.op("DILATE", [y], [z], "DilateOptions")
    assert writer.subgraph("body") == 1
    inner = writer.tensor("i", "float32", ())
    writer.ends([inner], [inner])
    model = read(writer.finish([x], [z]))
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    assert [(c.DeprecatedBuiltinCode(), c.BuiltinCode(), c.CustomCode(), c.Version()) for c in codes] == [
        (22, 22, None, 1), (127, 147, None, 1), (32, 32, b"Mine", 2), (127, 203, None, 1)]
    main, body = model.Subgraphs(0), model.Subgraphs(1)
    operators = [main.Operators(i) for i in range(main.OperatorsLength())]
    reshape, bucketize = tflite.ReshapeOptions(), tflite.BucketizeOptions()
    for options, operator in ((reshape, operators[0]), (bucketize, operators[1])):
        table = operator.BuiltinOptions()
        options.Init(table.Bytes, table.Pos)
    assert reshape.NewShapeAsNumpy().tolist() == [2, -1]
    assert bucketize.BoundariesAsNumpy().tolist() == [0.5, 2.0]
    assert operators[0].InputsAsNumpy().tolist() == [x, -1]
    assert operators[2].CustomOptionsAsNumpy().tobytes() == b"\1\2\3"
    assert operators[3].BuiltinOptions2Type() == tflite.BuiltinOptions2.DilateOptions
    assert (model.Description(), main.InputsAsNumpy().tolist(), main.OutputsAsNumpy().tolist()) == (b"about", [x], [z])
    assert (body.Name(), body.InputsAsNumpy().tolist(), body.Tensors(0).ShapeLength()) == (b"body", [inner], 0)
    assert body.Tensors(0).HasRank()


def _three_constants() -> bytes:
    writer = TFLiteWriter("same")
    for size in (1, 3, 17):
        writer.tensor(f"c{size}", "uint8", (size,), np.arange(size))
    return writer.finish([], [])


def test_constants_are_aligned_and_bytes_repeat() -> None:
    data = _three_constants()
    model = read(data)
    assert data == _three_constants()
    assert data[4:8] == b"TFL3"
    assert model.Version() == 3
    assert model.Buffers(0).DataLength() == 0
    for index, size in enumerate((1, 3, 17)):
        stored = constant(model, index)
        offset = stored.ctypes.data - np.frombuffer(data, np.uint8).ctypes.data
        assert (offset % 16, stored.tolist()) == (0, list(range(size)))


def expanded(sparsity: Sparsity, values: Array, shape: tuple[int, ...]) -> Array:
    """The definition of the format, element by element."""
    sizes = [level.size for level in sparsity.levels]
    dense = np.zeros(shape, values.dtype)
    blocks = dict(zip(sparsity.block_map, [0] * len(sparsity.block_map), strict=True))
    for level, entry in zip(sizes, sparsity.traversal, strict=True):
        if entry >= len(shape):
            blocks[sparsity.block_map[entry - len(shape)]] = level

    def walk(depth: int, position: int, place: tuple[int, ...]) -> None:
        if depth == len(sizes):
            where = dict(zip(sparsity.traversal, place, strict=True))
            inner = {axis: where[len(shape) + n] for n, axis in enumerate(sparsity.block_map)}
            dense[tuple(where[a] * blocks.get(a, 1) + inner.get(a, 0) for a in range(len(shape)))] = values[position]
            return
        level = sparsity.levels[depth]
        if level.segments is None or level.indices is None:
            for child in range(level.size):
                walk(depth + 1, position * level.size + child, (*place, child))
        else:
            for at in range(level.segments[position], level.segments[position + 1]):
                walk(depth + 1, at, (*place, level.indices[at]))

    walk(0, 0, ())
    return dense


@given(st.data())
def test_sparsify_keeps_every_value(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, max_size=len(shape)))
    blocks = {a: data.draw(st.sampled_from([b for b in range(1, 7) if shape[a] % b == 0])) for a in sorted(axes)}
    outer, inner = range(len(shape)), range(len(shape), len(shape) + len(blocks))
    traversal = (*data.draw(st.permutations(list(outer))), *data.draw(st.permutations(list(inner))))
    formats = data.draw(st.text("ds", min_size=len(traversal), max_size=len(traversal)))
    numbers = st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    dense = np.array(data.draw(numbers), np.int32).reshape(shape)
    sparsity, values = sparsify(dense, traversal, formats, blocks=blocks)
    assert np.array_equal(expanded(sparsity, values, shape), dense)
    if formats == "s" * len(traversal):
        assert values.all()


BAD_SPARSE = [
    ((0, 1), "d", {}, "one entry"),
    ((0, 0), "dd", {}, "one entry"),
    ((0, 1), "dx", {}, "one entry"),
    ((0, 1, 2), "ddd", {1: 4}, "do not divide"),
]


@pytest.mark.parametrize(("traversal", "formats", "blocks", "message"), BAD_SPARSE)
def test_sparsify_refuses_what_does_not_fit(traversal: tuple[int, ...], formats: str, blocks: dict[int, int],
                                            message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sparsify(np.ones((2, 6)), traversal, formats, blocks=blocks)


WIDTHS = ["int32", "uint16", "uint8"]


@pytest.mark.parametrize(("index", "segments"), list(product(WIDTHS, [None, *WIDTHS])))
def test_sparsity_is_stored_with_the_chosen_widths(index: str, segments: str | None) -> None:
    sparsity = Sparsity((0, 1, 2), (1,), (Level(2), Level(3, (0, 1, 3), (2, 0, 1)), Level(2)), index, segments)
    writer = TFLiteWriter()
    tensor = writer.tensor("s", "int8", (2, 6), np.arange(6), sparsity=sparsity)
    found = read(writer.finish([], [])).Subgraphs(0).Tensors(tensor).Sparsity()
    dense, compressed = found.DimMetadata(0), found.DimMetadata(1)
    assert (found.TraversalOrderAsNumpy().tolist(), found.BlockMapAsNumpy().tolist()) == ([0, 1, 2], [1])
    assert (dense.Format(), dense.DenseSize(), compressed.Format()) == (0, 2, 1)
    for name, width, want in (("Segments", segments or index, [0, 1, 3]), ("Indices", index, [2, 0, 1])):
        table = getattr(compressed, f"Array{name}")()
        vector = getattr(tflite, f"{width.capitalize()}Vector")()
        vector.Init(table.Bytes, table.Pos)
        assert getattr(compressed, f"Array{name}Type")() == getattr(tflite.SparseIndexVector, type(vector).__name__)
        assert (vector.ValuesAsNumpy().dtype.name, vector.ValuesAsNumpy().tolist()) == (width, want)
