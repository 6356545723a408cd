"""Arithmetic of FLOAT16: as that of FLOAT32, between two conversions, as NumPy's kernels do it.

Numbers that stand for themselves are widened into scratch, the family of the operation on FLOAT32 does it there, and
what comes of it is rounded once. Moves of elements, which need no conversion, are not among the operations.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import convert, conv, elementwise as e, ex, functions as fn, host, host_math as hm, image, norm, reduce as r
from ...ops import rnn, rnn_nd
from ...types import F16, F32, F64, I64, U64, Tensor
from ..bind import Bound, Slot, mapped, slots
from ..memory import ALIGN
from .elements import ARCS, merged, start
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .mathematics import select
from .moves import FillBorders
from .places import ITEM, Border, Place, dense_strides, room
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, family_named, kind

#: Bytes of a FLOAT16.
HALF = 2
#: The operations, those of NNAPI-EX and the host's twins with them.
OPS = (
    e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.PRELU, e.RELU, e.RELU1, e.RELU6, e.ABS, e.NEG, e.SQRT, e.RSQRT,
    e.FLOOR, e.EXP, e.LOGISTIC, e.TANH, e.HARD_SWISH, e.ELU, e.LOG, e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL,
    e.LESS, e.LESS_EQUAL, e.SELECT, host.CEIL, host.ROUND, host.SQUARE, host.RELU_0_TO_1, host.LEAKY_RELU,
    host.SQUARED_DIFFERENCE, host.WHERE, hm.SIGN, hm.GELU, hm.CUMSUM, ex.SQUARED_DIFFERENCE_EX, fn.ERF, convert.CAST,
    ex.EQUAL_EX, ex.NOT_EQUAL_EX, ex.GREATER_EQUAL_EX, ex.LESS_EX, ex.CAST_EX, conv.CONV_2D, conv.DEPTHWISE_CONV_2D,
    conv.GROUPED_CONV_2D, conv.TRANSPOSE_CONV_2D, conv.FULLY_CONNECTED, conv.BATCH_MATMUL, host.MATMUL,
    image.AVERAGE_POOL_2D, image.MAX_POOL_2D, image.RESIZE_BILINEAR, r.MEAN, r.REDUCE_SUM, r.REDUCE_MAX, r.REDUCE_MIN,
    r.REDUCE_PROD, ex.REDUCE_SUM_EX, ex.REDUCE_MAX_EX, ex.REDUCE_MIN_EX, r.ARGMAX, r.ARGMIN, norm.SOFTMAX,
    norm.LOG_SOFTMAX, norm.L2_NORMALIZATION, norm.INSTANCE_NORMALIZATION, rnn.LSTM, rnn.UNIDIRECTIONAL_SEQUENCE_LSTM,
    rnn.BIDIRECTIONAL_SEQUENCE_LSTM, rnn.RNN, rnn.UNIDIRECTIONAL_SEQUENCE_RNN, rnn_nd.GRU_SEQUENCE, convert.QUANTIZE,
    r.TOPK_V2, e.POW, image.L2_POOL_2D, norm.LOCAL_RESPONSE_NORMALIZATION, e.SIN, host.ATAN2,
    *(getattr(fn, name) for name in ARCS))
#: Integers that FLOAT32 does not hold before they are rounded, and numbers that it rounds itself.
WIDE = (F64, I64, U64)


def widened(f: Function, lanes: int, x: str) -> str:
    """FLOAT16 (as integers of 16 bits) as FLOAT32."""
    half, whole, real = vector(lanes, "i16"), vector(lanes, "i32"), vector(lanes)
    if f.machine.avx2 or not f.machine.x86:
        narrow = vector(lanes, "half")
        return f.let(f"fpext {narrow} {f.let(f'bitcast {half} {x} to {narrow}')} to {real}")
    wide = f.let(f"zext {half} {x} to {whole}")
    sign = f.let(f"shl {whole} {f.let(f'and {whole} {wide}, {number(whole, 0x8000)}')}, {number(whole, 16)}")
    size = f.let(f"shl {whole} {f.let(f'and {whole} {wide}, {number(whole, 0x7FFF)}')}, {number(whole, 13)}")
    found = f.let(f"fmul {real} {f.let(f'bitcast {whole} {size} to {real}')}, {number(real, 2.0 ** 112)}")
    odd = f.let(f"icmp uge {whole} {size}, {number(whole, 0x7C00 << 13)}")
    bits = select(f, whole, odd, f.let(f"or {whole} {size}, {number(whole, 0x7F800000)}"),
                  f.let(f"bitcast {real} {found} to {whole}"))
    return f.let(f"bitcast {whole} {f.let(f'or {whole} {bits}, {sign}')} to {real}")


def rounded(f: Function, lanes: int, x: str) -> str:
    """FLOAT32 as the nearest FLOAT16, of two the even one, as integers of 16 bits."""
    half, whole, real = vector(lanes, "i16"), vector(lanes, "i32"), vector(lanes)
    if f.machine.avx2 or not f.machine.x86:
        narrow = vector(lanes, "half")
        return f.let(f"bitcast {narrow} {f.let(f'fptrunc {real} {x} to {narrow}')} to {half}")
    bits = f.let(f"bitcast {real} {x} to {whole}")
    size = f.let(f"and {whole} {bits}, {number(whole, 0x7FFFFFFF)}")
    sign = f.let(f"and {whole} {f.let(f'lshr {whole} {bits}, {number(whole, 16)}')}, {number(whole, 0x8000)}")
    last = f.let(f"and {whole} {f.let(f'lshr {whole} {size}, {number(whole, 13)}')}, {number(whole, 1)}")
    moved = f.let(f"add {whole} {f.let(f'add {whole} {size}, {last}')}, {number(whole, 0xFFF - (112 << 23))}")
    found = f.let(f"lshr {whole} {moved}, {number(whole, 13)}")
    # Beside a half, what lies below FLOAT16's smallest exponent is rounded where its last bit is.
    small = f.let(f"fadd {real} {f.let(f'bitcast {whole} {size} to {real}')}, {number(real, 0.5)}")
    small = f.let(f"sub {whole} {f.let(f'bitcast {real} {small} to {whole}')}, {number(whole, 0x3F000000)}")
    found = select(f, whole, f.let(f"icmp ult {whole} {size}, {number(whole, 113 << 23)}"), small, found)
    large = select(f, whole, f.let(f"icmp ugt {whole} {size}, {number(whole, 0x7F800000)}"), number(whole, 0x7E00),
                   number(whole, 0x7C00))
    found = select(f, whole, f.let(f"icmp uge {whole} {size}, {number(whole, 143 << 23)}"), large, found)
    return f.let(f"trunc {whole} {f.let(f'or {whole} {found}, {sign}')} to {half}")


@frozen
class Converted:
    """Arrays of FLOAT16 widened into places of their shapes; or, `back`, such of FLOAT32 rounded."""

    pairs: tuple[tuple[Place, Place], ...]
    back: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            for source, to in self.pairs:
                self._array(f, source, to)
            f.finish()
        return m.once(("halves", self), build)

    def _array(self, f: Function, source: Place, to: Place) -> None:
        shape, strides = merged(source.shape, [tuple(s // p.item for s in p.strides) for p in (source, to)])
        lead, lanes = shape[:-1], f.machine.lanes
        full, rest = divmod(shape[-1], lanes)
        rows = math.prod(lead)
        first, last = f.share(rows if rows > 1 else full)

        def row(i: str, low: str, high: str) -> None:
            at = [start(f, p, tuple(n * p.item for n in s[:-1]), i, lead)
                  for p, s in zip((source, to), strides, strict=True)]
            f.loop(low, high, 1, [], lambda v, _: self._some(f, at, f.mul(v, lanes), lanes))
            if rest and rows > 1:
                self._some(f, at, str(full * lanes), rest)
            elif rest:
                f.when(f.let("icmp eq i64 %thread, 0"), lambda: self._some(f, at, str(full * lanes), rest))
        if rows > 1:
            f.loop(first, last, 1, [], lambda i, _: row(i, "0", str(full)))
        else:
            row("0", first, last)

    def _some(self, f: Function, at: Sequence[str], first: str, count: int) -> None:
        """So many neighbours, the first of them that far from where their rows begin."""
        lanes = f.machine.lanes
        narrow, wide = f.mul(first, HALF), f.mul(first, ITEM)
        if self.back:
            value = f.load_first(count, lanes, "float", at[0], wide)
            f.store_first(count, lanes, "i16", rounded(f, lanes, value), at[1], narrow)
        else:
            value = f.load_first(count, lanes, "i16", at[0], narrow)
            f.store_first(count, lanes, "float", widened(f, lanes, value), at[1], wide)


# The operation on FLOAT32.
def twin(b: Bound) -> Bound:
    """The operation with FLOAT32 in place of FLOAT16; its arrays are where they were."""
    return replace(b, args={**b.args, **{n: mapped(b.args[n], _wide) for n in b.slots}},
                   outs=tuple(map(_wide, b.outs)))


def _wide(t: Tensor) -> Tensor:
    if t.type != F16:
        return t
    return replace(t, type=F32, data=None if t.data is None else t.data.astype(np.float32))


def _named(b: Bound) -> dict[Slot, Tensor]:
    """The tensors an operation reads, by where they are."""
    found: dict[Slot, Tensor] = {}

    def pair(value: Any, where: Any) -> None:
        if isinstance(value, Tensor):
            found[where] = value
        elif isinstance(value, tuple):
            for v, w in zip(value, where, strict=True):
                pair(v, w)
    for n in b.slots:
        pair(b.args[n], b.slots[n])
    return found


def _converted(b: Bound) -> dict[Slot, Tensor]:
    """What is widened when a run begins the operation."""
    return {s: t for s, t in _named(b).items() if t.type == F16 and t.data is None}


def _takes(b: Bound, machine: Machine) -> bool:
    """Where the kernel computes in FLOAT32 and rounds once, and the images with borders are those widened."""
    tensors = (*_named(b).values(), *b.outs)
    if any(t.type in WIDE for t in tensors) or len(_named(b)) != len(set(slots(tuple(b.slots.values())))):
        return False
    if b.op is conv.FULLY_CONNECTED and b.args["w"].data is None:
        return False                             # there, sums are rounded before the bias is added
    family, wide = family_named(kind(b.op)), twin(b)
    return family is not None and family.takes(wide, machine) and family.border(wide).keys() <= _converted(b).keys()


def _family(b: Bound) -> Family:
    """That of an operation that is taken, in FLOAT32."""
    found = family_named(kind(b.op))
    assert found is not None
    return found


def _sizes(b: Bound) -> tuple[dict[Slot, tuple[Tensor, Border]], int]:
    """What is kept in scratch as FLOAT32, with the borders wanted, and the bytes of all."""
    borders = _family(b).border(twin(b))
    kept = {s: (t, borders.get(s, Border())) for s, t in _converted(b).items()}
    kept |= {s: (t, Border()) for s, t in zip(b.outputs, b.outs, strict=True) if t.type == F16}
    return kept, sum(_aligned(room(t.shape, ITEM, border)[0]) for t, border in kept.values())


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _scratch(group: Group, machine: Machine) -> int:
    wide = Group(twin(group.head))
    return _sizes(group.head)[1] + _aligned(_family(group.head).scratch(wide, machine))


def _make(w: Workshop, group: Group) -> Phases:
    b, wide = group.head, twin(group.head)
    family, (kept, size) = _family(b), _sizes(b)
    whole = w.places[SCRATCH]
    own, at = dict[Slot, Place](), whole.offset
    for slot, (t, border) in kept.items():
        count, strides, first = room(t.shape, ITEM, border)
        own[slot] = Place("%arena", at + first, t.shape, strides, ITEM, border)
        at += _aligned(count)
    threads, each = whole.shape[0], whole.shape[1] - size
    own[SCRATCH] = Place("%arena", at, (threads, each), dense_strides((threads, each), 1), 1)
    constants = {s: t.data for s, t in _named(wide).items() if t.data is not None}
    shop = replace(w, places={**w.places, **own}, constants={**w.constants, **constants}, _kept={})
    work = family.make(shop, Group(wide))
    w.used = shop.used
    read = tuple((w.place(s), own[s]) for s in _converted(b))
    borders = tuple(own[s] for s in _converted(b) if own[s].border)
    written = tuple((own[s], w.places[s]) for s in b.outputs if s in own)
    before: list[Task] = [FillBorders(borders, waited=False)] if borders else []
    before += [Converted(read, back=False)] if read else []
    tasks = work.tasks if isinstance(work, Phases) else (work,)
    return Phases((*before, *tasks, *([Converted(written, back=True)] if written else ())))


#: Of whichever of these operations there is, where FLOAT16 is among its types.
FAMILY = Family(_takes, _make, scratch=_scratch)
NAMES = {o.name for op in OPS for o in op.versions}
