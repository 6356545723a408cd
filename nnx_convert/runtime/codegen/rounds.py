"""Rounds of a loop whose condition and body are native as a whole: one call does many.

What a round gives is copied to where the next one, and its condition, read it.
"""
from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product

import numpy as np

from ...types import Array
from .ir import Function, Module
from .machine import Machine, host
from .objects import Library, made
from .pool import ORDER, pool
from .ready import Frame, Native, Ready

#: The words of what a call is told: the orders (see `pool`) of the condition and of the body, then where the
#: condition's answer is, where each says what it met, the copies, how many, how many rounds at most and how many there
#: were, and what does an order with what it takes first.
WORDS = {name: 8 * at for name, at in (("cond", 0), ("body", len(ORDER)), *zip(
    ("truth", "cond_fault", "body_fault", "copies", "many", "most", "done", "how", "sync"),
    range(2 * len(ORDER), 2 * len(ORDER) + 9), strict=True))}
#: A copy: to, from, bytes of a row, rows, and how far they are from each other there and here.
COPY = 6
#: Copies for one array, at most.
MOST_COPIES = 64
#: A call is to take about so many seconds: between calls it is asked whether the run has had its time.
SECONDS = 2e-3


def rounds(m: Module) -> None:
    """`rounds(words)`: rounds as long as the condition holds, and no check fails."""
    f = Function(m, "rounds", (("ptr", "%words"),), exported=True)

    def word(kind: str, name: str) -> str:
        return f.load(kind, "%words", WORDS[name], 8)
    most, many, copies, truth = word("i64", "most"), word("i64", "many"), word("ptr", "copies"), word("ptr", "truth")
    how, sync = word("ptr", "how"), word("ptr", "sync")
    look, end, done = (f.label() for _ in range(3))

    def part(name: str) -> None:
        f.do(f"call void {how}(ptr {sync}, ptr {f.at('%words', WORDS[name])})")
        met = f.load("i64", word("ptr", f"{name}_fault"), 0, 8)
        unless(f.let(f"icmp ne i64 {met}, 0"))

    def unless(ended: str) -> None:
        further = f.label()
        f.do(f"br i1 {ended}, label %{end}, label %{further}")
        f.start(further)
    f.go(look)
    f.start(look)
    f.do(f"%n = phi i64 [ 0, %entry ], [ %next, %{done} ]")
    unless(f.let(f"icmp sge i64 %n, {most}"))
    part("cond")
    unless(f.let(f"icmp eq i8 {f.load('i8', truth, 0, 1)}, 0"))
    part("body")
    f.loop(0, many, 1, [("ptr", copies)], lambda _, now: [copied(f, now[0])])
    f.do("%next = add i64 %n, 1")
    f.go(done)
    f.start(done)
    f.go(look)
    f.start(end)
    f.store("i64", "%n", "%words", WORDS["done"], 8)
    f.finish()


def copied(f: Function, copy: str) -> str:
    """Emit a copy; the address of the next one."""
    to, source = (f.load("ptr", copy, 8 * n, 8) for n in range(2))
    width, count, far, near = (f.load("i64", copy, 8 * n, 8) for n in range(2, COPY))

    def row(_: str, now: list[str]) -> list[str]:
        f.copy(now[0], now[1], width)
        return [f.at(now[0], far), f.at(now[1], near)]
    f.loop(0, count, 1, [("ptr", to), ("ptr", source)], row)
    return f.at(copy, 8 * COPY)


def by_itself(m: Module) -> None:
    """`by_itself(sync, order)`: what `pool.dispatch` does, by this thread alone."""
    f = Function(m, "by_itself", (("ptr", "%sync"), ("ptr", "%order")), exported=True)
    run, arena, weights = (f.load("ptr", "%order", 8 * n, 8) for n in range(3))
    f.do(f"call void {run}(ptr {arena}, ptr {weights}, i64 0, i64 1, ptr null, i64 0)")
    f.finish()


@cache
def _library(machine: Machine) -> Library:
    def write() -> list[str]:
        m = Module(machine)
        rounds(m)
        by_itself(m)
        return [m.text()]
    return Library(made(("rounds",), machine, write), ("rounds", "by_itself"), machine)


