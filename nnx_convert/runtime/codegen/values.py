"""Truth values and integers: comparisons, logic, choices, arithmetic and conversions, element by element."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...ops import convert, elementwise as e, ex, host
from ...types import B8, F32, I32, Q8, Shape, Tensor, Type
from ..bind import Bound
from .elements import BOUNDS, merged, spread, start, tensors_of
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import Place
from .tasks import Family, Group, Task, Workshop, kind, native, slots_of

#: What elements of a type are in code.
ELEMENTS: Mapping[Type, str] = {F32: "float", I32: "i32", B8: "i8", Q8: "i8"}
SIZES = {"float": 4, "i32": 4, "i8": 1}
#: Writes an operation: (function, lanes, elements' types, values, fused activation) -> value of the result's type.
Emit = Callable[[Function, int, Sequence[str], Sequence[str], int], str]


def _truth(f: Function, lanes: int, flags: str) -> str:
    """Flags as bytes, 0 or 1."""
    return f.let(f"zext {vector(lanes, 'i1')} {flags} to {vector(lanes, 'i8')}")


def _is_true(f: Function, lanes: int, value: str) -> str:
    return f.let(f"icmp ne {vector(lanes, 'i8')} {value}, zeroinitializer")


def _comparison(of_floats: str, of_integers: str) -> Emit:
    """Bytes are without a sign, other integers have one."""
    def emit(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], _: int) -> str:
        equality = of_integers in ("eq", "ne")
        word = f"fcmp {of_floats}" if kinds[0] == "float" else \
            f"icmp {'' if equality else 'u' if kinds[0] == 'i8' else 's'}{of_integers}"
        return _truth(f, lanes, f.let(f"{word} {vector(lanes, kinds[0])} {values[0]}, {values[1]}"))
    return emit


def _logic(instruction: str) -> Emit:
    def emit(f: Function, lanes: int, _: Sequence[str], values: Sequence[str], __: int) -> str:
        x, y = (_is_true(f, lanes, v) for v in values)
        return _truth(f, lanes, f.let(f"{instruction} {vector(lanes, 'i1')} {x}, {y}"))
    return emit


def _not(f: Function, lanes: int, _: Sequence[str], values: Sequence[str], __: int) -> str:
    return _truth(f, lanes, f.let(f"icmp eq {vector(lanes, 'i8')} {values[0]}, zeroinitializer"))


def _as_truth(f: Function, lanes: int, _: Sequence[str], values: Sequence[str], __: int) -> str:
    return _truth(f, lanes, _is_true(f, lanes, values[0]))


def _select(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], _: int) -> str:
    condition, type = _is_true(f, lanes, values[0]), vector(lanes, kinds[1])
    return f.let(f"select {vector(lanes, 'i1')} {condition}, {type} {values[1]}, {type} {values[2]}")


def _bounded(f: Function, type: str, flags: str, x: str, act: int) -> str:
    for bound, relation in zip(BOUNDS[act], ("slt", "sgt"), strict=True):
        if bound is not None:
            limit = number(type, bound)
            beyond = f.let(f"icmp {relation} {type} {x}, {limit}")
            x = f.let(f"select {flags} {beyond}, {type} {limit}, {type} {x}")
    return x


def _arithmetic(instruction: str) -> Emit:
    """Integers wrap."""
    def emit(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], act: int) -> str:
        type = vector(lanes, kinds[0])
        found = f.let(f"{instruction} {type} {values[0]}, {values[1]}")
        return _bounded(f, type, vector(lanes, "i1"), found, act)
    return emit


def _extreme(relation: str) -> Emit:
    def emit(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], _: int) -> str:
        type = vector(lanes, kinds[0])
        first = f.let(f"icmp {relation} {type} {values[0]}, {values[1]}")
        return f.let(f"select {vector(lanes, 'i1')} {first}, {type} {values[0]}, {type} {values[1]}")
    return emit


def _cast(instruction: str, to: str) -> Emit:
    def emit(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], _: int) -> str:
        return f.let(f"{instruction} {vector(lanes, kinds[0])} {values[0]} to {vector(lanes, to)}")
    return emit


def _rounded_to_zero(f: Function, lanes: int, kinds: Sequence[str], values: Sequence[str], _: int) -> str:
    """Beyond an integer's range the nearest one; what is no number is the largest."""
    type, to = vector(lanes, kinds[0]), vector(lanes, "i32")
    found = f.call(to, f"llvm.fptosi.sat.v{lanes}i32.v{lanes}f32", (type, values[0]))
    odd = f.let(f"fcmp uno {type} {values[0]}, {values[0]}")
    return f.let(f"select {vector(lanes, 'i1')} {odd}, {to} {number(to, (1 << 31) - 1)}, {to} {found}")


