"""The last resort: what the target does not take runs on the host, and the trace says why."""
from __future__ import annotations

from ..graph import Node
from ..ops.host import host_twin
from .rewrite import Result, Rewriter, Rules

HOST = Rules("host")


@HOST.on("*")
def to_host(g: Rewriter, node: Node) -> Result:
    """The operation's twin in the extension org.nnx_convert.host."""
    fault = g.fault(node)
    if not fault:
        return None
    tried = (ev.why for ev in reversed(g.trace) if not ev.did and (ev.at, ev.op) == (node.at, node.op.name))
    g.why = next(tried, fault) if node.op.code is None else fault
    return g.again(node, host_twin(node.op))


