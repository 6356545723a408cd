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

from ...errors import RunError
from ...types import Array
from .ir import Function, Module
from .machine import Machine, host
from .objects import Library, made
from .pool import ORDER, pool
from .ready import Frame, Native, Ready

#: The words of what a call is told: the orders (see `pool`) of the condition, if it is a graph, and of the body; then
#: where the answer to whether there is another round is, where each graph says what it met, the copies, how many, how
#: many rounds at most and how many there were, where they are counted, if anywhere, and what does an order with what it
#: takes first.
WORDS = {name: 8 * at for name, at in (("cond", 0), ("body", len(ORDER)), *zip(
    ("truth", "cond_fault", "body_fault", "copies", "many", "most", "done", "count", "how", "sync"),
    range(2 * len(ORDER), 2 * len(ORDER) + 10), strict=True))}
#: A copy: to, from, bytes of a row, rows, how far they are from each other there and here, and how far the next round's
#: are from this one's there.
COPY = 7
#: Copies for one array, at most.
MOST_COPIES = 64
#: A call is to take about so many seconds: between calls it is asked whether the run has had its time.
SECONDS = 2e-3


def word(f: Function, kind: str, name: str) -> str:
    """A word of a call."""
    return f.load(kind, "%words", WORDS[name], 8)


def unless(f: Function, ended: str, end: str) -> None:
    """Go on, unless a truth value says that the call ends."""
    further = f.label()
    f.do(f"br i1 {ended}, label %{end}, label %{further}")
    f.start(further)


def graph(f: Function, name: str, end: str) -> None:
    """Do the condition or the body; what it cannot do ends the call."""
    how, sync = (word(f, "ptr", n) for n in ("how", "sync"))
    f.do(f"call void {how}(ptr {sync}, ptr {f.at('%words', WORDS[name])})")
    met = f.load("i64", word(f, "ptr", f"{name}_fault"), 0, 8)
    unless(f, f.let(f"icmp ne i64 {met}, 0"), end)


def rounds(m: Module) -> None:
    """`rounds(words)`: rounds as long as there is another one, and no check fails.

    With a condition, that is asked before each round; without one, the body answers for the next.
    """
    f = Function(m, "rounds", (("ptr", "%words"),), exported=True)
    most, many, copies, count = (word(f, kind, n) for kind, n in (("i64", "most"), ("i64", "many"), ("ptr", "copies"),
                                                                  ("ptr", "count")))
    asked, counted = (f.let(f"icmp ne ptr {p}, null") for p in (word(f, "ptr", "cond"), count))
    look, end, done = (f.label() for _ in range(3))

    def answer() -> None:
        unless(f, f.let(f"icmp eq i8 {f.load('i8', word(f, 'ptr', 'truth'), 0, 1)}, 0"), end)

    def ask() -> None:
        graph(f, "cond", end)
        answer()
    f.store("i64", "0", "%words", WORDS["done"], 8)
    f.go(look)
    f.start(look)
    f.do(f"%n = phi i64 [ 0, %entry ], [ %next, %{done} ]")
    unless(f, f.let(f"icmp sge i64 %n, {most}"), end)
    f.when(asked, ask)
    graph(f, "body", end)
    f.loop(0, many, 1, [("ptr", copies)], lambda _, now: [copied(f, now[0])])
    f.when(counted, lambda: f.store("i64", f.add(f.load("i64", count, 0, 8), 1), count, 0, 8))
    f.do("%next = add i64 %n, 1")
    f.store("i64", "%next", "%words", WORDS["done"], 8)
    f.when(asked, lambda: None, answer)
    f.go(done)
    f.start(done)
    f.go(look)
    f.start(end)
    f.finish()


def copied(f: Function, copy: str) -> str:
    """Emit a copy; the address of the next one."""
    to, source = (f.load("ptr", copy, 8 * n, 8) for n in range(2))
    width, count, far, near, further = (f.load("i64", copy, 8 * n, 8) for n in range(2, COPY))

    def row(_: str, now: list[str]) -> list[str]:
        f.copy(now[0], now[1], width)
        return [f.at(now[0], far), f.at(now[1], near)]
    f.loop(0, count, 1, [("ptr", to), ("ptr", source)], row)
    f.store("ptr", f.at(to, further), copy, 0, 8)
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


def copies(to: Array | None, source: Array, further: int = 0) -> Iterator[tuple[int, ...]]:
    """What brings an array to another place, rows in one piece; raises `ValueError` where these are too many, or the
    place is of another size. Each time it is done, the place is so many bytes further."""
    if to is not None and to.shape != source.shape:
        raise ValueError("a size changes")
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
        yield (*begin, width, *rows, further)


