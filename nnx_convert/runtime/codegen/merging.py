"""Functions that differ only in numbers become one, which reads these from a table that it is handed.

Layers of a network mostly differ in strides, counts, offsets, zero points and in whom they call, and LLVM takes as long
for each of their functions as for the first. So every function that is only called has one more argument, the address
of its numbers; to who calls it, that is one more number.
"""
from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from .ir import parts, width

#: What a function is handed beside its own arguments: where its numbers are.
TOLD = "ptr noalias readonly %told"
#: A function or a table, and a call of one.
NAME, CALL = re.compile(r"@(\w+)"), re.compile(r"(.*\bcall [^@]*)@(\w+)\((.*)\)$")
#: A line whose last number may differ: a distance of addresses, arithmetic or a comparison of 64-bit integers.
LAST = re.compile(r"  (?:%v\d+ = )?(?:getelementptr i8, ptr \S+ i64|(?:add|mul|sub|udiv|urem)(?: nsw)? i64 \S+"
                  r"|icmp \w+ i64 \S+)$")
#: What may differ in a call of the module's own functions and in the next, of what is taken of the stack, in vectors.
GIVEN, STACK = re.compile(r"\bi64 (-?\d+)"), re.compile(r"(alloca \[)(\d+)")
#: A vector's type stands before it, where it is the second of two behind the first.
VECTOR = r"(<\d+ x (?:i8|i16|i32|i64|float|double)>)(?: %\w+,)? "
SPLAT = re.compile(r"((?:= (?:add|sub|fadd|fsub|fmul|fdiv|and|or|xor|bitcast) |@llvm\.(?:sadd\.sat|smax|smin|fma)\.)"
                   rf".*{VECTOR})(splat \((?:i\d+|float|double) [^)]+\))")
#: Here a block begins.
LABEL = re.compile(r"^\w+:$", re.M)
TYPE = re.compile(f"{VECTOR}$")
#: Two numbers of which one is chosen; how many bytes are filled or copied, so many that a call of the library costs
#: little more than as many stores.
CHOICE, MOVED = re.compile(r" = select i1 \S+, i64 "), re.compile(r" @llvm\.mem(set|cpy)\..*, i64 (\d+), i1 false\)$")
ENOUGH = {"set": 64, "cpy": 256}
#: A division by something that is told.
DIVIDED = re.compile(r"^  (%v\d+) = u(div|rem) i64 (\S+), (%t\d+)$", re.M)
#: Bytes of a number or an address in a table.
ITEM = 8
#: By this LLVM is held: see `Function.fence`.
FENCE = "~{memory}"
#: What stands around a number in a text that is to be compared.
MARK = "\0"

#: Functions, and tables by name.
Texts = dict[str, str]
#: A number, or a function's or a table's name, of each of some functions.
Column = tuple[str, ...]


def merged(functions: Mapping[str, str], registers: int) -> tuple[Texts, Texts]:
    """The functions that are left of a module's, where there are so many vector registers, and the tables that these
    are handed."""
    drafts = {name: Draft.of(text) for name, text in functions.items()}
    own, others = levels(drafts)
    left, tables, found = Texts(), Texts(), dict[str, tuple[str, str]]()
    for names in own:
        alike = defaultdict[Column, list[tuple[str, list[str]]]](list)
        for name in names:
            pieces = drafts[name].text(found).split(MARK)
            pieces[0] = pieces[0].replace(f"@{name}(", "@(", 1)
            alike[tuple(pieces[::2])].append((name, pieces[1::2]))
        for text, members in alike.items():
            first, told = members[0][0], Told(text, [numbers for _, numbers in members], registers)
            left[first] = told.written(first)
            for n, (name, _) in enumerate(members):
                found[name] = first, told.table(n, tables)
    return left | {name: drafts[name].text(found).replace(MARK, "") for name in others}, tables


