"""Sums of products of bytes onto the output's grid, exactly as the NumPy kernels (and LiteRT's reference) do it.

For one channel the output is a step function of an integer: it grows at thresholds. A formula in FLOAT32 that never
falls and that has every threshold, and the integer before it, on the right side is exact. So the cheap formula is
tried when code is made, channel by channel, and proven at each threshold; where there is none the definition itself
is computed, in 64 bits.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...types import Array, Tensor
from ..fixedpoint import activation_range, away, grid, multipliers
from .directed import single, toward_zero
from .integers import bounded, signed_like
from .ir import Function, number, vector
from .machine import Machine
from .mathematics import flags
from .nearest import nearest
from .objects import apart, together
from .plans import recalled

#: Parameters of each formula with the bytes of one: after the start value of the sum, in this order.
PARAMETERS = {"above": ("float", "float"), "around": ("float", "float"),
              "finely above": ("float", "float", "float"), "finely around": ("float", "float", "float"),
              "shifts": ("i32", "i32", "i32", "i32"),
              "double": ("double",), "nearest": ("float",)}
SIZES = {"float": 4, "i32": 4, "double": 8}
TYPES = {"float": np.float32, "i32": np.int32, "double": np.float64}
#: More than the second slope's product and sum with the offset are off, being rounded.
FINE = 2.0 ** -23
#: Channels that are planned at a time: their thresholds fit into the second cache.
TOGETHER = 128
#: The rounding of AVX-512's instructions: toward zero, without exceptions.
TOWARD_ZERO = 11
#: What counts of a shift to the left, as in `fixedpoint.scale32`; LLVM leaves open what more than a word's bits gives.
LAST_BITS = 31
#: Formulas in FLOAT32 whose last step is a product and a sum that may be cut.
CUT = frozenset({"above", "around", "finely above", "finely around"})
#: Those that take more registers than the others, so that vectors have to come one after the other.
CROWDED = frozenset({"shifts"})


@frozen
class Range:
    """The bytes of a result: their zero point, the least and the greatest one, whether they are signed."""

    zero: int
    low: int
    high: int
    signed: bool

    @classmethod
    def of(cls, out: Tensor, act: int = 0) -> Range:
        """Those of a tensor after a fused activation."""
        return cls(grid(out)[1], *activation_range(act, out), out.type.dtype.kind == "i")


#: No bytes at all.
NOTHING = Range(0, 0, 0, signed=False)


@frozen(eq=False)
class Scaling:
    """How sums of channels are scaled: a formula of `PARAMETERS` and its parameters, each [channels]."""

    formula: str
    parameters: tuple[Array, ...]


@frozen(eq=False)
class Steps:
    """What is to be scaled: real multipliers, and sums from `low` to `high`, each [channels].

    `exact`: FULLY_CONNECTED's rounding, of a product in FLOAT64, else that of `fixedpoint.scale32` by `m` and `s`.
    """

    m: Array
    s: Array
    reals: Array
    low: Array
    high: Array
    exact: bool = False

    @classmethod
    def of(cls, reals: Array, low: Array, high: Array, exact: bool = False) -> Steps:
        """By real multipliers."""
        return cls(*multipliers(list(reals)), reals, low, high, exact)

    @property
    def bound(self) -> Array:
        """No sum's magnitude is above it."""
        return np.maximum(-self.low, self.high)

    def some(self, channels: Array | slice) -> Steps:
        """Those of some channels."""
        m, s, reals, low, high = (a[channels] for a in (self.m, self.s, self.reals, self.low, self.high))
        return Steps(m, s, reals, low, high, self.exact)

    def thresholds(self, k: Array) -> Array:
        """The least integers whose outputs are at least k (in order), [channels, k] as FLOAT64.

        Where no sum is one, some integer beyond all sums, or an infinite number.
        """
        return self._double(k) if self.exact else self._shifts(k)

    def _shifts(self, k: Array) -> Array:
        m = (self.m << np.maximum(self.s, 0)).astype(np.float64)[:, None] / (1 << 30)
        step = np.ldexp(2.0, np.maximum(-self.s, 0))[:, None]
        # All in units of 2 ** 30: odd numbers of few bits, so only the quotient is rounded, and it has no zero to do.
        half = np.where(step > 2, step / 2, 0)
        found = k[None] * step
        found -= 1 + half
        if (k <= 0).any():
            found += np.where((k <= 0)[None] & (half > 0), 2.0, 0.0)
        with np.errstate(divide="ignore"):
            found /= m
        np.ceil(found, out=found)
        # A quotient that is no integer is at least 2 ** -31 from one, which FLOAT64 keeps below this.
        far = np.abs(found[:, [0, -1]]).max(1) >= 1 << 22 if k.size else np.zeros(len(found), bool)
        if far.any():
            found[far] = self.some(far)._exactly(k, found[far])
        return found

    def _exactly(self, k: Array, near: Array) -> Array:
        """`_shifts` in integers, where there are sums, and `near` where there are none."""
        m = np.maximum(self.m << np.maximum(self.s, 0), 1)[:, None]
        there = (np.abs(k)[None] <= (self.reals * self.bound)[:, None] + 2) & (self.m > 0)[:, None]
        e = np.where(there, np.maximum(-self.s, 0)[:, None], 0)
        ties = np.where(e > 0, (k[None] <= 0) * (np.int64(1) << 31) - (np.int64(1) << (30 + e)), 0)
        above = (k[None].astype(np.int64) << (31 + e)) - (1 << 30) + ties
        return np.where(there, -(-above // m), near)

    def _double(self, k: Array) -> Array:
        factor = self.reals[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            guess = np.ceil((k[None] - 0.5) / factor)
            found = np.full(guess.shape, np.inf)
            for off in (2, 1, 0, -1, -2):
                found = np.where(away((guess + off) * factor) >= k[None], guess + off, found)
        return found

    @property
    def plannable(self) -> bool:
        """Whether thresholds fit into integers of 64 bits, and scaled sums into ones of 32."""
        deep = np.where(self.m > 0, -self.s, 0).max(initial=0) > 30
        wide = np.ldexp(self.bound.astype(np.float64), np.maximum(self.s, 0)).max(initial=0) >= 2.0 ** 31
        return bool(not deep and not wide and (self.reals * self.bound < 2.0 ** 30).all())


def directed(machine: Machine, formula: str) -> bool:
    """Whether a formula is cut by the processor's state, where its instructions have no rounding of their own."""
    return not machine.avx512 and formula in CUT


def cut_by(f: Function, formula: str, body: Callable[[], None]) -> None:
    """Write `body`, whose calls use a formula that was planned to be cut: see `toward_zero`."""
    if directed(f.machine, formula):
        toward_zero(f, body)
    else:
        body()


def planned(steps: Steps, out: Range, machine: Machine, fast: Array, cut: bool = False) -> Scaling:
    """The cheapest formula that is exact for every channel; where rounding is fast, that of these multipliers.

    If `cut`, who uses the formula does so within `cut_by`.
    """
    if machine.fast:
        return Scaling("nearest", (fast,))
    rounding = Rounding(machine.fused, machine.avx512 or cut, cut and not machine.avx512)
    asked = f"{out} {steps.exact} {rounding}".encode()
    question = (asked, *(a.tobytes() for a in (steps.m, steps.s, steps.reals, steps.low, steps.high)))
    formula, *parameters = apart(recalled(question, lambda: _written(_planned(steps, out, rounding))))
    kinds = PARAMETERS[formula.decode()]
    return Scaling(formula.decode(), tuple(np.frombuffer(p, TYPES[k]) for p, k in zip(parameters, kinds, strict=True)))


def _written(found: Scaling) -> bytes:
    kinds = PARAMETERS[found.formula]
    return together((found.formula.encode(), *(np.asarray(a, TYPES[k]).tobytes() for a, k in
                                               zip(found.parameters, kinds, strict=True))))


@frozen
class Rounding:
    """How a formula's last product and sum are rounded: once if `fused`, toward zero if `cut`, else to the nearest;
    and whether integers are `cut`, too, where they become FLOAT32."""

    fused: bool
    cut: bool
    integers: bool

    @property
    def errors(self) -> tuple[int, int]:
        """By how much what is to be an integer may come out below it, and what is to be less above it, in halves of a
        unit in the last place.

        Nothing below an integer is cut to it; rounded to the nearest, it may be. Unfused, products are rounded first.
        """
        return (0 if self.fused else 2, 0) if self.cut else (0, 1) if self.fused else (1, 2)


def _planned(steps: Steps, out: Range, rounding: Rounding) -> Scaling:
    low, high = out.low - out.zero, out.high - out.zero
    formula = "above" if low >= 0 else "around"
    if steps.plannable:
        found = _fitted(steps, (low, high), rounding, formula == "around", _slopes)
        if found is not None:
            return Scaling(formula, (found[0], found[2]))
        found = _fitted(steps, (low, high), rounding, formula == "around", _split)
        if found is not None:
            return Scaling(f"finely {formula}", (found[0], found[1], found[2]))
    if steps.exact:
        return Scaling("double", (steps.reals.astype(np.float64),))
    right = np.maximum(-steps.s, 0)
    half = np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0)
    return Scaling("shifts", (steps.m, np.maximum(steps.s, 0) & LAST_BITS, half, right))


@frozen(eq=False)
class Side:
    """Outputs of one sign and the least sums' magnitudes that give them, [outputs] and [channels, outputs]; the sums'
    magnitudes are from `low` to `high`, [channels]. An empty side has `high` below `low`."""

    k: Array
    at: Array
    low: Array
    high: Array

    def of(self, channels: Array) -> Side:
        """Of some channels."""
        return Side(self.k, self.at[channels], self.low[channels], self.high[channels])

    @property
    def whole(self) -> Array:
        """The channels all of whose outputs, and the ones below, are given by sums that FLOAT32 holds as they are."""
        if not self.k.size:
            return np.zeros(len(self.at), bool)
        first, last = self.at[:, 0], self.at[:, -1]
        found: Array = (first > self.low) & (last <= self.high) & (last < 1 << 24)
        return found

    def ends(self, cut: bool) -> tuple[Array, Array]:
        """For each output the least sum that there is and that gives it, and the greatest that does not.

        As FLOAT32 holds them, if `cut` the next toward zero, which keeps their order; infinite where there is none.
        """
        low, high = self.low[:, None], self.high[:, None]
        least, most = np.maximum(self.at, low), np.minimum(self.at - 1, high)
        return (np.where(least <= high, single(least, cut), np.inf),
                np.where(most >= low, single(most, cut), -np.inf))


def _sides(steps: Steps, low: int, high: int, around: bool) -> list[Side]:
    """What a formula has to meet."""
    k = np.arange(max(low, 0) + 1, high + 1)
    if not around:
        return [Side(k, steps.thresholds(k), steps.low, steps.high)]
    n = np.arange(1, 1 - low)                    # the output is at most -n from 1 - threshold(1 - n) down
    return [Side(k, steps.thresholds(k), np.maximum(steps.low, 0), steps.high),
            Side(n, 1 - steps.thresholds(1 - n), np.maximum(-steps.high, 1), -steps.low)]


def _slopes(reals: Array) -> list[tuple[Array, Array]]:
    """The nearest number in FLOAT32 and its neighbours, with nothing more."""
    nearest, none = reals.astype(np.float32), np.zeros(reals.size, np.float32)
    return [(nearest, none), *((np.nextafter(nearest, np.float32(end)), none) for end in (np.inf, -np.inf))]


def _split(reals: Array) -> list[tuple[Array, Array]]:
    """A number as the sum of two in FLOAT32."""
    nearest = reals.astype(np.float32)
    return [(nearest, (reals - nearest).astype(np.float32))]


def _fitted(steps: Steps, ends: tuple[int, int], rounding: Rounding, around: bool,
            slopes: Callable[[Array], list[tuple[Array, Array]]]) -> Array | None:
    """Two slopes and an offset of each channel: trunc(slope * x + (rest * x + offset)), by the first that do.

    If `around`, the offset has the sign of x. None where a channel has none.
    """
    found = np.zeros((3, steps.m.size), np.float32)
    for at in range(0, steps.m.size, TOGETHER):
        some = slice(at, at + TOGETHER)
        part = steps.some(some)
        if not _fit(found[:, some], _sides(part, *ends, around), rounding, around, slopes(part.reals)):
            return None
    return found


def _fit(found: Array, sides: list[Side], rounding: Rounding, around: bool,
         slopes: list[tuple[Array, Array]]) -> bool:
    """Fill in the slopes and offsets of some channels; whether there are such for all."""
    left = np.arange(found.shape[1])
    for slope, rest in slopes:
        whole = slope[left].astype(np.float64) + rest[left]
        room, offset = _room(whole, sides, rounding)
        good = room > (FINE if rest.any() else 0)
        good &= (offset > 0) | (not around)
        found[:, left[good]] = slope[left[good]], rest[left[good]], offset[good]
        left, sides = left[~good], [side.of(~good) for side in sides]
        if not left.size:
            return True
    return False


def _room(slope: Array, sides: list[Side], rounding: Rounding) -> tuple[Array, Array]:
    """How far the middle of the offsets that put all sums on their sides is from wrong ones, and that offset."""
    least, most = np.full(slope.shape, -np.inf), np.full(slope.shape, np.inf)
    for side in sides:
        plain = side.whole
        for which, bounds in ((plain, _bounds), (~plain, _cut_bounds)):
            if which.any():
                some = side if which.all() else side.of(which)
                above, below = bounds(slope[which], some, *_errors(side.k, rounding), rounding.integers)
                least[which] = np.maximum(least[which], above)
                most[which] = np.minimum(most[which], below)
    least = np.where(np.isinf(least), np.minimum(most - FINE, 0.25), least)
    most = np.where(np.isinf(most), least + FINE, most)
    offset = ((least + most) / 2).astype(np.float32).astype(np.float64)
    return np.minimum(offset - least, most - offset), offset


def _errors(k: Array, rounding: Rounding) -> tuple[Array, Array]:
    """The errors of a rounding where what is to be met is k."""
    up, down = rounding.errors
    near = np.ldexp(1.0, np.ceil(np.log2(k)).astype(np.int64) - 25)
    return up * near, down * near


def _bounds(slope: Array, side: Side, up: Array, down: Array, _: bool) -> tuple[Array, Array]:
    """Between which the offsets are that put the sums beside all thresholds on their sides, where they are `whole`."""
    left = slope[:, None] * side.at
    np.subtract(side.k, left, out=left)
    above = (left + up if up.any() else left).max(1)
    return above, (left - down if down.any() else left).min(1) + slope


def _cut_bounds(slope: Array, side: Side, up: Array, down: Array, integers: bool) -> tuple[Array, Array]:
    """The same where they are not."""
    first, last = side.ends(integers)
    with np.errstate(invalid="ignore"):          # of a slope of zero and no sum at all
        above = side.k + up - np.nan_to_num(slope[:, None] * first, nan=np.inf, posinf=np.inf)
        below = side.k - down - np.nan_to_num(slope[:, None] * last, nan=-np.inf, neginf=-np.inf)
    return above.max(1, initial=-np.inf), below.min(1, initial=np.inf)


def block(formula: str) -> int:
    """The bytes of parameters and start value of one channel."""
    return 4 + sum(SIZES[p] for p in PARAMETERS[formula])


def blocks(start: Array, scaling: Scaling, lanes: int) -> Array:
    """Start values and parameters as bytes, those of a vector of channels together, zeros behind."""
    count = -(-start.size // lanes)
    found = []
    for values, kind in zip((start, *scaling.parameters), ("i32", *PARAMETERS[scaling.formula]), strict=True):
        wide = np.zeros(count * lanes, TYPES[kind])
        wide[:values.size] = values
        found.append(wide.view(np.uint8).reshape(count, -1))
    return np.concatenate(found, 1).reshape(-1)


def alike(start: int, scaling: Scaling, lanes: int) -> Array:
    """The block of a vector whose lanes have one start value, and the parameters of the only channel."""
    parameters = tuple(np.repeat(p, lanes) for p in scaling.parameters)
    return blocks(np.full(lanes, start), Scaling(scaling.formula, parameters), lanes)


def scaled(f: Function, formula: str, lanes: int, x: str, block_: str, offset: int = 0) -> str:
    """Sums of a vector of channels, scaled and rounded: steps of the output's grid, without its zero point.

    The vector's block of parameters is so many bytes behind `block_`. Who makes code sees to it
    that no |result| is above 2 ** 30.
    """
    return by_formula(f, formula, lanes, x, parameters(f, formula, lanes, block_, offset))


def parameters(f: Function, formula: str, lanes: int, block_: str, offset: int = 0) -> list[str]:
    """The parameters of a vector of channels, from its block."""
    at, given = offset + 4 * lanes, []
    for kind in PARAMETERS[formula]:
        given.append(f.load(vector(lanes, kind), block_, at, 4))
        at += SIZES[kind] * lanes
    return given


def by_formula(f: Function, formula: str, lanes: int, x: str, given: list[str]) -> str:
    """`scaled` with the parameters that `parameters` loads."""
    if formula == "shifts":
        return _by_shifts(f, lanes, x, *given)
    if formula == "double":
        return _by_double(f, lanes, x, given[0])
    whole, real = vector(lanes, "i32"), vector(lanes)
    if formula == "nearest":
        return nearest(f, lanes, f.let(f"fmul {real} {f.let(f'sitofp {whole} {x} to {real}')}, {given[0]}"))
    slope, *rest, shift = given
    if formula.endswith("around"):
        shift = signed_like(f, lanes, shift, x)
    x = f.let(f"sitofp {whole} {x} to {real}")
    shift = f.fma(real, x, rest[0], shift) if rest else shift
    return f.let(f"fptosi {real} {_cut(f, real, x, slope, shift)} to {whole}")


def _cut(f: Function, type: str, a: str, b: str, c: str) -> str:
    """a * b + c, rounded toward zero where the machine can say so."""
    if not f.machine.avx512:
        return f.fma(type, a, b, c)
    return f.call(type, "llvm.x86.avx512.vfmadd.ps.512", (type, a), (type, b), (type, c), ("i32", str(TOWARD_ZERO)))


def by_shifts(f: Function, lanes: int, x: str, m: int, s: int, *, operand: bool = False) -> str:
    """x * m * 2 ** (s - 31) with one multiplier for all lanes: `fixedpoint.scale32`. As an `operand`, the multiplier is
    for `merging` to see; LLVM may know no more of it then."""
    kind, right = vector(lanes, "i32"), max(-s, 0)
    times, *others = (number(kind, n) for n in (m, max(s, 0) & LAST_BITS, 1 << right >> 1, right))
    if operand:
        times = f.let(f"bitcast {kind} {times} to {kind}")
    return _by_shifts(f, lanes, x, times, *others)


def _by_shifts(f: Function, lanes: int, x: str, m: str, left: str, half: str, right: str) -> str:
    """`fixedpoint.scale32`, word for word."""
    kind, wide = vector(lanes, "i32"), vector(lanes, "i64")
    a = f.let(f"sext {kind} {f.let(f'shl {kind} {x}, {left}')} to {wide}")
    product = f.let(f"mul {wide} {a}, {f.let(f'sext {kind} {m} to {wide}')}")
    rounded = f.let(f"ashr {wide} {f.let(f'add {wide} {product}, {number(wide, 1 << 30)}')}, {number(wide, 31)}")
    y = f.let(f"trunc {wide} {rounded} to {kind}")
    negative = f.let(f"icmp slt {kind} {y}, {number(kind, 0)}")
    shifted = f.let(f"icmp sgt {kind} {right}, {number(kind, 0)}")
    less = f.let(f"and {flags(kind)} {negative}, {shifted}")
    y = f.let(f"add {kind} {f.let(f'add {kind} {y}, {half}')}, {f.let(f'sext {flags(kind)} {less} to {kind}')}")
    return f.let(f"ashr {kind} {y}, {right}")


def _by_double(f: Function, lanes: int, x: str, factor: str) -> str:
    """A product in FLOAT64, rounded to the nearest, halves away from zero."""
    kind, real = vector(lanes, "i32"), vector(lanes, "double")
    product = f.let(f"fmul {real} {f.let(f'sitofp {kind} {x} to {real}')}, {factor}")
    return rounded_away(f, real, kind, product)


def rounded_away(f: Function, real: str, kind: str, x: str) -> str:
    """Reals as integers of a type, halves away from zero."""
    whole = f.let(f"fptosi {real} {x} to {kind}")
    rest = f.let(f"fsub {real} {x}, {f.let(f'sitofp {kind} {whole} to {real}')}")
    more = f.let(f"fptosi {real} {f.let(f'fadd {real} {rest}, {rest}')} to {kind}")
    return f.let(f"add {kind} {whole}, {more}")


def kept(f: Function, lanes: int, y: str, out: Range) -> str:
    """Steps of the output's grid within its bytes, still without the zero point."""
    return bounded(f, vector(lanes, "i32"), y, out.low - out.zero, out.high - out.zero)


def narrowed(f: Function, lanes: int, y: str, out: Range) -> str:
    """Steps of the output's grid, no more than 2 ** 30 of them, as its bytes.

    Bounds come last: where they are those of the type, cutting to bytes saturates by itself.
    """
    kind = vector(lanes, "i32")
    y = f.let(f"add {kind} {y}, {number(kind, out.zero)}") if out.zero else y
    y = bounded(f, kind, y, out.low, out.high)
    return f.let(f"trunc {kind} {y} to {vector(lanes, 'i8')}")
