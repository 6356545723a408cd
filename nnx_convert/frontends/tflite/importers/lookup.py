"""Hash tables: what an initialisation fills them with is constant from then on."""
from __future__ import annotations

import numpy as np
import tflite

from ....errors import Unsupported
from ....graph import Value
from ....ops import lookup
from ....types import I64
from ..importer import Op
from ..registry import Handle, imports


@imports()
def HASHTABLE(g: Op, o: tflite.HashtableOptions) -> Handle:
    return Handle(f"table {o.TableId()}")


@imports()
def HASHTABLE_IMPORT(g: Op, handle: Handle, keys: Value, values: Value) -> None:
    """A table that is filled already stays as it is."""
    if keys.tensor.data is None or values.tensor.data is None:
        raise Unsupported("a table is filled with what only a run knows")
    g.scope.session.tables.setdefault(handle.name, (keys, values))


def filled(g: Op, handle: Handle) -> tuple[Value, Value]:
    """The keys and values of a table."""
    found = g.scope.session.tables.get(handle.name)
    if found is None:
        raise Unsupported(f"{handle.name} is read and nothing fills it before")
    return found


@imports()
def HASHTABLE_FIND(g: Op, handle: Handle, x: Value, other: Value) -> Value:
    return g(lookup.TABLE_FIND, x, *filled(g, handle), other)


@imports()
def HASHTABLE_SIZE(g: Op, handle: Handle) -> Value:
    keys, _ = filled(g, handle)
    return g.const(np.array([len(set(keys.array.reshape(-1).tolist()))]), I64)
