"""The declaration language: an operation is one function, and its signature is the operand list.

    @op({F32: 30, F16: 30})                        # type of `T` -> first feature level
    def ELU(x: T, alpha: Fx) -> T:
        '''max(0, x) + min(0, alpha * (exp(x) - 1)).'''
        return x

The body infers the outputs; the return annotation says their types in the same words, so that these are
known where the shapes are not. An output with `| None` may be missing, and those with a level (`Since`)
may be left off the end. Binding, checking, feature levels, documentation and emission are all read off the result; see
`OpDef`, and `signature` for what an annotation can say.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, get_args, get_origin

from .codes import OperationCode, OperationCodeEx
from .frozen import frozen
from .signature import Args, Form, Levels, Misfit, Param, Slots, hints_of, parameters
from .types import I16, Q8, Q8S, Q16A, Q16S, QPC, QS, MOST_AXES, UNKNOWN, Arg, Scalar, Tensor, Undecided, known

#: The codes of NNAPI-EX.
EX_CODES = frozenset(map(int, OperationCodeEx))
#: Codes of the extension org.nnx_convert.host: its prefix, 1, above 16 bits of number.
HOST_CODES = 1 << 16
#: Types whose integers may stand for real values: which of them an output of the host's has, the model says.
ON_GRIDS = (Q8, Q8S, QS, QPC, Q16A, Q16S, I16)
#: What a rule or a formula raises when the arguments are not of the ranks and counts it is about.
MEANINGLESS = (LookupError, ValueError, ArithmeticError, AttributeError, TypeError)


class OpError(ValueError):
    """An operation breaks the table's contract: which operation, the rule's own words, what to do about it.

    `operand` is the position of the operand concerned, inputs first, then outputs.
    """

    def __init__(self, op: str, text: str, operand: int | None = None, hint: str = "") -> None:
        super().__init__(f"{op}: {text}")
        self.op, self.text, self.operand, self.hint = op, text, operand, hint


@frozen
class Rule:
    """A constraint between operands. `holds` names the arguments it looks at (`out`: first output).

    The text is the check, the error and the line in the documentation. A rule with `until` is a
    limit that this feature level lifted: breaking it is no error, but takes that level.
    """

    text: str
    holds: Callable[..., bool]
    until: int | None = None
    of: tuple[str, ...] = ()     # the arguments' names where `holds` calls them otherwise
    limit: bool = False          # a limit of NNAPI's, not of what the operation means: the host has none

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arguments' names."""
        return self.of or tuple(p.name for p in parameters(self.holds))

    @cached_property
    def about(self) -> str:
        """The argument to blame: the one its sentence is about, or else the last it looks at."""
        first = self.text.partition(" ")[0]
        return first if first in self.names else "out" if first == "the" and "out" in self.names else self.names[-1]

    def test(self, scope: Args) -> bool:
        """Whether it holds; raises `Undecided` where an unknown number decides."""
        if "out" in self.names and scope["out"] is None:
            raise Undecided
        return self.holds(*(scope[n] for n in self.names))


@frozen
class Placed:
    """Operands that a form takes, by name."""

    form: Form
    slots: Slots                         # the operands as listed
    own: Args                            # the form's arguments: values, defaults filled in


@frozen
class Checked:
    """What the table says of one operation that it accepts."""

    placed: Placed
    args: Args                           # canonical arguments, as inference and kernels take them
    level: int                           # first feature level that takes it
    outputs: tuple[Tensor, ...]
    deferred: tuple[str, ...]            # rules only execution can decide
    declared: tuple[Tensor, ...] = ()    # the outputs as they were asked for


class Test(NamedTuple):
    """A limit or rule with its arguments filled in."""

    text: str
    until: int | None
    holds: Callable[[], bool]
    operand: int | None = None


