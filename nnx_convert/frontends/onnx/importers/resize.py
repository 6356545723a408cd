"""Images of other sizes: NNAPI's resizing where it gives the same, products with constant matrices, or the host's."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import FormatError
from ....frozen import frozen
from ....graph import LARGEST_MADE, Value
from ....ops import gather, image, sampling as s, shape
from ....ops.linear import LINEAR
from ....schema import OpDef
from ....symbols import same
from ....types import F16, F32, I32, Q8, Q8S, Shape, Tensor, known, product
from ..importer import Op
from ..registry import imports

MODES = {"nearest": s.NEAREST, "linear": s.LINEAR, "bilinear": s.LINEAR, "cubic": s.CUBIC}
#: NNAPI's grids: flags `align` and `half`.
FLAGS = ((False, False), (False, True), (True, False))
#: The flags that a grid may equal between cells.
LIKELY = {"half_pixel": (False, True), "half_pixel_symmetric": (False, True), "pytorch_half_pixel": (False, True),
          "align_corners": (True, False), "asymmetric": (False, False)}
#: Cells on which open sizes are tried.
SAMPLE = 6


@frozen
class Grid:
    """How Resize reads: the arguments of INTERPOLATE that are no tensors."""

    mode: int = s.NEAREST
    grid: int = s.GRIDS.index("asymmetric")
    rounding: int = s.ROUNDINGS.index("floor")
    policy: int = 0
    a: float = -0.75
    inside: bool = False
    extrapolation: float = 0.0
    smooth: bool = False

    @property
    def named(self) -> dict[str, Any]:
        """As arguments."""
        return dict(vars(self))

    @property
    def cropped(self) -> bool:
        """Whether it reads a region of interest."""
        return s.GRIDS[self.grid] == "tf_crop_and_resize"


@frozen
class Axis:
    """An axis that changes: its size, the new one, and the factor between them where the file gives that."""

    at: int
    size: int
    out: int
    factor: float | None

    @property
    def known(self) -> bool:
        """Whether both sizes are numbers."""
        return known(self.size) and known(self.out)

    @property
    def kept(self) -> bool:
        """Whether nothing changes."""
        return same(self.size, self.out) and self.factor in (None, 1.0)


def code(name: str, value: str, codes: Sequence[str]) -> int:
    """The place of a word; raises `FormatError` where it is none of them."""
    if value not in codes:
        raise FormatError(f"{name} is {value!r}")
    return list(codes).index(value)


@imports("Upsample", until=6)
def upsample_image(g: Op, x: Value, *, height_scale: float, mode: str = "nearest", width_scale: float) -> Value:
    return upsampled(g, x, np.array([1, 1, height_scale, width_scale], np.float32), mode)


@imports("Upsample", since=7, until=8)
def upsample_by(g: Op, x: Value, *, mode: str = "nearest", scales: tuple[float, ...]) -> Value:
    return upsampled(g, x, np.array(scales, np.float32), mode)


@imports(since=9)
def Upsample(g: Op, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    found = g.known(scales)
    return upsampled(g, x, scales if found is None else found, mode)


@imports("Resize", until=10)
def resize_by(g: Op, x: Value, scales: Value, *, mode: str = "nearest") -> Value:
    """ONNX Runtime rounds up along axes that get smaller."""
    found = g.known(scales)
    if found is None or mode != "nearest" or not (found < 1).any():
        return upsampled(g, x, scales if found is None else found, mode)
    grown = upsampled(g, x, np.where(found < 1, 1, found), mode)
    return upsampled(g, grown, np.where(found < 1, found, 1), mode, "ceil")


def upsampled(g: Op, x: Value, scales: Any, mode: str, rounding: str = "floor") -> Value:
    """An image enlarged from its corner on."""
    if mode not in MODES:
        raise FormatError(f"mode is {mode!r}")
    grid = Grid(MODES[mode], rounding=s.ROUNDINGS.index(rounding))
    scales = scales if isinstance(scales, Value) else g.const(np.asarray(scales, np.float32))
    return resized(g, x, None, scales, None, tuple(range(g.rank(x))), grid)


@imports(since=11)
def Resize(g: Op, x: Value, roi: Value | None = None, scales: Value | None = None, sizes: Value | None = None, *,
           antialias: int = 0, axes: tuple[int, ...] | None = None,
           coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Value:
    rank = g.rank(x)
    if axes is not None and not all(-rank <= a < rank for a in axes):
        raise FormatError(f"axes {list(axes)} of a tensor of rank {rank}")
    grid = Grid(code("mode", mode, ("nearest", "linear", "cubic")),
                code("coordinate_transformation_mode", coordinate_transformation_mode, s.GRIDS),
                code("nearest_mode", nearest_mode, s.ROUNDINGS),
                code("keep_aspect_ratio_policy", keep_aspect_ratio_policy, s.POLICIES),
                cubic_coeff_a, bool(exclude_outside), extrapolation_value, bool(antialias))
    scales, sizes, roi = (v if v is None or v.shape != (0,) else None for v in (scales, sizes, roi))
    if (scales is None) == (sizes is None):
        raise FormatError("has either scales or sizes")
    if not grid.cropped:
        roi = None
    return resized(g, x, roi, scales, sizes, tuple(range(rank) if axes is None else (a % rank for a in axes)), grid)


def resized(g: Op, x: Value, roi: Value | None, scales: Value | None, sizes: Value | None, axes: Shape,
            grid: Grid) -> Value:
    """x on another grid along axes."""
    changed = changes(g, x, scales, sizes, axes, grid)
    if changed is None or grid.cropped:
        return anyhow(g, x, roi, scales, sizes, axes, grid, changed)
    changed = [a for a in changed if not a.kept]
    if not changed:
        return x
    if any(a.known and a.size * (1 if grid.mode == s.NEAREST else a.out) + a.out > LARGEST_MADE for a in changed):
        return anyhow(g, x, roi, scales, sizes, axes, grid, changed)
    made = by_nnapi(g, x, changed, grid)
    if made is None and all(a.known for a in changed) and (grid.mode == s.NEAREST or x.type in (F32, F16)):
        made = x
        for axis in changed:
            made = along(g, made, axis, grid)
    return made if made is not None else anyhow(g, x, roi, scales, sizes, axes, grid, changed)


def changes(g: Op, x: Value, scales: Value | None, sizes: Value | None, axes: Shape, grid: Grid) -> list[Axis] | None:
    """What becomes of each axis, as far as that is known while importing."""
    return scaled(g, x, scales, axes) if scales is not None else fitted(g, x, sizes, axes, grid)


def scaled(g: Op, x: Value, scales: Value, axes: Shape) -> list[Axis] | None:
    """What becomes of axes by factors; None where these, or what a fraction makes of an open size, are not known."""
    found, old = g.known(scales), tuple(x.shape[a] for a in axes)
    if found is None:
        return None
    factors = [float(f) for f in found.reshape(-1)]
    if len(factors) != len(axes) or not all(0 < f < np.inf for f in factors):
        raise FormatError(f"scales are {factors}, for {len(axes)} axes")
    if not all(known(n) or f.is_integer() for n, f in zip(old, factors, strict=True)):
        return None
    return [Axis(a, n, s.scaled(n, f) if known(n) else n * int(f), f)
            for a, n, f in zip(axes, old, factors, strict=True)]


def fitted(g: Op, x: Value, sizes: Value | None, axes: Shape, grid: Grid) -> list[Axis] | None:
    """What becomes of axes by sizes; None where they are not known."""
    wanted, old = g.ints(sizes), tuple(x.shape[a] for a in axes)
    if wanted is None or len(wanted) != len(axes) or grid.policy and not all(map(known, (*old, *wanted))):
        return None
    if not grid.policy:
        return [Axis(a, n, o, factor(n, o)) for a, n, o in zip(axes, old, wanted, strict=True)]
    new, by = s.kept(old, wanted, grid.policy)
    return [Axis(a, n, o, f) for a, n, o, f in zip(axes, old, new, by, strict=True)]


def factor(size: int, out: int) -> float | None:
    """The whole number that an open size is multiplied by, if it is one."""
    if known(size) and known(out):
        return None
    quotient = out // size
    return float(quotient) if known(quotient) and same(quotient * size, out) else None


def anyhow(g: Op, x: Value, roi: Value | None, scales: Value | None, sizes: Value | None, axes: Shape, grid: Grid,
           changed: Sequence[Axis] | None) -> Value:
    """The host's: of any types, by sizes that are computed."""
    new = {a.at: a.out for a in changed or ()}
    out = tuple(new.get(i, n) for i, n in enumerate(x.shape)) if changed is not None else None
    return g(s.INTERPOLATE, x, roi, scales, sizes, list(axes), **grid.named,
             out=None if out is None else Tensor(x.type, out, x.tensor.quant))


