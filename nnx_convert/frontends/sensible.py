"""Nodes that no device and no host could run, found where they are made, so that the fault has the file's words."""
from __future__ import annotations

from collections.abc import Iterable

from ..graph import Node, placed
from ..ops.host import host_twin
from ..schema import OpError
from ..types import Scalar, known

INT32 = range(-1 << 31, 1 << 31)


def sensible(nodes: Iterable[Node]) -> None:
    """Raises `OpError` on a node that breaks its operation's own rules, types of operands left aside."""
    for node in nodes:
        for a in node.operands:
            if isinstance(a, Scalar) and a.type.group == "int" and known(a.value) and int(a.value) not in INT32:
                raise OpError(node.op.name, f"{a.value} is no number of 32 bits")
        if isinstance(node.verdict, OpError):
            twin = host_twin(node.op)
            form = twin.forms[node.op.forms.index(node.form)]
            twin.check_placed(placed(twin, form, node.args), [v.tensor for v in node.outputs])
