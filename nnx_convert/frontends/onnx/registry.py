"""Importers: one function per operator, whose Python signature is the operator's schema."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from ...errors import FormatError
from ...frozen import frozen
from ...graph import Value
from ...signature import Param, Parameter, hints_of, parameters

#: Domains of operators. The default one has two names in files, `""` and `ai.onnx`.
MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"
PREVIEW, TRAINING = "ai.onnx.preview", "ai.onnx.preview.training"
#: The modules that hold importers, the most wanted first: each is imported when none before it has an operator.
FAMILIES = ("elementwise", "activation", "conv", "shape", "cut", "matmul", "pool", "reduce", "gather", "norm",
            "resize", "cast", "quant", "quant_microsoft", "control", "attention", "rnn", "sequence",
            "vision", "signal", "loss", "random", "text", "ml_linear", "ml_svm", "ml_trees", "training",
            "gradient", "einsum", "fused", "fused_images", "transformer")
#: The version up to which an importer is meant that says nothing.
ALWAYS = 1 << 30


@frozen
class Items:
    """A sequence whose elements are known while importing; `kind` is the ONNX type of it."""

    values: tuple[Value, ...]
    kind: Any = None


@frozen
class Kind:
    """An attribute that is the type of a value (a `TypeProto`)."""

    of: Any


@frozen
class Sparse:
    """An attribute that is a constant of which few elements are not zero (a `SparseTensorProto`)."""

    of: Any


Given = Value | Items | None
Result = Value | Items | Sequence[Value | Items | None] | None
F = TypeVar("F", bound=Callable[..., Any])


@frozen
class Importer:
    """An importer of the versions `since` to `until` of an operator. What its signature says is read when a file has
    such an operator.

    `arithmetic`: narrow integers and floats are computed as INT32 and FLOAT32 around it. `folds`: what it makes of
    constants is computed at once where it is small.
    """

    fn: Callable[..., Any]
    since: int
    until: int
    arithmetic: bool
    folds: bool

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotations by parameter."""
        return hints_of(self.fn)

    @cached_property
    def inputs(self) -> tuple[Parameter, ...]:
        """The inputs, in ONNX's order."""
        return tuple(p for p in parameters(self.fn) if p.name != "g" and not p.keyword)

    @cached_property
    def attributes(self) -> Mapping[str, Parameter]:
        """The attributes by name."""
        return {p.name: p for p in parameters(self.fn) if p.keyword}

    def positional(self, given: Sequence[Given]) -> list[Given]:
        """The inputs as the function takes them; raises `FormatError` where one is missing or there are too many."""
        many = bool(self.inputs) and self.inputs[-1].variadic
        fixed = self.inputs[:-1] if many else self.inputs
        if len(given) > len(fixed) and not many:
            if any(v is not None for v in given[len(fixed):]):
                raise FormatError(f"has {len(given)} inputs, {len(fixed)} at most")
            given = given[:len(fixed)]
        padded = [*given, *[None] * (len(fixed) - len(given))]
        for i, v in enumerate(padded):
            name = self.inputs[min(i, len(self.inputs) - 1)].name
            if v is None and not optional(self.hints[name]):
                raise FormatError(f"input {i}, {name}, is left out")
            if isinstance(v, Items) and not takes_items(self.hints[name]):
                raise FormatError(f"input {i}, {name}, is a sequence")
        return padded

    def named(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes as the function takes them; raises `FormatError`."""
        if unknown := [n for n in given if n not in self.attributes]:
            raise FormatError(f"has no attribute {unknown[0]!r} in this version")
        for name, p in self.attributes.items():
            if name not in given and p.default is Param.required:
                raise FormatError(f"lacks the attribute {name!r}")
        return {name: fitted(name, value, self.hints[name]) for name, value in given.items()}


IMPORTERS: dict[tuple[str, str], list[Importer]] = {}


def imports(name: str = "", *, since: int = 1, until: int = ALWAYS, domain: str = "", arithmetic: bool = False,
            folds: bool = True) -> Callable[[F], F]:
    """Register an importer for the operator of its own name or another, in the versions `since` to `until`.

    `g` emits nodes. Parameters by position are the inputs in ONNX's order: `Value`, `Value | None = None` where it
    may be left out, `*xs: Value`; `Items` where a sequence is meant. Parameters by name are the attributes with
    ONNX's defaults; one without a default must be there. NotImplemented as a result means the operator's own
    function body.
    """
    def register(fn: F) -> F:
        IMPORTERS.setdefault((domain, name or fn.__name__), []).append(Importer(fn, since, until, arithmetic, folds))
        return fn
    return register


def all_importers() -> dict[tuple[str, str], list[Importer]]:
    """Every importer by domain and operator."""
    for family in FAMILIES:
        import_module(f".importers.{family}", __package__)
    return IMPORTERS


def importer_of(domain: str, name: str, version: int) -> Importer | None:
    """The importer of an operator of a version of its domain; None where there is none."""
    for family in FAMILIES:
        if (domain, name) not in IMPORTERS:
            import_module(f".importers.{family}", __package__)
    found = IMPORTERS.get((domain, name), ())
    return next((i for i in found if i.since <= version <= i.until), None)


def optional(hint: Any) -> bool:
    """Whether an annotation allows None."""
    return type(None) in getattr(hint, "__args__", ())


def takes_items(hint: Any) -> bool:
    """Whether an annotation allows a sequence."""
    return hint is Any or Items in (hint, *getattr(hint, "__args__", ()))


def fitted(name: str, value: Any, hint: Any) -> Any:
    """An attribute as its annotation has it; raises `FormatError` where the file says another kind."""
    wants = next((a for a in hint.__args__ if a is not type(None)), hint) if optional(hint) else hint
    origin = getattr(wants, "__origin__", wants)
    if origin is tuple and isinstance(value, tuple):
        each = wants.__args__[0]
        if all(isinstance(v, each) for v in value):
            return value
    elif isinstance(origin, type) and isinstance(value, np.ndarray if origin is np.ndarray else origin):
        return value
    if wants is float and isinstance(value, int):
        return float(value)
    raise FormatError(f"the attribute {name!r} is a {type(value).__name__}")
