"""How far arrays are from what they should be: errors in real values, in steps of a grid, and as a ratio of powers."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codes import NARROW_DTYPES
from ..frozen import frozen
from ..runtime.given import said
from ..types import Array, Quant

#: Of floating-point numbers, absolute and relative, where none is given.
FLOAT_TOLERANCE = 1e-4
#: Floats of which the error is this far (dB) below them are equal as a whole: those of a network's outputs, in which
#: errors of rounding add up, and those of one operation, whose sums may cancel.
OUTPUT, OPERATION = 80.0, 100.0
#: No element is further off than this many times such an error, of the largest one.
OUTLIER = 10.0


@frozen
class Tolerance:
    """A number may be off by atol + rtol * |expected|, or by so many steps of its grid. None: as the type suggests.

    `steps` counts where numbers lie on a grid. `whole`: floats are equal, too, where their error as a whole is this far
    below them (dB), unless atol or rtol is given.
    """

    atol: float | None = None
    rtol: float | None = None
    steps: int = 0
    whole: float | None = None

    def of(self, array: Array) -> tuple[float, float]:
        """atol and rtol for numbers of this type; one that is given makes the other zero."""
        if self.atol is None and self.rtol is None:
            return (FLOAT_TOLERANCE, FLOAT_TOLERANCE) if array.dtype.kind in "fc" else (0.0, 0.0)
        return self.atol or 0.0, self.rtol or 0.0


@frozen
class Measure:
    """A tensor beside what was expected, over all runs.

    Of `count` elements `differing` are not equal and `beyond` are off by more than the tolerance. Errors are in real
    values, `steps` the largest in units of the tensor's grid (None where it has none), `snr` in dB (None where nothing
    differs, or nothing was expected but zeros). `first` is the index of the first element beyond, with what was `got`
    and `expected` there. `problem` says why numbers cannot be compared.
    """

    count: int = 0
    differing: int = 0
    beyond: int = 0
    largest: float = 0.0
    mean: float = 0.0
    snr: float | None = None
    steps: float | None = None
    first: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""
    problem: str = ""
    good: bool = True

    @property
    def share(self) -> float:
        """The part of the elements that is beyond the tolerance."""
        return self.beyond / self.count if self.count else 0.0


@dataclass
class Gauge:
    """Measures a tensor, run after run. `grid` is what its integers stand for, or the step its floats lie on."""

    tolerance: Tolerance
    grid: Quant | None = None
    seen: int = 0
    count: int = 0
    differing: int = 0
    beyond: int = 0
    largest: float = 0.0
    total: float = 0.0
    noise: float = 0.0
    signal: float = 0.0
    most: float = 0.0
    floats: bool = False
    first: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""
    problem: str = ""
    _steps: float | None = field(default=None, repr=False)

    def add(self, got: Array, want: Array) -> None:
        """One run's array beside what was expected of it."""
        self.seen += 1
        if got.shape != want.shape:
            self.problem = self.problem or f"has the shape {list(got.shape)}, expected {list(want.shape)}"
            return
        if "O" in (got.dtype.kind, want.dtype.kind) or want.dtype.kind in "SU":
            self._texts(got, want)
            return
        got, want = _computable(got, want)
        if got.dtype.kind not in "biufc" or want.dtype.kind not in "biufc":
            self.problem = self.problem or f"is of type {got.dtype}, expected {want.dtype}"
            return
        same = (got == want) | (np.isnan(got) & np.isnan(want) if want.dtype.kind in "fc" else False)
        self.count += got.size
        if same.all():
            self._heard(want, None)
            return
        wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
        with np.errstate(all="ignore"):
            off = np.where(same, 0.0, np.abs(got.astype(wide) - want.astype(wide)))
            if got.dtype.kind in "biu" and want.dtype.kind in "biu":
                off = np.maximum(off, ~same)       # of more than 53 bits, unequal ones may be the same as floats
            wrong = ~same & ~(self._allowed(got, want, off) & np.isfinite(off))
        self._counted(got, want, ~same, wrong)
        self._heard(want, off)

    def _allowed(self, got: Array, want: Array, off: Array) -> Array:
        atol, rtol = self.tolerance.of(want)
        near: Array = off <= atol + rtol * np.abs(want).astype(off.dtype)
        if self.grid is not None and self.tolerance.steps:
            near |= off / self._unit(want) <= self.tolerance.steps + 1e-3
        return near

    def _unit(self, want: Array) -> float:
        """What one step of the grid is in the numbers of the array."""
        return 1.0 if want.dtype.kind in "iu" or self.grid is None else self.grid.scale

    def _counted(self, got: Array, want: Array, unequal: Array, wrong: Array) -> None:
        self.differing += int(unequal.sum())
        self.beyond += int(wrong.sum())
        if self.first is None and wrong.any():
            at = np.unravel_index(int(wrong.argmax()), wrong.shape)
            self.first = tuple(map(int, at))
            self.got, self.expected = f"{got[at]}", f"{want[at]}"

    def _heard(self, want: Array, off: Array | None) -> None:
        """Add up the powers of what was expected and, where anything differs, of the errors."""
        real, zero = (self.grid.scale, self.grid.zero) if self.grid and want.dtype.kind in "iu" else (1.0, 0)
        with np.errstate(all="ignore"):
            power = np.square(np.abs(want.astype(np.complex128 if want.dtype.kind == "c" else np.float64) - zero)
                              ) * real * real
        self.signal += float(power.sum(where=np.isfinite(power)))
        self.most = max(self.most, math.sqrt(float(power.max(initial=0.0, where=np.isfinite(power)))))
        self.floats = want.dtype.kind in "fc"
        if off is not None:
            ends = np.where(np.isfinite(off), off, np.inf)
            most = float(ends.max())
            self.largest = max(self.largest, most * real)
            self.total += float(ends.sum()) * real
            self.noise += float(np.square(ends * real).sum())
            self._steps = max(self._steps or 0.0, most / self._unit(want))

    def _texts(self, got: Array, want: Array) -> None:
        """Texts beside texts, which an archive keeps without the zeros at their ends."""
        first, second = texts(got), texts(want)
        wrong = np.array([a != b for a, b in zip(first, second, strict=True)], bool).reshape(got.shape or (1,))
        self.count += wrong.size
        said, expected = (np.array([repr(t) for t in part], object).reshape(wrong.shape) for part in (first, second))
        self._counted(said, expected, wrong, wrong)

    def _quiet(self, snr: float | None) -> bool:
        """Whether floats are equal as a whole."""
        t = self.tolerance
        if t.whole is None or t.atol is not None or t.rtol is not None or not self.floats or snr is None:
            return False
        return snr >= t.whole and self.largest <= OUTLIER * 10 ** (-t.whole / 20) * self.most

    def measure(self) -> Measure:
        """What was found in all runs."""
        snr = 10 * math.log10(self.signal / self.noise) if 0 < self.noise < math.inf and self.signal > 0 else None
        steps = None if self.grid is None else self._steps or 0.0
        good = not self.problem and (not self.beyond or self._quiet(snr))
        return Measure(self.count, self.differing, self.beyond, self.largest,
                       self.total / self.count if self.count else 0.0, snr, steps, self.first, self.got, self.expected,
                       self.problem, good)


