"""Threads for native code: workers that wait in native code without the interpreter's lock.

A worker spins for a short while on a word of its own, then sleeps on a semaphore. One run at a time has the
workers; a run that meets another one is done by its own thread alone.

A call is prepared as an order, a few words in memory: handing numbers to native code one by one costs Python more
than a small model's whole run.
"""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

import numpy as np

from ..blas import cores
from .ir import Function, Module
from .machine import Machine, host
from .objects import Library, made

#: What a native function is: (arena, weights, thread, threads, sync, base).
RUN = (("ptr", "%arena"), ("ptr", "%weights"), ("i64", "%thread"), ("i64", "%threads"), ("ptr", "%sync"),
       ("i64", "%base"))
#: Turns of spinning before a thread lets others run (in a barrier: about ten microseconds, as the one it waits for may
#: want this very core) or sleeps (between runs: about a millisecond).
TURNS, PATIENCE = 200, 20000
#: The sync block: the barrier's counter, the addresses of what the C library does, how many threads there are, and
#: the arrivals at barriers of all runs before.
COUNTER, YIELD, WAIT, POST, MANY, BASE = 0, 64, 72, 80, 88, 96
#: The mailbox of a worker: how much it was sent, whether it sleeps, its semaphore, its work (run, then run's
#: arguments), how much it has done.
BOXES, BOX = 1024, 320
SENT, ASLEEP, SEMAPHORE, WORK, DONE = 0, 64, 128, 192, 256


def barrier(m: Module) -> str:
    """The function in which threads wait for each other: (sync, count of arrivals to wait for, threads)."""
    def build(name: str) -> None:
        f = Function(m, name, (("ptr", "%sync"), ("i64", "%target"), ("i64", "%threads")))
        alone = f.let("icmp ule i64 %threads, 1")
        arrive, look, wait, rest, turn, end = (f.label() for _ in range(6))
        f.do(f"br i1 {alone}, label %{end}, label %{arrive}")
        f.start(arrive)
        f.let("atomicrmw add ptr %sync, i64 1 acq_rel")
        f.go(look)
        f.start(look)
        f.do(f"%n = phi i64 [ 0, %{arrive} ], [ %next, %{turn} ], [ 0, %{rest} ]")
        there = f.let("load atomic i64, ptr %sync acquire, align 8")
        f.do(f"br i1 {f.let(f'icmp uge i64 {there}, %target')}, label %{end}, label %{wait}")
        f.start(wait)
        f.do("%next = add i64 %n, 1")
        f.do(f"br i1 {f.let(f'icmp ugt i64 %next, {TURNS}')}, label %{rest}, label %{turn}")
        f.start(rest)
        f.let(f"call i32 {f.load('ptr', '%sync', YIELD, 8)}()")
        f.go(look)
        f.start(turn)
        pause(f)
        f.go(look)
        f.start(end)
        f.finish()
    return m.once(("barrier",), build)


def pause(f: Function) -> None:
    """Tell the core that this thread waits."""
    if f.machine.x86:
        f.module.declare("declare void @llvm.x86.sse2.pause()")
        f.do("call void @llvm.x86.sse2.pause()")
    else:
        f.module.declare("declare void @llvm.aarch64.hint(i32)")
        f.do("call void @llvm.aarch64.hint(i32 1)")


