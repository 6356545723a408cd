"""What came of the entries as JUnit's XML: a suite for each entry, a case for each thing that was asked."""
from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from ..artifact.files import write
from ..verify.junit import case, clean
from .outcome import Outcome, Step


def document(outcomes: Sequence[Outcome]) -> bytes:
    """The XML. What is not as asked is a failure, what could not be found out an error."""
    whole = ET.Element("testsuites", {"name": "nnx-convert ci", **counts(
        [s for o in outcomes for s in o.steps], sum(o.seconds for o in outcomes))})
    for o in outcomes:
        suite = ET.SubElement(whole, "testsuite", {"name": clean(o.entry), **counts(o.steps, o.seconds),
                                                   "skipped": "0"})
        for s in o.steps:
            found = case(suite, o.entry, " ".join(filter(None, (s.kind, s.of))))
            if not s.good:
                tag = "failure" if s.judged else "error"
                ET.SubElement(found, tag, {"message": clean(s.why or s.found), "type": s.code.name.lower()}
                              ).text = clean(f"{s.found}; asked: {s.limit}" if s.limit else s.why)
        if o.notes:
            ET.SubElement(suite, "system-err").text = clean("\n".join(o.notes))
    ET.indent(whole)
    return bytes(ET.tostring(whole, encoding="utf-8", xml_declaration=True)) + b"\n"


def counts(steps: Sequence[Step], seconds: float) -> dict[str, str]:
    """The numbers of a suite."""
    bad = [s for s in steps if not s.good]
    errors = sum(not s.judged for s in bad)
    return {"tests": str(len(steps)), "failures": str(len(bad) - errors), "errors": str(errors),
            "time": f"{seconds:.3f}"}


def save(path: str, outcomes: Sequence[Outcome]) -> None:
    """Write the XML, whole or not at all; raises `UsageError` where that cannot be."""
    write(path, [document(outcomes)])
