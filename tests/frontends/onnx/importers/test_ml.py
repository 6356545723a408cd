"""Linear models, support vector machines, encoders and maps of ai.onnx.ml against formulas."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learners import ML, TRANSFORMS, WAYS, answers, made, texts
from onnx import helper

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, Unsupported

RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, 3)).astype(np.float32)
W, B = RNG.normal(size=(3, 3)).astype(np.float32), np.array([0.1, -0.2, 0.3], np.float32)
F = np.float32


def listed(x: Any) -> list[float]:
    return [float(v) for v in np.reshape(x, -1)]


def same(found: Any, want: Any, kind: Any = F) -> None:
    """Equal within float rounding, and of one type and shape."""
    assert (found.dtype, found.shape) == (np.dtype(kind), np.shape(want))
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)
    else:
        assert found.tolist() == np.asarray(want).tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_three_classes_of_a_linear_model(transform: str, way: str) -> None:
    label, scores = answers("LinearClassifier", X, outputs=2, way=way, coefficients=listed(W), intercepts=listed(B),
                            classlabels_ints=[5, 7, 9], post_transform=transform)
    want = X @ W.T + B
    same(label, np.array([5, 7, 9])[want.argmax(1)], np.int64)
    same(scores, TRANSFORMS[transform](want))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_one_row_of_coefficients_is_the_second_class(transform: str, way: str) -> None:
    label, scores = answers("LinearClassifier", X, outputs=2, way=way, coefficients=listed(W[0]), intercepts=[0.25],
                            classlabels_strings=["no", "yes"], post_transform=transform)
    want = (X @ W[0] + 0.25)[:, None]
    assert label.tolist() == ["yes" if v > 0 else "no" for v in want[:, 0]]
    sure = TRANSFORMS[transform](want) if transform == "LOGISTIC" else want
    same(scores, np.concatenate([1 - sure, sure], 1))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_numbers_of_any_type_are_regressed(kind: Any) -> None:
    x = (X * 10).astype(kind)
    (found,) = answers("LinearRegressor", x, coefficients=listed(W[:2]), intercepts=listed(B[:2]), targets=2)
    same(found, (x.astype(F) @ W[:2].T + B[:2]))


def test_a_row_alone_is_one_row() -> None:
    same(answers("LinearRegressor", X[0], coefficients=listed(W[0]))[0], X[:1] @ W[:1].T)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("norm", "by"), [
    ("MAX", lambda x: x.max(-1)), ("L1", lambda x: abs(x).sum(-1)), ("L2", lambda x: np.sqrt((x * x).sum(-1)))])
def test_rows_are_normalised_and_zeros_stay(norm: str, by: Any, way: str) -> None:
    x = X * np.array([[1], [0], [2], [-3], [1]], F)
    scale = by(x)
    same(answers("Normalizer", x, way=way, norm=norm)[0], x / np.where(scale == 0, 1, scale)[:, None])


EACH: dict[str, tuple[str, list[Any], dict[str, Any], Any, Any]] = {
    "scaled": ("Scaler", [X], {"offset": [1.0, 2, 3], "scale": [0.5, 0.25, 2]}, (X - [1, 2, 3]) * [0.5, 0.25, 2], F),
    "scaled by one": ("Scaler", [X], {"offset": [1.0], "scale": [0.5]}, (X - 1) * 0.5, F),
    "scaled doubles": ("Scaler", [X.astype(np.float64)], {"scale": [2.0]}, X * 2, F),
    "binary": ("Binarizer", [X], {"threshold": 0.25}, X > 0.25, F),
    "binary integers": ("Binarizer", [np.array([-2, -1, 0, 1])], {"threshold": -0.5}, [0, 0, 1, 1], np.int64),
    "binary beyond": ("Binarizer", [np.array([0, 2 ** 62])], {"threshold": 1e30}, [0, 0], np.int64),
    "imputed": ("Imputer", [np.array([[np.nan, 1, np.nan]], F)],
                {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": float("nan")}, [[7, 1, 9]], F),
    "imputed integers": ("Imputer", [np.array([[2, 3, 2]])], {"imputed_value_int64s": [9], "replaced_value_int64": 2},
                         [[9, 3, 9]], np.int64),
    "columns": ("ArrayFeatureExtractor", [X, np.array([2, 0])], {}, X[:, [2, 0]], F),
    "columns of a row": ("ArrayFeatureExtractor", [X[0], np.array([2, 0])], {}, X[:1, [2, 0]], F),
    "put together": ("FeatureVectorizer", [X, X[:, :2]], {"inputdimensions": [2, 2]},
                     np.concatenate([X[:, :2], X[:, :2]], 1), F),
    "one hot": ("OneHotEncoder", [np.array([[1, 5], [3, 2]])], {"cats_int64s": [1, 2, 5]},
                [[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 1, 0]]], F),
    "one hot floats": ("OneHotEncoder", [np.array([1.0, 2], F)], {"cats_int64s": [2]}, [[0], [1]], F),
    "one hot texts": ("OneHotEncoder", [texts("b", "c")], {"cats_strings": ["a", "b"]}, [[0, 1], [0, 0]], F),
    "mapped": ("CategoryMapper", [texts("a", "c")], {"cats_int64s": [4, 6], "cats_strings": ["a", "b"]}, [4, -1],
               np.int64),
    "mapped back": ("CategoryMapper", [np.array([[6], [5]])], {"cats_int64s": [4, 6], "cats_strings": ["a", "b"]},
                    [["b"], ["_Unused"]], object)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EACH)
def test_of_each_element(name: str, way: str) -> None:
    op, inputs, attributes, want, kind = EACH[name]
    same(answers(op, *inputs, way=way, **attributes)[0], want, kind)


A, NAN = texts("a", "c"), float("nan")
ENCODED: dict[str, tuple[int, Any, dict[str, Any], Any, Any]] = {
    "version 1": (1, A, {"classes_strings": ["b", "c"], "default_int64": 9}, [9, 1], np.int64),
    "version 1 back": (1, np.array([1, 3]), {"classes_strings": ["b", "c"]}, ["c", "_Unused"], object),
    "to floats": (2, A, {"keys_strings": ["a"], "values_floats": [1.5], "default_float": 9.0}, [1.5, 9], F),
    "to texts": (2, np.array([1, 2]), {"keys_int64s": [2], "values_strings": ["p"]}, ["_Unused", "p"], object),
    "of floats": (2, np.array([1.5, NAN], F), {"keys_floats": [NAN, 1.5], "values_int64s": [3, 4]}, [4, 3], np.int64),
    "the default": (2, np.array([0.5], F), {"keys_floats": [1.0], "values_int64s": [3]}, [-1], np.int64),
    "by tensors": (4, np.array([1.5, 2]), {
        "keys_tensor": helper.make_tensor("k", 11, [2], [1.5, 2.5]), "values_tensor": helper.make_tensor(
            "v", 5, [2], [3, 4]), "default_tensor": helper.make_tensor("d", 5, [1], [-7])}, [3, -7], np.int16)}


@pytest.mark.parametrize("name", ENCODED)
def test_labels_are_encoded(name: str) -> None:
    version, x, attributes, want, kind = ENCODED[name]
    same(answers("LabelEncoder", x, version=version, **attributes)[0], want, kind)


# Support vector machines.
SIZES, RHO = (2, 1, 2), (0.1, -0.2, 0.3)
V, DUAL = RNG.normal(size=(5, 3)).astype(F), RNG.normal(size=(2, 5)).astype(F)


def near(kernel: str, a: Any, b: Any) -> float:
    """A kernel with gamma 0.5, coefficient 0.25 and degree 2."""
    dot = float(a.astype(float) @ b.astype(float))
    return {"LINEAR": dot, "POLY": (0.5 * dot + 0.25) ** 2, "SIGMOID": np.tanh(0.5 * dot + 0.25),
            "RBF": np.exp(-0.5 * float(np.square(a.astype(float) - b).sum()))}[kernel]


def pairs(kernel: str, row: Any) -> list[float]:
    """libsvm's decisions between two classes."""
    start, found = np.cumsum((0, *SIZES)), list[float]()
    for i in range(3):
        for j in range(i + 1, 3):
            total = sum(DUAL[j - 1, s] * near(kernel, row, V[s]) for s in range(start[i], start[i + 1]))
            total += sum(DUAL[i, s] * near(kernel, row, V[s]) for s in range(start[j], start[j + 1]))
            found.append(total + RHO[len(found)])
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_classes_of_a_support_vector_machine(kernel: str, way: str) -> None:
    label, scores = answers(
        "SVMClassifier", X, outputs=2, way=way, classlabels_ints=[4, 5, 6], coefficients=listed(DUAL),
        kernel_params=[0.5, 0.25, 2.0], kernel_type=kernel, rho=list(RHO), support_vectors=listed(V),
        vectors_per_class=list(SIZES))
    want = np.array([pairs(kernel, row) for row in X])
    same(scores, want)
    votes = np.zeros((5, 3))
    for n, row in enumerate(want):
        for v, (i, j) in zip(row, [(0, 1), (0, 2), (1, 2)], strict=True):
            votes[n, i if v > 0 else j] += 1
    same(label, 4 + votes.argmax(1), np.int64)