class Rounds:
    """A loop that holds a frame of each of its graphs, the body's last, for one run at a time.

    It is for values of the sizes of `programs`, those of these graphs. Raises `ValueError` where they cannot go on by
    copies alone: see `fitting`.
    """

    def __init__(self, programs: tuple[Ready, ...]) -> None:
        if not all(len(program.parts) == 1 and isinstance(program.parts[0], Native) for program in programs):
            raise ValueError("NumPy does a part of it")
        self.programs, self._frames = programs, [program.taken() for program in programs]
        self._body, library = self._frames[-1], _library(host())
        self._words = np.zeros(max(WORDS.values()) // 8 + 1, np.int64)
        for name, program, frame in zip(("body", "cond"), programs[::-1], self._frames[::-1], strict=False):
            self._word(name, *order(program, frame))
        self._word("truth", self._frames[0].outputs[0].ctypes.data, self._frames[0].fault.ctypes.data,
                   self._body.fault.ctypes.data)
        self._word("most", 1)
        self._call = partial(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("rounds")),
                             ctypes.c_void_p(self._words.ctypes.data))
        self._alone, self._library = (library.address("by_itself"), 0), library
        self._together = max(program.threads for program in programs) > 1
        self._table = np.empty((0, COPY), np.int64)

    def _word(self, name: str, *values: int) -> None:
        at = WORDS[name] // 8
        self._words[at:at + len(values)] = values

    def _enter(self, values: Sequence[Array | None]) -> None:
        for frame in self._frames:
            for to, value in zip(frame.inputs, values, strict=True):
                if to is not None and value is not None:
                    np.copyto(to, value)

    def _copy(self, table: Sequence[tuple[int, ...]]) -> None:
        """What is copied after each round, from now on."""
        self._table = np.array(table, np.int64).reshape(-1, COPY)
        self._word("copies", self._table.ctypes.data, len(self._table))

    def _some(self, left: int) -> tuple[int, bool]:
        """As many rounds as a call does, of those that are left: how many there were, and whether it stopped there."""
        most, begun = min(int(self._words[WORDS["most"] // 8]), left), time.perf_counter()
        self._word("most", most)
        self._go()
        try:
            for frame in self._frames:
                frame.look()
        except RunError as error:
            raise error.at("subgraph") from error
        done = int(self._words[WORDS["done"] // 8])
        if done == most and time.perf_counter() - begun < SECONDS:
            self._word("most", 2 * most)
        return done, done < most

    def _go(self) -> None:
        if not self._together:
            self._word("how", *self._alone)
            self._call()
            return
        with pool().lent() as way:
            self._word("how", *(way or self._alone))
            self._call()


class Asking(Rounds):
    """Of a condition and a body."""

    def __init__(self, programs: tuple[Ready, ...]) -> None:
        super().__init__(programs)
        cond, body = self._frames
        fitting(body.inputs, body.outputs)
        if any(a is not None and np.may_share_memory(a, cond.outputs[0]) for a in cond.inputs):
            raise ValueError("the condition changes a value")
        self._copy([copy for n, found in enumerate(body.outputs) for frame in self._frames
                    for copy in copies(frame.inputs[n], found)])

    def run(self, values: Sequence[Array | None], left: Callable[[int], int]) -> list[Array]:
        """The values after the loop; raises `RunError`.

        `left` is told before each call how many rounds there were, and says how many more there may be.
        """
        self._enter(values)
        total, over = 0, False
        while not over:
            done, over = self._some(left(total))
            total += done
        found = self._body.outputs if total else ()
        return [*(a.copy() for a in found), *map(np.asarray, values[len(found):])]


class Counting(Rounds):
    """Of a body that is told the round and a truth, and answers whether there is another one; then the states come,
    and what each round gives beside. `parts` are where the last begin."""

    def __init__(self, programs: tuple[Ready, ...], parts: int) -> None:
        super().__init__(programs)
        self._parts = self._body.outputs[parts:]
        self._states = self._body.outputs[1:parts]
        fitting(self._body.inputs[2:], self._states)
        answer, given = self._body.outputs[0], self._body.inputs
        if answer.size != 1 or any(np.may_share_memory(a, b) for a in (answer, *self._parts) for b in given
                                   if b is not None):
            raise ValueError("something else lies in a value")
        self._moved = [copy for to, a in zip(given[2:], self._states, strict=False) for copy in copies(to, a)]
        if given[0] is not None:
            self._word("count", given[0].ctypes.data)

    @property
    def size(self) -> int:
        """The bytes that a round gives beside."""
        return sum(a.nbytes for a in self._parts)

    def run(self, values: Sequence[Array | None], left: Callable[[int, int], int]
            ) -> tuple[list[Array], list[list[Array]]]:
        """The states after some rounds, at least one, and what the rounds of each call gave beside, along a new first
        axis. Raises `RunError`.

        `left` is told before each call how many rounds there were, and how many a call would do, and says how many of
        these there may be; 0 ends the loop.
        """
        self._enter(values)
        total, over, found = 0, False, list[list[Array]]()
        while not over and (most := left(total, int(self._words[WORDS["most"] // 8]))):
            rows = [np.empty((most, *a.shape), a.dtype) for a in self._parts]
            self._copy([*(copy for to, a in zip(rows, self._parts, strict=True)
                          for copy in copies(to[0], a, to.strides[0])), *self._moved])
            done, over = self._some(most)
            over = over or not self._body.outputs[0].all()
            found.append([a[:done] for a in rows])
            total += done
        return [a.copy() for a in self._states], found


def order(program: Ready, frame: Frame) -> tuple[int, ...]:
    """The order (see `pool`) of a program's one part."""
    part, (arena, weights) = program.parts[0], frame.kept
    if not isinstance(part, Native):
        raise TypeError(part.name)
    return part.address, arena.ctypes.data, weights.ctypes.data, program.threads, part.waits


def fitting(given: Sequence[Array | None], found: Sequence[Array]) -> None:
    """Raise `ValueError` where what a graph gives lies in an input that is not its next value: that would be copied too
    late, or change what stays the same."""
    for n, a in enumerate(found):
        for i, to in enumerate(given):
            if to is not None and np.may_share_memory(to, a) and (i != n or to.ctypes.data != a.ctypes.data):
                raise ValueError("a value does not go on by a copy")
