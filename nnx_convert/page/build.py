"""The page of a model: facts as JSON in a template of ours, which needs nothing from anywhere."""
from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from ..check import Check
from ..emit.facts import Facts
from ..emit.verdicts import Verdict
from ..inspection import Inspection, OpRow
from ..runtime.profile import Profile
from ..target import level_name
from .blocks import Block, blocks
from .layout import Edge, ranks

#: The template's files, and what stands in its page for the others and for the facts.
TEMPLATE, PARTS = "page.html", ("page.css", "page.js")
FACTS = "/*facts*/"


def page(found: Inspection, checked: Check, facts: Facts, profile: Profile | None = None, unmeasured: str = "") -> str:
    """The page's text. `profile` colours the graph by time; where there is none, `unmeasured` says why.

    Raises `UsageError` where the library that lays graphs out is not installed.
    """
    places = files(__package__)
    text = places.joinpath(TEMPLATE).read_text("utf-8")
    for name in PARTS:
        text = text.replace(f"/*{name}*/", places.joinpath(name).read_text("utf-8"))
    return text.replace(FACTS, embedded(data(found, checked, facts, profile, unmeasured)))


def embedded(value: Any) -> str:
    """A value as JSON that may stand in a script element, whatever its texts hold."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Any) -> Any:
    """A value in JSON's words: what it has no number for becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def data(found: Inspection, checked: Check, facts: Facts, profile: Profile | None, unmeasured: str) -> dict[str, Any]:
    """All that the page knows."""
    lowered: dict[str, list[Verdict]] = {}
    for v in checked.verdicts:
        lowered.setdefault(v.place.origin, []).append(v)
    seconds, shared = times(profile)
    nodes = [node(o, lowered.get(o.origin, []), seconds.get(o.origin), shared.get(o.origin, ()))
             for o in found.operations]
    edges = list(flows(found.operations))
    frames = framed(found.operations)
    return {
        "facts": facts.json(), "target": str(checked.target), "format": found.format, "nodes": nodes,
        "graph": drawing(len(nodes), edges, frames), "blocks": [asdict(b) for b in frames],
        "tensors": [asdict(t) for t in found.tensors],
        "memory": None if found.memory is None else {**asdict(found.memory), "live": found.memory.live},
        "verdict": {"host": checked.host, "refused": checked.refused, "level": level_name(checked.level),
                    "partitions": len(checked.partitions)},
        "profile": None if profile is None else {"seconds": profile.seconds},
        "unmeasured": unmeasured}


def node(o: OpRow, lowered: Sequence[Verdict], seconds: float | None, shared: Sequence[str]) -> dict[str, Any]:
    """An operation of the file: what became of it, whether the device takes all of that, how long it takes.

    `shared` are the places of others whose time is in the same measurement.
    """
    own = sorted(lowered, key=lambda v: v.place.name not in o.operation)   # of what it is, then of what is around that
    lost = next((v for v in own if not v.taken), None)
    kinds = {v.kind for v in lowered if v.taken}
    place = ("none" if not lowered else "host" if lost and lost.kind == "host" else "refused" if lost else
             "EX" if "EX" in kinds else "DENSIFY" if "DENSIFY" in kinds else "base")
    return {**asdict(o), "place": place, "why": lost.rule if lost else "", "change": lost.change if lost else "",
            "lowered": [{"name": v.place.name, "kind": v.kind, "taken": v.taken, "rule": v.rule,
                         "level": None if v.level is None else level_name(v.level)} for v in lowered],
            "seconds": seconds, "shared": list(shared)}


def times(profile: Profile | None) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """Seconds by place in the source file, and the places that are measured together with it.

    What is fused is measured as one: each part is given the same share of it.
    """
    found: dict[str, float] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for r in () if profile is None else profile.rows:
        own = tuple(dict.fromkeys(filter(None, r.work.origins)))
        for origin in own:
            found[origin] = found.get(origin, 0.0) + r.seconds / len(own)
            shared[origin] = tuple(o for o in own if o != origin)
    return found, shared


def flows(operations: Sequence[OpRow]) -> Iterator[Edge]:
    """From the operation that makes a tensor to each that reads it, by their numbers."""
    made = {(o.subgraph, name): n for n, o in enumerate(operations) for name in o.outputs}
    for n, o in enumerate(operations):
        sources = (made.get((o.subgraph, name)) for name in o.inputs)
        yield from dict.fromkeys((m, n) for m in sources if m is not None and m < n)


def framed(operations: Sequence[OpRow]) -> tuple[Block, ...]:
    """The repeated blocks of each graph of the file."""
    found: list[Block] = []
    start = 0
    while start < len(operations):
        end = start
        while end < len(operations) and operations[end].subgraph == operations[start].subgraph:
            end += 1
        own = blocks([o.source or o.operation for o in operations[start:end]])
        found += (Block(b.first + start, b.end + start, b.number, b.of, b.names) for b in own)
        start = end
    return tuple(found)


def drawing(count: int, edges: Sequence[Edge], frames: Sequence[Block]) -> dict[str, Any]:
    """The drawing in two steps: blocks among the other nodes, and what is in each block.

    A block is a run of operations, so that putting it in place of them makes no cycle. The page places the ranks:
    only it knows which blocks are open.
    """
    outer: dict[int, int] = {}                   # of each node, its number among nodes and blocks
    members: list[list[int]] = []
    block = {n: k for k, b in enumerate(frames) for n in range(b.first, b.end)}
    for n in range(count):
        if n in block and n != frames[block[n]].first:
            outer[n] = outer[n - 1]
            members[-1].append(n)
        else:
            outer[n] = len(members)
            members.append([n])
    between = list(dict.fromkeys((outer[a], outer[b]) for a, b in edges if outer[a] != outer[b]))
    whole = ranks(len(members), between)
    within: list[list[Edge]] = [[] for _ in members]
    for a, b in edges:
        if outer[a] == outer[b]:
            within[outer[a]].append((a, b))
    inner = [_inside(own, lines) if len(own) > 1 else None for own, lines in zip(members, within, strict=True)]
    return {"members": members, "ranks": whole.ranks, "edges": between, "bends": whole.bends, "inner": inner}


def _inside(own: Sequence[int], edges: Sequence[Edge]) -> dict[str, Any]:
    """The drawing of a block's operations."""
    place = {n: k for k, n in enumerate(own)}
    within = [(place[a], place[b]) for a, b in edges]
    found = ranks(len(own), within)
    return {"ranks": found.ranks, "edges": within, "bends": found.bends}


