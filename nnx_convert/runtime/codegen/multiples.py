"""Depthwise convolutions of bytes with several filters a channel: those with one, of an image with as many channels."""
from __future__ import annotations

from dataclasses import replace

from ...frozen import frozen
from ...ops import conv
from ...types import BYTES
from ..bind import Bound
from .bytes import zero_border
from .depthwise_bytes import FAMILY as ONE_EACH
from .integers import STRETCH, shuffled
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .moves import FillBorders, address
from .places import Border, Place, room
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, native, remembered
from .turns import pieces


@frozen
class Repeated:
    """Each channel of an image so many times, one after the other."""

    x: Place
    out: Place
    times: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("repeated", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, (n, rows, columns, channels) = Function(m, name, SHARED), self.x.shape
        kind = vector(STRETCH, "i8")

        def row(i: str, _: list[str]) -> None:
            near, far = (address(f, p, i, (n, rows)) for p in (self.x, self.out))

            def cell(c: str, _: list[str]) -> None:
                pieces(f, channels, STRETCH, lambda at, count: some(
                    f.at(near, f.add(f.mul(c, self.x.strides[2]), at)),
                    f.at(far, f.add(f.mul(c, self.out.strides[2]), f.mul(at, self.times))), count))

            def some(x: str, to: str, count: int) -> None:
                value = f.load_first(count, STRETCH, "i8", x)
                for first in range(0, count * self.times, STRETCH):
                    which = [min((first + k) // self.times, STRETCH - 1) for k in range(STRETCH)]
                    part = shuffled(f, kind, value, value, which)
                    f.store_first(min(STRETCH, count * self.times - first), STRETCH, "i8", part, to, first)
            f.loop(0, columns, 1, [], cell)
        f.loop(*f.share(n * rows), 1, [], row)
        f.finish()


def _alone(b: Bound) -> Bound:
    """The operation with one filter a channel, of an image that has each channel so often."""
    x = b.args["x"]
    wide = replace(x, dims=(*x.shape[:3], x.shape[3] * b.args["mult"]), data=None)
    return replace(b, args={**b.args, "x": wide, "mult": 1})


@remembered
def _takes(b: Bound, machine: Machine) -> bool:
    x, mult = b.args["x"], b.args["mult"]
    few = 1 < mult <= STRETCH and x.shape[3] > 1 and x.data is None
    return x.type in BYTES and few and ONE_EACH.does(_alone(b), machine)


def _kept(b: Bound) -> tuple[int, Place, Border]:
    """The bytes of the wide image with its border, and where it lies in them."""
    wide = _alone(b)
    shape, border = wide.args["x"].shape, zero_border(wide).get(b.slots["x"], Border())
    size, strides, first = room(shape, 1, border)
    return size, Place("%arena", first, shape, strides, 1, border), border


def _make(w: Workshop, group: Group) -> Phases:
    b, slot = group.head, group.head.slots["x"]
    _, kept, border = _kept(b)
    own = replace(kept, offset=w.places[SCRATCH].offset + kept.offset)
    shop = replace(w, places={**w.places, slot: own}, _kept={})
    work = ONE_EACH.make(shop, Group(_alone(b)))
    w.used = shop.used
    before: list[Task] = [FillBorders((own,), waited=False)] if border else []
    x = replace(w.place(slot), border=Border())
    tasks = work.tasks if isinstance(work, Phases) else (work,)
    return Phases((*before, Repeated(x, own, b.args["mult"]), *tasks))


NATIVE = (native(Family(_takes, _make, scratch=lambda g, _: _kept(g.head)[0], strided=True), conv.DEPTHWISE_CONV_2D,
                 otherwise=True),)
