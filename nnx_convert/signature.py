"""What a function's signature says as an operand list: kinds, limits, parameters, operand orders.

An annotation is a Python type with metadata: a `Kind` (the operand's types), any number of `Must`
(limits on this operand alone), `Since` (the level from which it may be listed), `Joined`. In the
signature, `| None` lets NO_VALUE stand in the operand's place, a default lets it be left off the end,
`*xs` takes any number of operands, and a NamedTuple stands for its fields in order.
"""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple, Union, get_args, get_origin

from .frozen import frozen
from .types import Arg, Scalar, Tensor, Type, Unknown, known

Levels = Mapping[Type, int]      # operand type -> first feature level that takes it
Slots = dict[str, Any]           # parameter name -> Arg, or a tuple of them where it is variadic
Args = dict[str, Any]            # argument name -> tensor, number, signature, None, or a record of these


class Parameter(NamedTuple):
    """A parameter of a function; `default` is `Param.required` where it has none. `keyword`: by name alone."""

    name: str
    default: Any
    variadic: bool = False
    keyword: bool = False


def parameters(fn: Any) -> Iterator[Parameter]:
    """The parameters of a plain function, in order.

    `inspect.signature` says the same; a table of hundreds of functions is read at every start.
    """
    code, defaults, named = fn.__code__, fn.__defaults__ or (), fn.__kwdefaults__ or {}
    plain = code.co_varnames[:code.co_argcount]
    rest = code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]
    given = dict(zip(plain[len(plain) - len(defaults):], defaults, strict=True))
    yield from (Parameter(name, given.get(name, Param.required)) for name in plain)
    if code.co_flags & inspect.CO_VARARGS:
        yield Parameter(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], Param.required, variadic=True)
    yield from (Parameter(name, named.get(name, Param.required), keyword=True) for name in rest)


def hints_of(source: Any) -> dict[str, Any]:
    """The annotations of a function or a record, evaluated where it was written.

    `typing.get_type_hints` does the same; but a table repeats few annotations many times, and each is
    evaluated once here.
    """
    source = getattr(source, "__wrapped__", source)
    scope = getattr(source, "__globals__", None) or vars(sys.modules[source.__module__])
    return {name: _evaluated(text, source.__module__, scope) for name, text in source.__annotations__.items()}


def _evaluated(text: Any, module: str, scope: dict[str, Any]) -> Any:
    # A NamedTuple keeps its annotations as forward references.
    words = getattr(text, "__forward_arg__", text)
    if not isinstance(words, str):
        return type(None) if words is None else words
    if (module, words) not in _HINTS:
        _HINTS[module, words] = eval(words, scope)
    return _HINTS[module, words]


_HINTS: dict[tuple[str, str], Any] = {}


@frozen(eq=False)      # by identity: `X | None` hashes an annotation's metadata
class Kind:
    """The types an operand may have. `KEY` is the operand whose type picks the row of the op's table."""

    levels: Levels = field(default_factory=dict)
    by_key: Mapping[Type, Levels] = field(default_factory=dict)
    is_key: bool = False
    name: str = ""               # what the documentation calls a kind that depends on the key
    output: str = ""             # "type" or "count": not an input, but read off the output operands

    def allowed(self, key: Type | None, table: Levels) -> Levels:
        """The types the operand may have beside a key, each with its first level."""
        if self.is_key:
            return {key: table[key]} if key is not None and key in table else table
        return self.by_key.get(key, self.levels) if key is not None else self.levels

    def groups(self, table: Levels) -> frozenset[str]:
        """The groups (tensor, int, ...) these types are of: what tells operand orders apart."""
        rows = (self.levels, *self.by_key.values(), table if self.is_key else {})
        return frozenset(t.group for row in rows for t in row)


@frozen
class Since:
    """The operand may be listed from this feature level on."""

    level: int


@frozen
class Joined:
    """The operand is listed exactly when the one before it is."""


@frozen
class Must:
    """A limit on one operand; read `text` after its name. Below level `until` only, if that is given."""

    text: str
    holds: Callable[[Any], bool]
    until: int | None = None
    rank: int | None = None      # what the limit says of a tensor whose rank is not known


