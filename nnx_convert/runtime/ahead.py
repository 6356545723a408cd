"""The part of a model that waits for no value, where another part does: a program of its own, which is run before."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ..frozen import frozen
from ..model import Model, default_rim
from ..types import Array, Tensor
from .bind import Binder, Dynamic
from .steps import Options, Slot

if TYPE_CHECKING:
    from .profile import Profile

Arrays = Sequence[Array | None]


@frozen
class Known:
    """What is known before the rest of a model is bound to values: the operations that are done, by their numbers, and
    what they gave that others read."""

    done: frozenset[int] = frozenset()
    values: Mapping[Slot, Tensor] = field(default_factory=dict)


@frozen
class Ahead:
    """Such a part: a model whose outputs are what the rest reads, what is known of these before a run, and what else
    the rest reads."""

    model: Model
    done: frozenset[int]
    tensors: tuple[Tensor, ...]
    constants: Mapping[Slot, Tensor]

    def known(self, arrays: Sequence[Array]) -> Known:
        """What the part gives for arrays that are its outputs."""
        found = {i: replace(t, data=a) for i, t, a in zip(self.model.outputs, self.tensors, arrays, strict=True)}
        return Known(self.done, {**self.constants, **found})


def ahead_of(model: Model, inputs: Sequence[Tensor | None], options: Options) -> Ahead | None:
    """The part of a model that can be bound to inputs of these shapes; None where it has nothing that another backend
    does. Raises `RunError` on a rule that it breaks."""
    binder = Binder(model, options)
    binder.env.update(zip(model.inputs, inputs, strict=True))
    done, waiting, elsewhere = list[int](), set[Slot](), False
    for n, o in enumerate(model.operations):
        try:
            if waiting.intersection(o.inputs):
                raise Dynamic
            step = binder.advance(n)
        except Dynamic:
            waiting.update(o.outputs)
        else:
            done.append(n)
            elsewhere |= step is not None and step.elsewhere
    return _part(model, binder, frozenset(done)) if elsewhere else None


def _part(model: Model, binder: Binder, numbers: frozenset[int]) -> Ahead:
    """The operations of these numbers as a model."""
    done, rest = sorted(numbers), [o for n, o in enumerate(model.operations) if n not in numbers]
    wanted = dict.fromkeys(i for i in (*(i for o in rest for i in o.inputs), *model.outputs))
    made = {i for n in done for i in model.operations[n].outputs}
    found = {i: t for i in wanted if i in made and isinstance(t := binder.arg(i), Tensor)}
    outputs = tuple(i for i, t in found.items() if t.data is None)
    origin = tuple(model.origin[n] for n in done) if model.origin else ()
    part = Model(model.operands, tuple(model.operations[n] for n in done), model.inputs, outputs, model.relaxed,
                 tuple(model.checked[n] for n in done), default_rim(model.operands, model.inputs, outputs), origin)
    return Ahead(part, numbers, tuple(found[i] for i in outputs),
                 {i: t for i, t in found.items() if t.data is not None})


@frozen
class Started:
    """A part that is ready to be run, and how its time is told."""

    part: Ahead
    run: Callable[[Arrays], list[Array]]
    profile: Callable[[Arrays, int], Profile]
