"""The classes of ONNX's protobuf messages, without the rest of the package `onnx`."""
from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from ...errors import FormatError

#: From this many bytes on protobuf reads no message.
LARGEST = 1 << 31


@cache
def messages() -> Any:
    """The module `onnx.onnx_ml_pb2`: that of the package where it is imported already, else the file by itself.

    The package costs five times as much to import. Both ways give the same classes, which protobuf keeps by name.
    """
    package = find_spec("onnx")
    where = package and package.submodule_search_locations
    if "onnx" in sys.modules or not where:
        return import_module("onnx.onnx_ml_pb2")
    spec = spec_from_file_location(f"{__package__}.onnx_ml_pb2", Path(where[0], "onnx_ml_pb2.py"))
    if spec is None or spec.loader is None:
        return import_module("onnx.onnx_ml_pb2")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bounded(data: Any) -> None:
    """Raise `FormatError` on bytes that are more than protobuf reads."""
    if len(data) >= LARGEST:
        raise FormatError(f"is {len(data)} bytes long, and a protobuf message has less than 2 GB",
                          hint="save the model with its weights as external data")


def parsed(kind: str, data: Any) -> Any:
    """A message of the class with this name; raises `FormatError` on bytes that are none."""
    try:
        message = getattr(messages(), kind)()
        message.ParseFromString(memoryview(data))
    except (DecodeError, UnicodeDecodeError) as error:
        deep = any(word in str(error) for word in ("Depth", "nesting"))
        raise FormatError("its messages are nested too deep" if deep else "is no protobuf message of ONNX") from error
    return message


def text(found: Any) -> str:
    """A text of a message; raises `FormatError` where it is not UTF-8."""
    if not isinstance(found, str):
        raise FormatError(f"the text {found!r:.60} is not UTF-8")
    return found
