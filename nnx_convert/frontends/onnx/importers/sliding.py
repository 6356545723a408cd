"""Where the window of a convolution or a pool goes: strides, gaps, and padding as amounts or by a scheme's name."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....errors import FormatError
from ....frozen import frozen
from ....graph import Value
from ....kinds import window
from ....types import Shape, known
from ..importer import Op

SCHEMES = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@frozen
class Sliding:
    """A window of `kernel` cells; `heads` and `tails` are what is padded before and after each axis.

    `scheme` is set where the padding is that of SAME_UPPER and follows from sizes that are open.
    """

    kernel: Shape
    strides: Shape
    dilations: Shape
    heads: Shape
    tails: Shape
    scheme: bool = False

    @property
    def reach(self) -> Shape:
        """The cells that the window spans along each axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def pads(self) -> Shape:
        """Amounts before each axis, then those after."""
        return self.heads + self.tails

    @property
    def padded(self) -> bool:
        """Whether there is any padding."""
        return self.scheme or any(self.pads)

    @property
    def plane(self) -> Sliding:
        """The same over one axis more where it is over one, of height 1."""
        if len(self.kernel) != 1:
            return self
        return Sliding((1, *self.kernel), (1, *self.strides), (1, *self.dilations), (0, *self.heads),
                       (0, *self.tails), self.scheme)

    @property
    def amounts(self) -> dict[str, Any]:
        """The padding of a plane as NNAPI's operations take it."""
        if self.scheme:
            return {"scheme": 1}
        (pt, pl), (pb, pr) = self.heads, self.tails
        return {"pl": pl, "pr": pr, "pt": pt, "pb": pb}

    @property
    def steps(self) -> dict[str, Any]:
        """The strides of a plane as NNAPI's operations take them."""
        return {"sw": self.strides[1], "sh": self.strides[0]}

    @property
    def nd(self) -> dict[str, Any]:
        """The padding and the steps as operations over any axes take them."""
        return {"pads": list(self.pads), "strides": list(self.strides), "dilations": list(self.dilations)}

    def out(self, sizes: Shape) -> Shape:
        """How many whole windows there are along each axis."""
        return tuple(window(n, k, s, d, (a, b)) for n, k, s, d, a, b in zip(
            sizes, self.kernel, self.strides, self.dilations, self.heads, self.tails, strict=True))

    def part(self, axes: slice) -> Sliding:
        """The same along some axes."""
        return replace(self, kernel=self.kernel[axes], strides=self.strides[axes], dilations=self.dilations[axes],
                       heads=self.heads[axes], tails=self.tails[axes])

    def ended(self, tails: Shape) -> Sliding:
        """The same with other amounts after the axes."""
        return replace(self, tails=tails)


def sized(name: str, given: Shape | None, count: int, default: int) -> Shape:
    """Numbers for so many axes; raises `FormatError` where there are others."""
    found = given or (default,) * count
    if len(found) != count:
        raise FormatError(f"{name} has {len(found)} numbers, not {count}")
    return found


def sliding(g: Op, x: Value, kernel: Shape, strides: Shape | None, dilations: Shape | None, pads: Shape | None,
            auto_pad: str) -> Sliding:
    """The window over all axes of x behind the channels; raises `FormatError`, `Unsupported`."""
    axes = g.rank(x) - 2
    if axes < 1 or len(kernel) != axes:
        raise FormatError(f"a kernel of {len(kernel)} axes on a tensor of rank {g.rank(x)}")
    if auto_pad not in SCHEMES:
        raise FormatError(f"auto_pad is {auto_pad!r}")
    strides, dilations = sized("strides", strides, axes, 1), sized("dilations", dilations, axes, 1)
    amounts = sized("pads", pads, 2 * axes, 0) if auto_pad == "NOTSET" else (0,) * 2 * axes
    if min(*kernel, *strides, *dilations) < 1:
        raise FormatError("a kernel, stride or dilation is not positive")
    found = Sliding(kernel, strides, dilations, amounts[:axes], amounts[axes:])
    if auto_pad in ("NOTSET", "VALID"):
        return found
    return _same(g, found, x.shape[2:], auto_pad == "SAME_LOWER")


def _same(g: Op, found: Sliding, sizes: Shape, lower: bool) -> Sliding:
    """Padding that gives ceil(size / stride) windows, the odd cell first where `lower`.

    Of an open size it is between two amounts. Where these begin alike the larger is right: no window is at the end of
    what is too much.
    """
    heads, tails = list[int](), list[int]()
    for n, s, reach in zip(sizes, found.strides, found.reach, strict=True):
        most = max((-(-n // s) - 1) * s + reach - n, 0) if known(n) else reach - 1
        least = most if known(n) else max(reach - s, 0)
        begin = {(total + lower) // 2 for total in (least, most)}
        if len(begin) > 1:
            if lower or len(sizes) > 2:
                g.unsupported("pads by a scheme that follows from open sizes", "give the input sizes")
            return replace(found, scheme=True)
        heads.append(begin.pop())
        tails.append(most - heads[-1])
    return replace(found, heads=tuple(heads), tails=tuple(tails))


def as_plane(g: Op, x: Value) -> Value:
    """A row of cells as an image of height 1."""
    return g.reshape(x, (*x.shape[:2], 1, x.shape[2])) if g.rank(x) == 3 else x


def as_before(g: Op, y: Value, x: Value) -> Value:
    """The image as a row of cells where x is one."""
    return g.reshape(y, (*y.shape[:2], y.shape[3])) if g.rank(x) == 3 else y
