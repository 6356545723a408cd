"""Classical learners that are products and tables: ai.onnx.ml without its trees."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import classical as c
from ....types import F32, I64, STR, Type, known
from ..constants import element_of, type_of
from ..importer import Op
from ..lists import map_type, sequence_type
from ..registry import ML, imports
from .elementwise import number
from .sequence import listed as of_kind
from .text import texts

#: The version of the default domain that these importers speak of.
VERSION = 18
#: What is done to scores at last.
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def real(g: Op, x: Value) -> Value:
    """Rows of numbers as FLOAT32; raises `FormatError` where they are no rows."""
    return rows(g, g.cast(x, F32))


def rows(g: Op, x: Value) -> Value:
    """Rows, of which one may stand alone; raises `FormatError` where they are none."""
    if g.rank(x) not in (1, 2):
        raise FormatError(f"takes rows, not the shape {list(g.shape(x))}")
    return g.reshape(x, (1, *g.shape(x))) if g.rank(x) == 1 else x


def matrix(values: Sequence[float], columns: int, name: str) -> np.ndarray:
    """Numbers as rows of so many; raises `FormatError` where they are not."""
    if columns < 1 or not values or len(values) % columns:
        raise FormatError(f"has {len(values)} {name}, in rows of {columns}")
    return np.array(values, np.float32).reshape(-1, columns)


def width(g: Op, x: Value) -> int:
    """How many features a row has; raises `Unsupported` where that is open."""
    found = x.shape[1]
    if not known(found):
        g.unsupported("takes rows of an open size", "give the input sizes")
    return found


def scores_of(g: Op, x: Value, weights: np.ndarray, bias: Sequence[float]) -> Value:
    """x @ weights.T + bias; raises `FormatError` where there is no bias for each row of weights."""
    if len(bias) not in (0, len(weights)):
        raise FormatError(f"has {len(bias)} offsets for {len(weights)} scores")
    found = only(g, "MatMul", x, g.const(np.ascontiguousarray(weights.T)))
    return only(g, "Add", found, g.const(np.array(bias, np.float32))) if len(bias) else found


def way(transform: str) -> str:
    """What is done to scores at last; raises `FormatError` where there is no such thing."""
    if transform not in TRANSFORMS:
        raise FormatError(f"has the post_transform {transform!r:.40}")
    return transform


def transformed(g: Op, x: Value, transform: str) -> Value:
    """Scores as probabilities; raises `FormatError` where there is no such way."""
    if way(transform) == "SOFTMAX":
        return only(g, "Softmax", x, axis=-1)
    if transform == "LOGISTIC":
        return only(g, "Sigmoid", x)
    if transform == "PROBIT":
        return g(c.PROBIT, x)
    if transform == "SOFTMAX_ZERO":              # zeros stay zeros, and are not counted
        there = only(g, "Not", only(g, "Equal", x, g.const(np.float32(0))))
        powers = only(g, "Exp", only(g, "Sub", x, only(g, "ReduceMax", x, g.const([-1]))))
        kept = only(g, "Where", there, powers, g.const(np.float32(0)))
        return only(g, "Div", kept, only(g, "ReduceSum", kept, g.const([-1])))
    return x


def only(g: Op, name: str, *inputs: Any, **attributes: Any) -> Value:
    """The one output of another operator, in one version whatever the file's."""
    found: Value = g.call(name, *inputs, version=VERSION, **attributes)[0]
    return found


def labels_of(g: Op, ints: Sequence[int], strings: Sequence[str], count: int) -> Value:
    """The labels of classes, their numbers where the file has none; raises `FormatError` where they are too few."""
    found = texts(g, tuple(strings)) if strings else g.const(list(ints) or list(range(count)), I64)
    if found.shape[0] < count:
        raise FormatError(f"has {found.shape[0]} labels for {count} classes")
    return found


def labelled(g: Op, scores: Value, labels: Value) -> Value:
    """The label of the highest score of each row, the first among equals."""
    best = only(g, "ArgMax", scores, axis=1, keepdims=0)
    return only(g, "Gather", labels, best, axis=0)


