"""Cases of the table's rows: operands by name, made for each type that the row accepts, on grids of all sorts."""
from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nnx_convert import Model
from nnx_convert.schema import OPS, OpDef
from nnx_convert.signature import Args, Param
from nnx_convert.types import (
    B8, F16, F32, I32, Q8, Q8S, QPC, Q16A, Q16S, QS, UNKNOWN, ZERO_POINTS, ChannelQuant, Quant, Scalar, Tensor, Type,
    known)

Array = np.ndarray[Any, Any]
BYTES = (Q8, Q8S)
QUANTISED = (*BYTES, QS, QPC, Q16A, Q16S)
FLOATS = (F32, F16)


@dataclass(frozen=True)
class X:
    """A tensor: drawn values of a shape, in a span of real ones where that is given; or these stored values."""

    shape: tuple[int, ...] = ()
    values: Any = None
    span: tuple[float, float] | None = None
    grid: Quant | None = None
    type: Type | None = None
    fed: bool = True


@dataclass(frozen=True)
class Case:
    """An operation: what stands for each parameter of a form.

    A tuple is the shape of a tensor drawn, a list the elements of a constant one, a number a scalar, a list beside a
    variadic parameter its operands. `same`: all that has the key's type is on one grid. `only`: the key types.
    """

    op: str
    args: Mapping[str, Any]
    form: int = 0
    only: tuple[Type, ...] = ()
    same: bool = False
    out: tuple[Quant | None, ...] = ()

    def __str__(self) -> str:
        shapes = (f"{n}={v}" for n, v in self.args.items() if isinstance(v, tuple | int | float))
        return f"{self.op} {' '.join(shapes)}"[:70]


def c(op: str, form: int = 0, /, **args: Any) -> Case:
    """A case, short to write: its `only`, `same` and `out` stand among the arguments."""
    rest = {name: args.pop(name) for name in ("only", "same", "out") if name in args}
    return Case(op, args, form, **rest)


@dataclass(frozen=True)
class Grid:
    """Of inputs, the scale and the place of the zero point (0 lowest, 1 highest); of outputs, how far from fitting."""

    scale: float
    zero: float
    out: float = 1.0


GRIDS = {"middle": Grid(0.05, 0.5), "low": Grid(0.02, 0.0), "high": Grid(0.3, 1.0, 0.3), "tiny": Grid(1e-6, 0.4),
         "huge": Grid(1e4, 0.6), "saturating": Grid(0.05, 0.5, 0.02), "coarse": Grid(0.05, 0.5, 50.0)}
#: The first elements of tensors drawn, as far as they reach: zeros, the ends of activations, halves.
EDGES = [0.0, -0.0, 1.0, -1.0, 6.0, 0.5, -0.5, 3.0, -3.0, 2.5]


@dataclass(frozen=True)
class Instance:
    """A case made: operands by position, outputs as inference and grids say, canonical arguments by name."""

    case: Case
    op: OpDef
    key: Type
    variant: str
    inputs: tuple[Any, ...]
    outs: tuple[Tensor, ...]
    args: Args = field(repr=False, compare=False)
    fed: tuple[bool, ...] = ()                  # the operands that a model would have as inputs, most likely

    def __str__(self) -> str:
        return f"{self.case} {self.key.name} {self.variant}"


def keys(case: Case) -> tuple[Type, ...]:
    """The key types a case is made for."""
    return case.only or tuple(OPS[case.op].types)


def instances(case: Case, grids: Mapping[str, Grid] = GRIDS) -> Iterator[Instance]:
    """A case for each key type: on every grid where it is quantised, into every type that its output may have."""
    for key in keys(case):
        chosen: list[Type | None] = [*targets(case, key)]
        for to in chosen or [None]:
            quantised = key in QUANTISED or to in QUANTISED
            for name, grid in grids.items() if quantised else [("", GRIDS["middle"])]:
                yield made(case, key, grid, name, to)
        if per_channel(case, key):
            yield made(case, key, GRIDS["middle"], "per channel", None, channels=True)


def targets(case: Case, key: Type) -> list[Type]:
    """The types an output operand chooses from; none where inference knows."""
    chooses = [p for p in OPS[case.op].forms[case.form].params if p.kind.output == "type" and not p.kind.is_key]
    return [t for p in chooses for t in p.kind.allowed(key, OPS[case.op].types)]


def per_channel(case: Case, key: Type) -> bool:
    """Whether its filter may have a scale per channel."""
    form = OPS[case.op].forms[case.form]
    return key != QPC and any(p.kind.name == "filter" and QPC in p.kind.allowed(key, {}) for p in form.params)


def listed(case: Case) -> Iterator[tuple[Param, Any]]:
    """What stands for each operand of the case's form, up to where defaults begin."""
    for p in OPS[case.op].forms[case.form].inputs:
        if p.name not in case.args:
            return
        yield from ((p, v) for v in (case.args[p.name] if p.variadic else [case.args[p.name]]))


def made(case: Case, key: Type, grid: Grid, variant: str, to: Type | None, channels: bool = False) -> Instance:
    """The case with its numbers."""
    op = OPS[case.op]
    draw = _Draw(case, op, key, grid, channels)
    inputs = tuple(draw.operand(p, v) for p, v in listed(case))
    chosen = to or (key if any(p.kind.output == "type" for p in op.forms[case.form].params) else None)
    seen = [a.signature() if isinstance(a, Model) else a for a in inputs]
    counted = [UNKNOWN] * len(case.out)
    outputs = [Tensor(chosen, None)] if chosen else [Tensor(F32, None) for _ in counted]
    args = op.canonical(op.place(seen, outputs))
    outs = tuple(t if t.quant or t.type not in QUANTISED else replace(t, quant=draw.free(i, t))
                 for i, t in enumerate(op.infer(args, max(1, len(outputs)))))
    fed = tuple(isinstance(v, tuple) and p.name not in ("w", "b") or isinstance(v, X) and v.fed
                for p, v in listed(case))
    name = " ".join(filter(None, (variant, f"to {to.name}" if to else "")))
    return Instance(case, op, key, name, inputs, outs, args, fed)


