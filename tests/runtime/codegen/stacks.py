"""What code keeps of vectors on the stack."""
from __future__ import annotations

import re

from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.objects import assembly

#: A vector register and an address on the stack in one instruction.
TRAFFIC = re.compile(r"[xyz]mm\d+, *-?\d*\(%r[sb]p|\(%r[sb]p[^)]*\).*[xyz]mm\d")


def spilt(m: Module) -> list[str]:
    """The instructions by which a module's functions move vectors to the stack and back, each with its function."""
    found, name = [], ""
    for line in assembly(m.text().replace("define internal", "define"), m.machine).splitlines():
        if re.match(r"\w+:", line):
            name = line.split(":")[0]
        elif TRAFFIC.search(line):
            found.append(f"{name}: {line.strip()}")
    return found
