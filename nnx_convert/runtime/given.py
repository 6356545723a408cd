"""What users give and get, beside the arrays inside: exact types, texts, Python's lists, None and dicts."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..codes import NARROW_DTYPES, dtype_of
from ..contents import Contents
from ..types import Array

#: What NumPy, and objects that say they are arrays, raise where there is none.
NO_ARRAY = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, AttributeError, MemoryError)


def entered(holds: Contents | str, value: Any) -> Array | str:
    """The value as an array of what a port holds, converted only where nothing changes; else what it is instead."""
    if isinstance(holds, str):
        return exact(holds, value)
    return {"sequence": _sequence, "optional": _optional, "map": _map}[holds.kind](holds, value)


def left(holds: Contents | str, array: Any) -> Any:
    """A list inside as Python's: a list, None or a value, a dict; an array as it is, of texts as strings if so said."""
    if isinstance(holds, str):
        return strings(array) if holds == "str" else array
    if holds.kind == "sequence":
        return [left(holds.of[0], item) for item in array]
    if holds.kind == "optional":
        return left(holds.of[0], array[0]) if len(array) else None
    keys, values = (holds.of[i] for i in (0, 1))
    return {said(k) if keys == "str" else k: left(values, v) for k, v in array[0].items()}


def strings(array: Any) -> Any:
    """Texts as Python's strings; what is no UTF-8 is kept by surrogates."""
    found = objects([said(t) for t in np.asarray(array, object).reshape(-1).tolist()])
    return found.reshape(np.shape(array))


def said(text: bytes) -> str:
    """The characters of a text."""
    return text.decode(errors="surrogateescape")


def objects(items: Sequence[Any]) -> Array:
    """A list as arrays inside hold it: one axis of objects."""
    found = np.empty(len(items), object)
    for i, item in enumerate(items):
        found[i] = item
    return found


def _sequence(holds: Contents, value: Any) -> Array | str:
    if not isinstance(value, list | tuple):
        return f"{type(value).__name__}, not a {holds}"
    items = [entered(holds.of[0], item) for item in value]
    fault = next((f"no {holds}: element {i} is {item}" for i, item in enumerate(items) if isinstance(item, str)), None)
    return objects(items) if fault is None else fault


def _optional(holds: Contents, value: Any) -> Array | str:
    if value is None:
        return objects([])
    found = entered(holds.of[0], value)
    return found if isinstance(found, str) else objects([found])


def _map(holds: Contents, value: Any) -> Array | str:
    if not isinstance(value, Mapping):
        return f"{type(value).__name__}, not a {holds}"
    made: dict[Any, Any] = {}
    for k, v in value.items():
        key, item = entered(holds.of[0], k), entered(holds.of[1], v)
        for found in (key, item):
            if isinstance(found, str):
                return f"no {holds}: {found}"
        if np.ndim(key):
            return f"no {holds}: a key is a {type(k).__name__}"
        made[key.item()] = item                  # type: ignore[union-attr]
    return objects([made])


def exact(dtype: str, value: Any) -> Array | str:
    """The value as an array of a type, converted only where no value changes; else what it is instead."""
    want = dtype_of(dtype)
    try:
        array = np.asarray(value)
    except NO_ARRAY as error:
        return f"no array ({str(error) or type(error).__name__})"
    if want.kind == "O":
        found = texts(array)
        return f"{array.dtype}, not texts" if found is None else found
    if array.dtype == want:
        return array
    if dtype in NARROW_DTYPES and array.dtype == np.dtype(f"V{want.itemsize}"):
        return array.view(want)                  # NumPy's files keep these types as so many bytes
    return array.astype(want) if _same(array, want, value) else f"{array.dtype}, not {want}"


def _same(array: Array, want: np.dtype[Any], value: Any) -> bool:
    """Whether an array keeps its values in another type: Python's numbers and narrow types are tried."""
    tried = want.name in NARROW_DTYPES or not isinstance(value, np.ndarray | np.generic)
    if not tried or array.dtype.kind not in "biuf" or want.kind not in "iufV":
        return np.can_cast(array.dtype, want, "safe")
    with np.errstate(all="ignore"):
        back = array.astype(want).astype(array.dtype)
        return bool(np.all((back == array) | np.isnan(array)))


def texts(array: Array) -> Array | None:
    """An array of texts as `bytes` objects; None where an element is none."""
    if array.dtype.kind not in "OSU":
        return None
    try:
        items = [t.encode() if isinstance(t, str) else t for t in array.reshape(-1).tolist()]
    except UnicodeEncodeError:                   # half a surrogate pair
        return None
    if not all(isinstance(t, bytes) for t in items):
        return None
    return objects(items).reshape(array.shape)
