"""Importers: one function per operator, found by its name, its signature saying what it takes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, TypeVar

import numpy as np

from ...errors import FormatError, Unsupported
from ...frozen import frozen
from ...graph import Value
from ...ops.custom import CUSTOM_OPS
from ...signature import Parameter, hints_of, parameters
from .guard import absent
from .records import Operator

Const = Annotated[tuple[int, ...], "const"]
INT32 = range(-1 << 31, 1 << 31)


@frozen
class Handle:
    """A resource, by name: a variable or a hash table."""

    name: str


Given = Value | Handle | None
Result = Value | Handle | Sequence[Value | Handle] | None
F = TypeVar("F", bound=Callable[..., Result])


@frozen
class Input:
    """One input of an importer, as its parameter declares it."""

    name: str
    wants: Any
    optional: bool
    const: bool
    many: bool

    def take(self, index: int, given: Given) -> Any:
        """The argument for what the file gives; raises `FormatError` or `Unsupported` where it does not do."""
        if given is None:
            if self.optional:
                return None
            raise FormatError(f"input {index}, {self.name}, is left out")
        if not isinstance(given, self.wants):
            raise FormatError(f"input {index}, {self.name}, is a {type(given).__name__.lower()}")
        return constant(self.name, given) if self.const else given


@frozen
class Importer:
    """An importer. What its signature says is read when a file has such an operator; `override` is the options'
    class where it is not the one that this names."""

    fn: Callable[..., Result]
    override: type | None = None

    @cached_property
    def options(self) -> type | None:
        """The options' class."""
        return self.override or hints_of(self.fn).get("o")

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, in TFLite's order."""
        hints = hints_of(self.fn)
        return tuple(_input(p, hints) for p in parameters(self.fn) if p.name not in ("g", "o"))

    def arguments(self, op: Operator, given: Sequence[Given]) -> list[Any]:
        """The operator's options and inputs as the function takes them; raises `FormatError`, `Unsupported`."""
        args = [] if self.options is None else [options(self.options, op)]
        many = bool(self.inputs) and self.inputs[-1].many
        if len(given) > len(self.inputs) and not many:
            raise FormatError(f"has {len(given)} inputs, {len(self.inputs)} at most")
        fixed = self.inputs[:-1] if many else self.inputs
        padded = [*given, *[None] * (len(fixed) - len(given))]
        args += [p.take(i, v) for i, (p, v) in enumerate(zip(fixed, padded, strict=False))]
        return args + [self.inputs[-1].take(i, v) for i, v in enumerate(padded) if i >= len(fixed)]


IMPORTERS: dict[str, Importer] = {}
#: The modules that fill it, the most wanted first: each is imported when none before it has an operator.
FAMILIES = ("conv", "elementwise", "shape", "control", "rnn", "host_math", "host_arrays", "lookup", "custom",
            "custom_signal", "custom_vision")


def all_importers() -> dict[str, Importer]:
    """Every importer by its operator's name."""
    for family in FAMILIES:
        import_module(f".importers.{family}", __package__)
    return IMPORTERS


def imports(name: str = "", options: type | None = None) -> Callable[[F], F]:
    """Register an importer under its own name or another.

    Its parameters: `g` emits nodes; `o`, where it is there, are the options, of the class it is annotated with or
    `options`; then come the inputs in TFLite's order. An annotation says what an input may be: `Value`,
    `Value | None`, `Handle`, `Value | Handle`, or `Const`, integers that must be known.
    """
    def register(fn: F) -> F:
        IMPORTERS[name or fn.__name__] = Importer(fn, options)
        return fn
    return register


def importer_of(name: str) -> Importer:
    """The importer of an operator, a user's own before any other; raises `Unsupported` where there is none."""
    kind, _, custom = name.partition(" ")
    wanted = kind if kind == "CUSTOM" and custom in CUSTOM_OPS else name
    for family in FAMILIES:
        if wanted not in IMPORTERS:
            import_module(f".importers.{family}", __package__)
    if wanted in IMPORTERS:
        return IMPORTERS[wanted]
    if custom.startswith("Flex"):
        raise Unsupported(f"{custom} is TensorFlow's own, not TFLite's", hint="convert the model without SELECT_TF_OPS")
    if kind == "CUSTOM":
        raise Unsupported(f"the custom operator {custom!r} is not known here",
                          hint="nnx_convert.register_custom_op makes it so")
    raise Unsupported(f"there is no NNAPI operation for {name} and no host operation")


def _input(p: Parameter, hints: dict[str, Any]) -> Input:
    hint = hints[p.name]
    const = getattr(hint, "__metadata__", ()) == ("const",)
    wants = hint if hint in (Handle, Value | Handle) else Value
    return Input(p.name, wants, type(None) in getattr(hint, "__args__", ()), const, p.variadic)


def options(kind: type, op: Operator) -> Any:
    """The operator's options, all defaults where the file has none; raises `FormatError` on another operator's."""
    if op.options is None and not op.union:
        return absent(kind)
    if not isinstance(op.options, kind):
        raise FormatError(f"has the options of another operator ({op.union})")
    return op.options


def constant(name: str, v: Any) -> tuple[int, ...]:
    """The elements of a constant of integers, beyond INT32 the nearest INT32."""
    data = v.tensor.data if isinstance(v, Value) else None
    if data is None or data.dtype.kind not in "iu":
        raise Unsupported(f"input {name} must be a constant of integers")
    return tuple(narrow(data).reshape(-1).tolist())


def narrow(data: np.ndarray) -> np.ndarray:
    """Integers, those beyond INT32 as the nearest INT32: in an index, INT64_MAX means the end."""
    return data if np.can_cast(data.dtype, np.int32) else data.clip(INT32.start, INT32.stop - 1)