@frozen(eq=False)
class OpDef:
    """One operation of the table."""

    name: str
    code: int | None                     # None: a composite, which lowering expands
    types: Levels
    rules: tuple[Rule, ...]
    forms: list[Form]                    # the canonical one first
    outs: tuple[str, ...]                # the outputs' names
    twin_of: OpDef | None = None
    pure: bool = True                    # equal inputs give equal outputs; not so of a random draw
    override: tuple[Param, ...] | None = None    # outputs in the place of those that the signature declares

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the canonical form."""
        return self.forms[0].params

    @cached_property
    def returns(self) -> tuple[Param, ...]:
        """The outputs; a single variadic one where they are a list."""
        if self.override is not None:
            return self.override
        hint = hints_of(self.forms[0].fn)["return"]
        hints = get_args(hint) if get_origin(hint) in (tuple, list) else (hint,)
        many = get_origin(hint) is list
        return tuple(Param.of(name, h, Param.required, many) for name, h in zip(self.outs, hints, strict=True))

    @property
    def host(self) -> bool:
        """Whether it belongs to the extension org.nnx_convert.host."""
        return self.code is not None and HOST_CODES <= self.code < 2 * HOST_CODES

    @property
    def ex(self) -> bool:
        """Whether it is of NNAPI-EX."""
        return self.code in EX_CODES

    @property
    def versions(self) -> Iterator[OpDef]:
        """Itself, then what it is a twin of, and so on."""
        op: OpDef | None = self
        while op is not None:
            yield op
            op = op.twin_of

    @property
    def plain(self) -> OpDef:
        """NNAPI's own operation where it is the host's twin of one, else itself."""
        return self.twin_of if self.host and self.twin_of else self

    @property
    def family(self) -> str:
        """The name of the module it is declared in, and of those of its kernel and its code generator."""
        module: str = self.forms[0].fn.__module__
        return module.rpartition(".")[2]

    @property
    def doc(self) -> str:
        """The formula: one line."""
        return inspect.getdoc(self.forms[0].fn) or ""

    def form(self, since: int) -> Callable[[Callable[..., Args]], Callable[..., Args]]:
        """Declare another operand order. Arguments it shares with the canonical form carry over."""
        def declare(fn: Callable[..., Args]) -> Callable[..., Args]:
            self.forms.append(Form.of(fn, since))
            return fn
        return declare

    def place(self, inputs: Sequence[Arg], outputs: Sequence[Tensor]) -> Placed:
        """Operands by position -> by name, in the first form that takes them."""
        misfits = []
        for form in self.forms:
            slots = form.place(inputs, self.types)
            if not isinstance(slots, Misfit):
                return Placed(form, slots, form.gather({p.name: _argument(p, slots, outputs) for p in form.params}))
            misfits.append(slots)
        orders = " or ".join(f.spelt for f in self.forms)
        counted = {m for m in misfits if m.operand is not None}       # of forms that take as many
        if len(counted) == 1:
            misfit = counted.pop()
            raise OpError(self.name, misfit.text, misfit.operand, f"the order is {orders}")
        raise OpError(self.name, "no operand order fits: " + "; ".join(m.text for m in misfits), None, orders)

    def canonical(self, placed: Placed) -> Args:
        """The arguments in the canonical form; UNKNOWN where they follow from unknown shapes."""
        if placed.form is self.forms[0]:
            return placed.own
        try:
            args = placed.own | placed.form.call(placed.own)
        except (Undecided, *MEANINGLESS):
            args = placed.own
        return {p.name: args.get(p.name, UNKNOWN if p.default is p.required else p.default) for p in self.params}

    def check(self, inputs: Sequence[Arg], outputs: Sequence[Tensor]) -> Checked:
        """Test everything the table says of an operation; raises `OpError` on what is certainly wrong."""
        return self.check_placed(self.place(inputs, outputs), outputs)

    def check_placed(self, placed: Placed, outputs: Sequence[Tensor]) -> Checked:
        """The same, of operands that have their names already."""
        level, deferred = max(placed.form.since, self._types(placed, outputs)), list[str]()
        level = max(level, self._run(_limits(placed), deferred))
        args = self.canonical(placed)
        scope = args | {"out": outputs[0] if outputs else None}
        where = _positions(placed)
        rules = (Test(r.text, r.until, partial(r.test, scope), where.get(r.about)) for r in self.rules)
        level = max(level, self._run(rules, deferred))
        inferred = self.infer(args, len(outputs))
        level = max(level, self._outputs(inferred, outputs, where["out"]))
        return Checked(placed, args, level, inferred, tuple(deferred), tuple(outputs))

    def _run(self, tests: Iterable[Test], deferred: list[str]) -> int:
        """The level that the limits broken here take; those undecided go to `deferred`."""
        level = 0
        for test in tests:
            try:
                if test.holds():
                    continue
            except Undecided:
                deferred.append(test.text)
                continue
            except MEANINGLESS:
                pass                             # a question that makes no sense here is a rule broken
            if test.until is None:
                raise OpError(self.name, test.text, test.operand)
            level = max(level, test.until)
        return level

    def infer(self, args: Args, count: int) -> tuple[Tensor, ...]:
        """The outputs; of `count` of them just the types where even the ranks are undecided."""
        try:
            found = self.forms[0].call(args)
        except Undecided:
            return self._typed(args, count)
        except MEANINGLESS as error:
            raise OpError(self.name, f"no output follows from its arguments ({error})") from error
        outs = found if isinstance(found, tuple | list) else (found,)
        for i, t in enumerate(outs):
            if t is not None and t.dims is not None and any(known(n) and n < 0 for n in t.dims):
                raise OpError(self.name, f"output {i} would have the shape {list(t.dims)}")
            if t is not None and t.dims is not None and len(t.dims) > MOST_AXES:
                raise OpError(self.name, f"output {i} would have {len(t.dims)} axes, {MOST_AXES} at most")
        return tuple(Tensor(t.type, t.dims, t.quant) for t in outs if t is not None)    # `return x` is not x's value

    def _typed(self, args: Args, count: int) -> tuple[Tensor, ...]:
        """The outputs by the types the signature returns, of unknown rank; a twin has those of its original."""
        key, own = self.plain.forms[0].key(args), self.plain.returns
        to = next((args[p.name] for p in self.params if p.kind.output == "type"), None)
        outs = own * count if own[0].variadic else own[:count or None]
        types = (to if p.kind.output else key if p.kind.is_key and key is not None
                 else next(iter(p.kind.allowed(key, self.plain.types)), key) for p in outs)
        return tuple(Tensor(t, None) for t in types if t is not None)

    def _types(self, placed: Placed, outputs: Sequence[Tensor]) -> int:
        """The first level that takes these operand types and this many operands."""
        at, key = next(((i, a.type) for i, (p, a) in enumerate(_listed(placed, outputs))
                        if p.kind.is_key and a is not None), (None, None))
        level = min(self.types.values())
        if key is not None and key not in self.types:
            raise OpError(self.name, f"{key.name} is not accepted: {_names(self.types)}", at)
        for i, (p, arg) in enumerate(_listed(placed, outputs)):
            if arg is None:
                continue
            allowed = p.kind.allowed(key, self.types)
            if arg.type not in allowed:
                raise OpError(self.name, f"{p.name} is {arg.type.name}, not {_names(allowed)}", i)
            if not (isinstance(arg, Scalar) and p.is_default(arg.value)):   # NNAPI drops a tail of defaults
                level = max(level, p.since, allowed[arg.type])
        return level

    def _outputs(self, inferred: tuple[Tensor, ...], declared: Sequence[Tensor], first: int) -> int:
        """The level the number of outputs takes; the declared outputs must agree with the inferred."""
        late = [p.since for p in self.returns if p.since]
        counts = {len(inferred), len(inferred) - len(late)}
        if declared and len(declared) not in counts:
            raise OpError(self.name, f"has {sorted(counts)} outputs, not {len(declared)}")
        for i, (want, got) in enumerate(zip(inferred, declared, strict=False)):
            if not (_freely(want, got) if self.host else want).agrees(got):
                raise OpError(self.name, f"output {i} is {describe(want)}, not {describe(got)}", first + i)
        return max(late, default=0) if len(declared) == len(inferred) else 0


def _freely(want: Tensor, got: Tensor) -> Tensor:
    """What an output of the host's must be: on any grid, and where it is on one, of any type that has grids."""
    on_grids = want.type in ON_GRIDS and got.type in ON_GRIDS
    return replace(want, type=got.type if on_grids else want.type, quant=None)


