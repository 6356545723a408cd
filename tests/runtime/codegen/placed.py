"""A model's native parts, called by whoever a test names, in memory that the test lays out."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from natively import apart

from nnx_convert import CompiledModel, Model, convert
from nnx_convert.runtime.bind import Options, Step, bind, fill
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.places import SLACK
from nnx_convert.runtime.codegen.plans import recalling
from nnx_convert.runtime.codegen.program import Planner, Stretch, groups, outlined, segment, stretches, waits_after
from nnx_convert.runtime.codegen.tasks import Task, Workshop, taken
from nnx_convert.runtime.runner import Compiled, call
from nnx_convert.types import Tensor

Array = np.ndarray[Any, Any]
#: |got - want| <= NEAR * the largest |want| of floats; integers are equal.
NEAR = 1e-5
#: What bytes that no run has written are, and what those behind the arena's last array stay.
UNTOUCHED = 0xFF


@dataclass(frozen=True)
class Case:
    """A model, what it is given, and what NumPy makes of that."""

    name: str
    model: Model
    given: tuple[Array, ...]

    @property
    def tensors(self) -> list[Tensor]:
        """The inputs' types and shapes."""
        operands = [self.model.operands[i] for i in self.model.inputs]
        return [Tensor(o.type, a.shape, o.quant) for o, a in zip(operands, self.given, strict=True)]

    def wanted(self) -> list[Array]:
        """The outputs by NumPy."""
        with np.errstate(all="ignore"):
            return Compiled(bind(self.model, self.tensors, Options(1, call))).run(self.given)


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


@cache
def _makes(path: Path) -> dict[str, Callable[[np.random.Generator], Any]]:
    """What a module calls `MAKES`, which is loaded as another one: modules elsewhere have its name, too."""
    if "\nMAKES" not in path.read_text():
        return {}
    spec = spec_from_file_location(f"makes_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
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
        program = self.program = bind(case.model, case.tensors, Options(
            1, call, elsewhere=lambda b: taken(b, machine)))
        planner = Planner(program, machine, threads)
        self.layout = planner.layout(groups(program, machine))
        self.shop = Workshop(machine, self.layout.places, program.constants, self.layout.fault)
        with recalling(outlined(program)):
            self.parts: list[Stretch] = stretches(self.layout, planner, self.shop)
        self.weights = self.shop.blob(SLACK)

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

        Raises `AssertionError` where a part writes behind the arena's last array.
        """
        arena[:] = UNTOUCHED
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
        assert (arena[self.layout.fault - SLACK:self.layout.fault] == UNTOUCHED).all(), "the slack was written"
        assert (arena[self.layout.fault + 8:] == UNTOUCHED).all(), "behind the fault was written"
        return [arrays[i].copy() for i in self.program.outputs]


def wrong(got: Sequence[Array], want: Sequence[Array]) -> str:
    """What is wrong with outputs, in a few words; nothing where they are right."""
    for n, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {n} is {g.dtype}{list(g.shape)}"
        whole = g.dtype.kind != "f"
        if whole and not np.array_equal(g, w):
            return f"output {n}: {np.count_nonzero(g != w)} of {g.size} differ"
        if not whole and not apart([g.astype(float)], [w.astype(float)]) <= NEAR:
            return f"output {n} is {apart([g.astype(float)], [w.astype(float)]):.3g} off"
    return ""
