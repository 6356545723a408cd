"""A model and concrete shapes as steps: canonical arguments, every rule checked again, constants computed once."""
from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import RunError
from ..model import Lifetime, Model, Operation
from ..ops.macs import multiplied
from ..resources import tick
from ..schema import Checked, OpDef, OpError
from ..types import Array, UNKNOWN, Arg, Scalar, Shape, Signature, Tensor, known, rebuilt, sharper
from .kernel import Call, Compute, Inner, Kernel, NeedsValue, Run, Site, kernel_of
from .memory import affordable, affordable_outputs, bearable_work, owned
# As NAME is what the type checker takes for handing a name on.
from .steps import FAILURES as FAILURES, Bound as Bound, Dynamic as Dynamic, Options as Options  # noqa: PLC0414
from .steps import Program as Program, Slot as Slot, Step as Step  # noqa: PLC0414
from .steps import failed, failing as failing, fill as fill, slots as slots  # noqa: PLC0414

#: The sizes of the outputs of graphs that are bound while another one is, by graph and what its inputs are; None where
#: they follow from values, nothing at all where it cannot be run. Else graphs within graphs would be bound again and
#: again.
Inside = dict[tuple[int, tuple[Tensor | None, ...]], "list[Shape | None] | tuple[()] | None"]


def bind(model: Model, inputs: Sequence[Tensor | None], options: Options, inside: Inside | None = None,
         known: Mapping[Slot, Tensor] | None = None, done: Container[int] = ()) -> Program:
    """The program for inputs of these shapes, without the operations that are done, and gave what is known.

    Raises `RunError` on a rule they break, `Dynamic` where a size follows from values. Inputs with values
    (`Tensor.data`) are constants: given for all of them, every operation is computed here, but one that is not
    pure only where the program is for a single run (`Options.once`).
    """
    binder = Binder(model, options, inside)
    binder.env.update(zip(model.inputs, inputs, strict=True))
    binder.env.update(known or {})
    steps = [step for n in range(len(model.operations)) if n not in done and (step := binder.advance(n)) is not None]
    live = {*model.inputs, *model.outputs, *(s for step in steps for s in (*step.outs, *step.reads))}
    tensors = {i: t for i in live if isinstance(t := binder.arg(i), Tensor)}
    constants = {i: t.data for i, t in tensors.items() if t.data is not None}
    used = {*model.outputs, *(s for step in steps for s in step.reads)} if options.inner else live
    given = tuple(i if binder.env[i] is not None and i in used else None for i in model.inputs)
    return Program(tuple(steps), tensors, constants, given, model.outputs, states_of(model), options.inner)


def states_of(model: Model) -> tuple[tuple[Slot, Slot], ...]:
    """The operands of each state before a run and after it: the same one where the model only reads it."""
    after = {p.name: i for p, i in zip(model.rim.outputs, model.outputs, strict=True) if p.state}
    pairs = zip(model.rim.inputs, model.inputs, strict=True)
    return tuple((i, after.get(p.name, i)) for p, i in pairs if p.state)


