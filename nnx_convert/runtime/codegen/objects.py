"""IR into machine code, and machine code into functions that can be called."""
from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from ctypes import string_at
from functools import cache, partial
from itertools import accumulate, count, pairwise
from typing import Any

from ...errors import RunError
from ..forks import beside
from .cache import key, user_cache
from .loader import Loaded
from .machine import Machine

#: LLVM's effort in the back end: 0 compiles five times as fast and runs four times as slowly.
EFFORT = 2
_number = count()
#: Held while LLVM compiles. A fork waits for it, or locks inside LLVM would stay locked in the child.
_compiling = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_compiling.acquire, after_in_parent=_compiling.release,
                        after_in_child=_compiling.release)


@cache
def _llvm() -> Any:
    """The binding, its targets initialised; raises `RunError` where it is there and cannot be loaded."""
    try:
        import llvmlite.binding as llvm
    except OSError as error:                       # the library itself: broken, or no room for it in memory
        raise RunError(f"LLVM cannot be loaded: {error}", hint="more memory, llvmlite installed again, or NumPy as the "
                                                               "backend") from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def target_machine(machine: Machine) -> Any:
    """A new object of LLVM's for a machine; one thread at a time may use it."""
    target = _llvm().Target.from_triple(machine.triple)
    return target.create_target_machine(cpu="", features=machine.switches, opt=EFFORT, reloc="pic",
                                        codemodel="default", jit=False)


def compiled(texts: str | Sequence[str], machine: Machine) -> tuple[bytes, ...]:
    """The object files of modules that may call each other's functions, each made by a thread of its own.

    Raises `RuntimeError` with LLVM's words where a text is none.
    """
    texts = [texts] if isinstance(texts, str) else texts
    with _compiling, ExitStack() as ends:
        others = [beside(partial(_object, text, machine)) for text in texts[1:]]
        for other in others:
            ends.callback(other)                     # whatever one raises, nobody is in LLVM when this ends
        return _object(texts[0], machine), *(other() for other in others)


def _object(text: str, machine: Machine) -> bytes:
    llvm = _llvm()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return _emitted(target_machine(machine), module)


def _emitted(target: Any, module: Any) -> bytes:
    """The module's object file. The binding lets one thread at a time into LLVM, which takes many as long as each
    has a context and a target of its own: so its lock is passed by where it can be."""
    from llvmlite.binding import ffi
    emit = getattr(ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if emit is None:
        whole: bytes = target.emit_object(module)
        return whole
    with ffi.OutputString() as error:
        buffer = emit(target, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def made(parts: Iterable[str], machine: Machine, write: Callable[[], Sequence[str]]) -> tuple[bytes, ...]:
    """The object files of what `parts` tell all of: those that are kept, else those of the modules `write` gives."""
    there = user_cache()
    name = None if there is None else key((machine.triple, machine.switches, *parts))
    if there is None or name is None:
        return compiled(write(), machine)
    data = there.find(name)
    if data is not None:
        return apart(data)
    found = compiled(write(), machine)
    there.keep(name, together(found))
    return found


def together(images: Sequence[bytes]) -> bytes:
    """Object files as one: how many, their lengths (32 bits each, little-endian), then all of them."""
    return struct.pack(f"<{1 + len(images)}I", len(images), *map(len, images)) + b"".join(images)


def apart(data: bytes) -> tuple[bytes, ...]:
    """The object files that `together` joined; raises `ValueError` where it did not make these bytes."""
    try:
        count, = struct.unpack_from("<I", data)
        ends = tuple(accumulate(struct.unpack_from(f"<{count}I", data, 4), initial=4 + 4 * count))
    except struct.error as error:
        raise ValueError("are no files joined to one") from error
    if ends[-1] != len(data):
        raise ValueError("are no files joined to one")
    return tuple(data[a:b] for a, b in pairwise(ends))


def assembly(text: str, machine: Machine) -> str:
    """The module as assembly, for tests that look at it."""
    found: str = target_machine(machine).emit_assembly(_llvm().parse_assembly(text))
    return found


class Library:
    """Object files in memory. Their code lives as long as it does."""

    def __init__(self, images: Sequence[bytes], symbols: Sequence[str], machine: Machine) -> None:
        own = sys.platform == "linux" and machine.triple.startswith(("x86_64", "aarch64"))
        self._loaded = Loaded(images) if own else Linked(images, symbols, machine)

    def address(self, symbol: str) -> int:
        """Where a function begins."""
        return self._loaded.address(symbol)


class Linked:
    """Object files linked by LLVM, where `Loaded` does not know the machine."""

    def __init__(self, images: Sequence[bytes], symbols: Sequence[str], machine: Machine) -> None:
        llvm = _llvm()
        self._jit = llvm.create_lljit_compiler(target_machine(machine))
        builder = llvm.JITLibraryBuilder().add_current_process()
        for image in images:
            builder.add_object_img(image)
        for symbol in symbols:
            builder.export_symbol(symbol)
        self._library = builder.link(self._jit, f"nnx{next(_number)}")

    def address(self, symbol: str) -> int:
        """Where a function begins."""
        found: int = self._library[symbol]
        return found
