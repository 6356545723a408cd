"""What code is generated for: an architecture by its features, never by a processor's name."""
from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from ...frozen import frozen

#: x86-64 features by the level they make; the baseline is what every such processor has.
AVX2 = frozenset({"avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2",
                  "movbe", "xsave"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
AMX = frozenset({"amx-tile", "amx-int8"})
BASELINE = frozenset({"sse", "sse2", "cx8", "fxsr", "mmx"})
#: What every aarch64 has, and products of four signed bytes at once.
AARCH64, DOTPROD, NOTHING = frozenset({"neon"}), frozenset({"dotprod"}), frozenset[str]()
#: What Linux calls a feature (cpufeatures.h of x86, cpuinfo.c of arm64), and LLVM otherwise, and what both call alike.
USED = {"pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "bmi1": "bmi", "abm": "lzcnt", "avx_vnni": "avxvnni",
        "avx512_vnni": "avx512vnni", "avx512_vbmi2": "avx512vbmi2", "avx512_bitalg": "avx512bitalg",
        "avx512_vpopcntdq": "avx512vpopcntdq", "avx512_bf16": "avx512bf16", "avx512_fp16": "avx512fp16",
        "asimddp": "dotprod", "amx_tile": "amx-tile", "amx_int8": "amx-int8", "amx_bf16": "amx-bf16"}
ALIKE = frozenset({"sse", "sse2", "ssse3", "avx", "avx2", "fma", "f16c", "bmi2", "popcnt", "movbe", "xsave", "cmov",
                   "cx8", "cx16", "fxsr", "mmx", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl",
                   "avx512ifma", "avx512vbmi", "gfni"})


@frozen
class Machine:
    """A target triple and the features that code may use.

    `bits` is the width of a vector register, `registers` how many there are. If `fast`, bytes are rounded as `nearest`
    does it.
    """

    triple: str
    features: frozenset[str]
    fast: bool = False

    @property
    def x86(self) -> bool:
        """Whether it is an x86-64."""
        return self.triple.startswith("x86_64")

    @property
    def avx512(self) -> bool:
        """Whether vectors have 512 bits."""
        return self.x86 and self.features >= AVX512

    @property
    def avx2(self) -> bool:
        """Whether vectors have 256 bits and products are fused."""
        return self.x86 and self.features >= AVX2

    @property
    def vnni(self) -> bool:
        """Whether there are products of four bytes at once in vectors of 512 bits."""
        return self.avx512 and "avx512vnni" in self.features

    @property
    def vbmi(self) -> bool:
        """Whether bytes are picked out of two vectors of 64."""
        return self.avx512 and "avx512vbmi" in self.features

    @property
    def sums_pairs(self) -> bool:
        """Whether products of two integers of 16 bits and their sum are one instruction."""
        return self.vnni or self.avx2 and not self.avx512 and "avxvnni" in self.features

    @property
    def quads(self) -> bool:
        """Whether there are products of four bytes at once in all vectors: see `integers.quads`."""
        return self.vnni or not self.x86 and self.features >= DOTPROD

    @property
    def amx(self) -> bool:
        """Whether there are tiles of bytes."""
        return self.vnni and self.features >= AMX

    @property
    def bits(self) -> int:
        """The width of a vector register."""
        return 512 if self.avx512 else 256 if self.avx2 else 128

    @property
    def lanes(self) -> int:
        """FLOAT32 elements in a vector register."""
        return self.bits // 32

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.avx512 or not self.x86 else 16

    @property
    def constraint(self) -> str:
        """What `asm` calls any of them; on x86, "x" is one of the first 16."""
        return "w" if not self.x86 else "v" if self.avx512 else "x"

    @property
    def fused(self) -> bool:
        """Whether a multiplication and an addition are one instruction, rounded once."""
        return self.avx2 or not self.x86

    @property
    def switches(self) -> str:
        """The features as LLVM takes them."""
        return ",".join(f"+{f}" for f in sorted(self.features))

    def only(self, features: frozenset[str]) -> Machine:
        """The same machine with these features at most, for tests."""
        return replace(self, features=self.features & features)


@cache
def host() -> Machine:
    """This machine; raises `ImportError` where there is no llvmlite.

    It is asked last, as its import takes longer than a model that is compiled already.
    """
    if find_spec("llvmlite") is None:
        raise ImportError("there is no llvmlite")
    architecture = os.uname().machine if sys.platform == "linux" else ""
    known = told() if architecture in ("x86_64", "aarch64") else None
    if architecture == "aarch64":
        known = AARCH64 | DOTPROD & (known or NOTHING)
    if known is not None:
        tiles = known >= AMX and permitted()
        usable = frozenset(f for f in known if tiles or not f.startswith("amx"))
        return Machine(f"{architecture}-unknown-linux-gnu", usable)
    import llvmlite.binding as llvm
    found = llvm.get_host_cpu_features()
    return Machine(llvm.get_process_triple(), frozenset(name for name, there in found.items() if there))


def permitted() -> bool:
    """Ask Linux for the state of tiles, which a process has only when it has asked, for all of its threads."""
    ask, number, state = 158, 0x1023, 18         # arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return bool(ctypes.CDLL(None).syscall(*map(ctypes.c_long, (ask, number, state))) == 0)


def told(path: str = "/proc/cpuinfo") -> frozenset[str] | None:
    """The features that Linux tells of a processor, those that code may use; None where it tells nothing."""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, flags = line.partition(":")
            if name.strip() in ("flags", "Features"):
                there = set(flags.split())
                return frozenset(USED.get(flag, flag) for flag in there if flag in USED or flag in ALIKE)
    return None
