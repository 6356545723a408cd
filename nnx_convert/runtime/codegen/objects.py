"""IR into machine code, and machine code into functions that can be called."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

from .loader import Loaded
from .machine import Machine

#: LLVM's effort in the back end: 0 compiles five times as fast and runs four times as slowly.
EFFORT = 2
_number = count()


@cache
def _llvm() -> Any:
    """The binding, its targets initialised."""
    import llvmlite.binding as llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@cache
def target_machine(machine: Machine) -> Any:
    """LLVM's object for a machine."""
    target = _llvm().Target.from_triple(machine.triple)
    return target.create_target_machine(cpu="", features=machine.switches, opt=EFFORT, reloc="pic",
                                        codemodel="default", jit=False)


def compiled(text: str, machine: Machine) -> bytes:
    """The object file of a module. Raises `RuntimeError` with LLVM's words where the text is none."""
    module = _llvm().parse_assembly(text)
    module.verify()
    found: bytes = target_machine(machine).emit_object(module)
    return found


def assembly(text: str, machine: Machine) -> str:
    """The module as assembly, for tests that look at it."""
    found: str = target_machine(machine).emit_assembly(_llvm().parse_assembly(text))
    return found


class Library:
    """An object file in memory. Its code lives as long as it does."""

    def __init__(self, image: bytes, symbols: Sequence[str], machine: Machine) -> None:
        self._loaded = Loaded(image) if machine.x86 and sys.platform == "linux" else Linked(image, symbols, machine)

    def address(self, symbol: str) -> int:
        """Where a function begins."""
        return self._loaded.address(symbol)


class Linked:
    """An object file linked by LLVM, where `Loaded` does not know the machine."""

    def __init__(self, image: bytes, symbols: Sequence[str], machine: Machine) -> None:
        llvm = _llvm()
        self._jit = llvm.create_lljit_compiler(target_machine(machine))
        builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        self._library = builder.link(self._jit, f"nnx{next(_number)}")

    def address(self, symbol: str) -> int:
        """Where a function begins."""
        found: int = self._library[symbol]
        return found