@frozen
class Param:
    """One parameter of a form, as its signature declares it."""

    name: str
    kind: Kind
    limits: tuple[Must, ...]
    since: int
    default: Any                 # `Param.required` when it must be listed
    optional: bool               # NO_VALUE may stand in its place
    variadic: bool
    joined: bool                 # listed exactly when the parameter before it is
    record: str = ""             # the argument that holds it as a field, where one does
    field: str = ""

    required = inspect.Parameter.empty

    @classmethod
    def of(cls, name: str, hint: Any, default: Any, variadic: bool = False) -> Param:
        """The parameter an annotation and a default declare; raises `TypeError` on one without a kind."""
        optional = get_origin(hint) is Union or type(hint).__name__ == "UnionType"
        if optional:
            hint = next(h for h in get_args(hint) if h is not type(None))
        notes = getattr(hint, "__metadata__", ())
        kind = next((n for n in notes if isinstance(n, Kind)), None)
        if kind is None:
            raise TypeError(f"parameter {name} has no operand kind")
        since = max((n.level for n in notes if isinstance(n, Since)), default=0)
        limits = tuple(n for n in notes if isinstance(n, Must))
        joined = any(isinstance(n, Joined) for n in notes)
        return cls(name, kind, limits, since, default, optional, variadic, joined)

    @classmethod
    def fields(cls, name: str, record: type) -> Iterator[Param]:
        """The parameters a record (a NamedTuple) stands for: its fields, in order."""
        defaults = getattr(record, "_field_defaults", {})
        for field_, hint in hints_of(record).items():
            param = cls.of(f"{name}_{field_}", hint, defaults.get(field_, cls.required))
            yield replace(param, record=name, field=field_)

    def value(self, args: Args) -> Any:
        """Its value among a function's arguments."""
        return getattr(args[self.record], self.field) if self.record else args[self.name]

    def listed(self, arg: Any) -> Any:
        """What stands in this place: an empty tensor where one may be left out is one left out, as in NNAPI."""
        if self.variadic and isinstance(arg, tuple):
            return tuple(replace(self, variadic=False).listed(a) for a in arg) if self.optional else arg
        empty = isinstance(arg, Tensor) and arg.dims is not None and any(known(n) and n == 0 for n in arg.dims)
        return None if self.optional and empty else arg

    def fits(self, arg: Arg, table: Levels) -> bool:
        """Whether an operand of this group may stand here."""
        if arg is None:
            return self.optional
        return arg.type.group in self.kind.groups(table)

    def is_default(self, value: Any) -> bool:
        """Whether the value says what leaving the operand out would say."""
        return value is self.default or known(value) and value == self.default

    def operand(self, value: Any, key: Type | None, table: Levels) -> Any:
        """The operand for an argument: a number gets the scalar type this parameter has beside the key.

        Beside a key without a row it gets one that holds it, and the check says what is wrong.
        """
        if isinstance(value, int | float | Unknown):
            plain = Type.FLOAT32 if isinstance(value, float) else Type.INT32
            return Scalar(next(iter(self.kind.allowed(key, table)), plain), value)
        return value


@frozen
class Misfit:
    """Why a form does not take operands; `operand` is the position of the one it does not take, if it is one."""

    text: str
    operand: int | None = None


