"""Operations against float64 on shapes, values and grids that hypothesis draws."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import prepared, wrong
from row_case import BYTES, Case, Grid, X, c, made
from row_runs import run, usual

from nnx_convert.schema import OPS
from nnx_convert.types import I32, Type

Draw = Callable[[st.SearchStrategy[Any]], Any]
SIZES = st.integers(1, 5)
SHAPES = st.lists(SIZES, min_size=1, max_size=4).map(tuple)
ACTS = st.integers(0, 3)
#: Scales over six decades; zero points anywhere; outputs from far too fine to far too coarse.
GRIDS = st.builds(Grid, st.floats(-4, 2).map(lambda e: float(f"{10 ** e:.4g}")), st.floats(0, 1),
                  st.sampled_from([0.05, 0.5, 1.0, 1.0, 4.0, 40.0]))


@st.composite
def two(draw: Draw, op: str) -> Case:
    """Two operands that broadcast, some axes of either being 1 or left off."""
    shape = draw(SHAPES)
    x, y = (tuple(draw(st.sampled_from([n, n, 1])) for n in shape) for _ in range(2))
    y = y[draw(st.integers(0, len(y) - 1)):]
    pair = {"x": x, "y": y} if draw(st.booleans()) else {"x": y, "y": x}
    if op == "POW":
        pair = {name: X(size, span=(0.2, 3)) for name, size in pair.items()}
    act = {"act": draw(ACTS)} if any(p.name == "act" for p in OPS[op].params) else {}
    return c(op, **pair, **act)


@st.composite
def one(draw: Draw, op: str) -> Case:
    """One operand; positive where a root or a logarithm is taken."""
    shape = draw(SHAPES)
    return c(op, x=X(shape, span=(0.3, 9)) if op in ("LOG", "SQRT", "RSQRT", "SQRT_EX", "RSQRT_EX") else shape,
             **({"alpha": draw(st.sampled_from([0.5, 1.0, 2.0]))} if op == "ELU" else {}))


@st.composite
def reduced(draw: Draw, op: str) -> Case:
    """A reduction over some axes, counted from either end."""
    shape = draw(SHAPES)
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
    keep = {} if op.endswith("_EX") else {"keep": int(draw(st.booleans())) if op == "MEAN" else draw(st.booleans())}
    return c(op, x=shape, axes=axes, **keep)


@st.composite
def searched(draw: Draw, op: str) -> Case:
    """A search along an axis."""
    shape = draw(SHAPES)
    return c(op, x=shape, axis=draw(st.integers(-len(shape), len(shape) - 1)))


@st.composite
def normed(draw: Draw, op: str) -> Case:
    """A norm along an axis."""
    shape = draw(SHAPES)
    more: dict[str, Any] = {"beta": draw(st.sampled_from([0.25, 1.0, 3.0]))} if "SOFTMAX" in op else {}
    if op == "LOCAL_RESPONSE_NORMALIZATION":
        more = {"radius": draw(st.integers(0, 3)), "bias": 1.5, "alpha": 0.25, "beta": 0.5}
    return c(op, x=shape, **more, axis=draw(st.integers(-len(shape), len(shape) - 1)))


@st.composite
def pooled(draw: Draw, op: str) -> Case:
    """A pool by amounts or by scheme, in either layout."""
    nchw, (kw, kh) = draw(st.booleans()), draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    (n, depth), (h, w) = draw(st.tuples(SIZES, SIZES)), draw(st.tuples(st.integers(3, 8), st.integers(3, 8)))
    named = {"x": (n, depth, h, w) if nchw else (n, h, w, depth), "sw": draw(st.integers(1, 3)),
             "sh": draw(st.integers(1, 3)), "kw": kw, "kh": kh, "act": draw(ACTS), "nchw": nchw}
    if draw(st.booleans()):
        return c(op, 1, scheme=draw(st.integers(1, 2)), **named)
    return c(op, **{p: draw(st.integers(0, kw - 1)) for p in ("pl", "pr")},
             **{p: draw(st.integers(0, kh - 1)) for p in ("pt", "pb")}, **named)


@st.composite
def slid(draw: Draw, op: str) -> Case:
    """A convolution: sizes, strides, dilations, paddings, layouts."""
    nchw, (kh, kw, groups) = draw(st.booleans()), draw(st.tuples(*[st.integers(1, 3)] * 3))
    depth, mult, (h, w) = draw(SIZES), draw(st.integers(1, 3)), draw(st.tuples(st.integers(6, 9), st.integers(6, 9)))
    units, more = draw(SIZES), dict[str, Any]()
    if op == "GROUPED_CONV_2D":
        depth, units, more = depth * groups, units * groups, {"groups": groups}
    filters = (units, kh, kw, depth // groups if more else depth)
    if op == "DEPTHWISE_CONV_2D":
        units, filters, more = depth * mult, (1, kh, kw, depth * mult), {"mult": mult}
    dilated = op in ("CONV_2D", "DEPTHWISE_CONV_2D")
    more |= {"dw": draw(st.integers(1, 2)), "dh": draw(st.integers(1, 2))} if dilated else {}
    n = draw(st.integers(1, 2))
    named = {"x": (n, depth, h, w) if nchw else (n, h, w, depth), "w": filters, "b": (units,),
             "sw": draw(st.integers(1, 3)), "sh": draw(st.integers(1, 3)), "act": draw(ACTS), "nchw": nchw, **more}
    if op != "TRANSPOSE_CONV_2D" and draw(st.booleans()):
        return c(op, 1, scheme=draw(st.integers(1, 2)), **named)
    return c(op, **{p: draw(st.integers(0, 2)) for p in ("pl", "pr", "pt", "pb")}, **named)


@st.composite
def dense(draw: Draw, op: str) -> Case:
    """A matrix product."""
    rows, inner, columns = draw(SIZES), draw(st.integers(1, 40)), draw(SIZES)
    if op == "FULLY_CONNECTED":
        return c(op, x=(rows, inner), w=(columns, inner), b=(columns,), act=draw(ACTS))
    a, b, lead = draw(st.booleans()), draw(st.booleans()), tuple(draw(st.lists(SIZES, max_size=2)))
    return c(op, x=(*lead, *((inner, rows) if a else (rows, inner))),
             y=(*lead, *((columns, inner) if b else (inner, columns))), adj_x=a, adj_y=b)


@st.composite
def resized(draw: Draw, op: str) -> Case:
    """An image on another grid of cells."""
    nchw, (n, h, w, depth) = draw(st.booleans()), draw(st.tuples(SIZES, SIZES, SIZES, SIZES))
    align, half = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    return c(op, x=(n, depth, h, w) if nchw else (n, h, w, depth), ow=draw(st.integers(1, 9)),
             oh=draw(st.integers(1, 9)), nchw=nchw, align=align, half=half)


FAMILIES: dict[Callable[[str], st.SearchStrategy[Case]], list[str]] = {
    two: ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "PRELU", "EQUAL", "NOT_EQUAL", "GREATER",
          "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "EQUAL_EX", "NOT_EQUAL_EX",
          "GREATER_EQUAL_EX", "LESS_EX", "SQUARED_DIFFERENCE_EX", "PRELU_EX"],
    one: ["ABS", "NEG", "EXP", "LOG", "SIN", "SQRT", "RSQRT", "FLOOR", "RELU", "RELU1", "RELU6", "LOGISTIC", "TANH",
          "ELU", "HARD_SWISH", "LOGICAL_NOT", "ABS_EX", "NEG_EX", "EXP_EX", "SQRT_EX", "RSQRT_EX"],
    reduced: ["MEAN", "REDUCE_SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY",
              "REDUCE_MAX_EX", "REDUCE_MIN_EX", "REDUCE_SUM_EX"],
    searched: ["ARGMAX", "ARGMIN", "ARGMAX_EX"],
    normed: ["SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION"],
    pooled: ["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"],
    slid: ["CONV_2D", "DEPTHWISE_CONV_2D", "GROUPED_CONV_2D", "TRANSPOSE_CONV_2D"],
    dense: ["FULLY_CONNECTED", "BATCH_MATMUL"], resized: ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]}
MAKERS = {op: family for family, names in FAMILIES.items() for op in names}


def drawn(case: Case, key: Type, grid: Grid, channels: bool) -> list[str]:
    """What is wrong with a case on a grid."""
    i, want = prepared(made(case, key, grid, "drawn", None, channels))
    return [why for n, (got, w) in enumerate(zip(run(usual(i)), want, strict=True)) if (why := wrong(i, n, got, w))]


@pytest.mark.parametrize("op", MAKERS)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_drawn_is_as_float64_says(op: str, data: st.DataObject) -> None:
    case, key = data.draw(MAKERS[op](op)), data.draw(st.sampled_from(list(OPS[op].types)))
    if op == "DIV" and key == I32:
        case = replace(case, args=case.args | {"y": X(case.args["y"], span=(1, 9)), "act": 0})
    elif key == I32 and "act" in case.args:
        case = replace(case, args=case.args | {"act": 0})
    channels = data.draw(st.booleans()) and key in BYTES and MAKERS[op] is slid
    assert not drawn(case, key, data.draw(GRIDS), channels)


def test_the_oracles_are_apart_from_what_they_judge() -> None:
    assert not [name for name in vars(oracle) if "kernel" in name]
    assert set(MAKERS) <= oracle.REAL.keys() | oracle.MOVED.keys()
