"""A model's native parts, called by whoever a test names, in memory that the test lays out."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from cases_elementwise import CASES as ELEMENTWISE
from cases_image import CASES as IMAGE
from cases_models import CASES as MODELS
from cases_shape import CASES as SHAPE
from guards import Guarded, reach
from natively import NEAR, Array, left_to, tensors
from row_case import instances
from row_runs import usual

from nnx_convert import CompiledModel, Model, NnxError, convert
from nnx_convert.runtime.bind import Dynamic, Options, Program, Step, bind, fill
from nnx_convert.runtime.codegen import pages
from nnx_convert.runtime.codegen.fusion import groups
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.places import SLACK
from nnx_convert.runtime.codegen.program import Planner, Stretch, segment, stretches, waits_after
from nnx_convert.runtime.codegen.tasks import Task, Workshop
from nnx_convert.runtime.runner import Compiled, call

CASES = (*ELEMENTWISE, *IMAGE, *SHAPE, *MODELS)
#: What bytes that no run has written are, and what those behind the arena's last array stay.
UNTOUCHED = 0xFF


@dataclass(frozen=True)
class Case:
    """A model, what it is given, and what NumPy makes of that."""

    name: str
    model: Model
    given: tuple[Array, ...]

    def wild(self) -> Iterator[Case]:
        """The same with integers of all sizes in place of those of 32 bits: indices and counts that are none."""
        rng = np.random.default_rng(0)
        for low, high in ((-1, 2), (-100, 100), (-2 ** 31, 2 ** 31)):
            given = [np.asarray(rng.integers(low, high, a.shape, np.int32)) if a.dtype == np.int32 else a
                     for a in self.given]
            if any(a.dtype == np.int32 for a in given):
                yield replace(self, given=tuple(given))

    def bound(self, machine: Machine) -> Program:
        """The program in which what this machine does natively is left to it."""
        with np.errstate(all="ignore"):
            return left_to(self.model, self.given, machine)

    def wanted(self) -> list[Array]:
        """The outputs by NumPy."""
        with np.errstate(all="ignore"):
            return Compiled(bind(self.model, tensors(self.model, self.given), Options(1, call))).run(self.given)


def cases(each: int, seed: int) -> Iterator[Case]:
    """So many random cases of every family in the modules of this folder that have `MAKES`."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for family, make in _makes(path).items():
            rng, found = np.random.default_rng(seed), list[Any]()
            while len(found) < each:
                net = make(rng)
                found += [net] if net is not None else []
            for n, net in enumerate(found):
                yield Case(f"{path.stem}:{family}:{n}", net.model, tuple(net.given))


def rows(machine: Machine, first: int = 0, step: int = 1) -> Iterator[Case]:
    """The cases of the table's rows that are done natively, as far as they are each so many, from that one on."""
    for instance in islice((i for c in CASES for i in instances(c)), first, None, step):
        model, given = usual(instance)
        case = Case(f"{instance}", model, tuple(given))
        with suppress(NnxError, Dynamic):
            if any(step.elsewhere for step in case.bound(machine).steps):
                yield case


