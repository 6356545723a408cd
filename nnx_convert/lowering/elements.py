"""Which operations treat every element alike: read off the table."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from ..schema import MEANINGLESS, OpDef, OpError
from ..signature import Args, Param
from ..types import UNKNOWN, Shape, Tensor, Type, Undecided, known

#: Sizes that tell the axes apart, and those of something that is repeated along two of them.
PROBE, SMALL = (2, 3, 5), (1, 3, 1)
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
    op = op.plain
    form = op.forms[0]
    if not op.pure or len(op.returns) != 1 or op.name in MATRICES or ABOUT_AXES.intersection(form.names):
        return False
    if form.records or any(p.variadic or p.optional for p in form.params):
        return False
    key = next(iter(op.types))
    args = {p.name: _probe(p, op, key) for p in form.params}
    tensors = [name for name, a in args.items() if isinstance(a, Tensor)]
    if not tensors or any(not m.holds(args[p.name]) for p in form.params for m in p.limits if p.name in tensors):
        return False
    # Where one is smaller it is repeated, or it may not be; a table that elements are looked up in is neither.
    small = ({name: replace(args[name], dims=SMALL)} for name in tensors * (len(tensors) > 1))
    return _made(op, args) == PROBE and all(_made(op, args | one) in (PROBE, None) for one in small)


def _made(op: OpDef, args: Args) -> Shape | None:
    """The shape of the output, () where it does not follow; None where the operation does not take the arguments."""
    try:
        found = op.forms[0].call(args)
        outs = found if isinstance(found, tuple | list) else (found,)
        holds = all(r.test(args | {"out": None}) for r in op.rules if "out" not in r.names)
        sizes = outs[0].dims or ()
        return (sizes if all(map(known, sizes)) else ()) if holds else None
    except (Undecided, OpError, *MEANINGLESS):
        return None


def _probe(p: Param, op: OpDef, key: Type) -> Any:
    """Something to put in the place of a parameter."""
    allowed = p.kind.allowed(key, op.types)
    if p.kind.output == "type":
        return next(iter(allowed), key)
    if "tensor" in p.kind.groups(op.types) and not p.kind.output:
        return Tensor(next(iter(allowed), key), PROBE)
    return UNKNOWN if p.kind.output or p.default is p.required else p.default
