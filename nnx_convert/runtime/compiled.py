"""`CompiledModel`: a model that runs on arrays as its source file's user knows them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..codes import dtype_of
from ..contents import Contents, contents
from ..errors import InputError, UsageError, among
from ..frozen import frozen
from ..model import Model
from ..types import Array, ChannelQuant, Entry, Port, Quant, Shape
from . import rim, states
from .again import Again
from .backends import backend_of
from .outline import Outline
from .runner import Compiled, Keep, Runner, call
from .steps import Options

if TYPE_CHECKING:
    from .codegen.program import NativeProgram
    from .footprint import Footprint
    from .profile import Profile


def unlike(_: Sequence[Any]) -> None:
    """What no run is like."""


#: What gives tensors of a source file by their names, from the inputs of a run, states among them.
Taps = Callable[[Sequence[str], Sequence[Any]], Mapping[str, Any]]


@frozen
class TensorSpec:
    """An input or output: `shape` has None for a size that each run chooses.

    A `state` is what one run leaves to the next: as an input it may be left out, as an output it is not returned.
    `holds` says what is no array: `sequence(float32)` is a list of arrays, `optional(...)` None or a value,
    `map(int64,float32)` a dict.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None
    quantization: Quant | ChannelQuant | None
    state: bool = False
    holds: str = ""

    @classmethod
    def of(cls, port: Port) -> TensorSpec:
        """The port in NumPy's words."""
        holds = contents(port.dtype)
        if isinstance(holds, Contents):
            return cls(port.name, np.dtype(object), port.shape, port.quant, port.state, str(holds))
        return cls(port.name, dtype_of(holds), port.shape, port.quant, port.state)