def above(g: Op, score: Value, bound: float, labels: Value) -> Value:
    """The second label where the one score of a row is above a bound, else the first."""
    over = only(g, "Greater", g.reshape(score, score.shape[:1]), g.const(np.float32(bound)))
    return only(g, "Gather", labels, g.cast(over, I64), axis=0)


def two(g: Op, score: Value, transform: str, sure: bool) -> Value:
    """The scores of two classes out of that of the second; `sure`: it is a probability. As in ONNX Runtime, only a
    logistic function is taken of both; what that writes beside a PROBIT is chance."""
    if way(transform) == "PROBIT":
        score, sure = g(c.PROBIT, score), False
    if sure and transform != "LOGISTIC":
        return only(g, "Concat", only(g, "Sub", g.const(np.float32(1)), score), score, axis=1)
    both = only(g, "Concat", only(g, "Neg", score), score, axis=1)
    return transformed(g, both, transform) if transform == "LOGISTIC" else both


@imports(domain=ML)
def ArrayFeatureExtractor(g: Op, x: Value, y: Value) -> Value:
    at = only(g, "Reshape", y, g.const([-1]))
    return only(g, "Gather", g.reshape(x, (1, *g.shape(x))) if g.rank(x) == 1 else x, at, axis=-1)


@imports(domain=ML)
def Binarizer(g: Op, x: Value, *, threshold: float = 0.0) -> Value:
    """An integer is above a bound where it is above the next integer below it."""
    if x.type.dtype.kind == "i":
        ends = np.iinfo(x.type.dtype)
        threshold = min(max(int(np.floor(np.nan_to_num(threshold))), ends.min), ends.max)
    return g.cast(only(g, "Greater", x, number(g, x, threshold)), x.type)


def looked_up(g: Op, x: Value, keys: Value, values: Value, default: Value) -> Value:
    """Each element's value in a table."""
    if keys.type != x.type:
        raise FormatError(f"looks {x.type.name} up among {keys.type.name}")
    if keys.shape != values.shape:
        raise FormatError(f"has {keys.shape[0]} keys and {values.shape[0]} values")
    found = g(c.LOOKUP, x, keys, values, default)
    return found if g.rank(x) else g.scalar(found)


@imports(domain=ML)
def CategoryMapper(g: Op, x: Value, *, cats_int64s: tuple[int, ...] = (), cats_strings: tuple[str, ...] = (),
                   default_int64: int = -1, default_string: str = "_Unused") -> Value:
    ints, strings = g.const(list(cats_int64s), I64), texts(g, cats_strings)
    if x.type == STR:
        return looked_up(g, x, strings, ints, g.const([default_int64], I64))
    return looked_up(g, x, ints, strings, texts(g, default_string))


@imports("LabelEncoder", until=1, domain=ML)
def encode_texts(g: Op, x: Value, *, classes_strings: tuple[str, ...] = (), default_int64: int = -1,
                 default_string: str = "_Unused") -> Value:
    numbers, strings = g.const(list(range(len(classes_strings))), I64), texts(g, classes_strings)
    if x.type == STR:
        return looked_up(g, x, strings, numbers, g.const([default_int64], I64))
    return looked_up(g, x, numbers, strings, texts(g, default_string))


