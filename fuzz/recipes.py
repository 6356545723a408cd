"""How a finding is kept: as its file, where it was made from a seed of this repository, else as what was changed.

A recipe is a line of JSON: `target` and `why`, and either `file`, compressed, or `base`, the name of a seed that is not
ours with its `size` and `check` (CRC-32), and `splices`: offset, length and new bytes, from the end to the beginning.
So no model by others is in this repository; where it is missing, the recipe makes nothing.

    python -m fuzz.recipes TARGET FILE... >> tests/fuzz/found.jsonl      # a line for each file
    python -m fuzz.recipes --make N tests/fuzz/found.jsonl OUT           # the file of the N-th line, counted from 0
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
    """The seeds of a format by name as edits write them, those by others among them."""
    return {n: _rewritten(format, d) for n, d in seeds.seeds(format).items()}


def _rewritten(format: str, data: bytes) -> bytes:
    """A seed as edits write it: a FlatBuffer in the order of its tree."""
    root = tree(data) if format == "tflite" else None
    return packed(root)[0] if root else data


def made(recipe: Recipe) -> bytes | None:
    """The file of a recipe; None where its base is not here, or is another one."""
    if "file" in recipe:
        return zlib.decompress(b64decode(recipe["file"]))
    format, _, name = recipe["base"].partition(":")
    data = _rewritten(format, seeds.seeds(format, foreign(recipe["base"])).get(name, b""))
    if (len(data), zlib.crc32(data)) != (recipe["size"], recipe["check"]):
        return None
    for offset, length, new in recipe["splices"]:
        data = data[:offset] + b64decode(new) + data[offset + length:]
    return data


def written(target: str, data: bytes, why: str = "") -> Recipe:
    """The recipe of a file; whose it is says the seed that it is most like."""
    every = [(f"{f}:{n}", base) for f in TARGETS[target].formats for n, base in bases(f).items()]
    name, base = min(every, key=lambda b: _distance(b[1], data))
    if not foreign(name):
        return {"target": target, "why": why, "file": b64encode(zlib.compress(data, 9)).decode()}
    splices = [(i, j - i, b64encode(data[m:n]).decode())
               for tag, i, j, m, n in SequenceMatcher(None, base, data, autojunk=False).get_opcodes() if tag != "equal"]
    return {"target": target, "why": why, "base": name, "size": len(base), "check": zlib.crc32(base),
            "splices": splices[::-1]}


def foreign(name: str) -> bool:
    """Whether a seed is a model by others."""
    return name.partition(":")[2].startswith((seeds.FILE, seeds.SUITE))


def _distance(a: bytes, b: bytes) -> int:
    """How unlike two files are, quickly: by pieces of eight bytes that only one has."""
    pieces = [{d[i:i + 8] for i in range(0, len(d), 4)} for d in (a, b)]
    return len(pieces[0] ^ pieces[1])


def main(words: Sequence[str]) -> None:
    """Write recipes, or the file of one; why a file was kept is the first line of the text beside it."""
    if words[0] == "--make":
        line = Path(words[2]).read_text().splitlines()[int(words[1])]
        Path(words[3]).write_bytes(made(json.loads(line)) or b"")
        return
    for path in map(Path, words[1:]):
        told, data = path.with_suffix(".txt"), path.read_bytes()
        why = told.read_text().splitlines()[0] if told.is_file() else ""
        found = written(words[0], data, why)
        if made(found) != data:
            raise ValueError(f"{path}: its recipe gives another file")
        print(json.dumps(found, separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1:])
