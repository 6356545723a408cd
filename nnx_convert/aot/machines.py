"""What code may be made for: a triple, and the features of its processors by one word."""
from __future__ import annotations

from dataclasses import replace

from ..errors import UsageError
from ..runtime.codegen.machine import AARCH64, AMX, AVX2, AVX512, BASELINE, DOTPROD, Machine, host

TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu", "aarch64-linux-android")
#: What processors of an architecture have, by the word that says it; "baseline" is what each of them has.
KNOWN = {"x86_64": {"baseline": BASELINE, "avx2": BASELINE | AVX2, "avx512": BASELINE | AVX512},
         "aarch64": {"baseline": AARCH64, "neon": AARCH64, "dotprod": AARCH64 | DOTPROD}}
FEATURES = tuple(dict.fromkeys((*(word for words in KNOWN.values() for word in words), "host")))


def machine(triple: str | None, features: str) -> Machine:
    """The machine of a triple, by default this one's, whose processors have these features.

    Raises `UsageError` where there is no such machine, or no native code here.
    """
    try:
        here = host()
    except ImportError as error:
        raise UsageError(f"there is no native code here ({error})", hint="install llvmlite") from error
    own = here.triple.partition("-")[0]
    triple = triple or f"{own}-linux-gnu"
    architecture = triple.partition("-")[0]
    if triple not in TRIPLES or architecture not in KNOWN:
        raise UsageError(f"no code is made for {triple}", hint=f"--triple takes {', '.join(TRIPLES)}")
    if features == "host":
        if architecture != own:
            raise UsageError(f"this machine is no {architecture}", hint=f"give --cpu-features {choices(architecture)}")
        # A process has the state of tiles only when it has asked for it, which code alone does not.
        return replace(here, triple=triple, features=here.features - AMX)
    if features not in KNOWN[architecture]:
        raise UsageError(f"{architecture} has no {features}", hint=f"--cpu-features takes {choices(architecture)}")
    return Machine(triple, KNOWN[architecture][features])


def choices(architecture: str) -> str:
    """The words of an architecture."""
    return ", ".join(KNOWN[architecture])
