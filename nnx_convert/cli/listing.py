"""`nnx-convert ops [NAME]`: rows of the op table as a screen, said by the functions that write docs/ops.md."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..emit import ops_page
from ..emit.report import Line, wrapped
from ..errors import UsageError, near
from ..ops.host import host_twin
from ..schema import OPS, OpDef
from ..signature import Form, Param
from ..target import level_name
from ..types import TENSORS, Type
from .screen import show, show_json

#: The one operation of NNAPI-EX whose twin has another name.
RENAMED = {"TRANSPOSE_CONV_EX": "TRANSPOSE_CONV_2D"}


def show_ops(name: str | None, report: str) -> None:
    """Print the row of an operation, or a line for each; raises `UsageError` on a name that the table does not have."""
    if report == "json":
        show_json({"operations": [as_json(o) for o in (OPS.values() if name is None else [found(name)])]})
        return
    lines = list(listed() if name is None else row(found(name)))
    show(lines, 2 + max(len(label) for label, body in lines if body))


def found(name: str) -> OpDef:
    """The operation of a name, in whatever case; raises `UsageError` with those that are near to it."""
    wanted = name.upper()
    if wanted in OPS:
        return OPS[wanted]
    raise UsageError(f"there is no operation {name!r}", hint=near(name, OPS, "`nnx-convert ops` lists them"))


def as_json(o: OpDef) -> dict[str, Any]:
    """The same as what `json.dumps` takes: operands by their order, types with the level each is taken from."""
    return {"name": o.name, "code": o.code, "from": home(o), "doc": o.doc, "types": typed(o.types),
            "forms": [{"since": f.since, "operands": [operand(p, o) for p in f.inputs]} for f in o.forms],
            "outputs": plain(ops_page.outputs(o)), "rules": [plain(r) for r in ops_page.rules(o)],
            "twin": None if (other := twin(o)) is None else other.name}


def typed(types: Mapping[Type, int]) -> dict[str, int]:
    """Types and the level that each is taken from."""
    return {t.name: int(level) for t, level in types.items()}


def operand(p: Param, o: OpDef) -> dict[str, Any]:
    """One operand of an order."""
    return {"name": p.name, "types": "T" if p.kind.is_key else typed(p.kind.levels), "since": p.since,
            "said": plain(ops_page.operand(p, min(o.types.values())))}


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
