"""What is left of transposes: operations that move every element and compute nothing."""
from __future__ import annotations

from collections.abc import Sequence

from ..frozen import frozen
from ..model import Model
from ..ops.shape import TRANSPOSE
from ..types import product


@frozen
class Transposes:
    """How many there are, of them those that turn an input or an output of the model, and the bytes that all move.

    Sizes that are open count as 1.
    """

    count: int
    inputs: int
    outputs: int
    bytes: int


def transposes(models: Sequence[Model]) -> Transposes:
    """Those of a model, the first, and of the models inside it."""
    found = [(m, o) for m in models for o in m.operations if o.op.plain is TRANSPOSE]
    main = models[0]
    moved = (m.operands[o.outputs[0]] for m, o in found)
    return Transposes(len(found), sum(m is main and o.inputs[0] in main.inputs for m, o in found),
                      sum(m is main and o.outputs[0] in main.outputs for m, o in found),
                      sum(product(tuple(max(n, 1) for n in v.dims)) * v.type.dtype.itemsize
                          for v in moved))
