"""`nnx-convert ops [NAME]`: rows of the op table as a screen, said by the functions that write docs/ops.md."""
from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from ..emit import ops_page
from ..emit.report import Line, wrapped
from ..errors import UsageError
from ..ops.host import host_twin
from ..schema import OPS, OpDef
from ..signature import Form
from ..target import level_name
from ..types import TENSORS
from .screen import show

#: The one operation of NNAPI-EX whose twin has another name.
RENAMED = {"TRANSPOSE_CONV_EX": "TRANSPOSE_CONV_2D"}


def show_ops(name: str | None) -> None:
    """Print the row of an operation, or a line for each; raises `UsageError` on a name that the table does not have."""
    lines = list(listed() if name is None else row(found(name)))
    show(lines, 2 + max(len(label) for label, body in lines if body))


def found(name: str) -> OpDef:
    """The operation of a name, in whatever case; raises `UsageError` with those that are near to it."""
    wanted = name.upper()
    if wanted in OPS:
        return OPS[wanted]
    near = [n for n in OPS if wanted and (wanted in n or n in wanted)] or get_close_matches(wanted, OPS, 5, 0.5)
    hint = f"did you mean {', '.join(near[:5])}?" if near else "`nnx-convert ops` lists them"
    raise UsageError(f"there is no operation {name!r}", hint=hint)


def listed() -> Iterator[Line]:
    """Every operation by kind and code: number, name, types."""
    for n, (title, _, belongs) in enumerate(ops_page.SECTIONS):
        if n:
            yield "", ""
        yield title, ""
        for o in sorted(filter(belongs, OPS.values()), key=lambda o: (o.code or 0, o.name)):
            yield f"{number(o):>7}  {o.name}", types(o)


def number(o: OpDef) -> str:
    """Its code, of a host operation within the extension; composites have none."""
    return "" if o.code is None else str(o.code & 0xFFFF)


def types(o: OpDef) -> str:
    """The types of T, each with its first level where that is not the first there is."""
    if set(o.types) >= set(TENSORS):
        return "any"
    return ops_page.types(o.types.items(), min(o.types.values()) if ops_page.is_experimental(o) else 27)


def row(o: OpDef) -> Iterator[Line]:
    """An operation: what it computes, its operands, types with levels, rules and relatives."""
    base = min(o.types.values())
    yield "  ".join(filter(None, (o.name, number(o), home(o)))), ""
    yield from wrapped("", o.doc)
    for n, f in enumerate(o.forms):
        yield from operands("or" if n else "operands", f, base)
    yield from wrapped("outputs", plain(ops_page.outputs(o)))
    yield from wrapped("T", types(o))
    for line in ops_page.legend([o]):
        kind, _, cases = plain(line.removeprefix("* ")).partition(": ")
        yield from wrapped(kind, cases)
    for n, rule in enumerate(ops_page.rules(o)):
        yield from wrapped("" if n else "rules", rule)
    yield from relatives(o)


def home(o: OpDef) -> str:
    """Where an operation is from."""
    if o.code is None:
        return "composite: expanded before a device sees it"
    if o.host:
        return "host"
    if o.ex:
        return "NNAPI-EX"
    return "experimental" if ops_page.is_experimental(o) else f"from level {level_name(min(o.types.values()))}"


def operands(label: str, f: Form, base: int) -> Iterator[Line]:
    """An operand order, an operand a line."""
    since = f"from level {level_name(f.since)}" if f.since > base else ""
    if since:
        yield label, since
    for n, p in enumerate(f.inputs):
        yield from wrapped("" if n or since else label, f"{n:>2}  {plain(ops_page.operand(p, base))}")


def relatives(o: OpDef) -> Iterator[Line]:
    """The same in NNAPI and NNAPI-EX, and on the host."""
    if other := twin(o):
        same = "the same meaning" if other.twin_of is o or o.twin_of is other else "a contract of its own"
        yield "twin", f"{other.name} ({home(other).partition(':')[0]}): {same}"
    if not o.host:
        yield "host", f"org.nnx_convert.host {number(host_twin(o))}: all types, none of NNAPI's limits"


def twin(o: OpDef) -> OpDef | None:
    """The operation of NNAPI for one of NNAPI-EX, and the other way round."""
    back = {base: ex for ex, base in RENAMED.items()}
    base = RENAMED.get(o.name, o.name.removesuffix("_EX"))
    found = OPS.get(base if o.ex else back.get(o.name, f"{o.name}_EX"))
    return None if o.host or found is None or found.host else found


def plain(markdown: str) -> str:
    """Text without the marks of a page."""
    return markdown.replace("`", "").replace("*", "")