@imports(since=2, domain=ML)
def LabelEncoder(g: Op, x: Value, *, keys_floats: tuple[float, ...] = (), keys_int64s: tuple[int, ...] = (),
                 keys_strings: tuple[str, ...] = (), keys_tensor: np.ndarray | None = None,
                 values_floats: tuple[float, ...] = (), values_int64s: tuple[int, ...] = (),
                 values_strings: tuple[str, ...] = (), values_tensor: np.ndarray | None = None,
                 default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
                 default_tensor: np.ndarray | None = None) -> Value:
    keys = listed(g, keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = listed(g, values_floats, values_int64s, values_strings, values_tensor)
    default = {F32: g.const([default_float], F32), I64: g.const([default_int64], I64),
               STR: texts(g, default_string)}.get(values.type)
    if default_tensor is not None:
        default = g.reshape(g.const(default_tensor), (1,))
    elif values_tensor is not None or default is None:
        default = default if default is not None and values.type == STR else g.const(
            [-1 if values.type == I64 else -0.0], values.type)
    return looked_up(g, x, keys, values, default)


def listed(g: Op, floats: Sequence[float], ints: Sequence[int], strings: Sequence[str],
           tensor: np.ndarray | None) -> Value:
    """One list out of four attributes; raises `FormatError` where there is none, or several."""
    given = [g.reshape(g.const(tensor), (tensor.size,))] if tensor is not None else []
    given += [g.const(list(floats), F32)] if floats else []
    given += [g.const(list(ints), I64)] if ints else []
    given += [texts(g, tuple(strings))] if strings else []
    if len(given) != 1:
        raise FormatError(f"has {len(given)} lists where one is wanted")
    return given[0]


@imports(domain=ML)
def FeatureVectorizer(g: Op, *xs: Value, inputdimensions: tuple[int, ...] = ()) -> Value:
    parts = [real(g, x) for x in xs]
    if inputdimensions and (len(inputdimensions) != len(parts) or min(inputdimensions) < 0):
        raise FormatError(f"has the inputdimensions {list(inputdimensions)[:9]} for {len(parts)} inputs")
    cut = [only(g, "Slice", x, g.const([0]), g.const([n]), g.const([1])) if inputdimensions and n < width(g, x)
           else x for x, n in zip(parts, inputdimensions or [0] * len(parts), strict=True)]
    return only(g, "Concat", *cut, axis=1)


def by_column(g: Op, x: Value, values: np.ndarray) -> Value:
    """One number for all, or one for each column; raises `FormatError` where they are others."""
    columns = x.shape[-1] if g.rank(x) else 1
    if len(values) == 1:
        return g.const(values[0])
    if known(columns) and len(values) != columns:
        raise FormatError(f"has {len(values)} numbers for {columns} columns")
    return g.const(values)


@imports(domain=ML)
def Imputer(g: Op, x: Value, *, imputed_value_floats: tuple[float, ...] = (),
            imputed_value_int64s: tuple[int, ...] = (), replaced_value_float: float = 0.0,
            replaced_value_int64: int = 0) -> Value:
    """One value for all, or one for each column."""
    floats = x.type.dtype.kind == "f"
    values: Sequence[float] = imputed_value_floats if floats else imputed_value_int64s
    if not values:
        raise FormatError("has no values to put in")
    new = g.cast(by_column(g, x, np.array(values, np.float32 if floats else np.int64)), x.type)
    if floats and np.isnan(replaced_value_float):
        old = only(g, "IsNaN", x)
    else:
        bound = np.float32(replaced_value_float) if floats else np.int64(replaced_value_int64)
        old = only(g, "Equal", x, g.cast(g.const(bound), x.type))
    return only(g, "Where", old, new, x)


@imports(domain=ML)
def LinearRegressor(g: Op, x: Value, *, coefficients: tuple[float, ...] = (), intercepts: tuple[float, ...] = (),
                    post_transform: str = "NONE", targets: int = 1) -> Value:
    x = real(g, x)
    weights = matrix(coefficients, width(g, x), "coefficients")
    if len(weights) != targets:
        raise FormatError(f"has {len(coefficients)} coefficients for {targets} targets of {width(g, x)} features")
    return transformed(g, scores_of(g, x, weights, intercepts), post_transform)


@imports(domain=ML)
def LinearClassifier(g: Op, x: Value, *, coefficients: tuple[float, ...], classlabels_ints: tuple[int, ...] = (),
                     classlabels_strings: tuple[str, ...] = (), intercepts: tuple[float, ...] = (),
                     multi_class: int = 0, post_transform: str = "NONE") -> list[Value]:
    """One row of coefficients is for the second of two classes, or for the one there is."""
    x = real(g, x)
    weights = matrix(coefficients, width(g, x), "coefficients")
    scores = scores_of(g, x, weights, intercepts)
    labels = labels_of(g, classlabels_ints, classlabels_strings, len(weights))
    if len(weights) > 1:
        return [labelled(g, scores, labels), transformed(g, scores, post_transform)]
    if labels.shape[0] == 1:
        labels = texts(g, ("", *classlabels_strings)) if classlabels_strings else g.const([0, 1], I64)
        return [above(g, scores, 0, labels), transformed(g, scores, post_transform)]
    if post_transform == "PROBIT":
        return [above(g, scores, 0, labels), two(g, scores, post_transform, False)]
    sure = scores if post_transform.startswith("SOFTMAX") else transformed(g, scores, post_transform)
    return [above(g, scores, 0, labels), two(g, sure, "NONE", True)]


@imports(domain=ML)
def Normalizer(g: Op, x: Value, *, norm: str = "MAX") -> Value:
    """By the largest element, by the sum of magnitudes or by the root of the sum of squares; zeros stay zeros."""
    x = g.cast(x, F32)
    axis = g.const([-1])
    ways = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}
    if norm not in ways:
        raise FormatError(f"has the norm {norm!r}")
    by = only(g, ways[norm], x, axis)
    none = only(g, "Equal", by, g.const(np.float32(0)))
    return only(g, "Div", x, only(g, "Where", none, g.const(np.float32(1)), by))


