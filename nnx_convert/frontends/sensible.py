"""Nodes that no device and no host could run, found where they are made, so that the fault has the file's words."""
from __future__ import annotations

from collections.abc import Iterable

from ..graph import Node, placed
from ..ops.host import host_twin
from ..schema import OpError


def sensible(nodes: Iterable[Node]) -> None:
    """Raises `OpError` on a node that breaks its operation's own rules, types of operands left aside."""
    for node in nodes:
        if isinstance(node.verdict, OpError):
            twin = host_twin(node.op)
            form = twin.forms[node.op.forms.index(node.form)]
            twin.check_placed(placed(twin, form, node.args), [v.tensor for v in node.outputs])