class _Draw:
    """The operands of one case, from one seed."""

    def __init__(self, case: Case, op: OpDef, key: Type, grid: Grid, channels: bool) -> None:
        self.case, self.op, self.key, self.grid, self.channels = case, op, key, grid, channels
        self.rng = np.random.default_rng(zlib.crc32(f"{case}{key.name}".encode()))
        self.count = 0
        self.made: dict[str, Tensor] = {}

    def operand(self, p: Param, value: Any) -> Any:
        """What stands in a parameter's place."""
        if value is None or isinstance(value, Model):
            return value
        allowed = p.kind.allowed(self.key, self.op.types)
        if isinstance(value, int | float):
            return Scalar(next(iter(allowed)), value)
        spec = value if isinstance(value, X) else X(value) if isinstance(value, tuple) else X(values=value)
        type_ = spec.type or (QPC if self.channels and QPC in allowed else next(iter(allowed)))
        stored = None if spec.values is None else np.asarray(spec.values, type_.dtype)
        shape = spec.shape if stored is None else stored.shape
        quant = spec.grid or self.quant(p, type_, shape)
        data = self.numbers(type_, shape, quant, spec.span, p) if stored is None else stored
        self.made[p.name] = found = Tensor(type_, shape, quant, data)
        return found

    def quant(self, p: Param, type_: Type, shape: tuple[int, ...]) -> Quant | ChannelQuant | None:
        """The grid of an operand."""
        if p.kind.name == "bias" and type_ == I32:
            return Quant(self.made["x"].scale * self.made["w"].scale) if self.made["w"].scale else None
        if type_ == QPC:
            axis = 3 if self.op.name == "DEPTHWISE_CONV_2D" else 0
            return ChannelQuant(tuple(0.01 * 1.3 ** (i % 7) for i in range(shape[axis])), axis)
        if type_ not in QUANTISED:
            return None
        if type_ in (Q16A, Q16S) and not p.kind.is_key:
            return Quant(0.125, 0)
        i, self.count = self.count, self.count + 1 - self.case.same
        zeros = ZERO_POINTS[type_]
        zero = zeros[0] + round(self.grid.zero * (len(zeros) - 1))
        moved = zero + 7 * i if self.grid.zero < 1 else zero - 7 * i
        return Quant(self.grid.scale * 1.37 ** i, moved if moved in zeros else zero)

    def numbers(self, type_: Type, shape: tuple[int, ...], quant: Any, span: Any, p: Param) -> Array:
        """Stored values: all of a quantised type's, about 0 of a float one."""
        size = int(np.prod(shape))
        if type_ == B8:
            return self.rng.random(shape) < 0.5
        if p.kind.name == "bias" and type_ == I32:
            return self.rng.integers(-3000, 3000, shape, dtype=np.int32)
        if type_ in QUANTISED and span is None:
            info = np.iinfo(type_.dtype)
            low = info.min + (type_ in (QS, QPC))
            found = self.rng.integers(low, info.max, size, type_.dtype, endpoint=True)
            found[:2] = [low, info.max][:size]
            return found.reshape(shape)
        real = self.rng.uniform(span[0], span[1], size) if span else self.rng.normal(0, 2, size)
        if type_ == I32:
            return np.round(real * (1 if span else 4)).astype(np.int32).reshape(shape)
        if span is None:
            real[:len(EDGES)] = EDGES[:size]
        if type_ in QUANTISED:
            info = np.iinfo(type_.dtype)
            real = np.clip(np.round(real / quant.scale) + quant.zero, info.min, info.max)
        return real.astype(type_.dtype).reshape(shape)

    def free(self, i: int, t: Tensor) -> Quant:
        """The grid of an output that chooses its own: about the middle until its range is known."""
        given = self.case.out[i] if i < len(self.case.out) else None
        zeros = ZERO_POINTS[t.type]
        least = 1.01 * self.made["x"].scale * self.made["y"].scale if self.op.name == "MUL" else 0.0
        return given or Quant(max(0.1 * self.grid.out, least), zeros[0] + round(self.grid.zero * (len(zeros) - 1)))


def fitted(instance: Instance, reals: list[Array]) -> Instance:
    """The same with output scales that hold the results, but for what its grid says."""
    grid, outs = GRIDS.get(instance.variant.partition(" to")[0], GRIDS["middle"]), []
    fixed = instance.op.infer(instance.args, len(instance.outs))
    for t, inferred, real in zip(instance.outs, fixed, reals, strict=True):
        if t.type not in BYTES or inferred.quant or instance.case.out:
            outs.append(t)
            continue
        finite = np.abs(real[np.isfinite(real)]).max(initial=0.0) or 1.0
        x, y = (*instance.inputs[:2], None)[:2]
        least = 1.01 * x.scale * y.scale if instance.op.name == "MUL" else 0.0
        scale = max(float(finite) / 100 * grid.out, least)
        assert isinstance(t.quant, Quant)
        outs.append(replace(t, quant=Quant(scale, t.quant.zero)))
    return replace(instance, outs=tuple(outs))


def complete(t: Tensor) -> bool:
    """Whether inference told its shape."""
    return t.dims is not None and all(map(known, t.dims))
