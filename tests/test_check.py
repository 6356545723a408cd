"""The verdict before the device gives it: what is said to change it does, when it is tried."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

import nnx_convert as nnx
from nnx_convert.check import HOLD, RECONVERT, checks, of_table
from nnx_convert.codes import LEVELS

MODELS = Path(__file__).parent.parent / "models"


def product(weights: str, quantised: bool = False) -> bytes:
    """A fully connected layer of floats by weights of a type."""
    w = TFLiteWriter()
    x = w.tensor("x", "float32", [1, 4])
    data = np.arange(12).reshape(3, 4).astype(weights)
    k = w.tensor("w", weights, [3, 4], data, scale=[0.5] if quantised else None, zero=[0] if quantised else None)
    y = w.tensor("y", "float32", [1, 3])
    w.op("FULLY_CONNECTED", [x, k], [y], "FullyConnectedOptions", {})
    return w.finish([x], [y])


def unary(name: str, options: str | None = None, dtype: str = "float32", shape: list[int] | None = None) -> bytes:
    """One operator of one input."""
    w = TFLiteWriter()
    shape = shape or [2, 3]
    x, y = w.tensor("x", dtype, shape), w.tensor("y", dtype, shape)
    w.op(name, [x], [y], options, {} if options else None)
    return w.finish([x], [y])


#: A model, a target, the operation that is not taken, and what is said to change it.
CHANGES = {
    "hybrid": (lambda: product("int8", True), nnx.Target(30), "--hybrid float", {"hybrid": "float"}),
    "expanded": (lambda: unary("HARD_SWISH", dtype="float32"), nnx.Target(27, ex=False), None, {}),
    "log": (lambda: unary("LOG"), nnx.Target(27), "--target 29", {"level": 29}),
    "rsqrt": (lambda: unary("RSQRT"), nnx.Target(27, ex=False), "a device with NNAPI-EX", {"ex": True}),
    "first level": (lambda: unary("FLOOR", dtype="float32"), nnx.Target(27), None, {})}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_said_to_change_it_does(name: str) -> None:
    make, target, change, fields = CHANGES[name]
    found = nnx.check(make(), target)
    assert {v.change for v in found.verdicts if not v.taken} == ({change} if change else set())
    assert nnx.check(make(), replace(target, **fields)).refused == 0


def test_what_nothing_changes() -> None:
    found = nnx.check((MODELS / "digits_cnn.tflite").read_bytes())
    assert found.refused == found.host == 0 and found.partitions == (tuple(range(len(found.verdicts))),)
    lost = nnx.check(unary("RELU", dtype="int16", shape=[2, 2]))
    assert {v.change for v in lost.verdicts if not v.taken} == {HOLD}


@pytest.mark.parametrize(("name", "rule", "found"), [
    ("MUL", "the output scale exceeds x.scale * y.scale", True), ("SHAPE", "NNAPI has no such operation", False),
    ("CONCATENATION", "TENSOR_INT32 is not accepted: TENSOR_FLOAT32, TENSOR_FLOAT16", True),
    ("AVERAGE_POOL_2D", "on signed bytes: uint8 rounds halves up, int8 away from zero", False), ("NOPE", "x", False)])
def test_rules_of_the_table(name: str, rule: str, found: bool) -> None:
    assert of_table(name, rule) is found


def test_a_model_that_is_converted_is_converted_again() -> None:
    model = nnx.convert(unary("LOG"), nnx.Target(29))
    from nnx_convert.artifact import to_bytes
    found = nnx.check(to_bytes(model), nnx.Target(27))
    assert [v.change for v in found.verdicts if not v.taken] == [RECONVERT]


def test_levels_only_add() -> None:
    """What a level takes a higher one takes: of a whole model, as it is lowered for each."""
    for file in ("digits_cnn_int8.tflite", "digits_cnn.onnx", "digits_sparse.tflite"):
        counts = [c.refused for c in checks(str(MODELS / file), [nnx.Target(n) for n in LEVELS])]
        assert counts == sorted(counts, reverse=True)


def test_faults_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"abc")
    with pytest.raises(nnx.FormatError, match=r"m\.tflite"):
        nnx.check(tmp_path / "m.tflite")