def worker(m: Module) -> None:
    """`worker(sync, thread)`: do what comes into the mailbox, for ever."""
    f = Function(m, "worker", (("ptr", "%sync"), ("i64", "%thread")), exported=True)
    box = f.at("%sync", f.add(f.mul("%thread", BOX), BOXES))
    asleep, semaphore = f.at(box, ASLEEP), f.at(box, SEMAPHORE)
    look, wait, tired, sleep, work = (f.label() for _ in range(5))
    f.go(look)
    f.start(look)
    f.do(f"%last = phi i64 [ 0, %entry ], [ %now, %{work} ], [ %last, %{wait} ], [ %last, %{tired} ], "
         f"[ %last, %{sleep} ]")
    f.do(f"%n = phi i64 [ 0, %entry ], [ 0, %{work} ], [ %next, %{wait} ], [ 0, %{tired} ], [ 0, %{sleep} ]")
    f.do(f"%now = load atomic i64, ptr {box} acquire, align 8")
    f.do(f"br i1 {f.let('icmp eq i64 %now, %last')}, label %{wait}, label %{work}")
    f.start(wait)
    f.do("%next = add i64 %n, 1")
    pause(f)
    f.do(f"br i1 {f.let(f'icmp ugt i64 %next, {PATIENCE}')}, label %{tired}, label %{look}")
    f.start(tired)
    f.do(f"store atomic i64 1, ptr {asleep} seq_cst, align 8")
    again = f.let(f"load atomic i64, ptr {box} seq_cst, align 8")
    f.do(f"br i1 {f.let(f'icmp eq i64 {again}, %last')}, label %{sleep}, label %{look}")
    f.start(sleep)
    f.let(f"call i32 {f.load('ptr', '%sync', WAIT, 8)}(ptr {semaphore})")
    f.go(look)
    f.start(work)
    run, arena, weights, threads, base = (f.load(kind, box, WORK + 8 * i, 8)
                                          for i, kind in enumerate(("ptr", "ptr", "ptr", "i64", "i64")))
    f.do(f"call void {run}(ptr {arena}, ptr {weights}, i64 %thread, i64 {threads}, ptr %sync, i64 {base})")
    f.do(f"store atomic i64 %now, ptr {f.at(box, DONE)} release, align 8")
    f.go(look)
    f.finish()


#: An order: the function, its arena and weights, how many threads it is for, and the barriers it has.
ORDER = ("ptr", "ptr", "ptr", "i64", "i64")


def ordered(f: Function) -> list[str]:
    """The words of an order."""
    return [f.load(kind, "%order", 8 * i, 8) for i, kind in enumerate(ORDER)]


def alone(m: Module) -> None:
    """`alone(order)`: the run, by this thread."""
    f = Function(m, "alone", (("ptr", "%order"),), exported=True)
    run, arena, weights, _, _ = ordered(f)
    f.do(f"call void {run}(ptr {arena}, ptr {weights}, i64 0, i64 1, ptr null, i64 0)")
    f.finish()


def dispatch(m: Module) -> None:
    """`dispatch(sync, order)`: the run, by this thread as the first of those there are."""
    f = Function(m, "dispatch", (("ptr", "%sync"), ("ptr", "%order")), exported=True)
    run, arena, weights, most, waits = ordered(f)
    threads, base = f.least(most, f.load("i64", "%sync", MANY, 8)), f.load("i64", "%sync", BASE, 8)

    def send(thread: str, _: list[str]) -> None:
        box = f.at("%sync", f.add(f.mul(thread, BOX), BOXES))
        given = (("ptr", run), ("ptr", arena), ("ptr", weights), ("i64", threads), ("i64", base))
        for i, (kind, value) in enumerate(given):
            f.store(kind, value, box, WORK + 8 * i, 8)
        f.let(f"atomicrmw add ptr {f.at(box, SENT)}, i64 1 seq_cst")
        slept = f.let(f"atomicrmw xchg ptr {f.at(box, ASLEEP)}, i64 0 seq_cst")

        def wake() -> None:
            f.let(f"call i32 {f.load('ptr', '%sync', POST, 8)}(ptr {f.at(box, SEMAPHORE)})")
        f.when(f.let(f"icmp ne i64 {slept}, 0"), wake)
    f.loop(1, threads, 1, [], send)
    f.do(f"call void {run}(ptr {arena}, ptr {weights}, i64 0, i64 {threads}, ptr %sync, i64 {base})")
    f.loop(1, threads, 1, [], lambda thread, _: join(f, thread))
    f.store("i64", f.add(base, f.mul(waits, threads)), "%sync", BASE, 8)
    f.finish()


def join(f: Function, thread: str) -> None:
    """Wait until a worker has left the function that it was sent: its caller may free the code."""
    box = f.at("%sync", f.add(f.mul(thread, BOX), BOXES))
    sent, before, look, wait, rest, end = f.load("i64", box, SENT, 8), f.block, *(f.label() for _ in range(4))
    f.go(look)
    f.start(look)
    f.do(f"%turn = phi i64 [ 0, %{before} ], [ %further, %{wait} ], [ 0, %{rest} ]")
    there = f.let(f"load atomic i64, ptr {f.at(box, DONE)} acquire, align 8")
    f.do(f"br i1 {f.let(f'icmp eq i64 {there}, {sent}')}, label %{end}, label %{wait}")
    f.start(wait)
    f.do("%further = add i64 %turn, 1")
    pause(f)
    f.do(f"br i1 {f.let(f'icmp ugt i64 %further, {TURNS}')}, label %{rest}, label %{look}")
    f.start(rest)
    f.let(f"call i32 {f.load('ptr', '%sync', YIELD, 8)}()")
    f.go(look)
    f.start(end)


