"""`CompiledModel`: a model that runs on arrays as its source file's user knows them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from ..errors import InputError, UsageError
from ..model import Model
from ..types import ChannelQuant, Port, Quant, Shape
from . import rim
from .bind import Options
from .kernel import Array
from .runner import Compiled, Runner, call

BACKENDS = ("auto", "numpy")


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: `shape` has None for a size that each run chooses; a `state` may be left out of a run."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None
    quantization: Quant | ChannelQuant | None
    state: bool = False

    @classmethod
    def of(cls, port: Port) -> TensorSpec:
        """The port in NumPy's words."""
        return cls(port.name, np.dtype(port.dtype), port.shape, port.quant, port.state)


class CompiledModel:
    """A model compiled for this machine. Thread-safe, picklable; inputs are never modified.

    `inputs` and `outputs` are `TensorSpec`s in the source file's order. Run it with a mapping by name (which
    gives a dict), or with a sequence by position (which gives a list; None is an optional input left out).
    """

    def __init__(self, model: Model, *, threads: int | None = None, backend: str = "auto") -> None:
        if backend not in BACKENDS:
            raise UsageError(f"there is no backend {backend!r}: {', '.join(BACKENDS)}")
        if threads is not None and threads < 1:
            raise UsageError(f"threads is a positive number, not {threads}")
        self.model, self._threads, self._backend = model, threads, backend
        self.inputs = tuple(map(TensorSpec.of, model.rim.inputs))
        self.outputs = tuple(map(TensorSpec.of, model.rim.outputs))
        self._runner = Runner(model, Options(threads or 0, call))

    @overload
    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]: ...
    @overload
    def run(self, inputs: Sequence[Any]) -> list[Array]: ...

    def run(self, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Array] | list[Array]:
        """Run once. Raises `InputError` naming every input that does not fit, `RunError` where a run fails."""
        if isinstance(inputs, Mapping):
            found = self._run(rim.by_position(self.model.rim.inputs, inputs))
            return dict(zip((o.name for o in self.outputs), found, strict=True))
        return self._run(list(inputs))

    def _run(self, inputs: Sequence[Any]) -> list[Array]:
        return rim.leave(self.model, self._runner.run(rim.enter(self.model, inputs)))

    __call__ = run

    def prepare(self, shapes: Mapping[str, Shape] | None = None) -> Compiled | None:
        """Compile ahead for input shapes (by name; the model's own where they are known).

        None where sizes follow from values. Raises `InputError` where a size stays open.
        """
        chosen = {p.name: (shapes or {}).get(p.name, p.shape) for p in self.model.rim.inputs}
        open_ = [n for n, s in chosen.items() if s is None or None in s]
        if open_:
            raise InputError(f"the sizes of {', '.join(open_)} are open", hint="give shapes")
        operands = [self.model.operands[i] for i in self.model.inputs]
        return self._runner.compiled([rim.inside(tuple(n or 0 for n in s or ()), o)
                                      for s, o in zip(chosen.values(), operands, strict=True)])

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.model, self._threads, self._backend)

    def __repr__(self) -> str:
        names = ", ".join(f"{s.name}: {s.dtype}{list(s.shape or ())}" for s in self.inputs)
        return f"<CompiledModel ({names}) -> {', '.join(s.name for s in self.outputs)}>"


def _rebuilt(model: Model, threads: int | None, backend: str) -> CompiledModel:
    return CompiledModel(model, threads=threads, backend=backend)
