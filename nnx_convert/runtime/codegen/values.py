"""Truth values and integers: comparisons, logic, choices, arithmetic and conversions, element by element."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ...frozen import frozen
from ...ops import convert, elementwise as e, ex, functions as fn, host, host_math as hm
from ...types import B8, Quant, Shape, Tensor, Type
from ..bind import Bound
from ..kernels.tables import INTEGERS as GRIDS, on_grid
from .arithmetic import INTEGERS, activated, bounded
from .elements import BOUNDS, CODE, merged, spread, start, tensors_of
from .ir import SHARED, Function, Module, mangled, mask, number, vector
from .machine import Machine
from .mathematics import flags, select
from .places import Place
from .scalars import SCALARS, Scalar
from .tasks import Family, Group, Task, Workshop, kind, native, slots_of, tell

#: Writes an operation: (function, lanes, scalars of what is read and given, values) -> value of the result's type.
Emit = Callable[[Function, int, Sequence[Scalar], Sequence[str]], str]


def _truth(f: Function, lanes: int, found: str) -> str:
    """Flags as bytes, 0 or 1."""
    return f.let(f"zext {vector(lanes, 'i1')} {found} to {vector(lanes, 'i8')}")


def _is_true(f: Function, lanes: int, scalar: Scalar, value: str) -> str:
    type = vector(lanes, scalar.code)
    return f.let(f"{scalar.relation('ne', 'u')} {type} {value}, {number(type, 0)}")


def _comparison(name: str) -> Emit:
    def emit(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
        word = scalars[0].relation(name, "u" if name == "ne" else "o")
        return _truth(f, lanes, f.let(f"{word} {vector(lanes, scalars[0].code)} {values[0]}, {values[1]}"))
    return emit


def _logic(instruction: str) -> Emit:
    def emit(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
        x, y = (_is_true(f, lanes, s, v) for s, v in zip(scalars, values, strict=False))
        return _truth(f, lanes, f.let(f"{instruction} {vector(lanes, 'i1')} {x}, {y}"))
    return emit


def _not(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
    type = vector(lanes, scalars[0].code)
    return _truth(f, lanes, f.let(f"{scalars[0].relation('eq')} {type} {values[0]}, {number(type, 0)}"))


def _as_truth(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
    return _truth(f, lanes, _is_true(f, lanes, scalars[0], values[0]))


def _select(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
    return select(f, vector(lanes, scalars[1].code), _is_true(f, lanes, scalars[0], values[0]), values[1], values[2])


def _floats(name: str, act: int) -> Emit:
    """An operation of floats that chains of FLOAT32 have, for others."""
    def emit(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
        (code, names), type = CODE[name], vector(lanes, scalars[0].code)
        given = dict(zip(dict.fromkeys(names), values, strict=True))
        return f.clamp(type, code(f, type, *(given[n] for n in names)), *BOUNDS[act])
    return emit


def _integers(name: str, act: int) -> Emit:
    def emit(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
        type = vector(lanes, scalars[0].code)
        return activated(f, type, scalars[0], INTEGERS[name].emit(f, type, scalars[0], *values), act)
    return emit


# Conversions.
def _converted(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
    """Integers wrap; floats are truncated, within an integer's range, and what is no number is the greatest."""
    x, out = scalars
    type, to = vector(lanes, x.code), vector(lanes, out.code)
    if x.code == out.code:
        return values[0]
    if x.real and out.real:
        return f.let(f"{'fptrunc' if out.size < x.size else 'fpext'} {type} {values[0]} to {to}")
    if out.real:
        return f.let(f"{'s' if x.signed else 'u'}itofp {type} {values[0]} to {to}")
    if x.real:
        name = f"llvm.fpto{'s' if out.signed else 'u'}i.sat.{mangled(to)}.{mangled(type)}"
        found, odd = f.call(to, name, (type, values[0])), f.let(f"fcmp uno {type} {values[0]}, {values[0]}")
        return select(f, to, odd, number(to, out.most), found)
    word = "trunc" if out.size < x.size else "sext" if x.signed else "zext"
    return f.let(f"{word} {type} {values[0]} to {to}")


def _clamped(f: Function, lanes: int, scalars: Sequence[Scalar], values: Sequence[str]) -> str:
    """As `_converted`, but integers are brought into the range of the bytes that they become."""
    x, out = scalars
    low, high = out.least if out.least > x.least else None, out.most if out.most < x.most else None
    return _converted(f, lanes, scalars, [bounded(f, vector(lanes, x.code), x, values[0], low, high)])