@dataclass
class Draft:
    """A function's lines, with marks around what may differ, and its calls of functions: what is before the name, the
    name, and what is behind it, by line. Functions that it mentions otherwise are `held`."""

    internal: bool
    lines: list[str] = field(default_factory=list)
    calls: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, text: str) -> Draft:
        """A function as it was written."""
        head, *lines = text.split("\n")
        found = cls(head.startswith("define internal"), [head])
        for line in lines:
            found._add(line)
        return found

    def _add(self, line: str) -> None:
        if "@" in line and "@llvm." not in line:
            match = CALL.match(line)
            self.held.update(NAME.findall(match[3] if match else line))
            if match:
                self.calls[len(self.lines)] = match[1], match[2], match[3]
        elif "select i1" in line and CHOICE.search(line) or "@llvm.mem" in line and _many(line):
            line = GIVEN.sub(rf"i64 {MARK}\1{MARK}", line)
        elif line[-1:].isdigit():
            head, _, number = line.rpartition(" ")
            if number[0] != "%":                 # else it is a value
                line = f"{head} {MARK}{number}{MARK}" if LAST.match(head) else STACK.sub(rf"\1{MARK}\2{MARK}", line)
        if "splat (" in line:
            line = SPLAT.sub(rf"\1{MARK}\3{MARK}", line, count=1)
        self.lines.append(line)

    def text(self, found: Mapping[str, tuple[str, str]]) -> str:
        """The text, in which calls are of the functions that are left, with their tables."""
        for n, (head, callee, args) in self.calls.items():
            if callee in found:
                name, table = found[callee]
                given = GIVEN.sub(rf"i64 {MARK}\1{MARK}", args) + (", " if args else "")
                self.lines[n] = f"{head}{MARK}@{name}{MARK}({given}ptr {MARK}{table}{MARK})"
        return "\n".join(self.lines)


def _many(line: str) -> bool:
    """Whether a line fills or copies many bytes."""
    moved = MOVED.search(line)
    return moved is not None and int(moved[2]) >= ENOUGH[moved[1]]


def levels(drafts: Mapping[str, Draft]) -> tuple[list[list[str]], list[str]]:
    """The functions that are known by their calls alone, by levels: they call those of levels before. And the others,
    among them those that call around in a circle: there, who calls comes before whom it calls."""
    held = {name for draft in drafts.values() for name in draft.held}
    rest = {name for name, draft in drafts.items() if draft.internal and name not in held}
    callees = {name: {callee for _, callee, _ in draft.calls.values()} for name, draft in drafts.items()}
    found = list[list[str]]()
    while level := [name for name in drafts if name in rest and not callees[name] & rest]:
        found.append(level)
        rest.difference_update(level)
    own = {name for level in found for name in level}
    return found, [name for name in drafts if name not in own]


