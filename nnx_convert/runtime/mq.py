"""The arithmetic decoder of JPEG 2000 and the bit planes of its code blocks (ITU-T T.800, annexes C and D)."""
from __future__ import annotations

import numpy as np

from ..types import Array

#: States: the probability of the less probable symbol, the next state after the more and the less, whether they swap.
STATES = [
    (0x5601, 1, 1, 1), (0x3401, 2, 6, 0), (0x1801, 3, 9, 0), (0x0AC1, 4, 12, 0), (0x0521, 5, 29, 0),
    (0x0221, 38, 33, 0), (0x5601, 7, 6, 1), (0x5401, 8, 14, 0), (0x4801, 9, 14, 0), (0x3801, 10, 14, 0),
    (0x3001, 11, 17, 0), (0x2401, 12, 18, 0), (0x1C01, 13, 20, 0), (0x1601, 29, 21, 0), (0x5601, 15, 14, 1),
    (0x5401, 16, 14, 0), (0x5101, 17, 15, 0), (0x4801, 18, 16, 0), (0x3801, 19, 17, 0), (0x3401, 20, 18, 0),
    (0x3001, 21, 19, 0), (0x2801, 22, 19, 0), (0x2401, 23, 20, 0), (0x2201, 24, 21, 0), (0x1C01, 25, 22, 0),
    (0x1801, 26, 23, 0), (0x1601, 27, 24, 0), (0x1401, 28, 25, 0), (0x1201, 29, 26, 0), (0x1101, 30, 27, 0),
    (0x0AC1, 31, 28, 0), (0x09C1, 32, 29, 0), (0x08A1, 33, 30, 0), (0x0521, 34, 31, 0), (0x0441, 35, 32, 0),
    (0x02A1, 36, 33, 0), (0x0221, 37, 34, 0), (0x0141, 38, 35, 0), (0x0111, 39, 36, 0), (0x0085, 40, 37, 0),
    (0x0049, 41, 38, 0), (0x0025, 42, 39, 0), (0x0015, 43, 40, 0), (0x0009, 44, 41, 0), (0x0005, 45, 42, 0),
    (0x0001, 45, 43, 0), (0x5601, 46, 46, 0)]
#: Contexts beside those of significance (0 to 8): signs from 9 on, refinement from 14 on, runs, and plain bits.
SIGN, REFINE, RUN, PLAIN = 9, 14, 17, 18
#: Of the signs of neighbours across and down: the context, and whether the bit is turned round.
SIGNS = {(1, 1): (13, 0), (1, 0): (12, 0), (1, -1): (11, 0), (0, 1): (10, 0), (0, 0): (9, 0), (0, -1): (10, 1),
         (-1, 1): (11, 1), (-1, 0): (12, 1), (-1, -1): (13, 1)}