def dequantised(codes: Array, grid: Quant) -> Array:
    """The real numbers that codes stand for."""
    return ((codes.astype(np.float64) - grid.zero) * grid.scale).astype(np.float32)


def quantised(real: Array, grid: Quant, dtype: np.dtype[Any]) -> Array:
    """The codes nearest to real numbers, within those of a type."""
    ends = np.iinfo(dtype)
    codes: Array = np.clip(np.round(real / grid.scale) + grid.zero, ends.min, ends.max).astype(dtype)
    return codes


def fits(shape: Sequence[int], wanted: Sequence[int | None] | None) -> bool:
    """Whether something of a shape with open sizes, or of none that is known, can be of this one."""
    return wanted is None or len(shape) == len(wanted) and all(
        m is None or n == m for n, m in zip(shape, wanted, strict=True))


def texts(array: Array) -> list[bytes]:
    """The elements of an array of texts, in UTF-8; what is none is kept by surrogates."""
    items = (t if isinstance(t, str) else said(bytes(t)) for t in array.reshape(-1).tolist())
    return [t.encode(errors="surrogatepass").rstrip(b"\0") for t in items]


def _computable(got: Array, want: Array) -> tuple[Array, Array]:
    """Both in types that NumPy computes with: narrow floats as float32, also those an archive has as mere bytes."""
    if got.dtype.name in NARROW_DTYPES and want.dtype == np.dtype(f"V{got.dtype.itemsize}"):
        want = want.view(got.dtype)
    return tuple(a.astype(np.float32) if a.dtype.name in NARROW_DTYPES else a for a in (got, want))  # type: ignore
