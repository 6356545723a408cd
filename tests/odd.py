"""Values that no model was meant to meet: floats and integers at their edges, indices and sizes that are none."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnx_convert import CompiledModel, Model, NnxError

Array = np.ndarray[Any, Any]
#: What floats are: not a number, infinite, zero of either sign, denormal, at the edges of exp and of integers.
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.4e-45, 1.17549435e-38, 1.0, -1.0, 0.5, 2.5, -2.5, 89.0,
          -104.0, 1e-8, 65504.0, 2147483648.0, -2147483648.0]
#: What is no index and no size, beside the ends of a type.
INTEGERS = [-5, -2, -1, 0, 1, 2, 3, 5, 7, 64]
#: |one - other| <= NEAR * the largest finite value of an output.
NEAR = 1e-5


def bent(x: Array, rng: np.random.Generator, share: float, floats: bool = True) -> Array:
    """An array with a share of its numbers replaced by odd ones; truth values stay."""
    if x.dtype.kind == "f" and floats:
        with np.errstate(over="ignore"):
            odd = rng.choice(FLOATS, x.shape).astype(x.dtype)
    elif x.dtype.kind in "iu":
        ends = np.iinfo(x.dtype)
        fitting = [n for n in (ends.min, ends.min + 1, ends.max, ends.max - 1, *INTEGERS) if ends.min <= n <= ends.max]
        odd = rng.choice(np.array(fitting, x.dtype), x.shape)
    else:
        return x
    return np.asarray(np.where(rng.random(x.shape) < share, odd, x))


def outcome(model: Model, given: Sequence[Array], backend: str) -> list[Array] | str:
    """The outputs, or what is said instead of them: the error's id, and its text without its place."""
    return answer(CompiledModel(model, backend=backend, threads=1), given)


def answer(model: CompiledModel, given: Sequence[Array]) -> list[Array] | str:
    """The same of a model that is compiled."""
    try:
        return model.run(list(given))
    except NnxError as error:
        return f"{error.id} {error.text}"


def apart(one: list[Array] | str, other: list[Array] | str, signs: bool = True) -> str:
    """How two outcomes differ, in words; nothing where they do not.

    Integers and what is said are equal; floats are near, infinite and no number at the same places; zeros have the same
    `signs`, unless that does not count.
    """
    if isinstance(one, str) or isinstance(other, str):
        return "" if isinstance(one, str) and one == other else f"{_told(one)}; {_told(other)}"
    found = (_differing(a, b, signs) for a, b in zip(one, other, strict=True))
    return next((f"output {n}: {why}" for n, why in enumerate(found) if why), "")


def _told(found: list[Array] | str) -> str:
    return found if isinstance(found, str) else "it runs"


def _differing(a: Any, b: Any, signs: bool) -> str:
    """Of one output."""
    if not isinstance(a, np.ndarray):
        return "" if type(a) is type(b) else f"{type(a)}, {type(b)}"
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype}{a.shape}, {b.dtype}{b.shape}"
    if a.dtype.kind == "c":
        a, b = (v.view(np.finfo(v.dtype).dtype) for v in (a, b))
    good = a == b
    if a.dtype.kind == "f":
        largest = float(np.abs(a[np.isfinite(a)]).max(initial=0))
        with np.errstate(all="ignore"):
            near = np.abs(a.astype(np.float64) - b) <= NEAR * largest
        good |= np.isnan(a) & np.isnan(b) | near & np.isfinite(a) & np.isfinite(b)
        good &= (np.signbit(a) == np.signbit(b)) | np.isnan(a) | (a != 0) | (b != 0) | (not signs)
    if np.all(good):
        return ""
    at = tuple(int(n) for n in np.argwhere(~np.atleast_1d(good))[0])
    return f"{np.atleast_1d(a)[at]!r} and {np.atleast_1d(b)[at]!r} at {list(at)}"
