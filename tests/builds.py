"""What builds and runs exported code here: for this machine the C compiler, for aarch64 a cross compiler and qemu."""
from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cross import COMPILER, EMULATOR, MISSING as CROSS

STRICT = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
#: What is missing of what builds programs for this machine.
MISSING = tuple(name for name in ("gcc", "g++", "cmake") if shutil.which(name) is None)


@dataclass(frozen=True)
class Build:
    """A machine by the options of the command, its compiler, and what runs its programs."""

    triple: str
    features: str
    compiler: str = "gcc"
    runner: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command."""
        return "--triple", self.triple, "--cpu-features", self.features

    def program(self, folder: Path, *sources: Path) -> Path:
        """A program of sources, with all code and assembly in the folder."""
        made = folder / "program"
        parts = (*sources, *sorted(folder.glob("*.S")), *sorted(folder.glob("*.o")))
        subprocess.run([self.compiler, *STRICT, "-static", f"-I{folder}", "-o", str(made), *map(str, parts), "-lm"],
                       check=True, cwd=folder)
        return made

    def run(self, program: Path, *words: str) -> tuple[int, str]:
        """What it ends with, and what it says."""
        done = subprocess.run([*self.runner, str(program), *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


OWN = f"{platform.machine()}-linux-gnu"
NATIVE = [Build(OWN, features) for features in ("baseline", "host")]
ARM = [Build("aarch64-linux-gnu", features, COMPILER, (EMULATOR, "-cpu", "max")) for features in ("neon", "dotprod")]
#: The machines there are here.
BUILDS: Sequence[Build] = [*([] if MISSING else NATIVE), *([] if CROSS else ARM)]