@cache
def _makes(path: Path) -> dict[str, Callable[[np.random.Generator], Any]]:
    """What a module calls `MAKES`, which is loaded as another one: modules elsewhere have its name, too."""
    if "\nMAKES" not in path.read_text():
        return {}
    spec = spec_from_file_location(f"makes_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Callable[[np.random.Generator], Any]] = module.MAKES
    return found


def of_file(path: Path, inputs: Sequence[Array] = ()) -> Case:
    """A case of a model's file: the arrays that reach its operands when it is given these inputs, or random ones."""
    whole, found, rng = CompiledModel(convert(path)), list[Array](), np.random.default_rng(0)
    shapes = [tuple(n or 1 for n in s.shape or ()) for s in whole.inputs]
    inputs = inputs or [(rng.standard_normal(n) * 50).astype(s.dtype)
                        for n, s in zip(shapes, whole.inputs, strict=True)]
    program = whole.prepare({s.name: a.shape for s, a in zip(whole.inputs, inputs, strict=False)})
    assert program is not None
    plain = program.run

    def watched(given: Sequence[Array | None]) -> list[Array]:
        found[:] = [np.array(a) for a in given]
        return plain(given)
    setattr(program, "run", watched)  # noqa: B010  (a method, here of one object)
    whole.run(list(inputs))
    return Case(f"{path.parent.name}/{path.name}", whole.model, tuple(found))


class Placed:
    """A program as stretches of tasks and NumPy steps, its weights packed, nothing compiled."""

    def __init__(self, case: Case, machine: Machine, threads: int) -> None:
        self.case, self.threads = case, threads
        program = self.program = case.bound(machine)
        self.memory = pages.MEMORY
        planner = Planner(program, machine, threads)
        self.layout = planner.layout(groups(program, machine))
        shop = Workshop(machine, self.layout.places, program.constants, self.layout.fault)
        self.parts: list[Stretch] = stretches(self.layout, planner, shop)
        self.weights = shop.blob(SLACK)

    @property
    def tasks(self) -> list[Task]:
        """All of them, in order."""
        return [t for part in self.parts if isinstance(part, list) for t in part]

    def emit(self, m: Module, prefix: str) -> list[tuple[str, int]]:
        """Write its native parts; for each the function's name and how often its threads wait."""
        found = []
        for n, part in enumerate(self.parts):
            if isinstance(part, list):
                segment(m, f"{prefix}_{n}", part)
                found.append((f"{prefix}_{n}", sum(waits_after(part, i) for i in range(len(part)))))
        return found

    def run(self, arena: Array, call: Callable[[int], None]) -> list[Array]:
        """The outputs; `call` does the native part of a number, among those, in this arena.

        Raises `AssertionError` where a part writes behind an array that has bytes of its own, or behind the last one.
        """
        *ours, (end, rest) = self.layout.arrays
        known = [(at, at + size, at + reach(size)) for at, size in ours] if isinstance(self.memory, Guarded) else [
            (0, end - SLACK, end)]
        for at, _, stop in (*known, (end, end + rest, end + rest)):
            arena[at:stop] = UNTOUCHED
        fault = arena[self.layout.fault:][:8]
        fault[:] = 0
        tensors = self.program.tensors
        arrays = dict(self.program.constants) | {
            s: p.of(arena, tensors[s].type.dtype) for s, p in self.layout.places.items() if s in tensors}
        for slot, array in zip(self.program.inputs, self.case.given, strict=True):
            if slot is not None and slot not in self.program.constants:
                np.copyto(arrays[slot], array)
        number = 0
        for part in self.parts:
            if isinstance(part, Step):
                part.run(*(arrays[i] for i in part.outs), *fill(part.args, arrays),
                         *(np.empty(s, d) for s, d in part.scratch))
                continue
            call(number)
            number += 1
        assert all((arena[last:stop] == UNTOUCHED).all() for _, last, stop in known), "the slack was written"
        assert (arena[self.layout.fault + 8:] == UNTOUCHED).all(), "behind the fault was written"
        return [arrays[i].copy() for i in self.program.outputs]


def wrong(got: Sequence[Array], want: Sequence[Array]) -> str:
    """What is wrong with outputs, in a few words; nothing where they are right: integers equal, floats near."""
    for n, (g, w) in enumerate(zip(map(parts, got), map(parts, want), strict=True)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {n} is {g.dtype}{list(g.shape)}"
        same = g == w
        if g.dtype.kind != "f":
            if not same.all():
                return f"output {n}: {np.count_nonzero(~same)} of {g.size} differ"
            continue
        same |= np.isnan(g) & np.isnan(w)
        with np.errstate(all="ignore"):
            found = float(np.where(same, 0, np.abs(g.astype(float) - w)).max(initial=0))
        largest = float(np.abs(w[np.isfinite(w)]).max(initial=0))
        if not found <= NEAR * largest:
            return f"output {n} is {found / largest if largest else found:.3g} off"
    return ""


def parts(x: Array) -> Array:
    """Complex numbers as their real and imaginary parts; others as they are."""
    return x.view(np.finfo(x.dtype).dtype) if x.dtype.kind == "c" else x
