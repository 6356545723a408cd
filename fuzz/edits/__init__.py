"""Edits that know what a model is: `mutated` changes a file of any of the formats."""
from __future__ import annotations

import random
from collections.abc import Callable

from . import nnx, onnx, tflite

#: One to a few edits: most that is found, one change finds.
TIMES = (1, 1, 1, 2, 2, 3, 5)
#: The share of edits that know nothing of the format.
BLIND = 0.05

Edit = Callable[[bytes, random.Random], bytes | None]


def mutated(data: bytes, r: random.Random) -> bytes:
    """The file with a few things in it changed, by its format's edits; what is none of ours by bytes."""
    for _ in range(r.choice(TIMES)):
        found = None if r.random() < BLIND else _edit(data)(data, r)
        data = blindly(data, r) if found is None else found
    return data


def _edit(data: bytes) -> Edit:
    if data[4:8] == b"TFL3":
        return tflite.edited
    if data[:4] == b"\x89NNX" or data[:1] == b"{":
        return nnx.edited
    return onnx.edited


def blindly(data: bytes, r: random.Random) -> bytes:
    """Bytes changed, cut out or repeated anywhere."""
    changed, at, size = bytearray(data), r.randrange(len(data) + 1), r.choice((1, 1, 2, 4, 8, 64))
    what = r.randrange(4)
    if what == 0:
        changed[at:at + size] = r.randbytes(size)
    elif what == 1:
        del changed[at:at + size]
    elif what == 2:
        changed[at:at] = data[at:at + size]
    elif at < len(data):
        changed[at] ^= 1 << r.randrange(8)
    return bytes(changed)
