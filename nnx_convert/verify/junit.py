"""A verdict as JUnit's XML, which servers of continuous integration show: a case for each tensor."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from ..artifact.files import write
from ..errors import printable
from .metrics import Measure
from .verdict import Verdict



def document(verdict: Verdict, source: str, seconds: float) -> bytes:
    """The XML: one suite, a case for each output, then for each tensor between, with the failures in words."""
    rows = [("output", r) for r in verdict.outputs] + [("tensor", r) for r in verdict.tensors or ()]
    bad = sum(not r.measure.good for _, r in rows) + bool(verdict.failure)
    counts = {"tests": str(len(rows) + 1 + len(verdict.skipped)), "failures": str(bad), "errors": "0",
              "skipped": str(len(verdict.skipped)), "time": f"{seconds:.3f}"}
    whole = ET.Element("testsuites", {"name": "nnx-convert verify", **{k: v for k, v in counts.items()
                                                                       if k != "skipped"}})
    suite = ET.SubElement(whole, "testsuite", {"name": clean(source), **counts})
    run = case(suite, source, f"runs beside {verdict.reference}")
    if verdict.failure:
        failed(run, verdict.failure)
    for kind, row in rows:
        found = case(suite, f"{source}.{kind}", f"{row.operation} {row.name}".strip())
        if not row.measure.good:
            failed(found, sentence(row.measure))
    for name, why in verdict.skipped:
        ET.SubElement(case(suite, f"{source}.tensor", name), "skipped", {"message": clean(why)})
    ET.indent(whole)
    return bytes(ET.tostring(whole, encoding="utf-8", xml_declaration=True)) + b"\n"


def save(path: str, verdict: Verdict, source: str, seconds: float) -> None:
    """Write the XML, whole or not at all; raises `UsageError` where that cannot be."""
    write(str(Path(path)), [document(verdict, source, seconds)])


def sentence(m: Measure) -> str:
    """How a tensor differs, in words."""
    if m.problem:
        return m.problem
    if not m.differing:
        return "equal"
    off = f"off by {m.largest:.3g} at most" + (f", {m.steps:.3g} steps" if m.steps else "")
    ratio = "" if m.snr is None else f", {m.snr:.0f} dB"
    if not m.beyond:
        return f"{off}{ratio}"
    at = ",".join(map(str, m.first or ()))
    return f"{m.beyond} of {m.count} differ, {off}{ratio}; first at [{at}]: {m.got}, expected {m.expected}"


def case(suite: ET.Element, group: str, name: str) -> ET.Element:
    """A case of a suite."""
    return ET.SubElement(suite, "testcase", {"classname": clean(group), "name": clean(name), "time": "0"})


def failed(case: ET.Element, why: str) -> None:
    """Say of a case that its numbers differ, and how."""
    ET.SubElement(case, "failure", {"message": clean(why), "type": "different"}).text = clean(why)


def clean(text: str) -> str:
    """The lines of a text, without what XML cannot hold and what a terminal would obey that shows the file."""
    return "\n".join(map(printable, text.split("\n")))


