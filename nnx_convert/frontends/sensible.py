"""Nodes that no device and no host could run, found where they are made, so that the fault has the file's words."""
from __future__ import annotations

from collections.abc import Iterable
from math import inf

from ..graph import Node
from ..schema import OpError
from ..types import Quant, Scalar, Tensor, known

INT32 = range(-1 << 31, 1 << 31)


def sensible(nodes: Iterable[Node]) -> None:
    """Raises `OpError` on a node that breaks its operation's own rules, types of operands left aside."""
    for node in nodes:
        for a in node.operands:
            if isinstance(a, Scalar) and a.type.group == "int" and known(a.value) and int(a.value) not in INT32:
                raise OpError(node.op.name, f"{a.value} is no number of 32 bits")
        for v in node.outputs:
            measured(node.op.name, v.tensor)
        if (fault := node.impossible) is not None:
            raise fault


def measured(op: str, t: Tensor) -> None:
    """Raises `OpError` on an output with a size or a scale that no operand can have."""
    if any(known(n) and n not in INT32 for n in t.dims or ()):
        raise OpError(op, f"gives the shape {list(t.dims or ())}")
    if isinstance(t.quant, Quant) and not 0 < t.quant.scale < inf:
        raise OpError(op, f"gives the scale {t.quant.scale}")
