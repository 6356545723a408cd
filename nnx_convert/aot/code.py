"""A model's object file: its run as one function of one thread, between copies of what the caller gives and gets."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ExportError
from ..frozen import frozen
from ..model import Model
from ..runtime.bind import bind
from ..runtime.codegen.fusion import groups
from ..runtime.codegen.ir import Function, Module
from ..runtime.codegen.loader import Image
from ..runtime.codegen.machine import Machine
from ..runtime.codegen.moves import Copy
from ..runtime.codegen.objects import compiled
from ..runtime.codegen.places import SLACK, Place, dense_strides
from ..runtime.codegen.program import Planner, outlined, segment, stretches
from ..runtime.codegen.plans import recalling
from ..runtime.codegen.tasks import Task, Workshop, taken
from ..runtime.memory import affordable
from ..runtime.rim import Doors, initial
from ..runtime.runner import call
from ..runtime.steps import Dynamic, Options, Program, Slot, Step
from ..types import OBJECTS, Array, Port, Tensor

#: Arena, weights and golden arrays begin at multiples of so many bytes.
ALIGN = 64
#: All that code may ask of a C library.
LIBRARY = frozenset({"memcpy", "memset", "memmove"})
#: Operations that are named where they stand in the way; others are counted.
NAMED = 8


@frozen
class Side:
    """An input or an output of the run function: its number among the model's, its port, and what is there."""

    number: int
    port: Port
    tensor: Tensor


@frozen
class Code:
    """An object file and what must be known to call it. `weights` are to lie, as the arena, at a multiple of 64.

    `faults` are the texts of what `run` returns, from 1 on. `kept` are the numbers of inputs and of the outputs that
    become them: they stay in the arena from run to run, and are neither given nor returned.
    """

    image: bytes
    weights: Array
    arena: int
    inputs: tuple[Side, ...]
    outputs: tuple[Side, ...]
    faults: tuple[str, ...]
    kept: Mapping[int, int]


@dataclass
class Layout:
    """A program's places, its tasks, and the weights that they read."""

    program: Program
    size: int
    fault: int
    tasks: list[Task]
    shop: Workshop
    kept: dict[Slot, Slot]                   # the states in the arena: the slot a run reads, the one it leaves


def code(model: Model, tensors: Sequence[Tensor | None], machine: Machine, prefix: str) -> Code:
    """A model, for inputs of these types and shapes, as code for a machine; its symbols begin with `prefix` and _.

    Raises `ExportError` where there is more to it than native code.
    """
    if any(o.type in OBJECTS for o in model.operands) or None in tensors:
        raise ExportError("has texts, lists or inputs that may be left out, for which there is no C array")
    try:
        with np.errstate(all="ignore"):
            options = Options(1, call, elsewhere=lambda b: taken(b, machine))
            program = bind(model, [t for t in tensors if t is not None], options)
            refuse(program)
            layout = laid_out(program, machine)
    except Dynamic as error:
        raise ExportError(f"has sizes that follow from values: {error}") from error
    befores, afters = set(layout.kept), set(layout.kept.values())
    into = sides(program, model.rim.inputs, [-1 if s is None else s for s in program.inputs], befores)
    out = sides(program, model.rim.outputs, program.outputs, afters)
    m = Module(machine)
    segment(m, f"{prefix}_segment", layout.tasks)
    begin(m, f"{prefix}_init", layout, model)
    run(m, prefix, layout, into, out)
    image, = compiled(m.text(), machine)
    refuse_library(image)
    kept = {program.inputs.index(a): program.outputs.index(b) for a, b in layout.kept.items()}
    faults = tuple(f"{origin}: {text.format('a value')}" for text, origin in layout.shop.checks)
    return Code(image, layout.shop.blob(SLACK), layout.size, into, out, faults, kept)


def refuse(program: Program) -> None:
    """Raise `ExportError` where a program has steps that only NumPy does, naming their operations."""
    left = [s for s in program.steps if not s.elsewhere and s.view is None]
    if not left:
        return
    names = list(dict.fromkeys(s.name for s in left))
    more = f" and {len(names) - NAMED} more kinds" if len(names) > NAMED else ""
    raise ExportError(f"{len(left)} of its steps have no native code: {', '.join(names[:NAMED])}{more}",
                      left[0].origin, "nnx-convert bench --per-op shows them")


