"""The last resort: what the target does not take runs on the host, and the trace says why."""
from __future__ import annotations

from ..graph import Node
from ..ops.host import host_twin
from .rewrite import Event, Result, Rewriter, Rules

HOST = Rules("host")


@HOST.on("*")
def to_host(g: Rewriter, node: Node) -> Result:
    """The operation's twin in the extension org.nnx_convert.host."""
    if node.op.host:
        if not any(ev.rule == "to_host" and ev.did and ev.at == node.at for ev in g.trace):
            g.trace.append(Event("to_host", node.at, node.op.name, True, tried(g, node) or because(node)))
        return None
    fault = g.fault(node)
    if not fault:
        return None
    g.why = tried(g, node) or because(node) if node.op.code is None else tried(g, node, "narrow64") or fault
    return g.again(node, host_twin(node.op))


def tried(g: Rewriter, node: Node, rule: str = "") -> str:
    """Why the last rule that was meant for a node, or the one of this name, left it alone."""
    return next((ev.why for ev in reversed(g.trace) if not ev.did and (ev.at, ev.op) == (node.at, node.op.name)
                 and rule in ("", ev.rule)), "")


def because(node: Node) -> str:
    """Why a file's operator became a host operation at once."""
    plain = node.op.twin_of
    return f"NNAPI has no {plain.name} between these types and grids" if plain else "NNAPI has no such operation"
