"""Profiled code: the machine's counter kept between tasks, in an area of the arena that only profiled programs have."""
from __future__ import annotations


from ...frozen import frozen
from .ir import SHARED, Function, Module

#: Bytes of a stamp: an unsigned integer of so many ticks.
STAMP = 8


@frozen
class Stamp:
    """The first thread stores the counter (ticks of a constant rate, unsigned) at an offset in the arena."""

    offset: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            # x86 counts at a constant rate in its cycle counter, others in the steady one.
            counter = "llvm.readcyclecounter" if m.machine.x86 else "llvm.readsteadycounter"
            m.declare(f"declare i64 @{counter}()")
            f.when(f.let("icmp eq i64 %thread, 0"),
                   lambda: f.store("i64", f.let(f"call i64 @{counter}()"), "%arena", self.offset, STAMP))
            f.finish()
        return m.once(("stamp", self), build)