def _argument(p: Param, slots: Slots, outputs: Sequence[Tensor]) -> Any:
    if p.kind.output:
        return len(outputs) if p.kind.output == "count" else outputs[0].type if outputs else None
    value = slots.get(p.name, p.default)
    if isinstance(value, Tensor) and value.dims is None and not p.optional:
        return replace(value, dims=next(((UNKNOWN,) * m.rank for m in p.limits if m.rank), None))
    return value.value if isinstance(value, Scalar) else value


def _listed(placed: Placed, outputs: Sequence[Tensor] = ()) -> Iterator[tuple[Param, Any]]:
    """Every listed operand with its parameter; also the output whose type a parameter stands for."""
    for p in placed.form.params:
        if p.name in placed.slots:
            slot = placed.slots[p.name]
            yield from ((p, arg) for arg in (slot if p.variadic else (slot,)))
        elif p.kind.output == "type" and outputs:
            yield p, outputs[0]


def _positions(placed: Placed) -> dict[str, int]:
    """The position of the first operand of each argument; of `out`, that after the last input."""
    first: dict[str, int] = {}
    count = 0
    for p, _ in _listed(placed):
        first.setdefault(p.record or p.name, count)
        count += 1
    return first | {"out": count}


def _limits(placed: Placed) -> Iterator[Test]:
    """The limits on single operands, but not on one that may still be left out."""
    for i, (p, arg) in enumerate(_listed(placed)):
        value = arg.value if isinstance(arg, Scalar) else arg
        if value is not None and not (p.optional and getattr(value, "omittable", False)):
            yield from (Test(f"{p.name} {m.text}", m.until, partial(m.holds, value), i) for m in p.limits)