class CompiledModel:
    """A model compiled for this machine. Thread-safe, picklable; inputs are never modified.

    `inputs` and `outputs` are `TensorSpec`s in the source file's order, then the states. Run it with a mapping by
    name (which gives a dict), or with a sequence by position (which gives a list; None is an optional input left
    out). `signatures` are the entry points of the source file, each with names of its own.

    What a model keeps (variable tensors, resource variables, the states of recurrent operators) lasts from run to
    run until `reset`; `state` reads and sets it. A run that fails leaves it as it was. Runs of such a model follow
    one another, whatever threads they come from. A pickle is the model at its start: it carries no state.
    """

    def __init__(self, model: Model | Outline, *, threads: int | None = None, backend: str = "auto",
                 rounding: str = "reference", keep: Keep | None = None, taps: Taps | None = None) -> None:
        chosen = backend_of(backend, rounding)
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise UsageError(f"threads is a positive number, not {str(threads)[:80]!r}")
        self._rim, self._made = model.rim, (threads, backend, rounding)
        self.inputs = tuple(map(TensorSpec.of, model.rim.inputs))
        self.outputs = tuple(map(TensorSpec.of, model.rim.outputs))
        self.signatures = model.signatures
        options = Options(threads or 0, call, elsewhere=chosen.takes, sets=chosen.sets, fast=chosen.fast)
        self._runner = Runner(model, options, keep)
        self._doors = rim.Doors(model)
        self._state = states.Memory(model.rim)
        self._like: Callable[[Sequence[Any]], list[Any] | None] = unlike      # runs on inputs like those before
        self._taps = taps
        self._own = tuple(p.name for p in model.rim.inputs if not p.state)
        self._returned = tuple(i for i, o in enumerate(self.outputs) if not o.state)

    @property
    def model(self) -> Model:
        """The model that is compiled."""
        return self._runner.model

    @overload
    def run(self, inputs: Mapping[str, Any], signature: str | None = None, *, tap: Sequence[str] = ()
            ) -> dict[str, Any]: ...
    @overload
    def run(self, inputs: Sequence[Any], signature: str | None = None, *, tap: Sequence[str] = ()) -> list[Any]: ...

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], signature: str | None = None, *, tap: Sequence[str] = ()
            ) -> dict[str, Any] | list[Any]:
        """Run once. Raises `InputError` naming every input that does not fit, `RunError` where a run fails.

        `signature`: inputs and outputs have the names and the order of that entry point. A state given as an
        input counts for this run; what the run leaves is the state of the next. `tap` names tensors of the source file
        to be returned after the outputs, by these names or in this order, in the file's own order of axes; they are
        computed in another program, whose random draws are its own. Of a .nnx file, or a Model, they are the model's
        own, by the numbers of their operands, as "%4". `UsageError` on a name that there is not, and on a tensor that
        lowering made a part of another operation.
        """
        if type(inputs) is list and signature is None and not tap:
            known = self._like(inputs)
            if known is None or self._runner.news:
                return self._settled(inputs, known)
            return known
        if tap:
            taps: dict[str, Any] = dict.fromkeys([tap] if isinstance(tap, str) else tap)
            found = self._answer(inputs, signature, taps)
            return {**found, **taps} if isinstance(found, dict) else [*found, *taps.values()]
        return self._answer(inputs, signature)

    __call__ = run

    def _answer(self, inputs: Mapping[str, Any] | Sequence[Any], signature: str | None,
                taps: dict[str, Any] | None = None) -> dict[str, Any] | list[Any]:
        """The outputs as a run returns them; `taps` are filled."""
        inputs = inputs if isinstance(inputs, Mapping) else rim.listed(inputs)
        if signature is not None:
            return self._run_entry(inputs, self.entry(signature), taps)
        if isinstance(inputs, Mapping):
            own = [inputs[n] for n in self._own if n in inputs]
            whole = len(own) == len(inputs) == len(self._own)
            return self._named(self._run(own if whole else rim.by_position(self._rim.inputs, inputs), taps))
        return self._run(inputs, taps)

    def _run(self, inputs: Sequence[Any], taps: dict[str, Any] | None = None) -> list[Any]:
        """The outputs in order, without the states, which are kept."""
        if taps is not None:
            return self._run_tapped(inputs, taps)
        return self._settled(inputs, self._like(inputs))

    def _settled(self, inputs: Sequence[Any], known: list[Any] | None) -> list[Any]:
        """The same, where a run like the one before gave them, if it did."""
        if known is not None:
            self._runner.keep()
            return known
        given = rim.completed(self._rim.inputs, inputs)
        if not self._state.kept:
            entered = self._doors.enter(given)
            found = self._doors.leave(self._runner.run(entered))
            self._remember(inputs, entered)
            return found
        with self._state.open(given) as complete:
            entered = self._doors.enter(complete)
            found = self._doors.leave(self._runner.run(entered))
            self._state.keep(found)
        self._remember(inputs, entered)
        return [found[i] for i in self._returned]

    def _run_tapped(self, inputs: Sequence[Any], taps: dict[str, Any]) -> list[Any]:
        """The same, and the tensors that are asked for."""
        if self._taps is None:
            from .taps import Numbered
            self._taps = Numbered(self.model, *self._made)
        own = {self.outputs[i].name for i in self._returned}
        names = [n for n in taps if n not in own]
        with self._state.open(rim.completed(self._rim.inputs, inputs)) as complete:
            taps |= self._taps(names, complete)
            found = self._doors.leave(self._runner.run(self._doors.enter(complete)))
            if self._state.kept:
                self._state.keep(found)
        outputs = [found[i] for i in self._returned]
        taps |= {n: a for n, a in self._named(outputs).items() if n in taps}
        return outputs

    def _remember(self, inputs: Sequence[Any], entered: Sequence[Array | None]) -> None:
        """Prepare the next run, which may be like this one, and what another process can have of it."""
        self._runner.keep()
        program = self._runner.ready(entered)
        again = None if program is None or len(inputs) != len(self._own) else Again.of(
            self._doors, program, inputs, self._state.kept)
        self._like = unlike if again is None else partial(self._state.run, again) if self._state.kept else again.run

    def _named(self, found: Sequence[Any]) -> dict[str, Any]:
        return {self.outputs[i].name: a for i, a in zip(self._returned, found, strict=True)}

    def profile(self, inputs: Mapping[str, Any] | Sequence[Any], runs: int = 30) -> Profile:
        """Where the time of a run goes: see `runtime.profile.Profile`. Inputs are as of `run`, and so are its errors.

        The program is compiled anew, with a clock in it. Its runs start from the states there are, and change none.
        """
        inputs = rim.by_position(self._rim.inputs, inputs) if isinstance(inputs, Mapping) else rim.listed(inputs)
        with self._state.open(rim.completed(self._rim.inputs, inputs)) as complete:
            given = self._doors.enter(complete)
        return self._runner.profile(given, runs)

    def entry(self, name: str) -> Entry:
        """A signature by its name; raises `UsageError` naming those there are."""
        if name not in self.signatures:
            source = self._rim.source
            elsewhere = source is not None and name in source.signatures
            hint = f"convert the file with signature={name!r}" if elsewhere else \
                among(str(name), self.signatures, "signatures")
            raise UsageError(f"the model has no signature {name!r}", hint=hint)
        return self.signatures[name]

    def _run_entry(self, inputs: Mapping[str, Any] | Sequence[Any], entry: Entry,
                   taps: dict[str, Any] | None = None) -> dict[str, Any] | list[Any]:
        own = dict(entry.inputs)
        if not isinstance(inputs, Mapping) and len(inputs) != len(own):
            raise InputError(f"signature {entry.name!r} takes {len(own)} inputs, not {len(inputs)}",
                             hint=f"the inputs are {', '.join(own)}")
        named = inputs if isinstance(inputs, Mapping) else dict(zip(own, inputs, strict=True))
        if extra := [n for n in named if n not in own]:
            raise InputError(f"signature {entry.name!r} has no input {', '.join(map(repr, extra))}",
                             hint=among(str(extra[0]), own, "inputs"))
        given = rim.by_position(self._rim.inputs, {own[n]: v for n, v in named.items()})
        found = self._named(self._run(given, taps))
        outputs = {n: found[port] for n, port in entry.outputs}
        return outputs if isinstance(inputs, Mapping) else list(outputs.values())

    @property
    def state(self) -> dict[str, Array]:
        """What the next run starts with, by name: copies."""
        return self._state.read()

    @state.setter
    def state(self, values: dict[str, Any]) -> None:
        """Set some or all of it, by name; raises `InputError` naming every value that does not fit."""
        self._state.write(values)

    def reset(self) -> None:
        """Every state as before the first run."""
        self._state.reset()

    def prepare(self, shapes: Mapping[str, Shape] | None = None) -> Compiled | NativeProgram | None:
        """Compile ahead for input shapes (by name; the model's own where they are known).

        None where sizes follow from values. Raises `UsageError` on shapes that the model's inputs cannot have,
        `InputError` where a size stays open.
        """
        return self._runner.compiled(self._inside(shapes))

    def footprint(self, shapes: Mapping[str, Shape] | None = None) -> Footprint | None:
        """What a run needs of memory when, for input shapes as of `prepare`; nothing is compiled for it."""
        return self._runner.footprint(self._inside(shapes))

    def _inside(self, shapes: Mapping[str, Shape] | None) -> list[Shape | None]:
        """The shapes of the inputs as operands have them."""
        chosen = rim.chosen(self._rim.inputs, shapes or {})
        operands = [self.model.operands[i] for i in self.model.inputs]
        return [rim.inside(s, o) for s, o in zip(chosen, operands, strict=True)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.model, *self._made)

    def __repr__(self) -> str:
        names = ", ".join(f"{s.name}: {s.dtype}{list(s.shape or ())}" for s in self.inputs)
        return f"<CompiledModel ({names}) -> {', '.join(s.name for s in self.outputs)}>"


def _rebuilt(model: Model, threads: int | None, backend: str, rounding: str) -> CompiledModel:
    return CompiledModel(model, threads=threads, backend=backend, rounding=rounding)