class Told:
    """Functions with the same `text` between their numbers, one more piece than there are of these, as one.

    `rows` are each function's numbers. Vectors that are not the same are in the function's table first, by type and
    column where they are; it reads them where it needs them, as it would read constants. Other numbers that are not the
    same are read at its begin, or are multiples of such; `names` has their values by column.

    LLVM would read constants before a loop, and where registers are too few, again from the stack in it. So where half
    of the registers would not hold them, those that no block needs twice are operands: they are in the table, too, and
    are not `lasting`. Where LLVM is held (`Function.fence`), no vector is; nor where some are of FLOAT64, since vectors
    of as many of these as there are FLOAT32 in a register take two.
    """

    def __init__(self, text: Sequence[str], rows: Sequence[Sequence[str]], registers: int) -> None:
        self.text, self.columns = text, list(zip(*rows, strict=True))
        times = self._times()
        held = any(FENCE in piece for piece in text) or any("double" in type for type, _ in times)
        many = len(times) > registers // 2
        self.lasting = {vector for vector, count in times.items() if not held and not (many and count == 1)}
        self.vectors: dict[tuple[str, Column], int] = {}
        self.told: list[Column] = []
        self.names: dict[Column, str] = {}
        self.lines: list[str] = []
        self.size = 0
        differing = [(before, c) for before, c in zip(text, self.columns, strict=False)
                     if self._differs(before, c)]
        for before, column in differing:
            if _kind(column) == "splat":
                self._place(*_vector(before), column)
        for column in sorted({c for before, c in differing if _kind(c) != "splat" and not before.endswith("[")},
                             key=_order):
            self._add(column)

    def _times(self) -> Counter[tuple[str, Column]]:
        """How often the block that needs a vector most often does, by type and column."""
        times, block = Counter[tuple[str, Column]](), Counter[tuple[str, Column]]()
        for before, column in zip(self.text, self.columns, strict=False):
            if LABEL.search(before):
                block.clear()
            if _kind(column) == "splat":
                vector = _vector(before)[0], column
                block[vector] += 1
                times[vector] = max(times[vector], block[vector])
        return times

    def _differs(self, before: str, column: Column) -> bool:
        """Whether what is in a column is in tables."""
        return len(set(column)) > 1 or _kind(column) == "splat" and (_vector(before)[0], column) not in self.lasting

    def _place(self, type: str, size: int, column: Column) -> None:
        """Room for a vector in the table."""
        if (type, column) not in self.vectors:
            at = self.vectors[type, column] = -(-self.size // size) * size
            self.size = at + size

    def _add(self, column: Column) -> str:
        """The value of a column of numbers or names."""
        if column not in self.names:
            self.names[column] = name = f"%t{len(self.names)}"
            multiple = self._multiple(column)
            if not multiple:
                self.lines.append(f"  {name}.at = getelementptr i8, ptr %told, i64 {self.size + ITEM * len(self.told)}")
                self.told.append(column)
            self.lines.append(f"  {name} = " + (
                multiple or f"load {_kind(column)}, ptr {name}.at, align {ITEM}, !invariant.load !0"))
        return self.names[column]

    def _multiple(self, column: Column) -> str:
        """As a multiple of what is read; "" where it is none."""
        if _kind(column) == "ptr":
            return ""
        mine = list(map(int, column))
        for other in self.told:
            if _kind(other) == "i64" and (first := int(other[0])):
                times, rest = divmod(mine[0], first)
                if rest == 0 and all(times * int(o) == m for o, m in zip(other, mine, strict=True)):
                    return f"mul nsw i64 {self.names[other]}, {times}"
        return ""

    def written(self, name: str) -> str:
        """The function, of a name."""
        found = [self.text[0].replace("@(", f"@{name}(", 1)]
        for n, (column, piece) in enumerate(zip(self.columns, self.text[1:], strict=True)):
            before, value = self.text[n], self.names.get(column, column[0])
            if len(set(column)) > 1 and before.endswith("["):
                value = str(max(map(int, column)))
            elif _kind(column) == "splat" and self._differs(before, column):
                value, (type, _) = f"%c{n}", _vector(before)
                more = ", !invariant.load !0" if (type, column) in self.lasting else ""
                *lines, line = found[-1].split("\n")
                found[-1] = "\n".join((
                    *lines, f"  {value}.at = getelementptr i8, ptr %told, i64 {self.vectors[type, column]}",
                    f"  {value} = load {type}, ptr {value}.at{more}", line))
            found += [value, piece]
        head, entry, body = "".join(found).partition(") #0 {\nentry:\n")
        head += TOLD if head.endswith("(") else f", {TOLD}"
        body = DIVIDED.sub(self._divided, body)
        return "\n".join((head + entry.rstrip("\n"), *self.lines, body))

    def _divided(self, match: re.Match[str]) -> str:
        """A quotient, or a remainder, of what is not negative: the upper half of its product by a fraction of 64
        bits, shifted (Granlund and Montgomery; exact below 2 ** 63). To divide would take several times as long."""
        value, which, x, by = match.groups()
        divisors = [int(d) for d in next(c for c, name in self.names.items() if name == by)]
        if min(divisors) < 2:
            return match[0]
        shifts = [(d - 1).bit_length() for d in divisors]
        fractions = [-(-(1 << 63 + s) // d) for s, d in zip(shifts, divisors, strict=True)]
        fraction = self._add(tuple(str(f - (f >> 63 << 64)) for f in fractions))
        shift = self._add(tuple(str(s - 1) for s in shifts))
        quotient = value if which == "div" else f"{value}.q"
        lines = [f"{value}.x = zext i64 {x} to i128", f"{value}.f = zext i64 {fraction} to i128",
                 f"{value}.p = mul i128 {value}.x, {value}.f", f"{value}.h = lshr i128 {value}.p, 64",
                 f"{value}.u = trunc i128 {value}.h to i64", f"{quotient} = lshr i64 {value}.u, {shift}"]
        if which == "rem":
            lines += [f"{value}.w = mul nsw i64 {quotient}, {by}", f"{value} = sub i64 {x}, {value}.w"]
        return "\n".join(f"  {line}" for line in lines)

    def table(self, n: int, tables: Texts) -> str:
        """The table of one of the functions; `null` where they differ in nothing."""
        if not self.told and not self.vectors:
            return "null"
        kinds = [*(type for type, _ in self.vectors), *map(_kind, self.told)]
        values = [c[n] for c in (*(c for _, c in self.vectors), *self.told)]
        fields = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, values, strict=True))
        name = f"told_{blake2b(fields.encode(), digest_size=8).hexdigest()}"
        tables[name] = f"@{name} = internal constant {{ {', '.join(kinds)} }} {{ {fields} }}, align 64"
        return f"@{name}"


def _vector(before: str) -> tuple[str, int]:
    """The type of the vector that follows, and its bytes: a power of two, on multiples of which it is."""
    match = TYPE.search(before)
    assert match is not None
    lanes, element = parts(match[1])
    return match[1], 1 << (lanes * width(element) // 8 - 1).bit_length()


def _kind(column: Column) -> str:
    first = column[0]
    return "splat" if first.startswith("splat") else "ptr" if first[0] in "@n" else "i64"


def _order(column: Column) -> tuple[int, Column]:
    """Smaller numbers first: others may be their multiples."""
    return 0 if _kind(column) == "ptr" else sum(abs(int(c)) for c in column), column
