"""The facts of a model as the text of a screen: columns align, a line has at most 100 characters."""
from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from .facts import Emitted, Facts, HostFacts, PortFacts
from .levels import Reason, predicate
from .transposes import Transposes

WIDTH, LABEL = 100, 11
#: Reasons, host operations and notes beyond these are counted, not shown.
MOST = 5
#: What converters write for a description.
UNTOLD = ("MLIR Converted.", "TOCO Converted.")
Line = tuple[str, str]              # a label, and what stands beside it


def text(facts: Facts) -> str:
    """The screen after a conversion."""
    return "\n".join(f"{label:<{LABEL}}{body}".rstrip() for label, body in lines(facts)) + "\n"


def lines(facts: Facts) -> Iterator[Line]:
    """The screen, line by line; the label of a line may be coloured."""
    yield from headed(f"{facts.source}   {origin(facts)}", f"{facts.seconds:.2f} s")
    yield from ports(facts)
    yield from described(facts)
    yield "maps to", "NNAPI level " + facts.level + "".join(
        f" + {k}" for k in ("EX", "DENSIFY", "host") if facts.operations[k])
    yield from mapping(facts)
    if facts.made_from is not None and facts.made_from.format == "ONNX":
        yield "layout", turned(facts.transposes)
    for n, reason in enumerate(facts.reasons[:MOST]):
        yield from wrapped("" if n else "needs", f"level {facts.level}: {because(reason)}")
    if len(facts.reasons) > MOST:
        yield "", f"and {counted(len(facts.reasons) - MOST, 'more reason')}"
    yield "size", "   ".join(sizes(facts))
    notes = [n for n in facts.notes if ": to_host on " not in n]             # the reasons above
    for n, note in enumerate(notes[:MOST]):
        yield from wrapped("" if n else "note", note)
    if len(notes) > MOST:
        yield "", f"and {counted(len(notes) - MOST, 'more note')}: --report json has them all"
    wrote = [f"{facts.output}  {size(facts.output_bytes or 0)}"] * (facts.output is not None)
    for n, body in enumerate([*wrote, *map(beside, facts.emitted)]):
        yield "" if n else "wrote", body


def beside(e: Emitted) -> str:
    """What was written beside the .nnx file."""
    several = f"  {counted(len(e.files), 'file')}," if len(e.files) > 1 else " "
    return f"{e.path}{several} {size(e.bytes)}"


def headed(left: str, right: str) -> Iterator[Line]:
    """A first line over the whole width."""
    yield f"{left}   {right:>{max(len(right), WIDTH - len(left) - 3)}}", ""


def origin(facts: Facts) -> str:
    """The file's format, and what the source file holds."""
    s, own = facts.made_from, f"{facts.format}, {size(facts.source_bytes)}"
    if s is None:
        return own
    parts = [f"{s.format} {s.version}".rstrip(), counted(s.operators, "operator")]
    whole = ", ".join([*parts, *[counted(s.sparse, "sparse tensor")] * bool(s.sparse)])
    return whole if s.format == facts.format else f"{own}, of {whole}"


def described(facts: Facts) -> Iterator[Line]:
    """What the source file says beside its operators: a description, signatures, labels, files in it."""
    s = facts.made_from
    if s is None:
        return
    own = {e.name for e in facts.entries}
    entries = ", ".join(n if n in own else f"{n} (not in this model)" for n in s.signatures)
    for label, body in (("about", s.description * (s.description not in UNTOLD)),
                        ("entries", entries * (len(s.signatures) > 1)), ("labels", first(s.labels, "; ")),
                        ("files", ", ".join(s.files))):
        if body:
            yield from wrapped(f"  {label}", body)


def first(names: Sequence[str], comma: str = ", ") -> str:
    """The first of many names, and how many there are."""
    shown = comma.join(names[:MOST])
    return shown if len(names) <= MOST else f"{shown}{comma}... ({len(names)})"