def _names(types: Levels) -> str:
    return ", ".join(t.name for t in types)


def describe(t: Tensor) -> str:
    """A tensor in words, for messages."""
    return f"{t.type.name}{'[?]' if t.dims is None else list(t.dims)} {t.quant or ''}".rstrip()


OPS: dict[str, OpDef] = {}
_codes: set[int] = set()


def op(types: Levels, *rules: Rule, outs: Sequence[str] = ("out",), pure: bool = True
       ) -> Callable[[Callable[..., Any]], OpDef]:
    """Declare an NNAPI, EX or DENSIFY operation: the function's name is its code's.

    `types`: the types of `T`, each with the first level that takes it. `pure`: equal inputs give equal outputs.
    """
    return lambda fn: _declare(fn, _code(fn.__name__), types, rules, outs, pure)


def composite(types: Levels, *rules: Rule, outs: Sequence[str] = ("out",)) -> Callable[[Callable[..., Any]], OpDef]:
    """Declare an operation without a code, which lowering expands."""
    return lambda fn: _declare(fn, None, types, rules, outs)


def host(number: int, types: Levels, *rules: Rule, outs: Sequence[str] = ("out",), pure: bool = True
         ) -> Callable[[Callable[..., Any]], OpDef]:
    """Declare an operation of the extension org.nnx_convert.host, by its number there."""
    return lambda fn: _declare(fn, HOST_CODES | number, types, rules, outs, pure)


def twin(name: str, of: OpDef, types: Levels, *rules: Rule) -> OpDef:
    """An operation with another's signature and meaning, but its own code, types and rules."""
    return _add(replace(of, name=name, code=_code(name), types=types, rules=(*of.rules, *rules),
                        forms=list(of.forms), twin_of=of))


def _code(name: str) -> int:
    return OperationCodeEx[name] if name in OperationCodeEx.__members__ else OperationCode[name]


def _declare(fn: Callable[..., Any], code: int | None, types: Levels, rules: tuple[Rule, ...],
             outs: Sequence[str], pure: bool = True) -> OpDef:
    return _add(OpDef(fn.__name__, code, types, rules, [Form.of(fn)], tuple(outs), pure=pure))


def _add(new: OpDef) -> OpDef:
    if new.name in OPS or new.code in _codes:
        raise ValueError(f"{new.name} ({new.code}) is declared twice")
    _codes.update(() if new.code is None else (new.code,))
    names = {"out", *(p.name for p in parameters(new.forms[0].fn))}
    if wrong := [r.text for r in new.rules if not names.issuperset(r.names)]:
        raise TypeError(f"{new.name} has no such arguments: {wrong}")
    return OPS.setdefault(new.name, new)
