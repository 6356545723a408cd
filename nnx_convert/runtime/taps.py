"""Tensors of a converted model in a run of it, by the numbers of their operands: %4, as `inspect` calls them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UsageError, near
from ..model import Lifetime, Model, default_rim
from ..types import Array, Rim
from .compiled import CompiledModel


class Numbered:
    """What `CompiledModel.run(tap=...)` asks where no source file names the tensors: arrays as the operands hold them.

    The options are those of `CompiledModel`. What is tapped is an output of another program, compiled when it is asked
    for first.
    """

    def __init__(self, model: Model, threads: int | None, backend: str, rounding: str) -> None:
        self._model, self._options = model, (threads, backend, rounding)
        self._programs: dict[tuple[str, ...], CompiledModel] = {}

    def __call__(self, names: Sequence[str], inputs: Sequence[Any]) -> Mapping[str, Array]:
        """The tensors of these names; raises `UsageError` on one that is not to be had."""
        if not names:
            return {}
        key = tuple(names)
        if key not in self._programs:
            threads, backend, rounding = self._options
            self._programs[key] = CompiledModel(giving(self._model, [self._place(n) for n in key]), threads=threads,
                                                backend=backend, rounding=rounding)
        return dict(zip(key, self._programs[key].run(inputs), strict=True))

    def _place(self, name: str) -> int:
        """The operand of a name."""
        known = {f"%{i}": i for o in self._model.operations for i in o.outputs
                 if self._model.operands[i].lifetime is Lifetime.TEMPORARY}
        if name not in known:
            numbers = f"%{min(known.values())} to %{max(known.values())}" if known else "none"
            raise UsageError(f"there is no tensor {name!r}: the model was not compiled from a source file, so those "
                             f"between inputs and outputs have numbers, {numbers}",
                             hint=near(name, known, "`nnx-convert inspect FILE --tensors` lists them; to use the "
                                                    "source's names, run the .tflite or .onnx file itself"))
        return known[name]


def giving(model: Model, places: Sequence[int]) -> Model:
    """A model whose outputs are these operands, and whose states are inputs like others."""
    lifetimes = {**dict.fromkeys(model.outputs, Lifetime.TEMPORARY), **dict.fromkeys(places, Lifetime.OUTPUT)}
    operands = tuple(replace(o, lifetime=lifetimes[i]) if i in lifetimes and o.lifetime in (
        Lifetime.TEMPORARY, Lifetime.OUTPUT) else o for i, o in enumerate(model.operands))
    ports = default_rim(operands, (), tuple(places)).outputs
    inputs = tuple(replace(p, state=False) for p in model.rim.inputs)
    return replace(model, operands=operands, outputs=tuple(places), rim=Rim(inputs, ports))