class Binder:
    """Forward over a model: what is known of each operand, and a step for each operation that has to run."""

    def __init__(self, model: Model, options: Options, inside: Inside | None = None) -> None:
        self.model, self.options = model, options
        self.inside: Inside = {} if inside is None else inside
        self.held = self.macs = 0                # bytes of what is computed here, and its multiply-adds so far
        self.env: dict[Slot, Arg] = {}
        self.last = {i: n for n, o in enumerate(model.operations) for i in o.inputs}
        self.kept = {*model.inputs, *model.outputs}

    def arg(self, index: Slot) -> Arg:
        """What is known of an operand now."""
        if index not in self.env:
            found = self.model.operands[index].arg()
            self.env[index] = replace(found, omittable=False) if isinstance(found, Tensor) else found
        return self.env[index]

    def read(self, index: Slot) -> Arg:
        """What an operation that reads an operand knows of it; a scalar that is computed, or fed, is a number."""
        found = self.arg(index)
        if not isinstance(found, Tensor) or found.type.group == "tensor":
            return found
        return Scalar(found.type, UNKNOWN if found.data is None else found.data.item())

    def advance(self, number: int) -> Step | None:
        """The operation as a step or computed; values that only computed operations have read are let go."""
        step = self.step(number)
        if step is not None:
            self.kept.update(step.reads)
        for i in self.model.operations[number].inputs:
            found = self.env.get(i)
            if self.last[i] == number and i not in self.kept and isinstance(found, Tensor):
                self.held -= owned(found.data) if self.model.operands[i].lifetime is Lifetime.TEMPORARY else 0
                self.env[i] = replace(found, data=None)
        return step

    def step(self, number: int) -> Step | None:
        """The operation as a step; None where its outputs could be computed now, all it reads being constant."""
        o = self.model.operations[number]
        tick(self.place(number))
        found, outs = self.checked(number, o)
        if not all(map(known, found.args.values())):
            raise Dynamic(self.place(number))
        if not all(map(complete, outs)) and (kernel := kernel_of(o.op)) and kernel.inner:
            outs = self.entered(o, kernel.inner, found.args, outs)
        affordable_outputs(outs, self.place(number))
        if all(map(complete, outs)):
            self.macs += multiplied(o.op, found.args, outs)
            bearable_work(self.macs, self.place(number))
        lasting = self.options.once or pure(self.model, o)
        if not all(map(complete, outs)):
            if not lasting:
                raise Dynamic(self.place(number))
            self.set(o.outputs, outs, self.sized(number, o, found.args, outs))
            return None
        bound = self.bound(number, o, found.args, outs)
        reads = slots(tuple(bound.slots.values()))
        data = self.values(reads, self.kernel(number, o).hollow)
        runs = len(data) < len(set(reads)) or not lasting
        step = self.prepared(number, o, bound, runs and all(map(complete, found.outputs)))
        self.env.update(zip(o.outputs, outs, strict=False))
        if runs:
            return step
        with failing(step.name, step.origin):
            made = execute(step, data, dict(zip(o.outputs, outs, strict=False)))
        self.set(o.outputs, outs, list(made.values()))
        return None

    def values(self, where: Sequence[Slot], hollow: bool) -> dict[Slot, Array]:
        """The elements of operands, as far as they are known; of a hollow kernel's, any will do."""
        tensors = {i: t for i in where if isinstance(t := self.env[i], Tensor)}
        return {i: np.broadcast_to(np.zeros((), t.type.dtype), t.shape) if t.data is None else t.data
                for i, t in tensors.items() if hollow or t.data is not None}

    def set(self, where: Sequence[Slot], outs: Sequence[Tensor], arrays: Sequence[Array]) -> None:
        """The outputs of an operation as constants."""
        self.held += sum(map(owned, arrays))
        affordable(self.held, "what is computed step by step")
        self.env |= {i: replace(t, dims=array.shape, data=array)
                     for i, t, array in zip(where, outs, arrays, strict=False)}

    def sized(self, number: int, o: Operation, args: Mapping[str, Any], outs: tuple[Tensor, ...]) -> Sequence[Array]:
        """The outputs of an operation, whose sizes follow from its inputs' values; raises `Dynamic` without these."""
        kernel, origin = self.kernel(number, o), self.place(number)
        if kernel.compute is None:
            raise Dynamic(origin)
        try:
            with failing(o.op.name, origin):
                return computed(kernel.compute, self.site(o, args, outs), o.op, args)
        except NeedsValue as error:
            raise Dynamic(origin) from error

    def tensor(self, index: Slot) -> Tensor:
        """An operand that is a tensor."""
        found = self.arg(index)
        if not isinstance(found, Tensor):
            raise TypeError(index)
        return found

    def checked(self, number: int, o: Operation) -> tuple[Checked, tuple[Tensor, ...]]:
        """The table's verdict on these shapes, and the complete outputs."""
        declared = [self.model.operands[i].tensor() for i in o.outputs]
        try:
            found = o.op.check([self.read(i) for i in o.inputs], declared)
        except OpError as error:
            raise broken(error, self.place(number)) from error
        return found, tuple(_merged(a, b) for a, b in zip(found.outputs, declared, strict=False))

    def prepared(self, number: int, o: Operation, bound: Bound, free: bool) -> Step:
        """The kernel's run function, with the slots of its arrays.

        `free`: another backend may do it. It is not computed now, and its sizes follow from what is known: where the
        model says sizes that a value of a run decides, the kernel holds the one against the other.
        """
        kernel, site = self.kernel(number, o), self.site(o, bound.args, bound.outs)
        elsewhere = free and self.options.elsewhere is not None and self.options.elsewhere(bound)
        run = _nothing if elsewhere else self.run(kernel, site, bound)
        return Step(o.op.name, bound.origin, run, o.outputs, tuple(bound.slots.values()), tuple(site.buffers),
                    bound.slots[kernel.view] if kernel.view else None, tuple(bound.slots[n] for n in kernel.inplace),
                    site.largest, bound, elsewhere, site.calls)

    def entered(self, o: Operation, inner: Inner, args: Mapping[str, Any], outs: tuple[Tensor, ...]
                ) -> tuple[Tensor, ...]:
        """The outputs of a branch or a loop with the sizes that its graphs give for such inputs, where all give the
        same ones and a loop's values keep theirs."""
        graphs = self._graphs(o, args)
        given: Sequence[Tensor | None] = [t and replace(t, data=None) for t in args[inner.given]]
        sizes = []
        for name in inner.graphs:
            found = self.sizes(graphs[name], tuple(given))
            if found is None:
                return outs
            if found:                            # else a run that takes this branch fails
                sizes.append(found)
        if not sizes:
            return outs
        expected = [t and t.dims for t in given[:len(sizes[0])]] if inner.again else sizes[0]
        if any(s != expected for s in sizes):
            return outs
        return tuple(replace(t, dims=sharper(dims, t.dims)) for t, dims in zip(outs, sizes[0], strict=False))

    def sizes(self, graph: Model, given: tuple[Tensor | None, ...]) -> Sequence[Shape | None] | None:
        """The sizes of what a graph gives, as `Inside` has them."""
        key = id(graph), given
        if key not in self.inside:
            try:
                program = bind(graph, given, self.options, self.inside)
                self.inside[key] = [program.tensors[i].dims for i in program.outputs]
            except Dynamic:
                self.inside[key] = None
            except RunError:
                self.inside[key] = ()
        return self.inside[key]

    def bound(self, number: int, o: Operation, args: Mapping[str, Any], outs: tuple[Tensor, ...]) -> Bound:
        """The operation with the slots of its arrays."""
        where = {id(t): i for i in o.inputs if isinstance(t := self.arg(i), Tensor)}
        placed = {n: mapped(args[n], lambda t: where[id(t)]) for n in tensor_names(o.op)}
        return Bound(o.op, args, outs, placed, o.outputs, self.place(number))

    @staticmethod
    def run(kernel: Kernel, site: Site, bound: Bound) -> Run:
        """The kernel's run function; raises `Dynamic` where it waits for a value, `RunError` where it refuses."""
        try:
            return kernel.prepare(site, **bound.args)
        except NeedsValue as error:
            raise Dynamic(bound.origin) from error
        except OpError as error:
            raise broken(error, bound.origin) from error
        except RunError as error:
            raise error.at(bound.origin) from error
        except FAILURES as error:
            raise failed(bound.op.name, error, bound.origin) from error

    def kernel(self, number: int, o: Operation) -> Kernel:
        """The operation's kernel; raises `RunError` where there is none."""
        kernel = kernel_of(o.op)
        if kernel is None:
            raise RunError(f"there is no kernel for {o.op.name}", self.place(number))
        return kernel

    def site(self, o: Operation, args: Mapping[str, Any], outs: tuple[Tensor, ...]) -> Site:
        """Where the operation's kernel is prepared."""
        return Site(outs, self.options.threads, self.model.relaxed, self._calls(o, args))

    def _graphs(self, o: Operation, args: Mapping[str, Any]) -> dict[str, Model]:
        """The operation's graphs by the names of the arguments that they are."""
        models = [m for i in o.inputs if isinstance(m := self.model.operands[i].value, Model)]
        return dict(zip((n for n, a in args.items() if isinstance(a, Signature)), models, strict=True))

    def _calls(self, o: Operation, args: Mapping[str, Any]) -> dict[str, Call]:
        # A loop calls its graphs many times: a draw in them is another one each time.
        make, options = self.options.call, replace(self.options, once=False)
        return {n: make(m, options) for n, m in self._graphs(o, args).items()} if make else {}

    def place(self, number: int) -> str:
        """Where an operation stands: in the source file, or in the model."""
        origin = self.model.origin[number] if self.model.origin else ""
        return origin or f"operation {number} {self.model.operations[number].op.name}"


