"""`python -m benchmarks.coverage [--names]`: how much of TFLite is imported, and onto what it is lowered.

Counted, not written down: the importers are those of the registry, and each operator's cases among the tests are
lowered for NNAPI alone, with EX and DENSIFY, and at the latest level. An operator counts where its best case gets.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnx_convert.convert import evaluate
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.frontends.tflite.records import OPERATORS
from nnx_convert.frontends.tflite.registry import all_importers
from nnx_convert.graph import Graph
from nnx_convert.lowering.pipeline import lower
from nnx_convert.schema import OPS
from nnx_convert.target import Target

ROOT = Path(__file__).resolve().parent.parent
_GIVEN = Path(os.environ.get("NNX_SHARED") or ROOT.parent / "shared") / "maps" / "peer_ops.json"
PEERS: Path | None = _GIVEN if _GIVEN.is_file() else None
#: What a peer's list is called in the file of peers, and here.
PEER_LISTS = {"tflite_nnapi_delegate": "LiteRT's NNAPI delegate", "tflite_xnnpack": "XNNPACK delegate",
              "tflite_onert_loader": "onert (loader)", "tflite_openvino_2022": "OpenVINO 2022",
              "tflite_vela_u85": "Vela, Ethos-U85", "tflite_tflite2onnx": "tflite2onnx"}
#: Codes that are no operators: a mark for larger codes, and run-time artefacts.
NONE = {"PLACEHOLDER_FOR_GREATER_OP_CODES", "CUSTOM", "DELEGATE"}
#: The classes, from the best to the last.
BASE, EX, LATE, FOLDED, HOST, STRUCTURE = "base", "ex", "late", "folded", "host", "structure"
TEXTS = {BASE: "lowered to NNAPI's base operations at level 30", EX: "lowered at level 30 with NNAPI-EX or DENSIFY",
         LATE: "lowered at updatable level 8",
         FOLDED: "computed when the file is read", HOST: "run as host operations",
         STRUCTURE: "graphs, states, texts: no case of one operator"}
#: Level 30, the default, and the latest updatable level.
TARGETS = {BASE: Target(30, ex=False, experimental=False), EX: Target(30), LATE: Target(8)}


@dataclass(frozen=True)
class Coverage:
    """Operators by class; STRUCTURE: graphs, states and what else no single case shows."""

    classes: Mapping[str, str]
    missing: tuple[str, ...]

    def of(self, kind: str) -> list[str]:
        """The operators of a class, by name."""
        return sorted(n for n, k in self.classes.items() if k == kind)


def builtins() -> list[str]:
    """TFLite's built-in operators, those of StableHLO aside."""
    return [n for n in OPERATORS.values() if not n.startswith("STABLEHLO_") and n not in NONE]


def cases() -> dict[str, list[bytes]]:
    """Small files of one operator each, from the tests, by operator."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "models")]
    from frontends.tflite.cases import CASES
    from frontends.tflite.host_cases import HOST as MORE
    from frontends.tflite.one_operator import write
    from conformance.recurrent_cases import FILES
    found: dict[str, list[bytes]] = {}
    for case in (*CASES, *MORE):
        found.setdefault(case.name, []).append(write(case))
    for file in (make(1) for make, _ in FILES.values()):
        found.setdefault(load(file).nodes[0].at.op, []).append(file)
    return found


def lowered(graph: Graph, target: Target) -> Graph:
    """The graph in a target's operations."""
    return lower(graph, target, evaluate)[0]


def kind(files: Sequence[bytes]) -> str:
    """The best class that one of an operator's files gets into; what is constant as a whole counts for none."""
    graphs = [load(f) for f in files]
    running = [g for g in graphs if g.nodes and g.inputs]
    for found, target in TARGETS.items():
        if any(not n.op.host for g in running for n in lowered(g, target).nodes) and not all(
                any(n.op.host for n in lowered(g, target).walk()) for g in running):
            return found
    return HOST if all(g.nodes for g in graphs) else FOLDED


def coverage() -> Coverage:
    """All of it."""
    known, imported = cases(), [n for n in builtins() if n in all_importers()]
    classes = {n: kind(known[n]) if n in known else STRUCTURE for n in imported}
    return Coverage(classes, tuple(n for n in builtins() if n not in all_importers()))


def peers() -> dict[str, list[str]]:
    """The operators of peers by their names; empty without the file."""
    if PEERS is None:
        return {}
    found = json.loads(PEERS.read_text(encoding="utf-8"))
    return {title: found[key] for key, title in PEER_LISTS.items()}


def line(what: str, count: int, names: Iterable[str] = ()) -> str:
    """A row: a count, what it counts, and perhaps which."""
    return f"  {count:4}  {what}" + "".join(f"\n          {n}" for n in names)


def main(words: Sequence[str]) -> int:
    """Print the tables; 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description="What is imported and lowered.")
    parser.add_argument("--names", action="store_true", help="list the operators of each class")
    names = parser.parse_args(words).names
    found, own = coverage(), [n for n in all_importers() if n.startswith("CUSTOM ")]
    print(f"TFLite: {len(found.classes)} of {len(builtins())} built-in operators are imported")
    for what, text in TEXTS.items():
        listed = found.of(what)
        print(line(text, len(listed), listed if names else ()))
    print(line("not imported: " + ", ".join(found.missing), len(found.missing)))
    print(line("custom operators beside them", len(own), own if names else ()))
    coded = [o for o in OPS.values() if o.code is not None and not o.host]
    print(f"NNAPI: {len([o for o in coded if not o.ex])} base operations and DENSIFY, "
          f"{len([o for o in coded if o.ex])} of NNAPI-EX, all with kernels")
    if PEERS is None:
        print("peers: absent ($NNX_SHARED)")
    for title, listed in peers().items():
        print(line(f"{title}; of these {len({*listed} & {*all_importers()})} are imported here", len(listed)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
