"""What is run on a hostile file, and what of it is a fault: anything but a result or an `NnxError`."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np

os.environ["NNX_CACHE"] = "0"                     # each file is new: nothing is worth keeping

import nnx_convert
from nnx_convert import Model, Target as Device, artifact
from nnx_convert.codes import dtype_of
from nnx_convert.convert import kind, read
from nnx_convert.errors import LimitError, NnxError
from nnx_convert.types import Array, Port

#: The two backends agree on floats within this part of the largest value, on all else to the bit.
NEAR = 1e-5
#: Elements of all inputs, and of all operands, of a model that is run; a larger one takes LLVM and NumPy too long here.
INPUTS, OPERANDS, OPERATIONS = 1 << 14, 1 << 18, 40
#: Floats that are larger are not compared: what is added in another order overflows elsewhere.
LARGE = 1e15
#: What NumPy says of types that it has no function for; native code may have one.
LACKING = "there is no kernel for"
#: The size that stands for an open one.
OPEN = 2
#: How much inputs are changed, in parts of themselves, and how often, to see whether an answer depends on that.
STIR, NEARBY = 4e-7, 3
#: Devices that a file is lowered for, chosen by its bytes.
DEVICES = (Device(), Device(level=27), Device(level=29, ex=False), Device(level=30, experimental=False),
           Device(level=31, sparse="fold"), Device(level=30, hybrid="float"), Device(int64="narrow"))


class Different(Exception):
    """Two answers that should be one; `place` is the same of two findings of one fault."""

    def __init__(self, said: str, place: str = "") -> None:
        super().__init__(said)
        self.place = place or said[:60]


@dataclass(frozen=True)
class Target:
    """What is run on a file. `formats`: of its seeds."""

    name: str
    run: Callable[[bytes], object]
    formats: tuple[str, ...]


def compiles(data: bytes) -> Model:
    """Reads and lowers a file for one of the devices; what comes out must save and load."""
    model = nnx_convert.convert(data, DEVICES[crc32(data) % len(DEVICES)])
    lasting(model)
    return model


def loads(data: bytes) -> Model:
    """Reads a .nnx file or its JSON form; what is loaded must save and load."""
    whole, _ = read(data)
    model = artifact.from_bytes(whole)
    lasting(model)
    return model


def lasting(model: Model) -> None:
    """Raise `Different` where a model that is in order is not the same when it is saved and loaded."""
    saved = artifact.to_bytes(model)
    try:
        again = artifact.to_bytes(artifact.from_bytes(saved))
    except NnxError as error:
        raise Different(f"a model that was saved does not load: {error}") from error
    if again != saved:
        raise Different("a model that was saved is another when it is loaded")


def runs(data: bytes) -> object:
    """Compiles a file for this machine, natively and in NumPy, and runs both: the same answers, or both refuse."""
    whole, _ = read(data)
    model = artifact.from_bytes(whole) if kind(whole) == "nnx" else nnx_convert.convert(data)
    given = inputs(model, crc32(data))
    if given is None:
        return None
    want, refused = answer(model, "numpy", given)
    got, other = answer(model, "native", given)
    if (want is None) != (got is None) and LACKING not in refused:
        raise Different(f"NumPy: {refused or 'runs'}; native: {other or 'runs'}")
    if any(not o.op.pure for m in every(model) for o in m.operations):
        return want                               # each run draws numbers of its own
    for i, (a, b) in enumerate(zip(got or (), want or (), strict=want is not None)):
        if (said := apart(a, b)) and not unsteady(model, given, i, want or []):
            raise Different(f"output {i}: {said}", "runs")
    return want


def unsteady(model: Model, given: Sequence[Any], output: int, want: Sequence[Any]) -> bool:
    """Whether an output is another one too where the inputs are by a few roundings: sums of almost nothing, and
    choices that follow from such sums."""
    rng = np.random.default_rng(0)
    for _ in range(NEARBY):
        near = [x * (1 + STIR * rng.standard_normal(x.shape)).astype(x.dtype) if x.dtype.kind == "f" else x
                for x in given]
        again, _refused = answer(model, "numpy", near)
        if again is None or apart(again[output], want[output]):
            return True
    return False


def answer(model: Model, backend: str, given: Sequence[Any]) -> tuple[list[Any] | None, str]:
    """The outputs of a backend, or why there are none."""
    try:
        return nnx_convert.compile(model, backend=backend, threads=1).run([*given]), ""
    except LimitError:                            # what one of the backends holds and the other does not
        raise
    except NnxError as error:
        return None, str(error)


def inputs(model: Model, seed: int) -> list[Any] | None:
    """Inputs that fit a model; None where it is too large to be run here, or takes texts or lists."""
    ports = [p for p in model.rim.inputs if not p.state]
    shapes = [tuple(OPEN if n is None else n for n in p.shape or ()) for p in ports]
    sizes = [prod(o.dims) for m in every(model) for o in m.operands]
    if sum(map(prod, shapes)) > INPUTS or sum(sizes) > OPERANDS or sum(len(m.operations) for m in every(model)) \
            > OPERATIONS or any(p.dtype in ("object", "str") or "(" in p.dtype for p in ports):
        return None
    rng = np.random.default_rng(seed)
    return [drawn(p, shape, rng) for p, shape in zip(ports, shapes, strict=True)]


def every(model: Model) -> list[Model]:
    """A model and those in it."""
    found = [model]
    for m in found:
        found += m.subgraphs
    return found


def drawn(port: Port, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """A value for a port: small integers, which are indices now and then, with an extreme one among them."""
    dtype = dtype_of(port.dtype)
    if dtype.kind in "iu" and shape and rng.random() < 0.3:
        info = np.iinfo(dtype)
        return rng.choice([info.min, info.max, 0, 1, 2], shape).astype(dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    found: Array = (rng.standard_normal(shape) * rng.choice([0.5, 4.0])).astype(dtype)
    return found


def apart(got: Any, want: Any) -> str:
    """In what two outputs differ, "" where they are the same as far as they have to be."""
    if not isinstance(want, np.ndarray) or want.dtype == object:
        return "" if repr(got) == repr(want) else "other objects"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.name.startswith(("int", "uint", "bool")):
        count = int((got != want).sum())
        return f"{count} of {want.size} integers differ" if count else ""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        sound = np.isfinite(b) & (np.abs(b) < LARGE)
        if not sound.all():                       # what is summed in another order overflows elsewhere
            return ""
        far = np.abs(a - b).max(initial=0) / max(float(np.abs(b).max(initial=0)), 1e-30)
    near = max(NEAR, float(ml_dtypes.finfo(want.dtype).eps))  # type: ignore[no-untyped-call]
    return "" if far <= near else f"differ by {far:.3g} of the largest value"


TARGETS = {t.name: t for t in (
    Target("tflite", compiles, ("tflite",)), Target("onnx", compiles, ("onnx",)), Target("nnx", loads, ("nnx",)),
    Target("run", runs, ("tflite", "onnx", "nnx")))}