def _nothing(*_: Any) -> None:
    """The run of a step that another backend does."""


def tensor_names(op: OpDef) -> tuple[str, ...]:
    """The canonical arguments that are tensors, tuples or records of tensors, in order: what `run` is handed."""
    params = (p for p in op.params if "tensor" in p.kind.groups(op.types) and not p.kind.output)
    return tuple(dict.fromkeys(p.record or p.name for p in params))


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """An argument with something in place of each tensor; its structure stays."""
    if isinstance(value, tuple):
        return rebuilt(value, [mapped(v, change) for v in value])
    return change(value) if isinstance(value, Tensor) else None


def execute(step: Step, arrays: Mapping[Slot, Array], outs: Mapping[Slot, Tensor]) -> dict[Slot, Array]:
    """Run one step by itself, into arrays of its own."""
    if step.view is not None:
        return {i: arrays[step.view].reshape(outs[i].shape) for i in step.outs}
    made = {i: np.zeros(outs[i].shape, outs[i].type.dtype) for i in step.outs}
    step.run(*made.values(), *fill(step.args, arrays), *(np.empty(s, d) for s, d in step.scratch))
    return made


def computed(compute: Callable[..., Compute], site: Site, op: OpDef, args: Mapping[str, Any]) -> Sequence[Array]:
    """The outputs of a kernel that chooses their sizes.

    Raises `NeedsValue` where an argument is no constant, `ValueError` where a size is not that which the model says.
    """
    values = [mapped(args[n], _value) for n in tensor_names(op)]
    found = compute(site, **args)(*values)
    for i, (t, array) in enumerate(zip(site.outs, found, strict=True)):
        if not t.agrees(Tensor(t.type, array.shape)):
            raise ValueError(f"output {i} has shape {list(array.shape)}, the model says {list(t.dims or ())}")
    return found


