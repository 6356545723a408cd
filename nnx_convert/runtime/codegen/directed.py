"""How a thread's processor treats floats: as it comes from its maker during a run, or rounding toward zero for a task.

What loads a library that was compiled with -ffast-math, or asks for it, has threads that take denormals for 0; what
looks for faults has threads that end with them. A run gives the same there.

AVX-512 has roundings of instructions; elsewhere a task sets the state of its thread, and gives it back at its end.
LLVM takes arithmetic for something that it may do before or after: so what is rounded is in functions of its own,
which are called in between.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...types import Array
from .ir import Function

#: MXCSR at the start of a process: to the nearest, denormals kept, no exception ends it.
ORDINARY = 0x1F80
#: The two bits of MXCSR that cut (SDM vol. 1, 10.2.3), and the number of that rounding in `llvm.set.rounding`.
CUTTING, TOWARD_ZERO = 0x6000, 0
#: What LLVM calls the instructions that write MXCSR to memory and read it from there.
WRITTEN, READ = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"


def ordinary(f: Function, body: Callable[[], None]) -> None:
    """Write `body`, whose calls compute with floats in the ordinary way, on x86-64 whatever state the thread is in; it
    has that state again at the end. From the function's first block."""
    if not f.machine.x86:
        body()
        return
    _in_state(f, body, lambda _: str(ORDINARY))


def toward_zero(f: Function, body: Callable[[], None]) -> None:
    """Write `body`, whose calls compute with floats that are rounded toward zero; from the function's first block."""
    if not f.machine.x86:
        before = f.call("i32", "llvm.get.rounding")
        f.module.declare("declare void @llvm.set.rounding(i32)")
        f.do(f"call void @llvm.set.rounding(i32 {TOWARD_ZERO})")
        body()
        f.do(f"call void @llvm.set.rounding(i32 {before})")
        return
    _in_state(f, body, lambda before: f.let(f"or i32 {before}, {CUTTING}"))


def _in_state(f: Function, body: Callable[[], None], state: Callable[[str], str]) -> None:
    """Write `body` with another MXCSR, made of the one before, which is there again behind it."""
    for name in (WRITTEN, READ):
        f.module.declare(f"declare void @{name}(ptr)")
    old, new = (f.let("alloca i32, align 4") for _ in range(2))
    f.do(f"call void @{WRITTEN}(ptr {old})")
    f.store("i32", state(f.load("i32", old)), new)
    f.do(f"call void @{READ}(ptr {new})")
    body()
    f.do(f"call void @{READ}(ptr {old})")


def single(x: Array, cut: bool) -> Array:
    """Numbers of FLOAT64 as FLOAT32: the nearest, or if `cut` the next toward zero."""
    found = x.astype(np.float32)
    return np.where(np.abs(found) > np.abs(x), np.nextafter(found, np.float32(0)), found) if cut else found