def ports(facts: Facts) -> Iterator[Line]:
    """The inputs, the outputs and, each once, the states; their columns aligned."""
    both = [("  in", p) for p in facts.inputs if not p.state] + [("  out", p) for p in facts.outputs if not p.state]
    both += [("  state", p) for p in facts.inputs if p.state]
    rows = [(p.name, shaped(p), grid(p)) for _, p in both]
    first, second = (min(48, max((len(r[i]) for r in rows), default=0)) for i in (0, 1))
    for (label, _), (name, shape, rest) in zip(both, rows, strict=True):
        yield label, f"{name:<{first}}   {shape:<{second}}   {rest}".rstrip()


def shaped(p: PortFacts) -> str:
    """Type and shape of a port."""
    names = p.sizes or ("",) * len(p.shape or ())
    shape = "..." if p.shape is None else ",".join(
        name or "?" if n is None else str(n) for n, name in zip(p.shape, names, strict=True))
    return f"{p.dtype} [{shape}]"


def grid(p: PortFacts) -> str:
    """The quantisation of a port, and how its values are normalised."""
    q, n = p.quantization or {}, p.normalization
    said = f"scale {q['scale']:.6g} zero {q['zero_point']}" if q.get("scale") else ""
    if n is not None:
        said += f"   mean {first([f'{m:g}' for m in n['mean']])} std {first([f'{s:g}' for s in n['std']])}"
    return said.strip()


def mapping(facts: Facts) -> Iterator[Line]:
    """The operations by kind."""
    for kind in ("base", "EX"):
        if facts.operations[kind]:
            yield from wrapped(f"  {kind}", listed(facts.operations[kind]))
    if sparse := sum(facts.operations["DENSIFY"].values()):
        kept = f"keeps {size(facts.dense_bytes)} of weights at {size(facts.sparse_bytes)}" * bool(facts.dense_bytes)
        yield "  DENSIFY", f"{sparse}   {kept}"
    for h in facts.host[:MOST]:
        yield from wrapped("  host", on_host(h))
    if len(facts.host) > MOST:
        yield "", f"and {counted(sum(h.count for h in facts.host[MOST:]), 'more host operation')}"


def turned(t: Transposes) -> str:
    """What is left of transposes."""
    rim = [counted(n, noun) for n, noun in ((t.inputs, "input"), (t.outputs, "output")) if n]
    parts = ["no TRANSPOSE" if not t.count else f"{t.count} TRANSPOSE", *[f"of {' and '.join(rim)}"] * bool(rim)]
    return " ".join(parts) + (f", {size(t.bytes)} a run" if t.count else "")


def because(reason: Reason) -> str:
    """A reason for a level as a sentence."""
    names, count = list(reason.operations), sum(reason.operations.values())
    subject = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{subject} {predicate(reason.fact, len(names))} ({counted(count, 'operation')})"


def on_host(h: HostFacts) -> str:
    """A host operation and the reason."""
    where = f" ({h.origin}{', ...' if h.count > 1 else ''})" if h.origin else ""
    return f"{h.operation} {h.count}{where}: {h.reason}"


def listed(counts: Mapping[str, int]) -> str:
    """Names with counts; the space inside a pair does not break."""
    return "  ".join(f"{name}\u00a0{n}" for name, n in counts.items())


def sizes(facts: Facts) -> Iterator[str]:
    """Weights, arena and work."""
    yield f"weights {size(facts.weight_bytes)}"
    if facts.arena_bytes is not None:
        yield f"arena {size(facts.arena_bytes)}"
    if facts.macs is not None:
        yield f"{scaled(facts.macs)}MAC"
    if facts.measured_at_1:
        yield "where open sizes are 1"


def wrapped(label: str, body: str) -> Iterator[Line]:
    """A long line as several, aligned."""
    for n, part in enumerate(textwrap.wrap(body, WIDTH - LABEL, break_long_words=False, break_on_hyphens=False)):
        yield "" if n else label, part.replace("\u00a0", " ")


def size(count: int) -> str:
    """Bytes, kB or MB: decimal multiples, two digits or more."""
    return f"{scaled(count)}B"


def scaled(count: int) -> str:
    """A count with its decimal multiple: 212 M, 1.3 k."""
    value, unit = float(count), ""
    for larger in ("k", "M", "G", "T"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if unit and value < 9.95 else f"{value:.0f} {unit}"


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
