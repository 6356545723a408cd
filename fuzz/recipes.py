"""How a finding is kept: the seed it was made from, by name, and what differs from it.

A recipe is a JSON object: `target`, `base` (as `seeds` names it, with its format before it; "" where the whole file is
in the recipe), `size` and `check` (CRC-32) of the base, and `splices`: offset, length and new bytes, from the end to
the beginning. So no model by others is in the repository, and where one of theirs is missing the recipe says so.

    python -m fuzz.recipes TARGET FILE... >> tests/fuzz/found.jsonl      # a line for each file
    python -m fuzz.recipes --make N FILE OUT                             # the file of the N-th line
"""
from __future__ import annotations

import json
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from . import seeds
from .edits.flat import packed, tree
from .targets import TARGETS

Recipe = dict[str, Any]


def bases(format: str) -> dict[str, bytes]:
    """The seeds of a format by name; of a FlatBuffer, as edits write it."""
    found = seeds.seeds(format)
    if format != "tflite":
        return found
    return {n: packed(root)[0] if (root := tree(d)) else d for n, d in found.items()}


def made(recipe: Recipe) -> bytes | None:
    """The file of a recipe; None where its base is not here, or is another one."""
    data = b""
    if recipe["base"]:
        format, _, name = recipe["base"].partition(":")
        data = bases(format).get(name, b"")
        if (len(data), zlib.crc32(data)) != (recipe["size"], recipe["check"]):
            return None
    for offset, length, new in recipe["splices"]:
        data = data[:offset] + b64decode(new) + data[offset + length:]
    return data


def written(target: str, data: bytes) -> Recipe:
    """The recipe of a file: the base that is most like it, or the file itself where that says it in less."""
    whole = recipe(target, "", b"", data)
    best = whole
    for format in TARGETS[target].formats:
        for name, base in sorted(bases(format).items(), key=lambda b: _distance(b[1], data))[:8]:
            found = recipe(target, f"{format}:{name}", base, data)
            best = min(best, found, key=lambda r: len(json.dumps(r)))
    return best


def _distance(a: bytes, b: bytes) -> float:
    """How unlike two files are, quickly: by pieces of eight bytes that only one has."""
    pieces = [{d[i:i + 8] for i in range(0, len(d), 4)} for d in (a, b)]
    return len(pieces[0] ^ pieces[1])


def recipe(target: str, name: str, base: bytes, data: bytes) -> Recipe:
    """How a file is made from a base."""
    splices = [(i, j - i, b64encode(data[m:n]).decode())
               for tag, i, j, m, n in SequenceMatcher(None, base, data, autojunk=False).get_opcodes() if tag != "equal"]
    return {"target": target, "base": name, "size": len(base), "check": zlib.crc32(base), "splices": splices[::-1]}


def main(words: Sequence[str]) -> None:
    """Write recipes, or the file of one."""
    if words[0] == "--make":
        line = Path(words[2]).read_text().splitlines()[int(words[1])]
        Path(words[3]).write_bytes(made(json.loads(line)) or b"")
        return
    for path in words[1:]:
        data = Path(path).read_bytes()
        found = written(words[0], data)
        if made(found) != data:
            raise ValueError(f"{path}: its recipe gives another file")
        print(json.dumps(found, separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1:])
