"""An ONNX file's messages, checked: what the importer begins with."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from ...frozen import frozen
from . import checks
from .checks import Key
from .external import Folder
from .proto import bounded, parsed, text
from .weights import slim

#: A smaller file is parsed as it is.
SMALL = 1 << 16


@frozen(eq=False)
class Model:
    """A file: its main graph and functions as messages, and the operator sets that the graph's nodes are of.

    `versions` are those sets by domain, the default one being "". `folder`: where weights are that stand elsewhere.
    `operators` counts the nodes of the graph and of those within it.
    """

    graph: Any
    ir_version: int
    versions: Mapping[str, int]
    functions: Mapping[Key, Any]
    folder: Folder
    operators: int = 0
    producer: str = ""
    description: str = ""
    metadata: tuple[tuple[str, str], ...] = field(default=())


def read(data: Any, folder: Path | None = None) -> Model:
    """A file (bytes or an mmap) as checked messages, whose large weights stay views of `data`.

    `folder` is the model's own, where external data may be. Raises `FormatError`, `Unsupported`. What is only there
    for training, for quantisation tools and for several devices is not looked at.
    """
    bounded(data)
    proto = parsed("ModelProto", slim(data) if len(data) >= SMALL else data)
    checks.ir_version(proto)
    versions = checks.versions(proto.opset_import, proto.ir_version)
    functions = checks.functions_of(proto)
    operators = checks.whole(proto.graph, versions, functions)
    producer = f"{text(proto.producer_name)} {text(proto.producer_version)}".strip()
    metadata = tuple((text(p.key), text(p.value)) for p in proto.metadata_props)
    return Model(proto.graph, proto.ir_version, versions, functions, Folder(folder, data), operators, producer,
                 text(proto.graph.doc_string) or text(proto.doc_string), metadata)
