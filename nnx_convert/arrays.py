"""Arrays on disk and drawn at random: the inputs of a run, and its outputs."""
from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .archived import read_archive, read_array
from .artifact.files import write
from .codes import NARROW_DTYPES
from .errors import InputError
from .frozen import frozen
from .runtime.compiled import TensorSpec
from .runtime.memory import affordable_tensor
from .types import Array, Shape

#: How the arrays of a list are given.
MEMBERS = "its arrays as NAME[0], NAME[1], ... of --inputs ALL.npz"
#: Bytes of a name that ZIP has room for, with what goes behind it.
LONGEST = (1 << 16) - 16
#: The same moment for each member, so that the same arrays give the same file.
MOMENT = (1980, 1, 1, 0, 0, 0)


@frozen
class Given:
    """An input and where it is from."""

    name: str
    array: Any                           # a list, or None, where the input holds these
    origin: str


def gathered(specs: Sequence[TensorSpec], shapes: Mapping[str, Shape], files: Mapping[str, str], archive: str | None,
             seed: int | None) -> tuple[Given, ...]:
    """The inputs: those of single files, then of the archive, then drawn. Names nobody knows stay in, to be refused.

    Raises `FormatError` on a file that is none, `InputError` where nothing gives an input.
    """
    found = {name: Given(name, read_array(path), path) for name, path in files.items()}
    members = read_archive(archive) if archive else {}
    for i, spec in enumerate(specs):
        key = next((k for k in (spec.name, f"in{i}", f"in_{spec.name}") if k in members), None)
        if spec.name in found:
            continue
        if spec.holds and archive:
            found[spec.name] = Given(spec.name, assembled(spec, members), f"{archive}[{spec.name}[...]]")
        elif key is not None:
            found[spec.name] = Given(spec.name, members[key], f"{archive}[{key}]")
        elif seed is not None and not spec.state:
            found[spec.name] = Given(spec.name, drawn(spec, (seed, i), shapes), f"seed {seed}")
    missing = [s.name for s in specs if s.name not in found and not s.state]
    if missing and {s.name for s in specs}.issuperset(found):
        held = f"; {archive} holds {', '.join(members) or 'nothing'}" if archive else ""
        raise InputError(f"{', '.join(map(repr, missing))} is missing{held}",
                         hint="give --input NAME=x.npy, --inputs ALL.npz or --random SEED")
    return tuple(found.values())


def assembled(spec: TensorSpec, members: Mapping[str, Array]) -> Any:
    """A list of the arrays NAME[0], NAME[1], ...; of an optional the first, or None. Raises `InputError` on a dict."""
    count = next(i for i in range(len(members) + 1) if f"{spec.name}[{i}]" not in members)
    items = [members[f"{spec.name}[{i}]"] for i in range(count)]
    if spec.holds.count("(") > 1 or spec.holds.startswith("map"):
        raise InputError(f"{spec.name!r} is a {spec.holds}, which no file of arrays holds", hint="run it from Python")
    return items if spec.holds.startswith("sequence") else next(iter(items), None)


def taken_apart(name: str, value: Any) -> dict[str, Array]:
    """An output as arrays: those of a list are NAME[0], NAME[1], ..., those of a dict NAME[key]; None gives none."""
    if isinstance(value, list):
        parts: Sequence[tuple[Any, Any]] = list(enumerate(value))
    elif isinstance(value, dict):
        parts = [(k.decode("utf-8", "replace") if isinstance(k, bytes) else k, v) for k, v in value.items()]
    else:
        return {} if value is None else {name: np.asarray(value)}
    return {n: a for key, v in parts for n, a in taken_apart(f"{name}[{key}]", v).items()}


def drawn(spec: TensorSpec, seed: tuple[int, int], shapes: Mapping[str, Shape]) -> Array:
    """Random values: floats normal, narrow integers over all of their range, wider ones from 0 to 9."""
    if spec.holds:
        raise InputError(f"{spec.name!r} is a {spec.holds}: nothing is drawn for it", hint=f"give {MEMBERS}")
    shape = shapes.get(spec.name, spec.shape)
    if shape is None or None in shape:
        raise InputError(f"the sizes of {spec.name!r} are open", hint=f"give --shape {spec.name}=...")
    sizes, dtype = tuple(n or 0 for n in shape), spec.dtype
    affordable_tensor(math.prod(sizes) * dtype.itemsize, f"the input {spec.name!r}")
    rng = np.random.default_rng(seed)
    if dtype.kind == "O":
        return np.array([b"text %d" % n for n in rng.integers(0, 100, sizes).reshape(-1)], object).reshape(sizes)
    if dtype.kind == "b":
        return rng.integers(0, 2, sizes).astype(bool)
    if dtype.kind == "c":
        return (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)).astype(dtype)
    if dtype.kind == "f" or dtype.name in NARROW_DTYPES:
        return np.asarray(np.asarray(rng.standard_normal(sizes)).astype(dtype))
    low, high = (np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1) if dtype.itemsize <= 2 else (0, 10)
    return np.asarray(rng.integers(low, high, sizes), dtype)


def stored(array: Array) -> Array:
    """The array as NumPy's files take it: texts as `S`, what NumPy has no type for as so many bytes, `V`."""
    if array.dtype.kind == "O":
        strings = all(isinstance(t, str) for t in array.reshape(-1).tolist())
        return array.astype(np.str_ if strings and array.size else np.bytes_)
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.name in NARROW_DTYPES else array


def plain(array: Array) -> Array:
    """Numbers that NumPy computes with: float32 in place of the types that it has not."""
    return array.astype(np.float32) if array.dtype.name in NARROW_DTYPES else array


def fits(name: str) -> bool:
    """Whether an archive can hold an array of this name."""
    return "\0" not in name and len(name.encode("utf-8", "surrogatepass")) <= LONGEST


def write_archive(path: str, arrays: Mapping[str, Array]) -> int:
    """Write a .npz file, whole or not at all; its size. `np.savez` takes no array named `file`.

    An array whose name no archive can hold is called `out` and its number: an output is known by that, too.
    """
    whole = io.BytesIO()
    archive = zipfile.ZipFile(whole, "w")
    try:
        for n, (name, array) in enumerate(arrays.items()):
            member = io.BytesIO()
            kept = stored(array)
            np.lib.format.write_array(member, np.ascontiguousarray(kept) if kept.ndim else kept, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name if fits(name) else f'out{n}'}.npy", MOMENT), member.getbuffer())
        archive.close()
    except (MemoryError, ValueError) as error:
        archive.fp = None                        # else it would still write its end
        if whole.closed:                         # it is where it cannot grow, and that is what the archive says
            raise MemoryError from error
        raise
    write(path, [whole.getbuffer()])
    return whole.tell()