def by_nnapi(g: Op, x: Value, changed: Sequence[Axis], grid: Grid) -> Value | None:
    """NNAPI's resizing of an image, where it reads the same cells."""
    types = (F32, F16, Q8, Q8S) if grid.mode == s.NEAREST else (F32, F16)
    if len(x.shape) != 4 or x.type not in types or min(a.at for a in changed) < 2 or grid.mode == s.CUBIC \
            or grid.smooth or any(a.known and a.out < 1 for a in changed):
        return None
    axes = {a.at: a for a in changed}
    both = [axes.get(i, Axis(i, x.shape[i], x.shape[i], 1.0)) for i in (2, 3)]
    if not all(a.known or a.factor for a in both):
        return None
    op = image.RESIZE_NEAREST_NEIGHBOR if grid.mode == s.NEAREST else image.RESIZE_BILINEAR
    flags = FLAGS if grid.mode == s.NEAREST else (LIKELY[s.GRIDS[grid.grid]],)
    found = next((f for f in flags if all(agrees(g, op, a, grid, *f) for a in both)), None)
    if found is None:
        return None
    named: dict[str, Any] = {"nchw": True, "align": found[0], "half": found[1]}
    if all(a.known for a in both):
        return g(op, x, ow=both[1].out, oh=both[0].out, **named)
    if any(a.known and a.out % a.size for a in both):
        return None                              # a fraction in float32 may come to another size
    out = Tensor(x.type, (*x.shape[:2], both[0].out, both[1].out), x.tensor.quant)
    h_scale, w_scale = (float(a.out // a.size) if a.known else a.factor for a in both)
    return g(op, x, w_scale=w_scale, h_scale=h_scale, out=out, **named)


def agrees(g: Op, op: OpDef, axis: Axis, grid: Grid, align: bool, half: bool) -> bool:
    """Whether NNAPI's operation reads an axis as ONNX's does: cells numbered give where each comes from.

    Open sizes grow by a whole number, which is tried on a few cells: the others repeat them, but not where the corners
    are aligned, and cells halfway between two come at other places in every size.
    """
    if not axis.known:
        if axis.factor == 1.0:
            return True
        if grid.mode == s.NEAREST and s.GRIDS[grid.grid] == "align_corners":
            return False
        axis = replace(axis, size=SAMPLE, out=int(SAMPLE * (axis.factor or 1)))
    numbers = np.arange(axis.size, dtype=np.float32)
    want = matrix(g, numbers, axis, grid)
    got = computed(g, op, g.const(numbers.reshape(1, -1, 1, 1)), ow=1, oh=axis.out, nchw=False, align=align, half=half)
    return bool(np.abs(want - got.reshape(-1)).max(initial=0) <= (0 if grid.mode == s.NEAREST else 1e-6 * axis.size))


def matrix(g: Op, x: np.ndarray, axis: Axis, grid: Grid) -> np.ndarray:
    """What becomes of numbers along the first axis."""
    by = None if axis.factor is None else g.const(np.array([axis.factor], np.float64))
    sizes = g.const(np.array([axis.out], np.int64))
    return computed(g, s.INTERPOLATE, g.const(x), None, by, sizes, [0], **replace(grid, policy=0).named)


def computed(g: Op, op: OpDef, *args: Any, **named: Any) -> np.ndarray:
    """What an operation gives of constants, at once."""
    g(op, *args, **named)
    node = g.scope.build.nodes.pop()
    values = [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None) for a in node.operands]
    found = g.session.evaluate(node, values)
    if found is None:
        g.unsupported("has no kernel to compute a table with")
    return np.asarray(found[0])


def along(g: Op, x: Value, axis: Axis, grid: Grid) -> Value:
    """One axis read by a table: cells picked, or a product with a matrix."""
    if grid.mode == s.NEAREST:
        cells = matrix(g, np.arange(axis.size, dtype=np.float64), axis, grid)
        return g(gather.GATHER, x, axis=axis.at, indices=g.const(cells.astype(np.int32), I32))
    table = g.const(matrix(g, np.eye(axis.size, dtype=np.float32), axis, grid).astype(x.type.dtype), x.type)
    none = g.const(np.zeros(axis.out, x.type.dtype), x.type)
    rank, last = len(x.shape), len(x.shape) - 1
    if axis.at == last:
        return g(LINEAR, x, table, none)
    if rank <= 4:
        swap = [i if i not in (axis.at, last) else axis.at + last - i for i in range(rank)]
        return g(shape.TRANSPOSE, g(LINEAR, g(shape.TRANSPOSE, x, swap), table, none), swap)
    rows = g.reshape(x, (product(x.shape[:axis.at]), axis.size, product(x.shape[axis.at + 1:])))
    made = g(shape.TRANSPOSE, g(LINEAR, g(shape.TRANSPOSE, rows, [0, 2, 1]), table, none), [0, 2, 1])
    return g.reshape(made, (*x.shape[:axis.at], axis.out, *x.shape[axis.at + 1:]))