def test_probabilities_of_two_classes_are_a_logistic_function() -> None:
    a, b = -1.5, 0.25
    label, shares = answers(
        "SVMClassifier", X, outputs=2, classlabels_ints=[0, 1], coefficients=listed(DUAL[0]), kernel_type="LINEAR",
        rho=[0.1], support_vectors=listed(V), vectors_per_class=[2, 3], prob_a=[a], prob_b=[b])
    decision = X @ V.T @ DUAL[0] + np.float32(0.1)
    first = 1 / (1 + np.exp(a * decision + b))
    np.testing.assert_allclose(shares, np.stack([first, 1 - first], 1), atol=5e-3)
    same(label, (decision <= 0).astype(int), np.int64)


@pytest.mark.parametrize(("one_class", "turned"), [(0, lambda v: v), (1, lambda v: np.where(v > 0, 1, -1))])
@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
def test_numbers_of_a_support_vector_machine(kernel: str, one_class: int, turned: Any) -> None:
    (found,) = answers("SVMRegressor", X, coefficients=listed(DUAL[0]), kernel_params=[0.5, 0.25, 2.0],
                       kernel_type=kernel, n_supports=5, rho=[0.1], support_vectors=listed(V), one_class=one_class)
    want = np.array([[sum(DUAL[0, i] * near(kernel, row, V[i]) for i in range(5)) + 0.1] for row in X])
    same(found, turned(want))