class Decoder:
    """A code block's bytes being decoded."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data + b"\xff\xff", 0
        self.state = [0] * 19
        self.state[0], self.state[RUN], self.state[PLAIN] = 4, 3, 46
        self.more = [0] * 19
        self.c, self.left, self.a = self.data[0] << 16, 0, 0x8000
        self._byte()
        self.c <<= 7
        self.left -= 7

    def _byte(self) -> None:
        if self.data[self.at] == 0xFF:
            if self.data[self.at + 1] > 0x8F:
                self.c += 0xFF00
                self.left = 8
                return
            self.at += 1
            self.c += self.data[self.at] << 9
            self.left = 7
            return
        self.at += 1
        self.c += self.data[self.at] << 8
        self.left = 8

    def bit(self, context: int) -> int:
        """The next bit in a context."""
        likely, following, other, swaps = STATES[self.state[context]]
        found = self.more[context]
        self.a -= likely
        if self.c >> 16 >= likely:
            self.c -= likely << 16
            if self.a & 0x8000:
                return found
            lesser = self.a < likely
        else:
            lesser = self.a >= likely
            self.a = likely
        if lesser:
            found ^= 1
            self.more[context] ^= swaps
        self.state[context] = other if lesser else following
        while not self.a & 0x8000:
            if not self.left:
                self._byte()
            self.a <<= 1
            self.c = self.c << 1 & 0xFFFFFFFF
            self.left -= 1
        return found

    def block(self, width: int, height: int, kind: str, planes: int, passes: int) -> Array:
        """The coefficients [height, width] of so many bit planes."""
        planes_ = Planes(self, width, height, kind)
        plane, step = planes - 1, 2
        for _ in range(passes):
            if plane < 0:
                raise ValueError("more passes than bit planes")
            (planes_.spread, planes_.refine, planes_.clean)[step](plane)
            step = (step + 1) % 3
            plane -= step == 0
        return planes_.values()


class Planes:
    """The coefficients of a block, a border of nothing around them, plane by plane."""

    def __init__(self, source: Decoder, width: int, height: int, kind: str) -> None:
        self.source, self.width, self.height, self.kind = source, width, height, kind
        self.row = width + 2
        size = self.row * (height + 2)
        self.size, self.sign = [0] * size, [0] * size          # magnitudes; -1 or 1 where significant
        self.seen, self.refined = [False] * size, [False] * size
        self.order = [[[(y + i + 1) * self.row + x + 1 for i in range(min(4, height - y))] for x in range(width)]
                      for y in range(0, height, 4)]

    def values(self) -> Array:
        """The coefficients."""
        found = np.array([m * s for m, s in zip(self.size, self.sign, strict=True)], np.int64)
        return found.reshape(self.height + 2, self.row)[1:-1, 1:-1]

    def context(self, p: int) -> int:
        """The context of significance of a place."""
        s, row = self.sign, self.row
        across, down = (s[p - 1] != 0) + (s[p + 1] != 0), (s[p - row] != 0) + (s[p + row] != 0)
        corners = (s[p - row - 1] != 0) + (s[p - row + 1] != 0) + (s[p + row - 1] != 0) + (s[p + row + 1] != 0)
        if self.kind == "HH":
            both = min(across + down, 2)
            return 8 if corners > 2 else 6 + (both > 0) if corners == 2 else 3 * corners + both
        if self.kind == "HL":
            across, down = down, across
        if across == 2:
            return 8
        if across == 1:
            return 7 if down else 5 + (corners > 0)
        return 2 + down if down else min(corners, 2)

    def signed(self, p: int, plane: int) -> None:
        """A place becomes significant: read its sign."""
        s, row = self.sign, self.row
        across, down = (max(-1, min(1, s[p - k] + s[p + k])) for k in (1, row))
        context, turned = SIGNS[across, down]
        self.sign[p] = -1 if self.source.bit(context) ^ turned else 1
        self.size[p] = 1 << plane

    def spread(self, plane: int) -> None:
        """The pass of significance beside what is significant."""
        for p in (p for stripe in self.order for column in stripe for p in column):
            if not self.sign[p] and (context := self.context(p)):
                self.seen[p] = True
                if self.source.bit(context):
                    self.signed(p, plane)

    def refine(self, plane: int) -> None:
        """The pass of further bits of what was significant before this plane."""
        for p in (p for stripe in self.order for column in stripe for p in column):
            if self.sign[p] and not self.seen[p]:
                context = REFINE + (2 if self.refined[p] else self.context(p) > 0)
                self.size[p] |= self.source.bit(context) << plane
                self.refined[p] = True

    def clean(self, plane: int) -> None:
        """The pass of all that is left, four places at a time where nothing is near."""
        for column in (column for stripe in self.order for column in stripe):
            start = 0
            quiet = len(column) == 4 and not any(self.sign[p] or self.seen[p] or self.context(p) for p in column)
            if quiet:
                if not self.source.bit(RUN):
                    continue
                start = 2 * self.source.bit(PLAIN)
                start += self.source.bit(PLAIN)
                self.signed(column[start], plane)
                start += 1
            for p in column[start:]:
                if not self.sign[p] and not self.seen[p] and self.source.bit(self.context(p)):
                    self.signed(p, plane)
        self.seen = [False] * len(self.seen)
