"""What code is generated for: an architecture by its features, never by a processor's name."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

#: x86-64 features by the level they make; the baseline is what every such processor has.
AVX2 = frozenset({"avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2",
                  "movbe", "xsave"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
BASELINE = frozenset({"sse", "sse2", "cx8", "fxsr", "mmx"})


@dataclass(frozen=True)
class Machine:
    """A target triple and the features that code may use.

    `bits` is the width of a vector register, `registers` how many there are.
    """

    triple: str
    features: frozenset[str]

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
    def amx(self) -> bool:
        """Whether there are tiles of bytes."""
        return self.avx512 and self.features >= {"amx-tile", "amx-int8"}

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
    def fused(self) -> bool:
        """Whether a multiplication and an addition are one instruction, rounded once."""
        return self.avx2 or not self.x86

    @property
    def switches(self) -> str:
        """The features as LLVM takes them."""
        return ",".join(f"+{f}" for f in sorted(self.features))

    def only(self, features: frozenset[str]) -> Machine:
        """The same machine with these features at most, for tests."""
        return Machine(self.triple, self.features & features)


@cache
def host() -> Machine:
    """This machine; raises `ImportError` where there is no llvmlite."""
    import llvmlite.binding as llvm
    found = llvm.get_host_cpu_features()
    return Machine(llvm.get_process_triple(), frozenset(name for name, there in found.items() if there))