# Maps.
def test_rows_become_maps_whatever_the_file_declares() -> None:
    (found,) = answers("ZipMap", X[:2, :2], way="open", classlabels_strings=["a", "b"])
    assert found == [{"a": row[0], "b": row[1]} for row in X[:2, :2]]
    (found,) = answers("ZipMap", X[0], classlabels_int64s=[4, 5, 6])
    assert found == [dict(zip([4, 5, 6], X[0], strict=True))]


MAPS: dict[str, tuple[str, int, int, dict[str, Any], dict[Any, Any], Any, Any]] = {
    "texts": ("DictVectorizer", 8, 1, {"string_vocabulary": ["b", "z", "a"]}, {"a": F(1), "b": F(2)}, [[2, 0, 1]], F),
    "integers": ("DictVectorizer", 7, 11, {"int64_vocabulary": [3, 2]}, {3: 0.5}, [[0.5, 0]], np.float64),
    "dense": ("CastMap", 7, 1, {"cast_to": "TO_INT64"}, {5: F(2.5), 1: F(7)}, [[7, 2]], np.int64),
    "sparse": ("CastMap", 7, 1, {"map_form": "SPARSE", "max_map": 5}, {3: F(2), 1: F(7)}, [[0, 7, 0, 2, 0]], F)}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_becomes_a_row(name: str) -> None:
    op, key, value, attributes, given, want, kind = MAPS[name]
    holds = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], domain=ML, **attributes)], "graph",
                              [helper.make_value_info("x", holds)], [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 3)], ir_version=8)
    same(nnx_convert.compile(model.SerializeToString()).run([given])[0], want, kind)


