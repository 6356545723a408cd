"""Which operations treat every element alike: read off the table."""
from __future__ import annotations

from functools import cache
from typing import Any

from ..schema import MEANINGLESS, OpDef, OpError
from ..signature import Param
from ..types import UNKNOWN, Tensor, Type, Undecided

#: Sizes that tell the axes apart.
PROBE = (2, 3, 5)
#: Arguments that say which axes an operation works along, or in which order they are.
ABOUT_AXES = {"axis", "axes", "nchw", "batch", "time_major", "perm", "groups"}
#: Those that work along the last axes without an argument that says so.
MATRICES = {"TRILU", "HARDMAX", "INVERSE", "CHOLESKY"}


@cache
def elementwise(op: OpDef) -> bool:
    """Whether an operation does one thing to all elements of tensors that broadcast, wherever they stand.

    That is: it has one output, of the shape its tensors broadcast to, and no argument about axes. Whether that
    is the truth a test finds out by running the kernels on tensors whose axes are turned.
    """
    op = op.twin_of if op.host and op.twin_of else op
    form = op.forms[0]
    if not op.pure or len(op.returns) != 1 or op.name in MATRICES or ABOUT_AXES.intersection(form.names):
        return False
    if form.records or any(p.variadic or p.optional for p in form.params):
        return False
    key = next(iter(op.types))
    args = {p.name: _probe(p, op, key) for p in form.params}
    tensors = [a for a in args.values() if isinstance(a, Tensor)]
    if not tensors or any(not m.holds(args[p.name]) for p in form.params for m in p.limits
                          if isinstance(args[p.name], Tensor)):
        return False
    try:
        found = form.call(args)
        outs = found if isinstance(found, tuple | list) else (found,)
        return outs[0].dims == PROBE and all(r.test(args | {"out": None}) for r in op.rules if "out" not in r.names)
    except (Undecided, OpError, *MEANINGLESS):
        return False


def _probe(p: Param, op: OpDef, key: Type) -> Any:
    """Something to put in the place of a parameter."""
    allowed = p.kind.allowed(key, op.types)
    if p.kind.output == "type":
        return next(iter(allowed), key)
    if "tensor" in p.kind.groups(op.types) and not p.kind.output:
        return Tensor(next(iter(allowed), key), PROBE)
    return UNKNOWN if p.kind.output or p.default is p.required else p.default
