"""LLVM IR as text: a module of functions, and a function written instruction by instruction.

Text is what LLVM reads fastest; objects for every instruction would cost more than the compiler does.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np

from .machine import Machine

#: What an instruction reads: the name of a value, or a number.
Operand = str | int
#: Characters of text from which another module, and with it another thread, is worth its start.
WORTH = 100_000
#: Turns that have code of their own at most; more are a loop.
UNROLLED = 8
#: What every function that threads share is handed: two base pointers, this thread's number and how many there are;
#: and three more base pointers, of images that a band of rows is read from, written to and added from.
SHARED = (("ptr", "%arena"), ("ptr", "%weights"), ("i64", "%thread"), ("i64", "%threads"),
          ("ptr", "%source"), ("ptr", "%target"), ("ptr", "%other"))
#: The arguments of one that is no part of a band.
ALONE = "ptr %arena, ptr %weights, i64 %thread, i64 %threads, ptr %arena, ptr %arena, ptr %arena"


class Module:
    """Functions and declarations in the order they were made; each function is made once for a key."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._declared: dict[str, None] = {}
        self._functions: dict[str, str] = {}

    def declare(self, signature: str) -> None:
        """Declare a function or an intrinsic: `declare void @f(i64)`, once however often it is said."""
        self._declared[signature] = None

    def once(self, key: Sequence[Any], build: Callable[[str], None]) -> str:
        """The name of the function of a key, which `build` makes under it when it is asked for first."""
        name = f"{key[0]}_{blake2b(repr(key).encode(), digest_size=8).hexdigest()}"
        if name not in self._functions:
            self._functions[name] = ""           # a function that calls itself would be made for ever
            build(name)
        return name

    def add(self, name: str, text: str) -> None:
        """A finished function."""
        self._functions[name] = text

    def text(self) -> str:
        """The module as LLVM reads it."""
        return self._text(self._functions.values(), ())

    def texts(self, most: int) -> list[str]:
        """The module as at most so many modules of about the same size, whose functions call each other."""
        from .merging import merged              # whose expressions a run of code that is kept has no use for
        functions, tables = merged(self._functions, self.machine.registers)
        total = sum(map(len, functions.values()))
        count = min(most, -(-total // WORTH))
        if count < 2:
            return [self._text((*tables.values(), *functions.values()), ())]
        parts: list[list[str]] = [[] for _ in range(count)]
        sizes = [0] * count
        for name, text in sorted(functions.items(), key=lambda item: -len(item[1])):
            part = sizes.index(min(sizes))
            parts[part].append(name)
            sizes[part] += len(text)
        return [self._part(names, functions, tables) for names in parts]

    def _part(self, names: Sequence[str], functions: Mapping[str, str], tables: Mapping[str, str]) -> str:
        """Some of the functions, seen by other modules, their tables, and the heads of whom else these name."""
        own = [functions[name].replace("define internal", "define hidden", 1) for name in names]
        named, new = set[str](), own
        while new:
            found = {name for text in new for name in re.findall(r"@(\w+)", text)} - named
            named |= found
            new = [tables[name] for name in found & tables.keys()]
        heads = (functions[name].split(" {", 1)[0] for name in sorted(named - set(names) & functions.keys()))
        return self._text(own, [*(tables[name] for name in sorted(named & tables.keys())),
                                *(head.replace("define internal", "declare hidden", 1) for head in heads)])

    def _text(self, functions: Iterable[str], heads: Iterable[str]) -> str:
        return "\n".join((f'target triple = "{self.machine.triple}"', *self._declared, *heads, *functions,
                          "attributes #0 = { nounwind }", "!0 = !{}", ""))


class Function:
    """A function in the making; every method that computes gives the name of a new value."""

    def __init__(self, module: Module, name: str, args: Sequence[tuple[str, str]], *, exported: bool = False) -> None:
        self.module, self.name, self.args, self.exported = module, name, tuple(args), exported
        self.block = "entry"
        self._lines: list[str] = ["entry:"]
        self._rooms: list[str] = []
        self._count = 0

    @property
    def machine(self) -> Machine:
        """What the code is for."""
        return self.module.machine

    # Values and places.
    def let(self, right: str) -> str:
        """A value by its instruction."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {right}")
        return f"%v{self._count}"

    def do(self, instruction: str) -> None:
        """An instruction without a value."""
        self._lines.append(f"  {instruction}")

    def at(self, pointer: str, offset: Operand) -> str:
        """An address so many bytes further."""
        return pointer if offset in (0, "0") else self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def add(self, a: Operand, b: Operand) -> str:
        """The sum of two 64-bit integers that does not overflow."""
        a, b = last(a, b)
        if fixed(a):
            return str(int(a) + int(b))
        return str(a) if b in (0, "0") else str(b) if a in (0, "0") else self.let(f"add nsw i64 {a}, {b}")

    def mul(self, a: Operand, b: Operand) -> str:
        """The product of two 64-bit integers that does not overflow."""
        if 0 in (a, b) or "0" in (a, b):
            return "0"
        a, b = last(a, b)
        if fixed(a):
            return str(int(a) * int(b))
        return str(a) if b in (1, "1") else str(b) if a in (1, "1") else self.let(f"mul nsw i64 {a}, {b}")

    def div(self, a: Operand, by: int) -> str:
        """The quotient of a 64-bit integer that is not negative, rounded down."""
        return str(a) if by == 1 else self.let(f"udiv i64 {a}, {by}")

    def rem(self, a: Operand, by: int) -> str:
        """The remainder of a 64-bit integer that is not negative."""
        return "0" if by == 1 else self.let(f"urem i64 {a}, {by}")

    def least(self, a: Operand, b: Operand) -> str:
        """The smaller of two 64-bit integers."""
        return self.select(self.let(f"icmp slt i64 {a}, {b}"), "i64", str(a), str(b))

    def select(self, condition: str, type: str, yes: str, no: str) -> str:
        """One of two values of a type, by one truth value."""
        return self.let(f"select i1 {condition}, {type} {yes}, {type} {no}")

    # Memory. Elements are aligned to their own size, no more.
    def room(self, type: str) -> str:
        """The address of a place for a vector in the frame, one for the whole function wherever it is asked for."""
        self._count += 1
        lanes, element = parts(type)
        self._rooms.append(f"  %v{self._count} = alloca {type}, align {lanes * width(element) // 8}")
        return f"%v{self._count}"

    def load(self, type: str, pointer: str, offset: Operand = 0, align: int = 4) -> str:
        """A value of a type from memory."""
        return self.let(f"load {type}, ptr {self.at(pointer, offset)}, align {align}")

    def store(self, type: str, value: str, pointer: str, offset: Operand = 0, align: int = 4) -> None:
        """A value of a type into memory."""
        self.do(f"store {type} {value}, ptr {self.at(pointer, offset)}, align {align}")

    def load_first(self, count: int, lanes: int, element: str, pointer: str, offset: Operand = 0) -> str:
        """The first `count` of a vector's lanes from memory, the others zero; no byte beyond them is read."""
        kind = f"<{lanes} x {element}>"
        if count == lanes:
            return self.load(kind, pointer, offset, width(element) // 8)
        intrinsic = f"@llvm.masked.load.v{lanes}{suffix(element)}.p0"
        self.module.declare(f"declare {kind} {intrinsic}(ptr, i32, <{lanes} x i1>, {kind})")
        return self.let(f"call {kind} {intrinsic}(ptr {self.at(pointer, offset)}, i32 {width(element) // 8}, "
                        f"<{lanes} x i1> {mask(count, lanes)}, {kind} zeroinitializer)")

    def store_first(self, count: int, lanes: int, element: str, value: str, pointer: str, offset: Operand = 0) -> None:
        """The first `count` of a vector's lanes into memory; no byte beyond them is written."""
        kind = f"<{lanes} x {element}>"
        if count == lanes:
            self.store(kind, value, pointer, offset, width(element) // 8)
            return
        if count == 1:                           # LLVM 22 stores a lone lane as wide as it was before it was cut
            first = self.let(f"extractelement {kind} {value}, i64 0")
            self.store(element, first, pointer, offset, width(element) // 8)
            return
        self.store_masked(lanes, element, mask(count, lanes), value, self.at(pointer, offset))

    def store_masked(self, lanes: int, element: str, where: str, value: str, to: str) -> None:
        """The lanes of a vector that a mask has into memory; no byte of others is written."""
        kind = f"<{lanes} x {element}>"
        intrinsic = f"@llvm.masked.store.v{lanes}{suffix(element)}.p0"
        self.module.declare(f"declare void {intrinsic}({kind}, ptr, i32, <{lanes} x i1>)")
        self.do(f"call void {intrinsic}({kind} {value}, ptr {to}, i32 {width(element) // 8}, <{lanes} x i1> {where})")

    def copy(self, to: str, source: str, size: Operand) -> None:
        """Bytes from one place to another, which do not overlap."""
        self.module.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def fill(self, to: str, byte: Operand, size: Operand) -> None:
        """The same byte many times."""
        self.module.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.do(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {size}, i1 false)")

    def fence(self) -> None:
        """What is read before stays before, what is read after stays after: LLVM would read all of a block at its
        begin, and has not that many registers. No instruction."""
        self.do('call void asm sideeffect "", "~{memory}"()')

    def opaque(self, type: str, value: str) -> str:
        """The same vector, of which LLVM knows no more: it would sum products first, to wait less, and has not that
        many registers. No instruction."""
        return self.let(f'call {type} asm sideeffect "", "={self.machine.constraint},0"({type} {value})')

    def behind(self, pointer: str, type: str, values: Iterable[str]) -> str:
        """The same pointer, known when vectors are: what is read there is read then, and read again if it was before.
        No instruction."""
        given, where = [f"{type} {v}" for v in values], f",{self.machine.constraint}"
        return self.let(f'call ptr asm "", "=r,0{where * len(given)}"({", ".join((f"ptr {pointer}", *given))})')

    def apart(self, pointer: str) -> str:
        """The same address, of which LLVM knows no more: in a loop it would keep an address of its own for every cell
        that is read from there, and has not that many registers. No instruction."""
        return self.let(f'call ptr asm "", "=r,0"(ptr {pointer})')

    # Vectors of floats.
    def call(self, type: str, function: str, *args: tuple[str, str]) -> str:
        """What a function gives for arguments (type, value); it is declared, too, where it is an intrinsic."""
        kinds = ", ".join(kind for kind, _ in args)
        if function.startswith("llvm."):
            self.module.declare(f"declare {type} @{function}({kinds})")
        given = ", ".join(f"{kind} {value}" for kind, value in args)
        return self.let(f"call {type} @{function}({given})")

    def gather(self, type: str, places: str) -> str:
        """A vector's elements from as many addresses. LLVM 22 would have the alignment beside these, but takes it as
        an argument, too; those before, which llvmlite may bring along, end the process where it is none."""
        lanes, element = parts(type)
        return self.call(type, f"llvm.masked.gather.{mangled(type)}.v{lanes}p0", (f"<{lanes} x ptr>", places),
                         ("i32", str(width(element) // 8)), (f"<{lanes} x i1>", "splat (i1 true)"),
                         (type, "zeroinitializer"))

    def fma(self, type: str, a: str, b: str, c: str) -> str:
        """a * b + c, rounded once; where the machine has no such instruction, twice."""
        if not self.machine.fused:
            return self.let(f"fadd {type} {self.let(f'fmul {type} {a}, {b}')}, {c}")
        return self.call(type, f"llvm.fma.{mangled(type)}", (type, a), (type, b), (type, c))

    def splat(self, type: str, value: str) -> str:
        """A vector of one value, or the value where the type is no vector."""
        if not type.startswith("<"):
            return value
        lanes, element = parts(type)
        first = self.let(f"insertelement {type} poison, {element} {value}, i64 0")
        return self.let(f"shufflevector {type} {first}, {type} poison, <{lanes} x i32> zeroinitializer")

    def clamp(self, type: str, x: str, low: float | None, high: float | None) -> str:
        """x within bounds, of which each may be None; NaN stays NaN. Compare and select, which are two instructions
        where `maxnum` is three."""
        flags = f"<{parts(type)[0]} x i1>" if type.startswith("<") else "i1"
        for bound, relation in ((low, "olt"), (high, "ogt")):
            if bound is not None:
                beyond = self.let(f"fcmp {relation} {type} {x}, {number(type, bound)}")
                x = self.let(f"select {flags} {beyond}, {type} {number(type, bound)}, {type} {x}")
        return x

    # Control.
    def label(self) -> str:
        """A new label."""
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        """The block of a label begins here."""
        self._lines.append(f"{label}:")
        self.block = label

    def go(self, label: str) -> None:
        """Branch."""
        self.do(f"br label %{label}")

    def loop(self, low: Operand, high: Operand, step: int, carried: Sequence[tuple[str, str]],
             body: Callable[[str, list[str]], Sequence[str] | None], *, guarded: bool = True) -> list[str]:
        """For i from low up to high by step: `body(i, values)` gives the next values of what is carried (type, first).

        The values after the last turn. Without `guarded`, there is at least one turn.
        """
        before, head, end = self.block, self.label(), self.label()
        if guarded and not (isinstance(low, int) and isinstance(high, int) and low < high):
            self.do(f"br i1 {self.let(f'icmp slt i64 {low}, {high}')}, label %{head}, label %{end}")
        else:
            guarded = False
            self.go(head)
        self.start(head)
        self._count += 1 + len(carried)
        i, *names = (f"%v{self._count - n}" for n in range(1 + len(carried)))
        place = len(self._lines)
        self._lines.append("")
        new = list(body(i, names) or [])
        following = self.let(f"add nsw i64 {i}, {step}")
        more = self.let(f"icmp slt i64 {following}, {high}")
        phis = [f"  {i} = phi i64 [ {low}, %{before} ], [ {following}, %{self.block} ]"]
        phis += [f"  {name} = phi {kind} [ {first}, %{before} ], [ {last}, %{self.block} ]"
                 for name, (kind, first), last in zip(names, carried, new, strict=True)]
        self._lines[place] = "\n".join(phis)
        inside = self.block
        self.do(f"br i1 {more}, label %{head}, label %{end}")
        self.start(end)
        if not guarded:
            return new
        return [self.let(f"phi {kind} [ {first}, %{before} ], [ {last}, %{inside} ]")
                for (kind, first), last in zip(carried, new, strict=True)]

    def over(self, offsets: Sequence[int], carried: Sequence[tuple[str, str]],
             body: Callable[[Operand, list[str]], Sequence[str]]) -> list[str]:
        """For each of some offsets, all as far from the one before: `body(offset, values)` gives the next values of
        what is carried (type, first). Few have code of their own. The values after the last."""
        if len(offsets) > UNROLLED:
            return self.loop(offsets[0], offsets[-1] + 1, offsets[1] - offsets[0], carried, body)
        values = [first for _, first in carried]
        for offset in offsets:
            values = list(body(offset, values))
        return values

    def when(self, condition: str, yes: Callable[[], None], no: Callable[[], None] | None = None) -> None:
        """Two ways on, which meet again."""
        then, otherwise, end = self.label(), self.label(), self.label()
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise if no else end}")
        self.start(then)
        yes()
        self.go(end)
        if no:
            self.start(otherwise)
            no()
            self.go(end)
        self.start(end)

    def share(self, parts_: Operand) -> tuple[str, str]:
        """The first of so many parts that this thread does, and the one after its last.

        The first thread has the larger share: it is the caller's, and awake.
        """
        def bound(n: str) -> str:
            return self.let(f"udiv i64 {self.add(self.mul(n, parts_), self.let('add i64 %threads, -1'))}, %threads")
        return bound("%thread"), bound(self.add("%thread", 1))

    def finish(self, result: str = "void") -> None:
        """The end; the function is the module's from here on."""
        self.do(f"ret {result}")
        kind = result.split(" ", maxsplit=1)[0]
        args = ", ".join(f"{type} {name}" for type, name in self.args)
        linkage = "" if self.exported else "internal "
        head = f"define {linkage}{kind} @{self.name}({args}) #0 {{"
        self.module.add(self.name, "\n".join((head, self._lines[0], *self._rooms, *self._lines[1:], "}")))


def fixed(a: Operand) -> bool:
    """Whether an operand is a number."""
    return not str(a).startswith("%")


def last(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Two operands, a number behind a value: there `merging` looks for it."""
    return (b, a) if fixed(a) else (a, b)


def vector(lanes: int, element: str = "float") -> str:
    """The type of a vector; of one lane, the element's."""
    return f"<{lanes} x {element}>" if lanes > 1 else element


def parts(type: str) -> tuple[int, str]:
    """Lanes and element of a vector's type; 1 and itself for another."""
    with suppress(ValueError):
        count, element = type.strip("<>").split(" x ")
        return int(count), element
    return 1, type


def width(element: str) -> int:
    """The bits of an element's type."""
    return {"float": 32, "double": 64, "half": 16}.get(element) or int(element[1:])


def suffix(element: str) -> str:
    """An element's type in the name of an intrinsic."""
    return {"float": "f32", "double": "f64", "half": "f16"}.get(element, element)


def mangled(type: str) -> str:
    """A type in the name of an intrinsic."""
    lanes, element = parts(type)
    return f"v{lanes}{suffix(element)}" if type.startswith("<") else suffix(element)


def mask(count: int, lanes: int) -> str:
    """A constant of truth values: the first `count` lanes."""
    return "<" + ", ".join(f"i1 {int(i < count)}" for i in range(lanes)) + ">"


def number(type: str, value: float) -> str:
    """A constant, in every lane where the type is a vector's; floats to the bit."""
    element = parts(type)[1]
    if element in ("float", "double", "half"):
        exact = float(np.float32(value)) if element == "float" else float(value)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
        if element == "half":
            text = f"0xH{np.float16(value).view(np.uint16):04X}"
    else:
        text = str(int(value))
    return f"splat ({element} {text})" if type.startswith("<") else text