def pure(model: Model, o: Operation) -> bool:
    """Whether equal inputs give equal outputs, in the graphs that the operation runs, too."""
    graphs = (m for i in o.inputs if isinstance(m := model.operands[i].value, Model))
    return o.op.pure and all(pure(m, inner) for m in graphs for inner in m.operations)


def _value(t: Tensor) -> Array:
    if t.data is None:
        raise NeedsValue
    return t.data


def broken(error: OpError, where: str) -> RunError:
    """A rule that an operation breaks, as a fault of the run; the operation is named once."""
    return RunError(error.text if where.endswith(f" {error.op}") else str(error), where, error.hint)


def complete(t: Tensor) -> bool:
    """Whether every size of it is known."""
    return t.dims is not None and all(map(known, t.dims))


def once(op: OpDef, args: Mapping[str, Any], outs: tuple[Tensor, ...]) -> list[Array] | None:
    """Compute one operation on constant arguments (canonical, by name); None where there is no kernel for it.

    Raises `RunError` where it fails on them, `NeedsValue` where one is no constant.
    """
    kernel = kernel_of(op)
    if kernel is None:
        return None
    affordable_outputs(outs)
    with failing(op.name, ""), np.errstate(all="ignore"):
        if kernel.compute is not None:
            return list(computed(kernel.compute, Site(outs), op, args))
        if kernel.view:
            return [args[kernel.view].data.reshape(outs[0].shape)]
        site = Site(outs)
        run = kernel.prepare(site, **args)
        made = [np.zeros(t.shape, t.type.dtype) for t in outs]
        run(*made, *(mapped(args[n], lambda t: t.data) for n in tensor_names(op)),
            *(np.empty(s, d) for s, d in site.buffers))
        return made


def _merged(inferred: Tensor, declared: Tensor) -> Tensor:
    """The output as inference and the operand together say."""
    return Tensor(declared.type, sharper(inferred.dims, declared.dims), inferred.quant or declared.quant)
