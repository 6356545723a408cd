"""More rules that are wrong, of kinds that a person gets wrong: a side, an axis, an order, a stride, a rounding."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from broken_rules import RNG, Array, Fault, Patch, chain, floats, node, onnx
from tflite_writer import TFLiteWriter

from nnx_convert.frontends.onnx.importers.sliding import Sliding
from nnx_convert.graph import Node
from nnx_convert.lowering import affine, fuse, gated, layout_rules, legalize, qdq_groups, retype
from nnx_convert.lowering.expand import EXPAND
from nnx_convert.lowering.legalize import LEGALIZE
from nnx_convert.lowering.rewrite import Rewriter, Rules
from nnx_convert.ops import elementwise as e
from nnx_convert.types import F32, I32

Change = Callable[[Rewriter, dict[str, Any]], dict[str, Any]]


def told_otherwise(rules: Rules, op: str, rule: str, change: Change) -> Callable[[Patch], None]:
    """A rule that takes an argument for another one."""
    return instead(rules, op, rule, lambda own, g, n: own(g, replace(n, args={**n.args, **change(g, dict(n.args))})))


def instead(rules: Rules, op: str, rule: str, made: Callable[[Any, Rewriter, Node], Any]) -> Callable[[Patch], None]:
    """Something else in place of a rule, which it is given."""
    def breaks(patch: Patch) -> None:
        own = next(r for r in rules.by_op[op] if r.__name__ == rule)

        def wrong(g: Rewriter, node: Node) -> Any:
            return made(own, g, node)
        wrong.__name__ = rule
        patch.setitem(rules.by_op, op, [wrong if r is own else r for r in rules.by_op[op]])
    return breaks


def whole(g: Rewriter, values: Array) -> Any:
    """Whole numbers as a constant."""
    return g.build.const(np.ascontiguousarray(values, dtype=np.int32), I32)


def tflite(op: str, options: tuple[Any, ...], shape: Sequence[int], out: Sequence[int],
           constants: Sequence[Array] = (), first: bool = False, twice: int = 1) -> bytes:
    """ABS gives `a`, which the operator reads so often, before or behind constants; TANH reads what it gives, `b`."""
    w = TFLiteWriter()
    x, a = (w.tensor(n, "float32", shape) for n in ("x", "a"))
    b, y = (w.tensor(n, "float32", out) for n in ("b", "y"))
    rest = [w.tensor(f"c{n}", c.dtype.name, c.shape, c) for n, c in enumerate(constants)]
    w.op("ABS", [x], [a])
    w.op(op, [*rest, a] if first else [a] * twice + rest, [b], *options)
    w.op("TANH", [b], [y])
    return w.finish([x], [y])


def padding_on_the_other_side() -> Fault:
    breaks = told_otherwise(LEGALIZE, "PAD", "pad_as_concatenation", lambda g, a: {
        "paddings": whole(g, a["paddings"].array[:, ::-1])})
    file = tflite("PAD", ("PadOptions",), (2, 3), (3, 6), [np.array([[0, 1], [1, 2]], np.int32)])
    return Fault("padding's side", file, "tflite", breaks, "op 1 PAD", floats(2, 3), ("--target", "27"))


def exchanged_operands() -> Fault:
    breaks = instead(LEGALIZE, "SUB", "sub_as_add", lambda own, g, n: own(g, replace(
        n, args={**n.args, "x": n.args["y"], "y": n.args["x"]})))
    file = tflite("SUB", ("SubOptions",), (2, 3), (2, 3), [floats(2, 3)])
    return Fault("exchanged operands", file, "tflite", breaks, "op 1 SUB", floats(2, 3), ("--target", "27"))


def missing_activation() -> Fault:
    breaks = told_otherwise(LEGALIZE, "SUB", "sub_as_add", lambda g, a: {"act": 0})
    file = tflite("SUB", ("SubOptions", {"FusedActivationFunction": 1}), (2, 3), (2, 3),
                  [np.array([[9, 0, 9], [0, 9, 0]], np.float32)])
    return Fault("missing activation", file, "tflite", breaks, "op 1 SUB", floats(2, 3), ("--target", "27"))


def slice_off_by_one() -> Fault:
    breaks = told_otherwise(LEGALIZE, "SLICE", "slice_as_strided", lambda g, a: {
        "begin": whole(g, a["begin"].array - 1)})
    file = tflite("SLICE", ("SliceOptions",), (4, 5), (2, 3), [np.array(n, np.int32) for n in ([1, 1], [2, 3])])
    return Fault("slice off by one", file, "tflite", breaks, "op 1 SLICE", floats(4, 5), ("--target", "28"))


def halves_up() -> Fault:
    breaks = instead(EXPAND, "ROUND", "round_even", lambda own, g, n: g(e.FLOOR, g(
        e.ADD, n.args["x"], g.build.const([0.5], F32), act=0)))
    file = tflite("ROUND", (), (2, 3), (2, 3))
    return Fault("rounding", file, "tflite", breaks, "op 1 ROUND", np.array([[0.5, 1.5, 2.5], [3.5, 0.2, 4.5]], "f4"))


def matrix_as_it_stands() -> Fault:
    breaks = told_otherwise(EXPAND, "MATMUL", "matmul", lambda g, a: {"adj_y": not a["adj_y"]})
    file = tflite("BATCH_MATMUL", ("BatchMatMulOptions",), (2, 4), (2, 4), [floats(4, 4)])
    return Fault("weights' layout", file, "tflite", breaks, "op 1 BATCH_MATMUL", floats(2, 4))


def pixels_at_their_corners() -> Fault:
    def breaks(patch: Patch) -> None:
        own = legalize.nearest
        patch.setattr(legalize, "nearest", lambda size, out, align, half: own(size, out, align, False))
    file = tflite("RESIZE_NEAREST_NEIGHBOR", ("ResizeNearestNeighborOptions", {"HalfPixelCenters": True}),
                  (1, 5, 5, 2), (1, 3, 3, 2), [np.array([3, 3], np.int32)])
    return Fault("pixels' centres", file, "tflite", breaks, "op 1 RESIZE_NEAREST_NEIGHBOR", floats(1, 5, 5, 2),
                 ("--target", "29"))


def stacked_along_another_axis() -> Fault:
    breaks = told_otherwise(LEGALIZE, "PACK_EX", "pack", lambda g, a: {"axis": 0})
    file = tflite("PACK", ("PackOptions", {"Axis": 1, "ValuesCount": 2}), (2, 2), (2, 2, 2), twice=2)
    return Fault("axis of a stack", file, "tflite", breaks, "op 1 PACK", floats(2, 2), ("--no-ex",))


def bytes_left_as_they_are() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setattr(retype, "_up", lambda data: data.view(np.uint8))
    w = TFLiteWriter()
    x, a, b, y = (w.tensor(n, "int8", (2, 4), scale=0.1, zero=3) for n in "xaby")
    c = w.tensor("c", "int8", (2, 4), RNG.integers(-40, 40, (2, 4)), scale=0.1, zero=3)
    w.op("MAXIMUM", [x, x], [a], "MaximumMinimumOptions", version=2)
    w.op("ADD", [a, c], [b], "AddOptions", version=2)
    w.op("MAXIMUM", [b, b], [y], "MaximumMinimumOptions", version=2)
    return Fault("zero point", w.finish([x], [y]), "tflite", breaks, "op 1 ADD",
                 RNG.integers(-40, 40, (2, 4)).astype(np.int8), ("--target", "28"))


def axis_of_the_source() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setattr(layout_rules, "axis_at", lambda node, p, axis: axis)
    file = onnx(chain(node("Conv", "a w", "v"), node("Softmax", "v", "b", axis=1)), [1, 3, 6, 6],
                {"w": floats(4, 3, 3, 3)})
    return Fault("axis", file, "onnx", breaks, "op 2 Softmax", floats(1, 3, 6, 6))


def sides_of_a_window() -> Fault:
    def breaks(patch: Patch) -> None:
        own = Sliding.amounts.fget
        patch.setattr(Sliding, "amounts", property(lambda s: own(replace(s, heads=s.tails, tails=s.heads))))
    file = onnx(chain(node("Conv", "a w", "b", pads=[0, 0, 2, 1])), [1, 3, 6, 6], {"w": floats(4, 3, 3, 3)})
    return Fault("window's side", file, "onnx", breaks, "op 1 Conv", floats(1, 3, 6, 6))


def exchanged_steps() -> Fault:
    """The output has another shape: that is a difference, too."""
    def breaks(patch: Patch) -> None:
        patch.setattr(Sliding, "steps", property(lambda s: {"sw": s.strides[0], "sh": s.strides[1]}))
    file = onnx(chain(node("Conv", "a w", "b", strides=[2, 1])), [1, 3, 7, 7], {"w": floats(4, 3, 3, 3)})
    return Fault("stride", file, "onnx", breaks, "op 1 Conv", floats(1, 3, 7, 7), shaped=False)


def term_taken_off() -> Fault:
    breaks = instead(affine.AFFINE, "ADD", "term", lambda own, g, n: affine.folded(g, n, np.subtract, False, True))
    file = onnx(chain(node("Conv", "a w k", "v"), node("Add", "v f", "b")), [1, 3, 6, 6],
                {"w": floats(4, 3, 3, 3), "k": floats(4), "f": floats(1, 4, 1, 1)})
    return Fault("fused term", file, "onnx", breaks, "op 2 Add", floats(1, 3, 6, 6))


def bias_of_another_grid() -> Fault:
    def breaks(patch: Patch) -> None:
        own = qdq_groups.constant
        patch.setattr(qdq_groups, "constant", lambda v, made, scales: 2 * own(v, made, scales))
    one = {n: np.array(v, np.float32) for n, v in (("sx", 0.02), ("sw", 0.01), ("so", 0.1))}
    codes = {"zx": np.array(3, np.int8), "zw": np.array(0, np.int8),
             "w": RNG.integers(-9, 9, (4, 3, 3, 3)).astype(np.int8)}
    file = onnx(chain(node("QuantizeLinear", "a sx zx", "p"), node("DequantizeLinear", "p sx zx", "q"),
                      node("DequantizeLinear", "w sw zw", "f"), node("Conv", "q f k", "r"),
                      node("QuantizeLinear", "r so zw", "o"), node("DequantizeLinear", "o so zw", "b")),
                [1, 3, 6, 6], one | codes | {"k": (floats(4) + 2).astype(np.float32)})
    return Fault("fused bias", file, "onnx", breaks, "op 4 Conv", floats(1, 3, 6, 6))


def forgotten_activation() -> Fault:
    def breaks(patch: Patch) -> None:
        patch.setitem(fuse.CODES, e.RELU.name, 0)
    file = onnx(chain(node("Conv", "a w", "v"), node("Relu", "v", "b")), [1, 3, 6, 6], {"w": floats(4, 3, 3, 3)})
    return Fault("forgotten activation", file, "onnx", breaks, "op 2 Relu", floats(1, 3, 6, 6))


def gates_in_another_order() -> Fault:
    def breaks(patch: Patch) -> None:
        own = gated.cut
        patch.setattr(gated, "cut", lambda g, x, *columns: own(g, x, *columns)[::-1] if len(
            {n for _, n in columns}) == 1 else own(g, x, *columns))
    file = onnx(chain(node("GRU", "a w r", "b", hidden_size=4)), [3, 2, 5],
                {"w": floats(1, 12, 5), "r": floats(1, 12, 4)})
    return Fault("gates", file, "onnx", breaks, "op 1 GRU", floats(3, 2, 5))


def chosen_the_other_way_round() -> Fault:
    breaks = instead(EXPAND, "WHERE", "where", lambda own, g, n: own(g, replace(
        n, args={**n.args, "x": n.args["y"], "y": n.args["x"]})))
    file = onnx(chain(node("Greater", "a c", "g"), node("Where", "g a c", "b")), [2, 8], {"c": floats(2, 8)})
    return Fault("choice", file, "onnx", breaks, "op 2 Where", floats(2, 8))


FAULTS = {f.name: f for f in (make() for make in (
    padding_on_the_other_side, exchanged_operands, missing_activation, slice_off_by_one, halves_up,
    matrix_as_it_stands, pixels_at_their_corners, stacked_along_another_axis, bytes_left_as_they_are,
    axis_of_the_source, sides_of_a_window, exchanged_steps, term_taken_off, bias_of_another_grid,
    forgotten_activation, gates_in_another_order, chosen_the_other_way_round))}
