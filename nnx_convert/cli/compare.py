"""Outputs beside what was expected: how many elements differ, by how much, and where first."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import plain
from ..codes import NARROW_DTYPES
from ..errors import UsageError
from ..frozen import frozen
from ..types import Array
from ..verify.archives import output_key
from ..verify.metrics import Tolerance


@frozen
class Difference:
    """One output beside the array of the archive called `key`: of `count` elements `differing` differ.

    `largest` is the largest absolute difference, `first` the index of the first element that is too far off,
    `got` and `expected` its values as text. `problem` says why there is no comparison (shapes, or no such key).
    """

    output: str
    key: str
    count: int
    differing: int
    largest: float = 0.0
    first: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""
    problem: str = ""

    def sentence(self) -> str:
        """The same in words."""
        if self.problem:
            return self.problem
        if not self.differing:
            return f"equal to {self.key}, to {self.largest:.3g}" if self.largest else f"equal to {self.key}"
        return (f"{self.differing} of {self.count} differ from {self.key}, by {self.largest:.6g} at most; first at "
                f"[{','.join(map(str, self.first or ()))}]: {self.got}, expected {self.expected}")


def compared(outputs: Mapping[str, Array], golden: Mapping[str, Array], tolerance: Tolerance,
             source: str) -> tuple[Difference, ...]:
    """Every output beside its counterpart; raises `UsageError` where the archive has none of them."""
    keys = [output_key(golden, name, i) or "" for i, name in enumerate(outputs)]
    if not any(keys):
        raise UsageError(f"has no output of the model; its arrays are {', '.join(golden) or 'none'}", source,
                         f"the outputs are {', '.join(outputs)}")
    return tuple(difference(name, key, array, golden[key], tolerance) if key
                 else Difference(name, "", array.size, 0, problem=f"is not in {source}")
                 for key, (name, array) in zip(keys, outputs.items(), strict=True))


def texts(output: str, key: str, got: Array, want: Array) -> Difference:
    """Texts beside texts, which an archive keeps without the zeros at their ends."""
    wrong = got.astype(np.bytes_) != want
    at = np.unravel_index(int(wrong.argmax()), wrong.shape) if wrong.any() else None
    return Difference(output, key, got.size, int(wrong.sum()), 0.0, None if at is None else tuple(map(int, at)),
                      "" if at is None else f"{got[at]!r}", "" if at is None else f"{bytes(want[at])!r}")


def difference(output: str, key: str, got: Array, want: Array, tolerance: Tolerance) -> Difference:
    """One output beside what was expected."""
    if got.shape != want.shape:
        problem = f"has shape {list(got.shape)}, {key} has {list(want.shape)}"
        return Difference(output, key, got.size, max(got.size, 1), problem=problem)
    if got.dtype.name in NARROW_DTYPES and want.dtype == np.dtype(f"V{got.dtype.itemsize}"):
        got, want = plain(got), plain(want.view(got.dtype))
    if want.dtype.kind == "S" and got.dtype.kind == "O":
        return texts(output, key, got, want)
    if want.dtype.kind not in "biufc" or got.dtype.kind == "O":
        return Difference(output, key, got.size, max(got.size, 1), problem=f"{key} is of type {want.dtype}")
    atol, rtol = tolerance.of(got)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        off = np.where(same, 0.0, np.abs(got.astype(wide) - want.astype(wide)))
        wrong = ~same & ~((off <= atol + rtol * np.abs(want.astype(wide))) & np.isfinite(off))
    if not got.size:
        return Difference(output, key, 0, 0)
    at = np.unravel_index(int(wrong.argmax()), wrong.shape) if wrong.any() else None
    return Difference(output, key, got.size, int(wrong.sum()), float(off.max()),
                      None if at is None else tuple(map(int, at)),
                      "" if at is None else f"{got[at]}", "" if at is None else f"{want[at]}")
