"""Edits of TFLite files: what a tree of one says, and where in the file things are."""
from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import tflite

from . import numbers
from .flat import SCALARS, SCHEMA, Sites, Table, packed, tree

CODES = [c for c in vars(tflite.BuiltinOperator).values() if isinstance(c, int)]
UNIONS = [c for c in vars(tflite.BuiltinOptions).values() if isinstance(c, int)]
#: Types of tensors: those of the schema, those newer than the package, and none.
TYPES = range(22)
SIZES = (0, 1, 2, 3, 4, 5, 8, 16, 255, 256, 65536, 1 << 20, 1 << 30, (1 << 31) - 1, -1, -2, -(1 << 31))
AXES = (-1, 0, 1, 2, 3, 4, 9, (1 << 31) - 1)
#: Limits of each scalar type.
RANGES = {k: (-(1 << n - 1), 1 << n - 1) if k[0] == "i" else (0, 1 << n)
          for k, n in (("i8", 8), ("u8", 8), ("u16", 16), ("i32", 32), ("u32", 32), ("i64", 64), ("u64", 64))}

# Numbers of fields in `SCHEMA`, by what has them: the model, an operator code, a subgraph, an operator, a tensor, its
# quantisation, its sparsity, a level of that, a buffer.
OPERATOR_CODES, SUBGRAPHS, BUFFERS = 1, 2, 4
OLD_CODE, VERSION, CODE = 0, 2, 3
TENSORS, OPERATORS = 0, 3
INPUTS, OUTPUTS, UNION, OPTIONS, NEWER_OPTIONS = 1, 2, 3, 4, 12
SHAPE, TYPE, BUFFER, QUANTIZATION, SPARSITY, SIGNATURE = 0, 1, 2, 4, 6, 7
SCALES, ZEROS, UNION_OF_DETAILS, AXIS = 2, 3, 4, 6
ORDER, BLOCKS, LEVELS = 0, 1, 2
FORMAT, SIZE, UNION_OF_SEGMENTS, UNION_OF_INDICES = 0, 1, 2, 4
DATA = 0


def edited(data: bytes, r: random.Random) -> bytes | None:
    """The file with one thing changed; None where it is no sound file."""
    root = tree(data)
    if root is None:
        return None
    if r.random() < 0.12:
        return displaced(*packed(root), r)
    for _ in range(20):
        if r.choice(EDITS)(root, r):
            break
    return packed(root)[0]


def displaced(data: bytes, sites: Sites, r: random.Random) -> bytes:
    """An offset, a count or an entry of a vtable that says something else."""
    out = bytearray(data)
    places = r.choice([p for p in (sites.offsets, sites.counts, sites.entries) if p])
    at, width = r.choice(places), "<H" if places is sites.entries else "<I"
    old, = struct.unpack_from(width, out, at)
    if places is sites.offsets and r.random() < 0.6:
        target = r.choice(places)                         # where another offset leads
        new = target + struct.unpack_from("<I", out, target)[0] - at
    else:
        new = numbers.whole(r, old, 0, 1 << (16 if width == "<H" else 32))
    struct.pack_into(width, out, at, new % (1 << (16 if width == "<H" else 32)))
    return bytes(out)


def tables(root: Table) -> Iterator[Table]:
    """Every table of a tree."""
    todo = [root]
    for t in todo:
        yield t
        for value in t.fields.values():
            todo += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, Table)]


def subgraph(root: Table, r: random.Random) -> Table | None:
    """One of the subgraphs."""
    graphs = [g for g in root.fields.get(SUBGRAPHS, []) if g.fields.get(TENSORS)]
    return r.choice(graphs) if graphs else None


def tensor(root: Table, r: random.Random) -> Table | None:
    """One of the tensors."""
    g = subgraph(root, r)
    return g and r.choice(g.fields[TENSORS])


def operator(root: Table, r: random.Random) -> Table | None:
    """One of the operators."""
    g = subgraph(root, r)
    return r.choice(g.fields[OPERATORS]) if g and g.fields.get(OPERATORS) else None


def other(kind: str, r: random.Random, old: Any) -> Any:
    """Another value of a scalar type."""
    return numbers.real(r, old) if kind == "f32" else numbers.whole(r, old, *RANGES[kind])