#: Operations that give truth values, by names; their NNAPI-EX counterparts are the same.
TRUTHS: Mapping[str, Emit] = {
    "EQUAL": _comparison("oeq", "eq"), "NOT_EQUAL": _comparison("une", "ne"), "GREATER": _comparison("ogt", "gt"),
    "GREATER_EQUAL": _comparison("oge", "ge"), "LESS": _comparison("olt", "lt"),
    "LESS_EQUAL": _comparison("ole", "le"), "LOGICAL_AND": _logic("and"), "LOGICAL_OR": _logic("or"),
    "LOGICAL_NOT": _not, "TO_BOOL": _as_truth, "TO_MASK": _as_truth}
#: Operations of INT32.
ARITHMETIC: Mapping[str, Emit] = {
    "ADD": _arithmetic("add"), "SUB": _arithmetic("sub"), "MUL": _arithmetic("mul"), "MAXIMUM": _extreme("sgt"),
    "MINIMUM": _extreme("slt")}
#: Conversions by the types.
CASTS: Mapping[tuple[Type, Type], Emit] = {
    (I32, F32): _cast("sitofp", "float"), (B8, F32): _cast("uitofp", "float"), (Q8, F32): _cast("uitofp", "float"),
    (F32, I32): _rounded_to_zero, (B8, I32): _cast("zext", "i32"), (Q8, I32): _cast("zext", "i32")}


def _code(name: str, types: tuple[Type, ...]) -> Emit | None:
    """The code of an operation for the types of what it reads first and gives; None where there is none."""
    name = name.removesuffix("_EX")
    if name == "CAST":
        return CASTS.get((types[0], types[-1]))
    if name in ("SELECT", "WHERE"):
        return _select if types[0] == B8 else None
    return TRUTHS.get(name) or (ARITHMETIC.get(name) if types[0] == types[-1] == I32 else None)


@dataclass(frozen=True)
class Values:
    """One operation on arrays that broadcast to the result's shape."""

    op: str
    types: tuple[Type, ...]
    inputs: tuple[Place, ...]
    out: Place
    act: int

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
        lanes, kinds = f.machine.lanes, [ELEMENTS[t] for t in self.types]
        read = [f.load_first(count, lanes, k, p) if step else f.splat(vector(lanes, k), f.load(k, p, 0, SIZES[k]))
                for k, p, step in zip(kinds[:-1], pointers, steps, strict=False)]
        code = _code(self.op, self.types)
        assert code is not None
        f.store_first(count, lanes, kinds[-1], code(f, lanes, kinds[:-1], read, self.act), pointers[-1])


def _counted(p: Place, shape: Shape) -> Shape:
    """An array's strides along a shape in elements, so that arrays of several sizes compare."""
    return tuple(s // p.item for s in spread(p, shape))


def _plain(t: Tensor) -> bool:
    """Whether stored values are what they stand for, or bytes that are truth values."""
    return t.type in ELEMENTS and t.size > 0 and (t.type != Q8 or t.quant is None or t.quant == ex.MASK)


def _takes(b: Bound, _: Machine) -> bool:
    tensors, name = (*tensors_of(b), *b.outs), kind(b.op)
    if not all(map(_plain, tensors)) or not b.outs[0].shape or len(tensors_of(b)) != len(slots_of(b)):
        return False
    if name == "WHERE" and 1 < b.args["cond"].size and len(b.args["cond"].shape) < len(b.outs[0].shape):
        return False
    operands = tensors[1:] if name in ("SELECT", "WHERE") else tensors[:-1]
    alike = len({t.type for t in operands}) == 1
    return alike and _code(name, tuple(t.type for t in tensors)) is not None


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    types = tuple(t.type for t in (*tensors_of(b), *b.outs))
    return Values(kind(b.op), types, tuple(map(w.place, slots_of(b))), w.place(b.outputs[0]), b.args.get("act", 0))


native(Family(_takes, _make), e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL, e.LESS, e.LESS_EQUAL, e.LOGICAL_AND,
       e.LOGICAL_OR, e.LOGICAL_NOT, e.SELECT, host.WHERE, host.TO_BOOL, host.TO_MASK, convert.CAST, ex.EQUAL_EX,
       ex.NOT_EQUAL_EX, ex.GREATER_EQUAL_EX, ex.LESS_EX, ex.LOGICAL_AND_EX, ex.LOGICAL_OR_EX, ex.LOGICAL_NOT_EX,
       ex.CAST_EX)
native(Family(_takes, _make), e.ADD, e.SUB, e.MUL, e.MAXIMUM, e.MINIMUM, otherwise=True)
