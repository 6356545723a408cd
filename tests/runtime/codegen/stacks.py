"""What code keeps of vectors on the stack."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from full import FULL
from natively import ARM

from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import AMX, AVX2, AVX512, BASELINE, Machine
from nnx_convert.runtime.codegen.objects import assembly

#: Every set of features that code is written for; assembly can be had for all of them anywhere.
SETS = {name: Machine("x86_64-unknown-linux-gnu", BASELINE | more) for name, more in (
    ("baseline", frozenset[str]()), ("avx2", AVX2), ("avxvnni", AVX2 | {"avxvnni"}), ("avx512", AVX512),
    ("vnni", AVX512 | {"avx512vnni"}), ("amx", AVX512 | AMX | {"avx512vnni"}))} | ARM
#: Those that are tried each time.
TRIED = tuple(SETS) if FULL else ("baseline", "avx2", "vnni", "neon")
#: A place in a frame, and instructions that store whole vectors, or read less than one.
SLOT = re.compile(r"-?\d*\(%rsp[^)]*\)|-\d+\(%rbp\)|\[sp(?:, #\d+)?\]|\[x29, #-\d+\]")
STORE = re.compile(r"\tv?mov(?:[au]p[sd]|dq[au]\w*)\t%[xyz]mm\d+, *-?\d*\(%r[sb]p|\t(?:str|stp|stur)\tq")
PART = re.compile(r"\tv?(?:mov[dqhl]|movs[sd]|mov[hl]p[sd]|pinsr\w|insertps|p?broadcast\w+|pmov[sz]x\w+|\w+s[sd])\t")
VECTOR = re.compile(r"[xyz]mm\d|\tq\d")
#: The machine's own address of a room in the frame is none of a vector that was put aside.
ROOM = re.compile(r"^(\s*)(%[\w.]+) = (alloca .*)$", re.MULTILINE)
LABEL, JUMP = re.compile(r"(\.LBB\w+):"), re.compile(r"\t(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\t(?:.*, )?(\.LBB\w+)")
CALL = re.compile(r"\t(?:call\w*|blr?)\t")


def spilt(m: Module, inner: bool = False) -> list[str]:
    """The instructions by which a module's functions move vectors to the stack and back, each with its function.

    With `inner`, those in innermost loops that call nothing, and in functions that have no loop.
    """
    found = []
    for name, lines in functions(m):
        stored, read = (
            {where[0] for line in lines if whole(line) and bool(STORE.match(line)) == kind
             and (where := SLOT.search(line))} for kind in (True, False))
        # Two registers at once, and one of them: on aarch64 a place is told in more than one way.
        kept = stored & read if m.machine.x86 else stored | read if stored and read else set()
        for first, last in innermost(lines) if inner else [(0, len(lines))]:
            found += [f"{name}: {line.strip()}" for line in lines[first:last] if whole(line)
                      and (where := SLOT.search(line)) and where[0] in kept]
    return found


def whole(line: str) -> bool:
    """Whether an instruction has to do with all of a vector."""
    return bool(VECTOR.search(line)) and not PART.match(line)


def functions(m: Module) -> Iterator[tuple[str, list[str]]]:
    """The functions' names, each with its instructions; those that differ in numbers are one, as in models."""
    def opaque(found: re.Match[str]) -> str:
        space, name, room = found.groups()
        return f'{space}{name}.room = {room}\n{space}{name} = call ptr asm "", "=r,0"(ptr {name}.room)'
    text = ROOM.sub(opaque, m.texts(1)[0].replace("define internal", "define"))
    lines = assembly(text, m.machine).splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"[A-Za-z_]\w*:", line)]
    for first, last in pairwise((*heads, len(lines))):
        yield lines[first].partition(":")[0], lines[first + 1:last]


def innermost(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Loops without another one in them that call nothing; all of a function that has none."""
    at = {found[1]: n for n, line in enumerate(lines) if (found := LABEL.match(line))}
    loops: dict[int, int] = {}
    for n, line in enumerate(lines):
        if (found := JUMP.match(line)) and at.get(found[1], n + 1) <= n:
            loops[at[found[1]]] = n + 1
    alone = [(a, b) for a, b in loops.items() if not any((a, b) != (c, d) and a <= c and d <= b
                                                         for c, d in loops.items())]
    return [(a, b) for a, b in alone or [(0, len(lines))] if not any(CALL.match(line) for line in lines[a:b])]