def scalar(root: Table, r: random.Random) -> bool:
    """A field of any table: a scalar, a vector's elements or its length, raw options."""
    t = r.choice(list(tables(root)))
    if not t.fields:
        return False
    n = r.choice(list(t.fields))
    kind, old = SCHEMA[t.kind][n] if n < len(SCHEMA[t.kind]) else "raw", t.fields[n]
    if kind in SCALARS:
        t.fields[n] = other(kind, r, old)
    elif kind == "raw":
        t.fields[n] = _raw(old, r)
    elif kind[1:-1] in SCALARS:
        t.fields[n] = numbers.changed(old, r, lambda r, v: other(kind[1:-1], r, v))
    elif kind == "bytes":
        t.fields[n] = _bytes(old, r)
    else:
        return False
    return True


def _raw(old: bytes, r: random.Random) -> bytes:
    """Other bytes of an option: an integer or a float of its width."""
    if len(old) == 4 and r.random() < 0.3:
        return struct.pack("<f", numbers.real(r, struct.unpack("<f", old)[0]))
    low, high = -(1 << 8 * len(old) - 1), 1 << 8 * len(old) - 1
    new = numbers.whole(r, int.from_bytes(old, "little", signed=True), low, high)
    return new.to_bytes(len(old), "little", signed=True)


