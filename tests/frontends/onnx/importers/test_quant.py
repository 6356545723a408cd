"""Quantised operators against what they say: codes dequantised in float64, computed, quantised with halves to even."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, Unsupported

Array = np.ndarray[Any, Any]
MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(11)


def u8(*dims: int) -> Array:
    return RNG.integers(0, 256, dims, np.uint8)


def s8(*dims: int) -> Array:
    return RNG.integers(-128, 128, dims, np.int8)


def f(value: Any) -> Array:
    return np.asarray(value, np.float32)


def model(op: str, inputs: Mapping[str, Array | None], fed: str, domain: str, outputs: int, version: int,
          attributes: Mapping[str, Any]) -> bytes:
    """One node; what is named in `fed` is an input, the rest are constants. Outputs have types and no shapes."""
    names = [n if v is not None else "" for n, v in inputs.items()]
    outs = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, outs, domain=domain, **{n: v for n, v in attributes.items() if n != "opset"})
    if "opset" in attributes:                    # which `make_node` takes for itself
        node.attribute.append(helper.make_attribute("opset", attributes["opset"]))
    given = {n: v for n, v in inputs.items() if v is not None}
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items() if n in fed.split()]
    constants = [numpy_helper.from_array(v, n) for n, v in given.items() if n not in fed.split()]
    graph = helper.make_graph([node], "g", ports, [helper.make_empty_tensor_value_info(o) for o in outs], constants)
    imports = [helper.make_opsetid("", version), helper.make_opsetid(MICROSOFT, 1)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString())


def run(op: str, inputs: Mapping[str, Array | None], fed: str = "a", domain: str = MICROSOFT, outputs: int = 1,
        version: int = 17, **attributes: Any) -> list[Array]:
    """The outputs of one operator."""
    made = model(op, inputs, fed, domain, outputs, version, attributes)
    given = [inputs[n] for n in inputs if n in fed.split()]
    return [np.asarray(y) for y in nnx_convert.compile(made).run(given)]


def real(x: Array | None, scale: Any, zero: Any = 0) -> Array:
    """What codes stand for."""
    assert x is not None
    return (x.astype(np.float64) - np.asarray(zero, np.float64)) * np.asarray(scale, np.float64)


def codes(y: Array, scale: float, zero: int, type_: Any) -> Array:
    """Codes of a type, halves to even."""
    info = np.iinfo(type_)
    return np.clip(np.rint(y / scale) + zero, info.min, info.max).astype(type_)


def near(got: Array, want: Array, share: float = 0.05) -> None:
    """Codes that are equal but for a step here and there."""
    off = np.abs(got.astype(int) - want.astype(int))
    assert got.dtype == want.dtype and got.shape == want.shape
    assert off.max(initial=0) <= 1 and (off > 0).mean() <= share


TYPES: dict[str, tuple[Callable[..., Array], int]] = {"uint8": (u8, 128), "int8": (s8, 0)}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("op", "way"), [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
def test_arithmetic(op: str, way: Any, kind: str) -> None:
    draw, zero = TYPES[kind]
    z = np.array(zero + 7, kind)
    a, b = draw(2, 3, 50), draw(3, 1)
    got, = run(op, {"a": a, "as": f(0.02), "az": z, "b": b, "bs": f(0.031), "bz": z, "s": f(0.0457), "z": z}, "a b")
    near(got, codes(way(real(a, f(0.02), z), real(b, f(0.031), z)), float(f(0.0457)), int(z), kind))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("op", "way"), [
    ("QLinearSigmoid", lambda v: 1 / (1 + np.exp(-v))), ("QLinearLeakyRelu", lambda v: np.where(v < 0, 0.01 * v, v))])
def test_functions_of_a_byte_are_exact(op: str, way: Callable[[Array], Array], kind: str) -> None:
    draw, zero = TYPES[kind]
    a, z = draw(5, 60), np.array(zero - 9, kind)
    got, = run(op, {"a": a, "as": f(0.05), "az": z, "s": f(0.0123), "z": z})
    np.testing.assert_array_equal(got, codes(way(real(a, f(0.05), z)), float(f(0.0123)), int(z), kind))


@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (13, 1), (12, 1), (12, 2)])
def test_softmax_flattens_before_version_13(opset: int, axis: int) -> None:
    a = u8(2, 4, 6)
    got, = run("QLinearSoftmax", {"a": a, "as": f(0.05), "az": np.array(3, np.uint8), "s": f(1 / 255),
                                  "z": np.array(0, np.uint8)}, axis=axis, opset=opset)
    over = tuple(range(axis, 3)) if opset < 13 else axis
    v = np.exp(real(a, f(0.05), 3))
    near(got, codes(v / v.sum(over, keepdims=True), float(f(1 / 255)), 0, np.uint8), 0.01)


def test_a_mean_of_axes() -> None:
    a = u8(2, 5, 6, 7)
    for version in (11, 17, 18):
        got, = run("QLinearReduceMean", {"a": a, "as": f(0.05), "az": np.array(3, np.uint8), "s": f(0.021),
                                         "z": np.array(9, np.uint8)}, axes=[2, 3], keepdims=0, version=version)
        near(got, codes(real(a, f(0.05), 3).mean((2, 3)), float(f(0.021)), 9, np.uint8), 0.2)


@pytest.mark.parametrize("last", [0, 1])
def test_pools_of_images_whose_channels_may_come_last(last: int) -> None:
    a = u8(1, 3, 6, 5)
    image = a.transpose(0, 2, 3, 1) if last else a
    named = {"a": image, "as": f(0.05), "az": np.array(3, np.uint8), "s": f(0.0213), "z": np.array(9, np.uint8)}
    whole, = run("QLinearGlobalAveragePool", named, channels_last=last)
    want = codes(real(a, f(0.05), 3).mean((2, 3), keepdims=True), float(f(0.0213)), 9, np.uint8)
    near(whole, want.transpose(0, 2, 3, 1) if last else want, 0.4)
    got, = run("QLinearAveragePool", named, channels_last=last, kernel_shape=[3, 1], strides=[3, 1])
    want = codes(real(a, f(0.05), 3).reshape(1, 3, 2, 3, 5).mean(3), float(f(0.0213)), 9, np.uint8)
    near(got, want.transpose(0, 2, 3, 1) if last else want)


def test_the_largest_of_windows_channels_last() -> None:
    a = s8(1, 6, 4, 3)
    got, = run("NhwcMaxPool", {"a": a}, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(got, a.reshape(1, 3, 2, 2, 2, 3).max((2, 4)))


def test_joined_and_chosen() -> None:
    a, b, z = u8(2, 3, 40), u8(2, 2, 40), np.array(9, np.uint8)
    got, = run("QLinearConcat", {"s": f(0.0437), "z": z, "a": a, "as": f(0.02), "az": z, "b": b, "bs": f(0.05),
                                 "bz": z}, "a b", axis=1)
    near(got, codes(np.concatenate([real(a, f(0.02), 9), real(b, f(0.05), 9)], 1), float(f(0.0437)), 9, np.uint8))
    c, x, y = RNG.random((3, 1, 40)) < 0.5, u8(3, 5, 40), u8(5, 1)
    got, = run("QLinearWhere", {"c": c, "x": x, "xs": f(0.02), "xz": z, "y": y, "ys": f(0.03), "yz": z, "s": f(0.0437),
                                "z": z}, "c x y")
    near(got, codes(np.where(c, real(x, f(0.02), 9), real(y, f(0.03), 9)), float(f(0.0437)), 9, np.uint8))


@pytest.mark.parametrize(("turned", "alpha", "quantised"), [
    (0, 1.0, True), (1, 1.0, True), (0, 0.5, True), (1, 1.0, False)])
def test_gemm(turned: int, alpha: float, quantised: bool) -> None:
    a, b, c, z = u8(20, 12), s8(12, 6), RNG.integers(-900, 900, 6).astype(np.int32), np.array(120, np.uint8)
    scales = np.linspace(0.005, 0.02, 6).astype(np.float32)
    given = {"a": a, "as": f(0.02), "az": z, "b": b.T.copy() if turned else b, "bs": scales,
             "bz": np.zeros(6, np.int8), "c": c} | ({"s": f(0.31), "z": z} if quantised else {})
    got, = run("QGemm", given, transB=turned, alpha=alpha)
    want = alpha * real(a, f(0.02), z) @ real(b, scales) + c * alpha * float(f(0.02)) * scales.astype(np.float64)
    if quantised:
        near(got, codes(want, float(f(0.31)), 120, np.uint8))
    else:
        np.testing.assert_allclose(got, want, 1e-5, 1e-4)


@pytest.mark.parametrize("depth", [20, 900, 9000])
@pytest.mark.parametrize("fixed", [True, False])
def test_whole_numbers_are_summed_exactly(depth: int, fixed: bool) -> None:
    """In floats as long as these hold the sums, or those of a few parts, else on the host."""
    a, b, za, zb = u8(3, depth), u8(depth, 5), np.array(7, np.uint8), np.array([1, 2, 3, 200, 255], np.uint8)
    want = (a.astype(int) - 7) @ (b.astype(int) - zb)
    got, = run("MatMulInteger", {"a": a, "b": b, "az": za, "bz": zb}, "a" if fixed else "a b", "")
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.int32
    given = {"a": a, "b": b, "az": za, "bz": zb}
    made = nnx_convert.convert(model("MatMulInteger", given, "a" if fixed else "a b", "", 1, 17, {}))
    assert any(o.op.host for o in made.operations) is (depth > 20 and (depth > 900 or not fixed))
    bias = RNG.normal(size=5).astype(np.float32)
    got, = run("MatMulIntegerToFloat", {"a": a, "b": b, "as": f(0.02), "bs": f(0.01), "az": za, "bz": zb, "bias": bias},
               "a" if fixed else "a b")
    np.testing.assert_allclose(got, want * 0.0002 + bias, 1e-5, 1e-4)


@pytest.mark.parametrize("channels", [3, 200])
def test_whole_numbers_are_convolved_exactly(channels: int) -> None:
    x, w = u8(1, channels, 5, 4), u8(2, channels, 3, 3)
    got, = run("ConvInteger", {"x": x, "w": w, "xz": np.array(9, np.uint8), "wz": np.array(200, np.uint8)}, "x", "",
               auto_pad="SAME_UPPER", strides=[2, 1])
    image = np.pad(x.astype(int) - 9, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))[:, :, ::2]
    np.testing.assert_array_equal(got, np.einsum("nchwij,ocij->nohw", views, w.astype(int) - 200))


def dynamic(x: Array) -> tuple[Array, np.float32, int]:
    """DynamicQuantizeLinear in float32."""
    least, most = np.float32(min(0, x.min())), np.float32(max(0, x.max()))
    scale = np.float32(1) if least == most else (most - least) / np.float32(255)
    zero = int(np.rint(np.clip(-least / scale, 0, 255)))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), np.float32(scale), zero


@pytest.mark.parametrize("factor", [1.0, -3.0, 0.0])
def test_a_grid_chosen_in_a_run(factor: float) -> None:
    x = (np.abs(RNG.normal(size=(4, 30))) * factor).astype(np.float32)
    y, scale, zero = run("DynamicQuantizeLinear", {"a": x}, "a", "", 3)
    want = dynamic(x)
    np.testing.assert_array_equal(y, want[0])
    assert scale == want[1] and zero == want[2] and scale.shape == zero.shape == ()
    w = s8(30, 6)
    got, = run("DynamicQuantizeMatMul", {"a": x, "b": w, "bs": f(0.01)})
    np.testing.assert_allclose(got, real(*want) @ real(w, 0.01), 1e-4, 1e-4)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("points", ["none", "packed", "float"])
def test_weights_of_few_bits(bits: int, points: str) -> None:
    n, k, block, count = 6, 40, 16, 3
    w = RNG.integers(0, 1 << bits, (n, count * block), np.uint8)
    zeros = RNG.integers(0, 1 << bits, (n, count + -count % (8 // bits)), np.uint8)
    scales, a = RNG.uniform(0.01, 0.05, (n, count)).astype(np.float32), RNG.normal(size=(2, k)).astype(np.float32)

    def packed(v: Array) -> Array:
        parts = v.reshape(*v.shape[:-1], -1, 8 // bits)
        return np.asarray(sum(parts[..., i] << (i * bits) for i in range(8 // bits)), np.uint8)
    given = {"a": a, "b": packed(w).reshape(n, count, -1), "s": scales} | {
        "none": {}, "packed": {"z": packed(zeros)}, "float": {"z": zeros[:, :count].astype(np.float32)}}[points]
    middle = zeros[:, :count] if points != "none" else np.full((n, count), 1 << (bits - 1))
    want = np.repeat(scales, block, 1) * (w - np.repeat(middle.astype(float), block, 1))
    got, = run("MatMulNBits", given, K=k, N=n, bits=bits, block_size=block)
    np.testing.assert_allclose(got, a @ want[:, :k].T, 1e-4, 1e-4)


@pytest.mark.parametrize(("kind", "codes_"), [(0, {0: 0.0, 3: 1.0, 5: 0.5, 13: -0.5}), (1, {0: -1.0, 7: 0.0, 15: 1.0})])
def test_weights_that_are_one_of_16_numbers(kind: int, codes_: dict[int, float]) -> None:
    k, n, block = 4, 3, 6
    at = RNG.choice([*codes_], n * k).astype(np.uint8)
    scales, a = f([0.5, 2.0]), RNG.normal(size=(2, k)).astype(np.float32)
    want = np.array([codes_[i] for i in at]) * np.repeat(scales, block)
    got, = run("MatMulBnb4", {"a": a, "b": at[::2] << 4 | at[1::2], "s": scales}, K=k, N=n, block_size=block,
               quant_type=kind)
    np.testing.assert_allclose(got, a @ want.reshape(n, k).T, 1e-5, 1e-5)


def test_a_table_in_blocks() -> None:
    table, at = RNG.integers(0, 16, (9, 32), np.uint8), np.array([[0, 8], [-1, 3]])
    scales = RNG.uniform(0.01, 0.05, (9, 2)).astype(np.float32)
    packed = (table[:, ::2] | table[:, 1::2] << 4).astype(np.uint8)
    got, = run("GatherBlockQuantized", {"d": packed, "i": at, "s": scales}, "i", block_size=16, bits=4)
    np.testing.assert_allclose(got, ((table - 8.0) * np.repeat(scales, 16, 1))[at], 1e-6)


def lstm(x: Array, w: Array, r: Array, b: Array, ws: float, rs: float) -> Array:
    """One direction, one row: x as a whole and each state are brought to bytes."""
    def cut(v: Array) -> Array:
        return 1 / (1 + np.exp(-v))
    sums, units = real(*dynamic(x)) @ real(w, ws), r.shape[0]
    h, c, found = np.zeros((1, units)), np.zeros((1, units)), []
    for t in range(len(x)):
        i, o, f_, g = np.split(sums[t] + real(*dynamic(h.astype(np.float32))) @ real(r, rs) + b[:4 * units]
                               + b[4 * units:], 4, -1)
        c = cut(f_) * c + cut(i) * np.tanh(g)
        h = cut(o) * np.tanh(c)
        found.append(h)
    return np.stack(found)


def test_a_recurrent_cell_on_bytes() -> None:
    x, units = RNG.normal(size=(5, 1, 6)).astype(np.float32), 4
    w, r = s8(2, 6, 4 * units), s8(2, units, 4 * units)
    b = RNG.normal(size=(2, 8 * units)).astype(np.float32)
    one, none = f([0.01, 0.01]), np.zeros(2, np.int8)
    y, h, _ = run("DynamicQuantizeLSTM", {"a": x, "w": w, "r": r, "b": b, "n": None, "h": None, "c": None, "p": None,
                                          "ws": one, "wz": none, "rs": one, "rz": none}, outputs=3,
                  direction="bidirectional", hidden_size=units)
    for d, turned in ((0, slice(None)), (1, slice(None, None, -1))):
        want = lstm(x[turned], w[d], r[d], b[d], 0.01, 0.01)[turned]
        np.testing.assert_allclose(y[:, d], want, 2e-3, 2e-3)            # a state may be rounded the other way
    np.testing.assert_array_equal(h[0], y[-1, 0])
    np.testing.assert_array_equal(h[1], y[0, 1])


BROKEN: dict[str, tuple[str, dict[str, Any], dict[str, Any], type[NnxError]]] = {
    "triples": ("QLinearConcat", {"s": f(1), "z": np.array(0, np.uint8), "a": u8(2, 3)}, {"axis": 0}, FormatError),
    "bits": ("MatMulNBits", {"a": f(np.ones((1, 16))), "b": u8(2, 1, 6), "s": f(np.ones((2, 1)))},
             {"K": 16, "N": 2, "bits": 3, "block_size": 16}, FormatError),
    "bytes": ("MatMulNBits", {"a": f(np.ones((1, 16))), "b": u8(2, 1, 7), "s": f(np.ones((2, 1)))},
              {"K": 16, "N": 2, "block_size": 16}, FormatError),
    "kinds": ("MatMulBnb4", {"a": f(np.ones((1, 16))), "b": u8(16), "s": f([1])},
              {"K": 16, "N": 2, "block_size": 32, "quant_type": 2}, FormatError),
    "blocks": ("GatherBlockQuantized", {"d": u8(4, 8), "a": np.array([1]), "s": f(np.ones((4, 3)))},
               {"block_size": 16}, FormatError),
    "activations": ("DynamicQuantizeLSTM", {
        "a": f(np.ones((1, 1, 2))), "w": s8(1, 2, 4), "r": s8(1, 1, 4), "b": None, "n": None, "h": None, "c": None,
        "p": None, "ws": f([1]), "wz": np.zeros(1, np.int8), "rs": f([1]), "rz": np.zeros(1, np.int8)},
        {"activations": ["Relu", "Tanh", "Tanh"]}, Unsupported),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused(name: str) -> None:
    op, inputs, attributes, error = BROKEN[name]
    with pytest.raises(error):
        nnx_convert.convert(model(op, inputs, "a", MICROSOFT, 1, 17, attributes))