@imports(domain=ML)
def OneHotEncoder(g: Op, x: Value, *, cats_int64s: tuple[int, ...] = (), cats_strings: tuple[str, ...] = (),
                  zeros: int = 1) -> Value:
    """What is no category has zeros everywhere."""
    if not zeros:
        g.unsupported("fails where an element is no category (zeros=0)", "export it with zeros=1")
    cats = texts(g, cats_strings) if x.type == STR else g.const(list(cats_int64s), I64)
    at = looked_up(g, x if x.type == STR else g.cast(x, I64), cats, g.const(list(range(cats.shape[0])), I64),
                   g.const([-1], I64))
    wide = g.reshape(at, (*g.shape(at), 1))
    return g.cast(only(g, "Equal", wide, g.const(list(range(cats.shape[0])), I64)), F32)


@imports(domain=ML)
def Scaler(g: Op, x: Value, *, offset: tuple[float, ...] = (), scale: tuple[float, ...] = ()) -> Value:
    x = g.cast(x, F32)
    moved = only(g, "Sub", x, by_column(g, x, np.array(offset, np.float32))) if offset else x
    return only(g, "Mul", moved, by_column(g, x, np.array(scale, np.float32))) if scale else moved


@imports(domain=ML)
def ZipMap(g: Op, x: Value, *, classlabels_int64s: tuple[int, ...] = (),
           classlabels_strings: tuple[str, ...] = ()) -> Value:
    labels = texts(g, classlabels_strings) if classlabels_strings else g.const(list(classlabels_int64s), I64)
    x = rows(g, x)
    if width(g, x) != labels.shape[0]:
        raise FormatError(f"has {labels.shape[0]} labels for {x.shape[1]} columns")
    return of_kind(g, g(c.ZIP_MAP, x, labels), sequence_type(map_type(element_of(labels.type), element_of(x.type))))


def contents_of(g: Op, x: Value) -> tuple[int, int]:
    """ONNX's element types of a map's keys and values; raises `FormatError` where it is no map of numbers or texts."""
    kind = g.session.kinds.get(x)
    if kind is None or not kind.HasField("map_type"):
        raise FormatError("takes a map")
    return kind.map_type.key_type, kind.map_type.value_type.tensor_type.elem_type


@imports(domain=ML)
def DictVectorizer(g: Op, x: Value, *, int64_vocabulary: tuple[int, ...] = (),
                   string_vocabulary: tuple[str, ...] = ()) -> Value:
    words = texts(g, string_vocabulary) if string_vocabulary else g.const(list(int64_vocabulary), I64)
    return g(c.MAP_VALUES, x, words, zero(g, type_of(contents_of(g, x)[1])))


@imports(domain=ML)
def CastMap(g: Op, x: Value, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Value:
    to = {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}.get(cast_to)
    if to is None or map_form not in ("DENSE", "SPARSE") or max_map < 0:
        raise FormatError(f"casts {cast_to!r:.40} of a {map_form!r:.40} map of {max_map}")
    default = zero(g, type_of(contents_of(g, x)[1]))
    return g.cast(g(c.MAP_DENSE, x, default, size=max_map, sparse=map_form == "SPARSE"), to)


def zero(g: Op, kind: Type) -> Value:
    """What stands where a map has no value."""
    return texts(g, "") if kind == STR else g.const([0], kind)
