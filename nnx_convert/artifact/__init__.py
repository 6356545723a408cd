"""The .nnx file: a finished model, written whole or not at all and memory-mapped when it is read.

    preamble   magic, version, checksums and sizes                        see `container`
    header     UTF-8 JSON: operands, operations, ports, where data is     see `encode` and `decode`
    data       the constants, each once, each at a multiple of 64 bytes

The same model gives the same bytes. A reader trusts nothing: both checksums are verified, every offset,
count, code and shape is tested, and the model is built again call by call through `ModelBuilder`.
"""
from __future__ import annotations

from ..model import Model
from .container import MAGIC, VERSION, Buffer
from .files import load, save

__all__ = ["MAGIC", "VERSION", "from_bytes", "load", "save", "to_bytes"]


def to_bytes(model: Model) -> bytes:
    """The model as the bytes of a .nnx file."""
    from .encode import encode
    return b"".join(encode(model))


def from_bytes(data: Buffer) -> Model:
    """The model in the bytes of a .nnx file; its constants are views of them. Raises `ArtifactError`."""
    from .decode import decode
    return decode(data)