def _bytes(old: bytes, r: random.Random) -> bytes:
    """A text or a constant with elements changed, shorter or longer."""
    if len(old) >= 4 and r.random() < 0.5:
        kind = r.choice(("i32", "f32", "i64") if len(old) >= 8 else ("i32", "f32"))
        width = struct.calcsize(SCALARS[kind])
        at = r.randrange(len(old) // width) * width
        new = other(kind, r, struct.unpack_from(SCALARS[kind], old, at)[0])
        return old[:at] + struct.pack(SCALARS[kind], new) + old[at + width:]
    return bytes(numbers.changed(list(old[:4096]), r, lambda r, v: r.randrange(256))) + old[4096:]


def option(root: Table, r: random.Random) -> bool:
    """A field of an operator's options."""
    o = operator(root, r)
    t = o and o.fields.get(r.choice((OPTIONS, OPTIONS, NEWER_OPTIONS)))
    if not isinstance(t, Table):
        return False
    n = r.choice([*t.fields, r.randrange(8)])
    if isinstance(t.fields.get(n, b""), bytes) and t.kind == "Options":
        t.fields[n] = _raw(t.fields.get(n) or bytes(r.choice((1, 4))), r)
        return True
    return False


def shape(root: Table, r: random.Random) -> bool:
    """A tensor of another shape, or with another signature of it."""
    t = tensor(root, r)
    if t is None:
        return False
    field = r.choice((SHAPE, SHAPE, SIGNATURE))
    t.fields[field] = numbers.changed(t.fields.get(field) or t.fields.get(SHAPE) or [], r, lambda r, v: r.choice(SIZES))
    return True


def typed(root: Table, r: random.Random) -> bool:
    """A tensor of another type."""
    t = tensor(root, r)
    if t is not None:
        t.fields[TYPE] = r.choice(TYPES)
    return t is not None


def operation(root: Table, r: random.Random) -> bool:
    """An operator code that means another operator, perhaps with options of another kind."""
    codes = root.fields.get(OPERATOR_CODES)
    if not codes:
        return False
    code = r.choice(CODES)
    r.choice(codes).fields |= {OLD_CODE: min(code, 127), CODE: code, VERSION: r.choice((1, 1, 2, 3, 5, 9))}
    o = operator(root, r)
    if o is not None and r.random() < 0.3:
        o.fields[UNION] = r.choice(UNIONS)
    return True


def wired(root: Table, r: random.Random) -> bool:
    """An operator or a subgraph with other inputs or outputs."""
    g = subgraph(root, r)
    if g is None:
        return False
    t, count = (r.choice(g.fields[OPERATORS]) if g.fields.get(OPERATORS) and r.random() < 0.8 else g,
                len(g.fields[TENSORS]))
    n = r.choice((INPUTS, INPUTS, OUTPUTS))      # of a subgraph they have the same numbers
    t.fields[n] = numbers.changed(t.fields.get(n) or [], r, lambda r, v: r.randrange(-1, count + 1))
    return True


def constant(root: Table, r: random.Random) -> bool:
    """A tensor with another buffer, or one that is a constant no longer; a buffer of another one's bytes."""
    t, buffers = tensor(root, r), root.fields.get(BUFFERS)
    if t is None or not buffers:
        return False
    if r.random() < 0.5:
        t.fields[BUFFER] = r.randrange(len(buffers) + 1)
        return True
    found = t.fields.get(BUFFER, 0)
    if found >= len(buffers):
        return False
    old = buffers[found].fields.get(DATA) or r.choice(buffers).fields.get(DATA) or bytes(8)
    buffers[found].fields[DATA] = _bytes(old, r)
    return True


def quantised(root: Table, r: random.Random) -> bool:
    """A tensor's scales, zero points and axis: others, another tensor's, or none."""
    t, o = tensor(root, r), tensor(root, r)
    if t is None or o is None:
        return False
    way = r.random()
    if way < 0.25:
        t.fields[QUANTIZATION] = deepcopy(o.fields.get(QUANTIZATION))
        return True
    q = t.fields.get(QUANTIZATION)
    if not isinstance(q, Table) or way < 0.4:
        count = r.choice((1, 1, 2, 3, 4))
        t.fields[QUANTIZATION] = Table("Quantization", {
            SCALES: [r.choice((0.5, 0.1, 1 / 256, 1e-9, 1e9, 0.0)) for _ in range(count)],
            ZEROS: [r.choice((0, 0, 3, -128, 128, 300)) for _ in range(count)], AXIS: r.choice((0, 0, 1, 3, -1, 9))})
    elif way < 0.6:
        q.fields[SCALES] = numbers.changed(q.fields.get(SCALES) or [], r, numbers.real)
    elif way < 0.8:
        q.fields[ZEROS] = numbers.changed(q.fields.get(ZEROS) or [], r, numbers.whole)
    else:
        q.fields[r.choice((UNION_OF_DETAILS, AXIS))] = r.choice((0, 1, 2, 3, 5))
    return True


def sparse(root: Table, r: random.Random) -> bool:
    """A tensor's sparsity: its order, blocks, and levels, or that of another tensor."""
    held = [t for t in tables(root) if t.kind == "Tensor" and isinstance(t.fields.get(SPARSITY), Table)]
    t = tensor(root, r)
    if not held or t is None:
        return False
    s: Table = r.choice(held).fields[SPARSITY]
    levels = s.fields.get(LEVELS) or []
    way = r.random()
    if way < 0.1:
        t.fields[SPARSITY] = deepcopy(s)
    elif way < 0.35:
        n = r.choice((ORDER, BLOCKS))
        s.fields[n] = numbers.changed(s.fields.get(n) or [], r, lambda r, v: r.choice(AXES))
    elif levels and way < 0.6:
        r.choice(levels).fields |= {r.choice((FORMAT, UNION_OF_SEGMENTS, UNION_OF_INDICES)): r.choice((0, 1, 2, 3)),
                                    SIZE: r.choice(SIZES)}
    else:
        s.fields[LEVELS] = numbers.changed(levels, r, lambda r, v: r.choice(levels) if levels else Table("Level"))
    return True


def lacking(root: Table, r: random.Random) -> bool:
    """A table without one of its fields, or with that of another table of its kind."""
    every = list(tables(root))
    t = r.choice(every)
    if not t.fields:
        return False
    n = r.choice(list(t.fields))
    like = [o for o in every if o.kind == t.kind and n in o.fields]
    if r.random() < 0.5:
        del t.fields[n]
    else:
        t.fields[n] = deepcopy(r.choice(like).fields[n])
    return True


def repeated(root: Table, r: random.Random) -> bool:
    """A list of tables with one of them twice, elsewhere, or missing; subgraphs among them."""
    lists = [(t, n) for t in tables(root) for n, v in t.fields.items() if isinstance(v, list) and v
             and isinstance(v[0], Table) and len(v) < 200]
    if not lists:
        return False
    t, n = r.choice(lists)
    t.fields[n] = numbers.changed(t.fields[n], r, lambda r, v: deepcopy(r.choice(t.fields[n])))
    return True


def regraphed(root: Table, r: random.Random) -> bool:
    """An operator that refers to another subgraph: WHILE, IF and CALL_ONCE have its index in their options."""
    o, graphs = operator(root, r), root.fields.get(SUBGRAPHS) or []
    t = o and o.fields.get(OPTIONS)
    if not isinstance(t, Table) or len(graphs) < 2:
        return False
    t.fields[r.choice((0, 1))] = struct.pack("<i", r.randrange(-1, len(graphs) + 1))
    return True


EDITS: tuple[Callable[[Table, random.Random], bool], ...] = (
    scalar, scalar, scalar, option, option, shape, shape, typed, operation, wired, wired, constant, quantised, sparse,
    lacking, repeated, regraphed)
