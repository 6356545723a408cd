"""The only place that joins the stages: a file becomes a Model, a Model becomes something that runs."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import FormatError, StrictError, Unsupported
from .graph import Graph, Node, placed
from .lowering.flatten import flatten
from .lowering.pipeline import lower
from .model import Model
from .runtime.bind import once
from .runtime.compiled import CompiledModel
from .target import Target
from .types import Shape

Source = str | Path | bytes | bytearray | memoryview
#: Called with the name of the stage that begins.
Progress = Callable[[str], None]


def convert(source: Source, target: Target = Target(), *, shapes: Mapping[str, Shape] | None = None,  # noqa: B008
            strict: bool = False, progress: Progress | None = None) -> Model:
    """A TFLite or ONNX model (a path, or the bytes) as an NNAPI model for a target.

    The format is recognised by content. `shapes` gives input sizes by name where the file leaves them open or
    a caller wants others. `strict` refuses what the target does not take (`StrictError`) where it would run as
    a host operation. Raises `FormatError` on a broken file, `Unsupported` on what has no counterpart.
    """
    said = progress or (lambda stage: None)
    data, name = read(source)
    said("reading")
    graph = import_graph(data, name, shapes or {})
    said("lowering")
    legal, trace = lower(graph, target, evaluate)
    host = [(n, next((e.why for e in trace if e.did and e.rule == "to_host" and e.at == n.at), ""))
            for n in legal.walk() if n.op.host]
    if strict and host:
        node, why = host[0]
        more = f"; {len(host) - 1} more operations" if len(host) > 1 else ""
        raise StrictError(f"{target} does not take it: {why}{more}", f"{name}: {node.at}")
    said("checking")
    return flatten(legal, tuple(dict.fromkeys(str(e) for e in trace if e.did and e.why)))
