"""What `verify` is asked: what a model's values are compared with, on which inputs, and what is taken for equal."""
from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ..archived import MAGIC, read_archive, read_array
from ..arrays import Given, assembled, drawn
from ..convert import Progress, read
from ..errors import InputError, NnxError, Notice, UsageError, among, near
from ..frozen import frozen
from ..runtime.compiled import TensorSpec
from ..target import Target
from ..types import Shape
from .archives import Recorded, runs
from .metrics import Tolerance
from .opening import Subject, another, recording, runtime, verify
from .references import ENGINES, Reference
from .verdict import Verdict

#: Runs in a row of a model that leaves something to the next, where inputs are drawn.
STATEFUL_RUNS = 3


@frozen
class Comparison:
    """What a model's numbers are compared with: the options of `nnx-convert verify`.

    `against`: an engine's name, an archive of outputs or another model; "" is the engine of the file's format. Inputs
    are those of single `files`, then of the archive `inputs`, then drawn from the seed `random`, for so many `runs`;
    `feed`: inputs that are an output of the run before. `per_op` compares every tensor between. `atol`, `rtol`,
    `steps`: what is taken for equal, where it is not what the format promises.
    """

    against: str = ""
    inputs: str | None = None
    random: int | None = None
    runs: int | None = None
    feed: Mapping[str, str] = field(default_factory=dict)
    per_op: bool = False
    atol: float | None = None
    rtol: float | None = None
    steps: int | None = None
    backend: str = "auto"
    threads: int | None = 1
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def limit(self) -> str:
        """The tolerances in words."""
        found = {"atol": self.atol, "rtol": self.rtol, "steps": self.steps}
        return ", ".join(f"{n} {v:g}" for n, v in found.items() if v is not None)


def compared(model: str, asked: Comparison, target: Target, shapes: Mapping[str, Shape],
             progress: Progress = lambda stage: None) -> tuple[Verdict, list[Given]]:
    """The verdict on a file, and the inputs of the first run; raises `NnxError` with the model's name."""
    name = Path(model).name
    progress("reading")
    subject = Subject(model, target, shapes)
    try:
        subject.outputs  # noqa: B018  (the file's faults come before those of options)
        fed(subject, asked.feed)
        held = recorded(subject, asked.against)
        reference = opened(subject, asked, held)
        sets = given_runs(subject, asked, held)
        progress("running")
        found = verify(subject, reference, [{g.name: g.array for g in each} for each in sets], per_op=asked.per_op,
                       tolerance=tolerances(subject, asked), backend=asked.backend, threads=asked.threads,
                       feed=asked.feed)
    except NnxError as error:
        raise error if name in error.where else error.at(name) from error
    return found, sets[0]


def tolerances(subject: Subject, asked: Comparison) -> tuple[Tolerance, Tolerance]:
    """What is taken for equal, of outputs and of tensors between."""
    if asked.atol is None and asked.rtol is None:
        return subject.tolerance(asked.steps)
    both = Tolerance(asked.atol, asked.rtol, asked.steps or 0)
    return both, both


def recorded(subject: Subject, against: str) -> list[Recorded]:
    """The runs of the archive that a model is compared with; none where it is something else."""
    if against in ENGINES or not os.path.exists(against):
        return []
    if not bytes(read(against)[0][:8]).startswith(tuple(MAGIC.values())):
        return []
    return list(runs(read_archive(against), [s.name for s in subject.inputs], subject.outputs))


def opened(subject: Subject, asked: Comparison, held: Sequence[Recorded]) -> Reference:
    """What the model is compared with; raises `UsageError` where there is no such thing."""
    against = asked.against
    if held:
        return recording(subject, Path(against).name, held)
    if against and against not in ENGINES and os.path.exists(against):
        return another(against, subject, asked.per_op, asked.backend, asked.threads)
    if against and against not in ENGINES:
        raise UsageError(f"there is neither a file nor an engine {against!r}",
                         hint=near(against, ENGINES, f"engines are {', '.join(ENGINES)}"))
    return runtime(subject, against, asked.per_op)


def fed(subject: Subject, feed: Mapping[str, str]) -> None:
    """Raise `UsageError` on a name of --feed that the model has not."""
    inputs = [s.name for s in subject.inputs]
    for name, output in feed.items():
        for lost, known, noun in ((name, inputs, "inputs"), (output, subject.outputs, "outputs")):
            if lost not in known:
                raise UsageError(f"--feed: there is no {noun[:-1]} {lost!r}", hint=among(lost, known, noun))


def given_runs(subject: Subject, asked: Comparison, held: Sequence[Recorded]) -> list[list[Given]]:
    """The inputs of each run: of single files, then of an archive, then drawn; raises `InputError` where one lacks.

    Without any of them they are drawn. An archive's later runs that lack an input are left out, which is said.
    """
    names, files, seed = [s.name for s in subject.inputs], asked.files, asked.random
    if unknown := [n for n in files if n not in names]:
        raise InputError(f"there is no input {unknown[0]!r}", hint=among(unknown[0], names, "inputs"))
    own = asked.against if held and held[0].inputs and seed is None and not files else None
    archive = asked.inputs or own or ""
    members = read_archive(archive) if archive else {}
    sets = list(runs(members, names, subject.outputs)) if archive else []
    if held and seed is None and not (archive or files):
        raise InputError("the archive of --against holds no inputs",
                         hint="give those its outputs belong to: --inputs ALL.npz, --input NAME=x.npy or --random SEED")
    seed = 0 if seed is None and not (archive or files) else seed
    most = len(sets) or asked.runs or (STATEFUL_RUNS if subject.stateful and seed is not None else 1)
    found: list[list[Given]] = []
    for n in range(min(most, asked.runs or most, len(held) or most)):
        one = [g for i, s in enumerate(subject.inputs) if (g := one_input(
            s, i, n, files, sets, members, archive, seed, subject.shapes)) is not None]
        lost = [name for name in names if name not in {g.name for g in one} and (n == 0 or name not in asked.feed)]
        if lost and n:
            warnings.warn(f"runs {n + 1} to {most} of {archive} lack the input {lost[0]!r} and are left out: "
                          f"--feed {lost[0]}=OUTPUT says which output of the run before it is", Notice, stacklevel=2)
            break
        if lost:
            held_by = f"; {archive} holds {', '.join(list(members)[:12]) or 'nothing'}" if archive else ""
            raise InputError(f"{', '.join(map(repr, lost))} is missing{held_by}",
                             hint="give --input NAME=x.npy, --inputs ALL.npz or --random SEED")
        found.append(one)
    return found


def one_input(spec: TensorSpec, place: int, run: int, files: Mapping[str, str], sets: Sequence[Recorded],
              members: Mapping[str, Any], archive: str, seed: int | None, shapes: Mapping[str, Shape]
              ) -> Given | None:
    """An input of a run; None where nothing gives it."""
    if spec.name in files:
        return Given(spec.name, read_array(files[spec.name]), files[spec.name])
    if spec.holds and archive:
        return Given(spec.name, assembled(spec, members), f"{archive}[{spec.name}[...]]")
    if sets and spec.name in sets[run].inputs:
        return Given(spec.name, sets[run].inputs[spec.name], os.path.basename(archive))
    if seed is not None:
        return Given(spec.name, drawn(spec, (seed + run, place), shapes), f"seed {seed}")
    return None