def laid_out(program: Program, machine: Machine) -> Layout:
    """Where everything of a program is, and what its native code does."""
    planner = Planner(program, machine, 1)
    found = planner.layout(groups(program, machine))
    affordable(found.size, "the arena")
    shop = Workshop(machine, found.places, program.constants, found.fault)
    with recalling(outlined(program)):
        parts = stretches(found, planner, shop)
    if any(isinstance(part, Step) for part in parts):
        raise ExportError("has steps without native code")
    kept = {} if planner.carried(found.places) is None else dict(program.states)
    tasks = [task for part in parts if isinstance(part, list) for task in part]
    return Layout(program, found.size, found.fault, tasks, shop, kept)


def sides(program: Program, ports: Sequence[Port], slots: Sequence[Slot], kept: set[Slot]) -> tuple[Side, ...]:
    """The inputs or outputs that a run is handed."""
    return tuple(Side(n, port, program.tensors[slot]) for n, (port, slot) in enumerate(zip(ports, slots, strict=True))
                 if slot not in kept)


def begin(m: Module, name: str, layout: Layout, model: Model) -> None:
    """Write the function that clears the arena and puts the states' first values there."""
    f = Function(m, name, (("ptr", "%arena"), ("ptr", "%weights")), exported=True)
    f.fill("%arena", 0, layout.size)
    for door, slot in zip(Doors(model).inputs, layout.program.inputs, strict=True):
        if slot in layout.kept:
            first, to = door.inward(initial(door.port)), layout.shop.places[slot]
            if first.any():
                moved(m, f, dense(replace(to, base="%weights", offset=layout.shop.pack(first))), to)
    f.finish()


def run(m: Module, prefix: str, layout: Layout, into: Sequence[Side], out: Sequence[Side]) -> None:
    """Write the function of a run: inputs copied in, all tasks, outputs copied out; it gives the number of a fault."""
    f = Function(m, f"{prefix}_run", (("ptr", "%arena"), ("ptr", "%weights"), ("ptr", "%inputs"),
                                      ("ptr", "%outputs")), exported=True)
    f.store("i64", "0", "%arena", layout.fault, 8)
    for n, side in enumerate(into):
        slot = layout.program.inputs[side.number]
        if slot is not None and slot in layout.shop.places:
            to = layout.shop.places[slot]
            moved(m, f, dense(replace(to, base="%source", offset=0)), to, f.load("ptr", "%inputs", 8 * n, 8))
    f.do(f"call void @{prefix}_segment(ptr %arena, ptr %weights, i64 0, i64 1, ptr null, i64 0)")
    for n, side in enumerate(out):
        source = layout.shop.place(layout.program.outputs[side.number])
        moved(m, f, source, dense(replace(source, base="%source", offset=0)), f.load("ptr", "%outputs", 8 * n, 8))
    fault = f.load("i64", "%arena", layout.fault, 8)
    number = f.let(f"lshr i64 {f.let(f'xor i64 {fault}, -1')}, 32")              # see `tasks.tell`
    number = f.select(f.let(f"icmp eq i64 {fault}, 0"), "i64", "0", number)
    f.finish(f"i32 {f.let(f'trunc i64 {number} to i32')}")


def dense(p: Place) -> Place:
    """A place of which the elements follow each other."""
    return replace(p, strides=dense_strides(p.shape, p.item))


def moved(m: Module, f: Function, source: Place, to: Place, given: str = "%arena") -> None:
    """Copy an array; what its caller gave is the base %source."""
    if not source.size:
        return
    if not source.shape:
        source, to = source.reshaped((1,)), to.reshaped((1,))
    task = Copy(source, to).emit(m)
    f.do(f"call void @{task}(ptr %arena, ptr %weights, i64 0, i64 1, ptr {given}, ptr %arena, ptr %arena)")


def refuse_library(image: bytes) -> None:
    """Raise `ExportError` where code calls more of a C library than what moves bytes."""
    wanted = {name for name, _, section, _ in Image(image).symbols if name and not section} - LIBRARY
    if wanted:
        raise ExportError(f"needs {', '.join(sorted(wanted))} of a C library on such processors",
                          hint="give --cpu-features avx2, where all have it")
