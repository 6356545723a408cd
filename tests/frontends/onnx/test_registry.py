"""Importers of ONNX's operators, as their signatures say."""
from __future__ import annotations

import pytest

from nnx_convert.frontends.onnx.registry import Importer, all_importers

EVERY = [pytest.param(i, id=f"{domain or 'ai.onnx'}.{name}-{i.since}")
         for (domain, name), versions in all_importers().items() for i in versions]


@pytest.mark.parametrize("importer", EVERY)
def test_every_signature_can_be_read(importer: Importer) -> None:
    """Nothing reads it before a file has such an operator."""
    assert {*importer.hints} >= {*(p.name for p in importer.inputs), *importer.attributes}
