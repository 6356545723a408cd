"""What pytest loads where this package is installed: the fixture `nnx_model`.

    def test_it_fits_the_phone(nnx_model):
        model = nnx_model("models/pose.tflite")
        model.check(29, fail_on="host,partitions>1")
        model.verify("golden.npz", atol=1e-4)
        assert model.inspect().macs < 300e6
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..frozen import frozen

if TYPE_CHECKING:
    from ..check import Check
    from ..inspection import Inspection
    from ..runtime.compiled import CompiledModel
    from ..target import Target
    from ..verify.verdict import Verdict


@frozen
class ModelUnderTest:
    """A model's file in a test. `folders` are those that relative paths are looked for in, the test's own first.

    What is not as asked is an `AssertionError` in words; a file that is broken is the library's `NnxError`.
    """

    path: str
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()

    def check(self, target: Target | int | str = 30, *, fail_on: str = "refused") -> Check:
        """What a target takes; fails where a condition is met: those of `nnx-convert check --fail-on`.

        `target` is a feature level, as 29 or "fl7", a device's .toml file, or a `Target`.
        """
        from ..check import check, conditions
        from ..target import Target
        from .work import lost
        __tracebackhide__ = True
        if isinstance(target, Target):
            device = target
        else:
            name = str(target)
            device = Target.named(located(name, self.folders) if name.endswith(".toml") else name)
        asked = conditions(fail_on)
        found = check(self.path, device, shapes=self.shapes)
        if met := [c.text for c in asked if c.met(found)]:
            raise AssertionError(f"{Path(self.path).name} for {device}: {', '.join(met)}{lost(found)}")
        return found

    @cached_property
    def compiled(self) -> CompiledModel:
        """The model as it runs on this machine."""
        from ..convert import compile
        return compile(self.path, shapes=self.shapes)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None, *, random: int = 0) -> dict[str, Any]:
        """The outputs by name, of inputs by name or in order; those that are not given are drawn from a seed."""
        from ..arrays import drawn
        from ..errors import InputError
        specs = [s for s in self.compiled.inputs if not s.state]
        if not isinstance(inputs, Mapping) and len(inputs or ()) > len(specs):
            raise InputError(f"{len(inputs or ())} inputs are given, the model has {len(specs)}", Path(self.path).name)
        given = dict(inputs if isinstance(inputs, Mapping) else
                     zip((s.name for s in specs), inputs or (), strict=False))
        for i, s in enumerate(specs):
            if s.name not in given:
                given[s.name] = drawn(s, (random, i), self.shapes)
        return self.compiled.run(given)

    def verify(self, against: str | Path = "", *, inputs: str | Path | None = None, random: int | None = None,
               runs: int | None = None, per_op: bool = False, atol: float | None = None, rtol: float | None = None,
               steps: int | None = None, backend: str = "auto", target: Target | None = None) -> Verdict:
        """Compare it with an archive of outputs, another model, litert or onnxruntime; fails where anything diverges.

        The options are those of `nnx-convert verify`.
        """
        from ..target import Target
        from ..verify.asking import Comparison, compared
        from ..verify.references import ENGINES
        from .work import differences
        __tracebackhide__ = True
        other = str(against) if str(against) in ("", *ENGINES) else located(against, self.folders)
        asked = Comparison(other, None if inputs is None else located(inputs, self.folders), random, runs, {}, per_op,
                           atol, rtol, steps, backend)
        found, _ = compared(self.path, asked, target or Target(), self.shapes)
        if not found.good:
            raise AssertionError(f"{Path(self.path).name} beside {found.reference}: {differences(found)}")
        return found

    def inspect(self) -> Inspection:
        """What the file holds: operations, tensors, bytes, multiply-adds, memory."""
        from ..inspection import inspect
        return inspect(self.path, shapes=self.shapes)


def located(path: str | Path, folders: Sequence[Path]) -> str:
    """A path in the first of the folders that has it, as it is where none has."""
    return str(next((f / path for f in folders if (f / path).exists()), Path(path)))


@pytest.fixture
def nnx_model(request: pytest.FixtureRequest) -> Callable[..., ModelUnderTest]:
    """A function that opens a model's file for a test: `nnx_model("pose.tflite", shapes={"image": (1, 224, 224, 3)})`.

    A relative path begins in the test's folder, else in pytest's root folder.
    """
    folders = (request.path.parent, request.config.rootpath)

    def opened(path: str | Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None) -> ModelUnderTest:
        return ModelUnderTest(located(path, folders), dict(shapes or {}), folders)
    return opened