LIES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "coefficients": ("LinearRegressor", [X], {"coefficients": [1.0, 2]}),
    "no coefficients": ("LinearRegressor", [X], {}),
    "targets": ("LinearRegressor", [X], {"coefficients": listed(W), "targets": -1}),
    "offsets": ("LinearRegressor", [X], {"coefficients": listed(W[0]), "intercepts": [1.0, 2]}),
    "transform": ("LinearRegressor", [X], {"coefficients": listed(W[0]), "post_transform": "CUBE"}),
    "labels": ("LinearClassifier", [X], {"coefficients": listed(W), "classlabels_ints": [1]}),
    "rank": ("LinearRegressor", [X[None]], {"coefficients": listed(W[0])}),
    "scale": ("Scaler", [X[:, :1]], {"scale": [1.0, 2, 3]}), "norm": ("Normalizer", [X], {"norm": "L3"}),
    "imputed": ("Imputer", [X], {"imputed_value_floats": [1.0, 2]}), "nothing": ("Imputer", [X], {}),
    "dimensions": ("FeatureVectorizer", [X], {"inputdimensions": [-1]}),
    "more dimensions": ("FeatureVectorizer", [X], {"inputdimensions": [1, 1]}),
    "keys": ("LabelEncoder", [X], {"keys_floats": [1.0, 2], "values_floats": [1.0]}),
    "key type": ("LabelEncoder", [X], {"keys_int64s": [1], "values_floats": [1.0]}),
    "two lists": ("LabelEncoder", [X], {"keys_floats": [1.0], "keys_int64s": [1], "values_floats": [1.0]}),
    "columns": ("ZipMap", [X], {"classlabels_int64s": [1, 2]}), "no map": ("DictVectorizer", [X], {}),
    "svm classes": ("SVMClassifier", [X], {"classlabels_ints": [0, 1], "coefficients": listed(W), "rho": [0.0]}),
    "svm vectors": ("SVMClassifier", [X], {"classlabels_ints": [0, 1], "coefficients": listed(DUAL[0]), "rho": [0.0],
                                           "support_vectors": listed(V), "vectors_per_class": [7, -2]}),
    "svm rho": ("SVMClassifier", [X], {"classlabels_ints": [0, 1, 2], "coefficients": listed(DUAL), "rho": [0.0],
                                       "support_vectors": listed(V), "vectors_per_class": list(SIZES)}),
    "svm kernel": ("SVMRegressor", [X], {"coefficients": listed(DUAL[0]), "kernel_type": "CUBE", "n_supports": 5,
                                         "rho": [0.0], "support_vectors": listed(V)}),
    "svm prob": ("SVMClassifier", [X], {
        "classlabels_ints": [0, 1], "coefficients": listed(DUAL[0]), "rho": [0.0], "support_vectors": listed(V),
        "vectors_per_class": [2, 3], "prob_a": [1.0, 2.0]})}


@pytest.mark.parametrize("name", LIES)
def test_what_does_not_fit_is_refused(name: str) -> None:
    op, inputs, attributes = LIES[name]
    outputs = 2 if op.endswith("Classifier") else 1
    with pytest.raises(FormatError, match=op) as raised:
        answers(op, *inputs, outputs=outputs, **attributes)
    assert "out of range" not in str(raised.value) and "object" not in str(raised.value)


def test_what_is_not_supported_is_said() -> None:
    with pytest.raises(Unsupported, match="zeros=0"):
        answers("OneHotEncoder", np.array([1]), cats_int64s=[1], zeros=0)
    model = made("LinearRegressor", [X], coefficients=listed(W[0]))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "c"
    with pytest.raises(Unsupported, match="open size"):
        nnx_convert.compile(model.SerializeToString())


def test_a_column_that_is_not_there_fails() -> None:
    with pytest.raises(NnxError):
        answers("ArrayFeatureExtractor", X, np.array([7]))
