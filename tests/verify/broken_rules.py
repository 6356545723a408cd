"""Small models and faults: a rule of lowering that is wrong, what it is wrong about, and the operation to be named."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from one_node import model
from tflite_writer import TFLiteWriter, sparsify

from nnx_convert.graph import Node
from nnx_convert.lowering import affine, densify, fuse, hybrid, layout, narrow64, qdq, retype
from nnx_convert.lowering import pipeline as passes
from nnx_convert.lowering.expand import EXPAND
from nnx_convert.lowering.legalize import LEGALIZE
from nnx_convert.lowering.narrow import NARROW
from nnx_convert.lowering.patterns import PATTERNS
from nnx_convert.lowering.rewrite import Refusal, Rewriter, Rules
from nnx_convert.ops import conv, elementwise as e
from nnx_convert.types import F32, Quant

Array = np.ndarray[Any, Any]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(7)
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """A model's file, a rule to break, the operator to be named first, the input, options of the command.

    `shaped`: what the rule gives has the shape that it should have, so that what follows can be fed with it.
    """

    name: str
    file: bytes
    suffix: str
    breaks: Callable[[Patch], None]
    operation: str
    x: Array
    options: tuple[str, ...] = ()
    shaped: bool = True


def floats(*shape: int, scale: float = 1.0) -> Array:
    """Numbers drawn once for all."""
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def off_by_a_percent(rules: Rules, op: str, rule: str) -> Callable[[Patch], None]:
    """A rule whose floats are one percent too large."""
    def breaks(patch: Patch) -> None:
        own = next(r for r in rules.by_op[op] if r.__name__ == rule)

        def wrong(g: Rewriter, node: Node) -> Any:
            made = own(g, node)
            if made is None or isinstance(made, Refusal) or op == "*" and node.op is e.MUL:      # perhaps that below
                return made
            first, *rest = [made] if not isinstance(made, Sequence) else made
            factor = g.build.const(np.full((1,) * max(1, len(first.shape)), 1.01, np.float32), F32)
            return [g(e.MUL, first, factor, act=0), *rest]
        wrong.__name__ = rule
        patch.setitem(rules.by_op, op, [wrong if r is own else r for r in rules.by_op[op]])
    return breaks


def onnx(nodes: Sequence[NodeProto], shape: Sequence[int], constants: dict[str, Array] | None = None,
         kind: int = FLOAT) -> bytes:
    """A model from `x` of a shape to `y`, of whatever shape that is."""
    made = model(nodes, [("x", kind, shape)], [("y", FLOAT, None)], opset=20, initializer=[
        numpy_helper.from_array(a, n) for n, a in (constants or {}).items()])
    made.ir_version = 9
    return bytes(made.SerializeToString())


def chain(*middle: NodeProto) -> list[NodeProto]:
    """Nodes between healthy ones: Abs gives `a`, which the first of them reads; the last gives `b`."""
    return [helper.make_node("Abs", ["x"], ["a"]), *middle, helper.make_node("Tanh", ["b"], ["t"]),
            helper.make_node("Neg", ["t"], ["y"])]


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    """A node by the names of its inputs, with spaces between them."""
    return helper.make_node(op, inputs.split(), [output], **attributes)


def fused_activation() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setitem(fuse.CODES, e.RELU.name, fuse.CODES[e.RELU6.name])
    file = onnx(chain(node("Add", "a c", "s"), node("Relu", "s", "b")), [2, 8], {"c": floats(8, scale=9.0)})
    return Fault("fuse", file, "onnx", breaks, "op 2 Relu", floats(2, 8, scale=5.0))


def constant_in_another_order() -> Fault:
    def breaks(patch: Patch) -> None:
        own = layout.constant

        def wrong(v: Any, p: Any) -> Any:
            made = own(v, p)
            return replace(made, tensor=replace(made.tensor, data=np.ascontiguousarray(np.flip(made.array))))
        patch.setattr(layout, "constant", wrong)
    file = onnx(chain(node("Conv", "a w", "v"), node("Sin", "v", "i"), node("Mul", "i f", "b")), [1, 3, 6, 6],
                {"w": floats(4, 3, 3, 3), "f": floats(1, 4, 4, 4)})
    return Fault("layout", file, "onnx", breaks, "op 3 Mul", floats(1, 3, 6, 6))


def lost_zero_point() -> Fault:
    def breaks(patch: Patch) -> None:
        own = qdq.grid_of
        patch.setattr(qdq, "grid_of", lambda n: (g := own(n)) and Quant(g.scale, 0))
    grids = {"s": np.array(0.02, np.float32), "z": np.array(0, np.int8), "u": np.array(0.03, np.float32),
             "o": np.array(9, np.int8), "c": floats(8)}
    file = onnx(chain(node("QuantizeLinear", "a s z", "p"), node("DequantizeLinear", "p s z", "q"),
                      node("Add", "q c", "r"), node("QuantizeLinear", "r u o", "k"),
                      node("DequantizeLinear", "k u o", "b")), [2, 8], grids)
    return Fault("qdq", file, "onnx", breaks, "op 4 QuantizeLinear", floats(2, 8))


def unscaled_bias() -> Fault:
    def breaks(patch: Patch) -> None:
        own = affine.rebuilt
        patch.setattr(affine, "rebuilt", lambda g, found, w, b, act: own(g, found, w, found.b, act))
    file = onnx(chain(node("Conv", "a w k", "v"), node("Mul", "v f", "b")), [1, 3, 6, 6],
                {"w": floats(4, 3, 3, 3), "k": floats(4), "f": floats(1, 4, 1, 1)})
    return Fault("affine", file, "onnx", breaks, "op 2 Mul", floats(1, 3, 6, 6))


def pattern() -> Fault:
    halves = {"r": np.array(2 ** 0.5, np.float32), "one": np.array(1, np.float32), "h": np.array(0.5, np.float32)}
    file = onnx(chain(node("Div", "a r", "d"), node("Erf", "d", "f"), node("Add", "f one", "g"),
                      node("Mul", "a g", "m"), node("Mul", "m h", "b")), [2, 8], halves)
    return Fault("patterns", file, "onnx", off_by_a_percent(PATTERNS, "MUL", "activation"), "op 5 Mul", floats(2, 8))


def wrapped_integers() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setattr(narrow64, "within", lambda a, b: True)
    file = onnx([node("Abs", "x", "a"), node("Mul", "a a", "m"), node("Div", "m c", "d"),
                 node("Cast", "d", "y", to=FLOAT)], [6], {"c": np.array([1000], np.int64)}, INT64)
    return Fault("narrow64", file, "onnx", breaks, "op 1 Mul", np.arange(6, dtype=np.int64) * 30011 - 7)


def composite() -> Fault:
    file = onnx(chain(node("Sin", "a", "i"), node("LeakyRelu", "i", "b", alpha=0.3)), [2, 8])
    return Fault("expand", file, "onnx", off_by_a_percent(EXPAND, "LEAKY_RELU", "leaky_relu"), "op 2 LeakyRelu",
                 floats(2, 8))


def many_axes() -> Fault:
    sizes = {"p": np.array([2, 2, 3, 2, 2]), "q": np.array([6, 8])}
    file = onnx(chain(node("Reshape", "a p", "v"), node("Sigmoid", "v", "i"), node("Reshape", "i q", "b")), [6, 8],
                sizes)
    return Fault("narrow", file, "onnx", off_by_a_percent(NARROW, "*", "elements"), "op 2 Sigmoid",
                 floats(6, 8))


def later_operation() -> Fault:
    file = onnx(chain(node("Sin", "a", "i"), node("HardSwish", "i", "b")), [2, 8])
    return Fault("legalize", file, "onnx", off_by_a_percent(LEGALIZE, "HARD_SWISH", "hard_swish"), "op 2 HardSwish",
                 floats(2, 8, scale=3.0), ("--target", "29"))


def folded_constants() -> Fault:
    def breaks(patch: Patch) -> None:
        own = passes.folding
        patch.setattr(passes, "folding", lambda evaluate: own(
            lambda n, values: (found := evaluate(n, values)) and [np.ascontiguousarray(np.flip(a)) for a in found]))
    w = TFLiteWriter()
    x, a, h, b = (w.tensor(n, "float32", (2, 4)) for n in ("x", "a", "h", "b"))
    half = w.tensor("half", "float16", (4, 4), floats(4, 4).astype(np.float16))
    weights = w.tensor("weights", "float32", (4, 4))
    w.op("ABS", [x], [a])
    w.op("DEQUANTIZE", [half], [weights])
    w.op("FULLY_CONNECTED", [a, weights, -1], [h], "FullyConnectedOptions")
    w.op("TANH", [h], [b])
    return Fault("fold", w.finish([x], [b]), "tflite", breaks, "op 1 DEQUANTIZE", floats(2, 4))


def sparse_weights() -> Fault:
    def breaks(patch: Patch) -> None:
        own = densify._densify
        patch.setattr(densify, "_densify", lambda v, s, quant, at: own(v, replace(s, data=s.data[::-1]), quant, at))
    dense = np.where(RNG.random((4, 8)) < 0.5, floats(4, 8), 0).astype(np.float32)
    sparsity, stored = sparsify(dense, (0, 1), "ds")
    w = TFLiteWriter()
    x, a, h, b = (w.tensor(n, "float32", s) for n, s in (("x", (2, 8)), ("a", (2, 8)), ("h", (2, 4)), ("b", (2, 4))))
    weights = w.tensor("weights", "float32", (4, 8), stored, sparsity=sparsity)
    w.op("ABS", [x], [a])
    w.op("FULLY_CONNECTED", [a, weights, -1], [h], "FullyConnectedOptions")
    w.op("TANH", [h], [b])
    return Fault("densify", w.finish([x], [b]), "tflite", breaks, "op 1 FULLY_CONNECTED", floats(2, 8))


def hybrid_weights() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setitem(hybrid.NEAR, "HYBRID_FULLY_CONNECTED", lambda g, args: g(
            conv.FULLY_CONNECTED, **args | {"act": 1}))
    w = TFLiteWriter()
    x, a, h, b = (w.tensor(n, "float32", (2, 4)) for n in ("x", "a", "h", "b"))
    weights = w.tensor("weights", "int8", (4, 4), RNG.integers(-127, 128, (4, 4)), scale=0.01, zero=0)
    w.op("ABS", [x], [a])
    w.op("FULLY_CONNECTED", [a, weights, -1], [h], "FullyConnectedOptions", version=3)
    w.op("TANH", [h], [b])
    return Fault("hybrid", w.finish([x], [b]), "tflite", breaks, "op 1 FULLY_CONNECTED", floats(2, 4),
                 ("--hybrid", "float"))


def unsigned_padding() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setitem(retype.RAW, "PAD_V2", lambda args: {})
    w = TFLiteWriter()
    x, a = (w.tensor(n, "int8", (2, 4), scale=0.1, zero=3) for n in ("x", "a"))
    p, b = (w.tensor(n, "int8", (2, 6), scale=0.1, zero=3) for n in ("p", "b"))
    pads = w.tensor("pads", "int32", (2, 2), np.array([[0, 0], [1, 1]]))
    value = w.tensor("value", "int8", (1,), np.array([20]), scale=0.1, zero=3)
    w.op("MAXIMUM", [x, x], [a], "MaximumMinimumOptions", version=2)
    w.op("PADV2", [a, pads, value], [p], "PadV2Options", version=2)
    w.op("MAXIMUM", [p, p], [b], "MaximumMinimumOptions", version=2)
    return Fault("retype", w.finish([x], [b]), "tflite", breaks, "op 1 PADV2",
                 RNG.integers(-128, 128, (2, 4)).astype(np.int8), ("--target", "28"))


FAULTS = {f.name: f for f in (make() for make in (
    fused_activation, constant_in_another_order, lost_zero_point, unscaled_bias, pattern, wrapped_integers, composite,
    many_axes, later_operation, folded_constants, sparse_weights, hybrid_weights, unsigned_padding))}
