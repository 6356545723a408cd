"""Operations element by element: a chain of them is one loop, broadcasting included."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...frozen import frozen
from ...ops import elementwise as e, ex, functions, host, host_math
from ...types import F32, Shape, Tensor
from ..bind import Bound, Slot
from . import angles, arcs, mathematics, powers
from .ir import SHARED, Function, Module, mangled, number, vector
from .machine import Machine
from .mathematics import flags, select
from .places import ITEM, Border, Place
from .repeats import joined_rows
from .tasks import Family, Group, Task, Workshop, kind, native, slots_of
from .tiles import scarce

#: What a fused activation keeps.
BOUNDS: tuple[tuple[float | None, float | None], ...] = ((None, None), (0.0, None), (-1.0, 1.0), (0.0, 6.0))
#: Operations that follow one at most.
LONGEST = 12
#: Writes an operation on values of a type: (function, type, values) -> value.
Emit = Callable[..., str]


def _simple(instruction: str) -> Emit:
    return lambda f, t, *v: f.let(f"{instruction} {t} {', '.join(v)}")


def _intrinsic(name: str) -> Emit:
    return lambda f, t, x: f.call(t, f"llvm.{name}.{mangled(t)}", (t, x))


def _clamp(low: float | None, high: float | None) -> Emit:
    return lambda f, t, x: f.clamp(t, x, low, high)


def _extreme(relation: str) -> Emit:
    """The first where it compares so, or is not a number; else the second, which may not be one either."""
    def emit(f: Function, t: str, x: str, y: str) -> str:
        first = f.let(f"fcmp {relation} {t} {x}, {y}")
        odd = f.let(f"fcmp uno {t} {x}, {x}")
        return select(f, t, f.let(f"or {flags(t)} {first}, {odd}"), x, y)
    return emit


def _prelu(f: Function, t: str, x: str, y: str) -> str:
    below = f.let(f"fcmp olt {t} {x}, {number(t, 0)}")
    return select(f, t, below, f.let(f"fmul {t} {x}, {y}"), x)


def _hard_swish(f: Function, t: str, x: str) -> str:
    moved = f.clamp(t, f.let(f"fadd {t} {x}, {number(t, 3)}"), 0.0, 6.0)
    return f.let(f"fmul {t} {f.let(f'fmul {t} {x}, {moved}')}, {number(t, 1 / 6)}")


def _rsqrt(f: Function, t: str, x: str) -> str:
    return f.let(f"fdiv {t} {number(t, 1)}, {_intrinsic('sqrt')(f, t, x)}")


def _squared(f: Function, t: str, x: str, y: str) -> str:
    less = f.let(f"fsub {t} {x}, {y}")
    return f.let(f"fmul {t} {less}, {less}")


def _sign(f: Function, t: str, x: str) -> str:
    below = select(f, t, f.let(f"fcmp olt {t} {x}, {number(t, 0)}"), number(t, -1), number(t, 0))
    return select(f, t, f.let(f"fcmp ogt {t} {x}, {number(t, 0)}"), number(t, 1), below)


def _elu(f: Function, t: str, x: str, alpha: str) -> str:
    less = f.let(f"fsub {t} {mathematics.exp(f, t, x)}, {number(t, 1)}")
    return select(f, t, f.let(f"fcmp olt {t} {x}, {number(t, 0)}"), f.let(f"fmul {t} {less}, {alpha}"), x)


def _gelu(f: Function, t: str, x: str, approximate: str) -> str:
    return mathematics.gelu(f, t, x) if approximate == number(t, 0) else mathematics.gelu_by_tanh(f, t, x)


#: Operations that have the names of their functions.
ARCS = ("ASIN", "ACOS", "ATAN", "SINH", "COSH", "ASINH", "ACOSH", "ATANH")
#: Each operation's code, and its tensor arguments in the order that the code takes them.
CODE: Mapping[str, tuple[Emit, tuple[str, ...]]] = {
    "ADD": (_simple("fadd"), ("x", "y")), "SUB": (_simple("fsub"), ("x", "y")),
    "MUL": (_simple("fmul"), ("x", "y")), "DIV": (_simple("fdiv"), ("x", "y")),
    "MAXIMUM": (_extreme("oge"), ("x", "y")), "MINIMUM": (_extreme("ole"), ("x", "y")),
    "PRELU": (_prelu, ("x", "y")), "RELU": (_clamp(0.0, None), ("x",)), "RELU1": (_clamp(-1.0, 1.0), ("x",)),
    "RELU6": (_clamp(0.0, 6.0), ("x",)), "ABS": (_intrinsic("fabs"), ("x",)), "NEG": (_simple("fneg"), ("x",)),
    "SQRT": (_intrinsic("sqrt"), ("x",)), "RSQRT": (_rsqrt, ("x",)), "FLOOR": (_intrinsic("floor"), ("x",)),
    "EXP": (mathematics.exp, ("x",)), "LOGISTIC": (mathematics.logistic, ("x",)),
    "TANH": (mathematics.tanh, ("x",)), "HARD_SWISH": (_hard_swish, ("x",)), "CEIL": (_intrinsic("ceil"), ("x",)),
    "ROUND": (_intrinsic("rint"), ("x",)), "SIGN": (_sign, ("x",)), "SQUARE": (_simple("fmul"), ("x", "x")),
    "RELU_0_TO_1": (_clamp(0.0, 1.0), ("x",)), "LEAKY_RELU": (_prelu, ("x",)), "ELU": (_elu, ("x",)),
    "ERF": (mathematics.erf, ("x",)), "GELU": (_gelu, ("x",)), "LOG": (mathematics.log, ("x",)),
    "POW": (powers.pow, ("x", "y")), "ATAN2": (arcs.atan2, ("x", "y")),
    **{name: (getattr(arcs, name.lower()), ("x",)) for name in ARCS},
    "SIN": (angles.sin, ("x",)), "COS": (angles.cos, ("x",)), "TAN": (angles.tan, ("x",)),
    **dict.fromkeys(("SQUARED_DIFFERENCE", "SQUARED_DIFFERENCE_EX"), (_squared, ("x", "y")))}
#: The operations whose code takes a number as well, and what it is called.
NUMBERS = {"LEAKY_RELU": "alpha", "ELU": "alpha", "GELU": "approximate"}
#: Where functions are that are dozens of instructions, and the operations made of them here.
FUNCTIONS, LONG = {m.__name__ for m in (angles, arcs, mathematics, powers)}, ("ELU", "GELU")
OPS = (e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.PRELU, e.RELU, e.RELU1, e.RELU6, e.ABS, e.NEG, e.SQRT,
       e.RSQRT, e.FLOOR, e.EXP, e.LOGISTIC, e.TANH, e.HARD_SWISH, e.ELU, host.CEIL, host.ROUND, host.SQUARE,
       host.RELU_0_TO_1, host.LEAKY_RELU, host.SQUARED_DIFFERENCE, host_math.SIGN, ex.SQUARED_DIFFERENCE_EX, e.LOG,
       host_math.GELU, functions.ERF, functions.TAN, e.SIN, host.COS, e.POW, host.ATAN2,
       *(getattr(functions, name) for name in ARCS))


@frozen
class Part:
    """One operation of a chain: what it reads is an input (not negative) or the result of part -1 - n, and then a
    number where its code takes one."""

    op: str
    reads: tuple[int, ...]
    act: int = 0
    number: float = 0.0

    @property
    def long(self) -> bool:
        """Whether it is dozens of instructions."""
        return CODE[self.op][0].__module__ in FUNCTIONS or self.op in LONG

    def emit(self, f: Function, type: str, inputs: Mapping[int, str] | Sequence[str], made: Sequence[str]) -> str:
        """Write it on values of a type."""
        code, _ = CODE[self.op]
        read = [inputs[n] if n >= 0 else made[-1 - n] for n in self.reads]
        found = code(f, type, *read, *([number(type, self.number)] if self.op in NUMBERS else []))
        return f.clamp(type, found, *BOUNDS[self.act])


@frozen
class Elements:
    """A chain of operations on arrays that broadcast to the result's shape."""

    inputs: tuple[Place, ...]
    out: Place
    chain: tuple[Part, ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("elements", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        shape, strides = merged(self.out.shape, [spread(p, self.out.shape) for p in (*self.inputs, self.out)])
        lead, width = shape[:-1], shape[-1]
        rows, lanes = math.prod(lead), m.machine.lanes
        full, rest = divmod(width, lanes)
        if rows == 1:
            first, last = f.share(full)
            starts = [f.at(p.base, p.offset) for p in (*self.inputs, self.out)]
            self._row(f, starts, strides, first, last, full, rest, only_first=True)
        else:
            first, last = f.share(rows)

            def row(i: str, _: list[str]) -> None:
                starts = [start(f, p, s[:-1], i, lead) for p, s in zip((*self.inputs, self.out), strides, strict=True)]
                self._row(f, starts, strides, "0", str(full), full, rest, only_first=False)
            f.loop(first, last, 1, [], row)
        f.finish()

    def _row(self, f: Function, starts: list[str], strides: Sequence[Shape], first: str, last: str, full: int,
             rest: int, only_first: bool) -> None:
        """The vectors of one row, and what is left behind them."""
        lanes = f.machine.lanes

        def body(i: str, _: list[str]) -> None:
            self._vector(f, starts, strides, f.mul(i, lanes * ITEM), lanes)

        def tail() -> None:
            self._vector(f, starts, strides, str(full * lanes * ITEM), rest)
        if full:
            f.loop(first, last, 1, [], body)
        if rest and only_first:
            f.when(f.let("icmp eq i64 %thread, 0"), tail)
        elif rest:
            tail()

    def _vector(self, f: Function, starts: list[str], strides: Sequence[Shape], at: str, count: int) -> None:
        """So many neighbours, `at` bytes from the starts.

        Where registers are few, a chain of long parts reads what each takes when it comes to it: LLVM would begin all
        of them at once, and share what several make of the same number.
        """
        lanes = f.machine.lanes
        type, held = vector(lanes), scarce(f.machine) and sum(part.long for part in self.chain) > 1

        def read(n: int) -> str:
            pointer = starts[n]
            return f.load_first(count, lanes, "float", pointer, at) if strides[n][-1] else f.splat(
                type, f.load("float", pointer))
        known = {} if held else {n: read(n) for n in range(len(starts) - 1)}
        made: list[str] = []
        for part in self.chain:
            if held and part.long:
                f.fence()
            found = part.emit(f, type, known or {n: read(n) for n in part.reads if n >= 0}, made)
            made.append(f.opaque(type, found) if held and part.long else found)
        f.store_first(count, lanes, "float", made[-1], starts[-1], at)


def spread(p: Place, shape: Shape) -> Shape:
    """The strides of an array along the axes of a shape it broadcasts to: 0 where it is repeated."""
    more = len(shape) - len(p.shape)
    return (0,) * more + tuple(0 if n == 1 else s for n, s in zip(p.shape, p.strides, strict=True))


def merged(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The shape with axes taken together that follow each other evenly in all arrays."""
    sizes, kept = [shape[-1]], [[s[-1]] for s in strides]
    for axis in reversed(range(len(shape) - 1)):
        if shape[axis] == 1:
            continue
        if sizes[0] == 1 or all(s[axis] == k[0] * sizes[0] for s, k in zip(strides, kept, strict=True)):
            if sizes[0] == 1:
                kept = [[s[axis], *k[1:]] for s, k in zip(strides, kept, strict=True)]
            sizes[0] *= shape[axis]
        else:
            sizes.insert(0, shape[axis])
            kept = [[s[axis], *k] for s, k in zip(strides, kept, strict=True)]
    return tuple(sizes), [tuple(k) for k in kept]


def start(f: Function, p: Place, strides: Shape, index: str, lead: Shape) -> str:
    """Where an array's row begins, rows counted along the leading axes."""
    offset: str | int = p.offset
    rest = index
    for axis in reversed(range(len(lead))):
        here = f.rem(rest, lead[axis]) if axis else rest
        if strides[axis]:
            offset = f.add(f.mul(here, strides[axis]), offset)
        rest = f.div(rest, lead[axis]) if axis else rest
    return f.at(p.base, offset)


def tensors_of(b: Bound) -> list[Tensor]:
    """The tensors an operation reads, in the order of its slots."""
    return [v for n in b.slots for v in (b.args[n] if isinstance(b.args[n], tuple) else (b.args[n],))
            if isinstance(v, Tensor)]


def chainable(b: Bound, machine: Machine) -> bool:
    """Whether an operation can be a part of a chain."""
    tensors = (*tensors_of(b), *b.outs)
    return kind(b.op) in CODE and len(b.outs[0].shape) > 0 and all(t.type == F32 and t.size > 0 for t in tensors)


def chained(members: Sequence[Bound], first: Slot | None = None) -> tuple[tuple[Part, ...], tuple[Slot, ...]]:
    """Operations as a chain, and the slots of its inputs; `first`, if given, is input 0 and not among these."""
    inputs: list[Slot] = [] if first is None else [first]
    made: dict[Slot, int] = {}
    chain = []
    for n, b in enumerate(members):
        reads = []
        for name in CODE[kind(b.op)][1]:
            slot: Any = b.slots[name]
            if slot not in made and slot not in inputs:
                inputs.append(slot)
            reads.append(made[slot] if slot in made else inputs.index(slot))
        more = NUMBERS.get(kind(b.op))
        chain.append(Part(kind(b.op), tuple(reads), b.args.get("act", 0), float(b.args[more]) if more else 0.0))
        made[b.outputs[0]] = -1 - n
    return tuple(chain), tuple(inputs[first is not None:])


def follows(group: Group, b: Bound, machine: Machine) -> bool:
    """Whether an operation of elements can be done to a group's results one by one."""
    return chainable(b, machine) and len(group.tail) < LONGEST and by_rows(group, b)


def by_rows(group: Group, b: Bound) -> bool:
    """Whether an operation gives as many rows of channels as a group's head, and what it reads that is not of the
    group is as large, one number a channel, or one in all."""
    shape, inner = group.head.outs[0].shape, {s for m in group.members for s in m.outputs}
    others = [t.shape for t, s in zip(tensors_of(b), slots_of(b), strict=True) if s not in inner]
    return alike(b.outs[0].shape, shape) and all(
        alike(s, shape) or math.prod(s) == 1 or math.prod(s) == s[-1] == shape[-1] for s in others)


def alike(a: Shape, b: Shape) -> bool:
    """Whether arrays of two shapes have the same rows of channels."""
    return math.prod(a) == math.prod(b) and a[-1:] == b[-1:]


def matched(p: Place, shape: Shape) -> Place:
    """What `follows` admits, or broadcasts to a shape, as an array of this shape; strides of 0 where it is repeated."""
    if p.shape != shape and p.size == math.prod(shape):
        p = p.reshaped(shape)
    elif p.size == 1 or p.size == p.shape[-1] == shape[-1]:
        p = p.reshaped((p.size,))
    return replace(p, shape=shape, strides=spread(p, shape), border=Border())


def _fuses(group: Group, b: Bound, machine: Machine) -> bool:
    """Another operation of elements; what is repeated in other ways than `follows` admits asks for equal shapes."""
    if not chainable(b, machine) or len(group.tail) >= LONGEST:
        return False
    equal = all(m.outs[0].shape == b.outs[0].shape for m in group.members)
    return equal or all(by_rows(group, m) for m in (*group.members, b))


def _make(w: Workshop, group: Group) -> Task:
    chain, inputs = chained(group.members)
    out = w.place(group.outputs[0])
    longer = joined_rows(w, out, inputs)
    if longer is not None:
        return Elements(tuple(longer[1]), longer[0], chain)
    return Elements(tuple(matched(w.place(s), out.shape) for s in inputs), out, chain)


NATIVE = (native(Family(chainable, _make, fuses=_fuses), *OPS),)