#: Operations that give truth values, by names.
COMPARISONS = {"EQUAL": "eq", "NOT_EQUAL": "ne", "GREATER": "gt", "GREATER_EQUAL": "ge", "LESS": "lt",
               "LESS_EQUAL": "le"}
TRUTHS: Mapping[str, Emit] = {
    **{name: _comparison(relation) for name, relation in COMPARISONS.items()}, "LOGICAL_AND": _logic("and"),
    "LOGICAL_OR": _logic("or"), "LOGICAL_NOT": _not, "TO_BOOL": _as_truth, "TO_MASK": _as_truth}
CHOICES = ("SELECT", "WHERE")
#: What integers wrap around or cut off, where numbers on a grid, be it a mask's, are rounded and held within it.
WRAPPING = ("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "TRUNC_DIV", "ABS", "NEG", "SQUARE", "SQUARED_DIFFERENCE")
#: What IEEE 754 says of floats of every width, to the bit.
REALS = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "ABS", "NEG", "SIGN", "SQUARE", "SQUARED_DIFFERENCE", "SQRT",
         "FLOOR", "CEIL", "ROUND", "RELU", "RELU1", "RELU6", "RELU_0_TO_1", "PRELU")
#: What is done to truth values bit by bit.
BITS: Mapping[str, Emit] = {"BITWISE_NOT": _not, **{
    name: _integers(name, 0) for name in ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")}}


def _code(name: str, types: tuple[Type, ...], act: int) -> Emit | None:
    """The code of an operation for the types of what it reads and gives; None where there is none."""
    if name in ("CAST", "CONVERT"):
        bytes_ = all(not SCALARS[t].real for t in types) and SCALARS[types[1]].size == 1
        return _as_truth if types[1] == B8 else _clamped if bytes_ and name == "CAST" else _converted
    if name in CHOICES:
        return _select if types[0] == B8 else None
    if name in TRUTHS:                           # the host's operations give them as any type
        return TRUTHS[name] if SCALARS[types[-1]].size == 1 and not SCALARS[types[-1]].real else None
    return _arithmetic(name, types[0], act)


def _arithmetic(name: str, type_: Type, act: int) -> Emit | None:
    """The code of a function of numbers of a type, or of truth values bit by bit."""
    if type_ == B8:
        return BITS.get(name)
    if SCALARS[type_].real:
        return _floats(name, act) if name in REALS else None
    unsigned = not SCALARS[type_].signed
    if name not in INTEGERS or unsigned and (INTEGERS[name].signed or (BOUNDS[act][0] or 0) < 0):
        return None
    return _integers(name, act)


@frozen
class Values:
    """One operation on arrays that broadcast to the result's shape.

    `check`: the number of the check that divisors are not 0, and where to say that it failed.
    """

    op: str
    types: tuple[Type, ...]
    inputs: tuple[Place, ...]
    out: Place
    act: int
    check: tuple[int, int] | None = None

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("values", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        places = (*self.inputs, self.out)
        shape, strides = merged(self.out.shape, [_counted(p, self.out.shape) for p in places])
        lead, lanes = shape[:-1], m.machine.lanes
        vectors = -(-shape[-1] // lanes)
        first, last = f.share(math.prod(lead) * vectors)

        def piece(i: str, _: list[str]) -> None:
            row, v = f.div(i, vectors), f.rem(i, vectors)
            at = f.mul(v, lanes)
            starts = [start(f, p, tuple(n * p.item for n in s[:-1]), row, lead)
                      for p, s in zip(places, strides, strict=True)]
            pointers = [f.at(b, f.mul(at, p.item * s[-1])) for b, p, s in zip(starts, places, strides, strict=True)]
            steps = [s[-1] for s in strides]
            rest = shape[-1] % lanes
            if rest:
                f.when(f.let(f"icmp eq i64 {v}, {vectors - 1}"), lambda: self._vector(f, pointers, steps, rest),
                       lambda: self._vector(f, pointers, steps, lanes))
            else:
                self._vector(f, pointers, steps, lanes)
        f.loop(first, last, 1, [], piece)
        f.finish()

    def _vector(self, f: Function, pointers: list[str], steps: list[int], count: int) -> None:
        lanes, scalars = f.machine.lanes, [SCALARS[t] for t in self.types]
        read = [f.load_first(count, lanes, s.code, p) if step else f.splat(
            vector(lanes, s.code), f.load(s.code, p, 0, s.size))
            for s, p, step in zip(scalars[:-1], pointers, steps, strict=False)]
        if self.check is not None:
            self._test(f, vector(lanes, scalars[1].code), read[1], count)
        code = _code(self.op, self.types, self.act)
        assert code is not None
        f.store_first(count, lanes, scalars[-1].code, code(f, lanes, scalars, read), pointers[-1])

    def _test(self, f: Function, type: str, y: str, count: int) -> None:
        """Divisors of 0 are told."""
        assert self.check is not None
        lanes, (check, fault) = f.machine.lanes, self.check
        zero = f.let(f"icmp eq {type} {y}, {number(type, 0)}")
        if count < lanes:
            zero = f.let(f"and {flags(type)} {zero}, {mask(count, lanes)}")
        some = f.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (flags(type), zero))
        f.when(some, lambda: tell(f, check, "0", fault))


def _counted(p: Place, shape: Shape) -> Shape:
    """An array's strides along a shape in elements, so that arrays of several sizes compare."""
    return tuple(s // p.item for s in spread(p, shape))


def _plain(t: Tensor) -> bool:
    """Whether stored values are what they stand for, or bytes that are truth values."""
    return t.type in SCALARS and t.size > 0 and (t.type not in GRIDS or t.quant is None or t.quant == ex.MASK)


def _same_grid(tensors: Sequence[Tensor]) -> bool:
    """Whether raw values are compared and handed on as real ones are."""
    return all(t.type in SCALARS and t.size > 0 and isinstance(t.quant, Quant) for t in tensors) and len(
        {t.quant for t in tensors}) == 1


def _name(b: Bound) -> str:
    """What an operation is called here: NNAPI-EX's as NNAPI's; the host's conversions wrap; a shift is one of two."""
    if b.op.name == "host.CAST":
        return "CONVERT"
    if kind(b.op) == "SHIFT":
        return "SHIFT_LEFT" if b.args["left"] else "SHIFT_RIGHT"
    return kind(b.op).removesuffix("_EX")


def _takes(b: Bound, _: Machine) -> bool:
    tensors, name = (*tensors_of(b), *b.outs), _name(b)
    if not b.outs[0].shape or len(tensors_of(b)) != len(slots_of(b)) or any(
            t.type not in SCALARS or t.size == 0 for t in tensors):
        return False
    if name in WRAPPING and any(map(on_grid, tensors)):
        return False
    if name == "WHERE" and 1 < b.args["cond"].size and len(b.args["cond"].shape) < len(b.outs[0].shape):
        return False
    operands = tensors[1:] if name in CHOICES else tensors[:-1]
    raw = name in ("CAST", "CONVERT") or name in (*CHOICES, "MAXIMUM", "MINIMUM") and _same_grid(
        (*operands, *b.outs)) and (name not in CHOICES or _plain(tensors[0]))
    alike = len({t.type for t in operands}) == 1
    return alike and (raw or all(map(_plain, tensors))) and _code(
        name, tuple(t.type for t in tensors), b.args.get("act", 0)) is not None


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    name, types = _name(b), tuple(t.type for t in (*tensors_of(b), *b.outs))
    check = None
    if name in INTEGERS and INTEGERS[name].divides:
        check = w.check("division by zero", b.origin), w.fault
    return Values(name, types, tuple(map(w.place, slots_of(b))), w.place(b.outputs[0]), b.args.get("act", 0), check)


NATIVE = (
    native(Family(_takes, _make), e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL, e.LESS, e.LESS_EQUAL, e.LOGICAL_AND,
           e.LOGICAL_OR, e.LOGICAL_NOT, e.SELECT, host.WHERE, host.TO_BOOL, host.TO_MASK, convert.CAST, ex.EQUAL_EX,
           ex.NOT_EQUAL_EX, ex.GREATER_EQUAL_EX, ex.LESS_EX, ex.LOGICAL_AND_EX, ex.LOGICAL_OR_EX, ex.LOGICAL_NOT_EX,
           ex.CAST_EX, host.FLOOR_DIV, host.FLOOR_MOD, host.TRUNC_DIV, fn.TRUNC_MOD, fn.BITWISE_AND, fn.BITWISE_OR,
           fn.BITWISE_NOT, fn.SHIFT, hm.BITWISE_XOR, hm.RIGHT_SHIFT),
    native(Family(_takes, _make), e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.ABS, e.NEG, e.RELU, e.RELU1,
           e.RELU6, e.PRELU, e.SQRT, e.FLOOR, host.SQUARE, host.CEIL, host.ROUND, host.RELU_0_TO_1,
           host.SQUARED_DIFFERENCE, hm.SIGN, ex.SQUARED_DIFFERENCE_EX, otherwise=True),
)
