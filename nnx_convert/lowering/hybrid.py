"""Float activations beside int8 weights: exact on the host, or NNAPI's float operations on dequantised weights."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph import Node, Value
from ..ops import conv, elementwise as e, hybrid as h, rnn
from ..ops.convert import DEQUANTIZE
from ..ops.host import MATMUL
from ..types import F32, Q8, Q8S, QPC, rebuilt
from .rewrite import Event, Refusal, Result, Rewriter, Rules

EXACT = "NNAPI's float operation gives another answer; --hybrid float takes it"
FLOAT = "floats on dequantised weights, where TFLite rounds the activations to int8"
TANH = 4
HYBRID = Rules("hybrid")


@HYBRID.on(h.HYBRID_FULLY_CONNECTED, h.HYBRID_CONV_2D, h.HYBRID_DEPTHWISE_CONV_2D, h.HYBRID_TRANSPOSE_CONV_2D,
           h.HYBRID_MATMUL, h.HYBRID_SVDF)
def on_floats(g: Rewriter, node: Node) -> Result:
    """The operation on dequantised weights, where the target wants that; else a line in the report."""
    if stays(g, node):
        return None
    g.why = FLOAT
    args = {name: real(g, v) for name, v in node.args.items() if name != "asymmetric"}
    if "b" in args and args["b"] is None and node.op is not h.HYBRID_SVDF:
        args["b"] = g.build.full((node.outputs[0].shape[-1],), 0, node.args["x"].tensor)
    return NEAR[node.op.name](g, args)


def stays(g: Rewriter, node: Node) -> bool:
    """Whether the target wants the exact answer: the node is the host's then, with a line in the report."""
    if g.target.hybrid == "exact":
        g.trace.append(Event("to_host", node.at, node.op.name, True, EXACT))
    return g.target.hybrid == "exact"


def real(g: Rewriter, v: Any) -> Any:
    """Quantised weights as floats, records of them too."""
    if isinstance(v, tuple):
        return rebuilt(v, [real(g, item) for item in v])
    return g(DEQUANTIZE, v, to=F32) if isinstance(v, Value) and v.type in (Q8, Q8S, QPC) else v


def _dense(g: Rewriter, args: dict[str, Any]) -> Result:
    act = args["act"]
    y = g(conv.FULLY_CONNECTED, **args | {"act": 0 if act == TANH else act})
    return g(e.TANH, y) if act == TANH else y


def _convolved(g: Rewriter, args: dict[str, Any]) -> Result:
    groups = args.pop("groups")
    if groups == 1:
        return g(conv.CONV_2D, nchw=False, **args)
    if (args.pop("dw"), args.pop("dh")) != (1, 1):
        return Refusal("NNAPI has no dilated convolution in groups")
    return g(conv.GROUPED_CONV_2D, groups=groups, nchw=False, **args)


def _depthwise(g: Rewriter, args: dict[str, Any]) -> Result:
    return g(conv.DEPTHWISE_CONV_2D, mult=args["w"].shape[3] // args["x"].shape[3], **args)


def _transposed(g: Rewriter, args: dict[str, Any]) -> Result:
    return g(conv.TRANSPOSE_CONV_2D, nchw=False, **args)


#: Operation -> what is near to it, emitted on floats.
NEAR: dict[str, Callable[[Rewriter, dict[str, Any]], Result]] = {
    "HYBRID_FULLY_CONNECTED": _dense, "HYBRID_CONV_2D": _convolved, "HYBRID_DEPTHWISE_CONV_2D": _depthwise,
    "HYBRID_TRANSPOSE_CONV_2D": _transposed, "HYBRID_MATMUL": lambda g, args: g(MATMUL, **args),
    "HYBRID_SVDF": lambda g, args: g.add(rnn.SVDF, **args)}