@cache
def _library(machine: Machine) -> Library:
    """What all runs need; asked for by one thread at a time, or one would have the code of a library that is freed."""
    def write() -> list[str]:
        m = Module(machine)
        worker(m)
        dispatch(m)
        alone(m)
        return [m.text()]
    return Library(made(("pool",), machine, write), ("worker", "dispatch", "alone"), machine)


def _alone() -> Any:
    """The function `alone`."""
    if not _single:
        with _making:
            if not _single:
                _single.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_library(host()).address("alone")))
    return _single[0]


def prepared(function: int, arena: int, weights: int, threads: int, waits: int) -> Callable[[], None]:
    """The call of a native function by so many threads, with as many barriers as it has."""
    words = np.array([function, arena, weights, threads, waits], np.int64)
    order = ctypes.c_void_p(words.ctypes.data)
    order.words = words                                 # type: ignore[attr-defined]  # they live as long as it does
    return partial(_alone(), order) if threads == 1 else partial(_together, order)


def _together(order: ctypes.c_void_p) -> None:
    pool().run(order)


class Pool:
    """The workers of this process, as many as it has cores but one. `run` does an order."""

    def __init__(self) -> None:
        self.threads = cores()
        self._lock = threading.Lock()
        self._state = np.zeros(BOXES + BOX * self.threads + 64, np.uint8)
        self._sync = self._state.ctypes.data + -self._state.ctypes.data % 64
        self._workers: list[threading.Thread] = []
        self._core = -1                                 # the workers keep off it
        self._library = _library(host())
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self._dispatch = partial(prototype(self._library.address("dispatch")), ctypes.c_void_p(self._sync))
        ctypes.c_int64.from_address(self._sync + MANY).value = self.threads
        for kept in (self._library, self._state):       # workers are in them until the process ends
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        self._start()

    def _start(self) -> None:
        libc = ctypes.CDLL(None)
        for offset, name in ((YIELD, "sched_yield"), (WAIT, "sem_wait"), (POST, "sem_post")):
            address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
            ctypes.c_void_p.from_address(self._sync + offset).value = address
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._library.address("worker"))
        for n in range(1, self.threads):
            libc.sem_init(ctypes.c_void_p(self._sync + BOXES + BOX * n + SEMAPHORE), 0, 0)
            worker = threading.Thread(target=run, args=(self._sync, n), daemon=True, name=f"nnx-{n}")
            worker.start()
            self._workers.append(worker)
        self._here = getattr(libc, "sched_getcpu", lambda: -1)

    def _spread(self) -> None:
        """Keep the workers off the core of this thread.

        Linux may wake a worker on the core of the thread that waits for it and leave both there for milliseconds.
        """
        core = self._here()
        if core == self._core:
            return
        self._core = core
        others = os.sched_getaffinity(os.getpid()) - {core} if hasattr(os, "sched_setaffinity") else set()
        for worker in self._workers if others else ():
            with suppress(OSError):
                os.sched_setaffinity(worker.native_id or 0, others)

    def run(self, order: ctypes.c_void_p) -> None:
        """Do an order; by this thread alone where another run has the workers."""
        if self._lock.acquire(blocking=False):
            try:
                self._spread()
                self._dispatch(order)
            finally:
                self._lock.release()
        else:
            _alone()(order)

    @contextmanager
    def lent(self) -> Iterator[tuple[int, int] | None]:
        """Where `dispatch` is and what it takes first, for native code; None where another run has the workers."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            self._spread()
            yield self._library.address("dispatch"), self._sync
        finally:
            self._lock.release()


_pool: list[Any] = []
_single: list[Any] = []
#: Held while what there is once in a process is made; making a pool takes the library.
_making = threading.RLock()


def pool() -> Pool:
    """The pool of this process."""
    if not _pool:
        with _making:
            if not _pool:
                _pool.append(Pool())
    found: Pool = _pool[0]
    return found


def _forked() -> None:
    """A child has no threads but the one that forked: it makes a pool of its own when it needs one."""
    global _making  # noqa: PLW0603  (a lock that another thread held would stay locked)
    _making = threading.RLock()
    _pool.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