def copies(to: Array | None, source: Array) -> Iterator[tuple[int, ...]]:
    """What brings an array to another place, rows in one piece; raises `ValueError` where these are too many."""
    if to is None or to.size == 0 or to.ctypes.data == source.ctypes.data:
        return
    inner, width = to.ndim, to.itemsize
    while inner and (to.shape[inner - 1] == 1 or to.strides[inner - 1] == source.strides[inner - 1] == width):
        inner -= 1
        width *= to.shape[inner]
    rows = (to.shape[inner - 1], to.strides[inner - 1], source.strides[inner - 1]) if inner else (1, 0, 0)
    outer = to.shape[:max(inner - 1, 0)]
    if math.prod(outer) > MOST_COPIES:
        raise ValueError("there are too many copies")
    for at in product(*map(range, outer)):
        begin = (a.ctypes.data + sum(i * s for i, s in zip(at, a.strides, strict=False)) for a in (to, source))
        yield (*begin, width, *rows)


class Rounds:
    """A loop that holds a frame of each of its graphs, for one run at a time.

    It is for values of the sizes of `pair`, the programs of the condition and of the body. Raises `ValueError` where
    these cannot go on by copies alone: see `fitting`.
    """

    def __init__(self, pair: tuple[Ready, Ready]) -> None:
        if not all(len(program.parts) == 1 and isinstance(program.parts[0], Native) for program in pair):
            raise ValueError("NumPy does a part of it")
        self.pair, self._frames = pair, tuple(program.taken() for program in pair)
        cond, body = self._frames
        fitting(cond, body)
        self._table = np.array([copy for n, found in enumerate(body.outputs) for frame in self._frames
                                for copy in copies(frame.inputs[n], found)], np.int64).reshape(-1, COPY)
        library = _library(host())
        self._words = np.zeros(max(WORDS.values()) // 8 + 1, np.int64)
        self._word("cond", *order(pair[0], cond))
        self._word("body", *order(pair[1], body))
        self._word("truth", cond.outputs[0].ctypes.data, cond.fault.ctypes.data, body.fault.ctypes.data,
                   self._table.ctypes.data, len(self._table), 1)
        self._call = partial(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("rounds")),
                             ctypes.c_void_p(self._words.ctypes.data))
        self._alone, self._library = (library.address("by_itself"), 0), library
        self._together = max(program.threads for program in pair) > 1

    def _word(self, name: str, *values: int) -> None:
        at = WORDS[name] // 8
        self._words[at:at + len(values)] = values

    def run(self, values: Sequence[Array | None], allowed: Callable[[int], int]) -> list[Array]:
        """The values after the loop; raises `RunError`.

        `allowed` is told after each call how many rounds there were in all, and says how many more there may be.
        """
        for frame in self._frames:
            for to, value in zip(frame.inputs, values, strict=True):
                if to is not None and value is not None:
                    np.copyto(to, value)
        total, going = 0, True
        while going:
            most = min(int(self._words[WORDS["most"] // 8]), allowed(total))
            self._word("most", most)
            begun = time.perf_counter()
            self._go()
            for frame in self._frames:
                frame.look()
            done = int(self._words[WORDS["done"] // 8])
            total, going = total + done, done == most
            if going and time.perf_counter() - begun < SECONDS:
                self._word("most", 2 * most)
        found = self._frames[1].outputs if total else ()
        return [*(a.copy() for a in found), *map(np.asarray, values[len(found):])]

    def _go(self) -> None:
        if not self._together:
            self._word("how", *self._alone)
            self._call()
            return
        with pool().lent() as way:
            self._word("how", *(way or self._alone))
            self._call()


def order(program: Ready, frame: Frame) -> tuple[int, ...]:
    """The order (see `pool`) of a program's one part."""
    part, (arena, weights) = program.parts[0], frame.kept
    if not isinstance(part, Native):
        raise TypeError(part.name)
    return part.address, arena.ctypes.data, weights.ctypes.data, program.threads, part.waits


def fitting(cond: Frame, body: Frame) -> None:
    """Raise `ValueError` where a value's size changes from round to round, or what a graph gives lies in an input that
    is not its next value: that would be copied too late, or change what stays the same."""
    for n, found in enumerate(body.outputs):
        for i, given in enumerate(body.inputs):
            if given is not None and (i == n and given.shape != found.shape or np.may_share_memory(given, found) and (
                    i != n or given.ctypes.data != found.ctypes.data)):
                raise ValueError("a value does not go on by a copy")
    if any(a is not None and np.may_share_memory(a, cond.outputs[0]) for a in cond.inputs):
        raise ValueError("the condition changes a value")
