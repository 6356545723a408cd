"""Tables from keys to values."""
from __future__ import annotations

from typing import Annotated

from ..kinds import T
from ..schema import Rule, host
from ..signature import Kind
from ..types import I32, I64, STR, Tensor
from .host import TEXTS

Entries = Annotated[Tensor, Kind(TEXTS)]


@host(60340, {I64: 27, I32: 27, STR: 27}, Rule("keys are of the type of x", lambda x, keys: keys.type == x.type),
      Rule("values are as many as keys", lambda keys, values: keys.size == values.size),
      Rule("other is one value", lambda values, other: other.type == values.type and other.size == 1))
def TABLE_FIND(x: T, keys: Entries, values: Entries, other: Entries) -> Entries:
    """The value beside the first key that equals x, other where none does."""
    return Tensor(values.type, x.shape, values.quant)
