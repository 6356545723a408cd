"""Operators that a user of this library brings along: those of any domain, by domain and name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph import Values
from ...ops.custom import CUSTOM, CUSTOM_OPS
from ...types import Q8, Quant, Tensor
from .proto import messages
from .registry import Given

if TYPE_CHECKING:
    from .importer import Op


#: What bytes are as a tensor.
BYTES = Tensor(Q8, None, Quant(1.0, 0))


def called(domain: str, name: str) -> str:
    """What an operator is registered as."""
    return f"{domain or 'ai.onnx'}.{name}"


def registered(domain: str, name: str) -> bool:
    """Whether a user brought it along."""
    return called(domain, name) in CUSTOM_OPS


def emitted(g: Op, given: Sequence[Given], node: Any) -> Values:
    """Such an operator; its options are a NodeProto with the attributes alone, in the bytes of the message."""
    from .importer import value_of
    options = messages().NodeProto(attribute=node.attribute).SerializeToString(deterministic=True)
    xs = tuple(None if v is None else value_of(g, v) for v in given)
    name, said = (None if not data else g.scope.build.const(np.frombuffer(data, np.uint8), Q8, BYTES)
                  for data in (called(g.domain, g.name).encode(), options))
    return g.add(CUSTOM, name, said, xs=xs, count=g.count)