@frozen(eq=False)
class Form:
    """One operand order: what a function's signature declares. The canonical form's function infers; any other returns
    canonical arguments. The signature is read when somebody asks: a model needs few of a table's operations."""

    name: str
    fn: Callable[..., Any]
    since: int = 0
    override: tuple[Param, ...] | None = None    # parameters in the place of those that the signature declares

    @classmethod
    def of(cls, fn: Callable[..., Any], since: int = 0) -> Form:
        """The operand order of a function."""
        return cls(fn.__name__, fn, since)

    @cached_property
    def params(self) -> tuple[Param, ...]:
        """The parameters in order, a record's fields in its place."""
        return tuple(self._declared()) if self.override is None else self.override

    def _declared(self) -> Iterator[Param]:
        hints = hints_of(self.fn)
        for p in parameters(self.fn):
            if p.name in self.records:
                yield from Param.fields(p.name, hints[p.name])
            else:
                yield Param.of(p.name, hints[p.name], p.default, p.variadic)

    @cached_property
    def records(self) -> Mapping[str, Callable[..., Any]]:
        """The arguments that stand for several operands, each with the record that joins these."""
        return {name: h for name, h in hints_of(self.fn).items() if hasattr(h, "_field_defaults") and name != "return"}

    @cached_property
    def inputs(self) -> tuple[Param, ...]:
        """The parameters that are operands, not read off the outputs."""
        return tuple(p for p in self.params if not p.kind.output)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the function's arguments."""
        return tuple(dict.fromkeys(p.record or p.name for p in self.params))

    def counts(self, given: int) -> list[int]:
        """The numbers of inputs this form takes; a variadic one takes any, so also `given`."""
        least = sum(p.default is p.required and not p.variadic for p in self.inputs)
        most = len(self.inputs)
        if any(p.variadic for p in self.inputs):
            return [n for n in (given,) if n >= least]
        return [n for n in range(least, most + 1) if n == most or not self.inputs[n].joined]

    @cached_property
    def spelt(self) -> str:
        """The operand order in words: `CONV_2D(x, w, b, ...)`."""
        names = (f"*{p.name}" if p.variadic else p.name if p.default is p.required else f"{p.name}="
                 for p in self.inputs)
        return f"{self.name}({', '.join(names)})"

    def place(self, operands: Sequence[Arg], table: Levels) -> Slots | Misfit:
        """The operands by parameter name, or why this form does not take them."""
        if len(operands) not in self.counts(len(operands)):
            return Misfit(f"{self.name} takes {self._counted()} inputs, not {len(operands)}")
        star = next((i for i, p in enumerate(self.inputs) if p.variadic), None)
        packed: list[Any] = list(operands)
        if star is not None:
            end = star + len(operands) - (len(self.inputs) - 1)
            packed[star:end] = [tuple(operands[star:end])]
        slots = {p.name: p.listed(arg) for p, arg in zip(self.inputs, packed, strict=False)}
        listed = ((p, arg) for p in self.inputs[:len(packed)]
                  for arg in (slots[p.name] if p.variadic else (slots[p.name],)))
        for i, (p, arg) in enumerate(listed):
            if arg is None and not p.optional:
                return Misfit(f"{p.name} is required and holds NO_VALUE", i)
            if not p.fits(arg, table):
                return Misfit(f"{p.name} takes {'/'.join(sorted(p.kind.groups(table)))}, not {_said(arg)}", i)
        return slots

    def _counted(self) -> str:
        """The numbers of inputs it takes, in words."""
        if any(p.variadic for p in self.inputs):
            return f"{sum(p.default is p.required and not p.variadic for p in self.inputs)} or more"
        return " or ".join(map(str, self.counts(0)))

    def operands(self, args: Args, table: Levels) -> list[Any]:
        """Arguments by name -> operands by position, a tail of defaults left out: undoes `place`."""
        key, listed = self.key(args), list(self.inputs)
        while listed and not listed[-1].variadic and listed[-1].is_default(listed[-1].value(args)):
            listed.pop()
        while len(listed) < len(self.inputs) and self.inputs[len(listed)].joined:
            listed.append(self.inputs[len(listed)])
        return [p.operand(v, key, table) for p in listed
                for v in (p.value(args) if p.variadic else (p.value(args),))]

    def key(self, args: Args) -> Type | None:
        """The type that picks the row of the op's table."""
        values = (v for p in self.params if p.kind.is_key for v in (p.value(args) if p.variadic else (p.value(args),)))
        first = next((v for v in values if v is not None), None)
        return first if isinstance(first, Type) else getattr(first, "type", None)

    def gather(self, values: Args) -> Args:
        """Values by parameter -> the function's arguments, with the records put together."""
        return {p.name: values[p.name] for p in self.params if not p.record} | {
            name: record(**{p.field: values[p.name] for p in self.params if p.record == name})
            for name, record in self.records.items()}

    def call(self, args: Args) -> Any:
        """The function applied to arguments by name, variadic ones spread."""
        star = next((i for i, p in enumerate(self.params) if p.variadic), -1)
        head = [v for p in self.params[:star + 1] for v in (args[p.name] if p.variadic else (args[p.name],))]
        spread = {p.name for p in self.params[:star + 1]}
        return self.fn(*head, **{name: value for name, value in args.items() if name not in spread})


def _said(arg: Arg) -> str:
    return f"{arg.type.group} {arg.type.name}" if arg is not None else "NO_VALUE"
