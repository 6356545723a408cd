"""Hostile operands: every check ends with a verdict or an `OpError`, and listing undoes placing."""
from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert import ops  # noqa: F401  (fills the table)
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OPS, Checked, OpDef, OpError
from nnx_convert.signature import Form, Misfit, Param
from nnx_convert.types import (
    HOST_TYPES, I32, QPC, TENSORS, UNKNOWN, ZERO_POINTS, Arg, ChannelQuant, Quant, Scalar, Signature, Tensor, Type,
    known)

SCALARS = [Type.INT32, Type.FLOAT32, Type.FLOAT16, Type.BOOL, Type.UINT32]
NUMBERS = [0, 1, 2, 3, -1, -2, -99, 7, 2 ** 31 - 1, -2 ** 31, 0.0, 0.5, -1.5, float("inf"), float("nan"), True, False,
           UNKNOWN]
GRIDS = [None, Quant(0.5, 0), Quant(1.0, 0), Quant(0.125, 0), Quant(1 / 128, 128)]
CHANNELS = [None, ChannelQuant((0.5, 0.25), 0), ChannelQuant((0.5,) * 3, 3)]
#: Lists tried per operation.
TRIES = 150


def tensor(r: random.Random, type_: Type | None = None) -> Tensor:
    """A tensor of any shape and grid; small index tensors often have values."""
    t = type_ or r.choice([*TENSORS, *HOST_TYPES])
    dims = None if r.random() < .15 else tuple(r.choice([0, 1, 2, 3, 4, 5, UNKNOWN]) for _ in range(r.randrange(6)))
    quant = r.choice(GRIDS) if t in ZERO_POINTS else r.choice(CHANNELS) if t == QPC else None
    data = None
    if t == I32 and dims is not None and all(map(known, dims)) and prod(dims) < 50 and r.random() < .7:
        data = np.array([r.randrange(-3, 7) for _ in range(prod(dims))], np.int32).reshape(dims)
    return Tensor(t, dims, quant, data, omittable=data is None and r.random() < .5)


def graph(r: random.Random) -> Signature:
    sides = [tuple(tensor(r) for _ in range(r.randrange(3))) for _ in range(2)]
    return Signature(*sides)


def of_type(r: random.Random, t: Type, numbers: list[Any]) -> Arg:
    if t.group == "tensor":
        return tensor(r, t)
    return graph(r) if t.group == "model" else Scalar(t, r.choice(numbers))


def anything(r: random.Random) -> Arg:
    return r.choice([lambda: None, lambda: tensor(r), lambda: Scalar(r.choice(SCALARS), r.choice(NUMBERS)),
                     lambda: graph(r)])()


def near(r: random.Random, p: Param, op: OpDef) -> Arg:
    """An operand that this parameter might take, most of the time."""
    rows = (p.kind.levels, *p.kind.by_key.values(), op.types if p.kind.is_key else {})
    types = sorted(t for row in rows for t in row)
    return of_type(r, r.choice(types), NUMBERS) if types and r.random() < .9 else anything(r)


def hostile(r: random.Random, op: OpDef) -> tuple[list[Arg], list[Tensor]]:
    """Operands near one of the forms, and any outputs."""
    form = r.choice(op.forms)
    listed = [near(r, p, op) for p in form.inputs for _ in range(r.randrange(4) if p.variadic else 1)]
    cut = r.choice([0, 0, 0, 1, 2])
    return listed[:len(listed) - cut], [tensor(r) for _ in range(r.randrange(len(op.returns) + 2))]


def judge(op: OpDef, inputs: list[Arg], outputs: list[Tensor]) -> None:
    """Anything but a verdict or an `OpError` with its words and a position among the operands is a fault."""
    try:
        found = op.check(inputs, outputs)
    except OpError as error:
        assert error.op == op.name and error.text
        assert error.operand is None or 0 <= error.operand < len(inputs) + max(len(outputs), 1)
    else:
        assert isinstance(found, Checked) and all(isinstance(t, Tensor) for t in found.outputs)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_hostile_operands_get_a_verdict(op: OpDef) -> None:
    r = random.Random(op.name)
    for _ in range(TRIES):
        judge(op, *hostile(r, op))
        judge(host_twin(op), *hostile(r, op))


@given(r=st.randoms(use_true_random=False), name=st.sampled_from(sorted(OPS)))
@settings(max_examples=200)
def test_hostile_operands_found_by_search(r: random.Random, name: str) -> None:
    judge(OPS[name], *hostile(r, OPS[name]))


def operand(r: random.Random, p: Param, op: OpDef, key: Type) -> Arg:
    """An operand of exactly the kind a parameter has beside a key."""
    if p.optional and r.random() < .3:
        return None
    t = r.choice(sorted(p.kind.allowed(key, op.types)))
    found = of_type(r, t, {"int": [-3, 0, 1, 9], "bool": [True, False]}.get(t.group, [0.5, 2.0]))
    empty = p.optional and isinstance(found, Tensor) and found.dims is not None
    return replace(found, dims=tuple(n if n is UNKNOWN or n else 1 for n in found.dims), data=None) if empty else found


def keys(form: Form, op: OpDef) -> list[Type]:
    """The types of the op's table that every operand has a kind beside."""
    return [k for k in sorted(op.types) if all(p.kind.allowed(k, op.types) for p in form.inputs)]


def forms() -> Iterator[tuple[OpDef, Form]]:
    """Every operand order of every operation and its host twin."""
    for op in OPS.values():
        yield from ((op, f) for f in op.forms)
        twin = host_twin(op)
        yield from ((twin, f) for f in twin.forms if keys(f, twin))


def plain(slot: Any) -> Any:
    if isinstance(slot, tuple):
        return tuple(map(plain, slot))
    return slot.value if isinstance(slot, Scalar) else slot


def told(a: Arg) -> Any:
    """What must come back: tensors and graphs themselves, scalars by group of type and value."""
    return (a.type.group, repr(a.value)) if isinstance(a, Scalar) else id(a) if a is not None else None


def identity(r: random.Random, op: OpDef, form: Form) -> None:
    """Operands -> arguments by name -> operands, but for a tail of defaults."""
    key = r.choice(keys(form, op))
    listed = [operand(r, p, op, key) for p in form.inputs for _ in range(r.randrange(1, 4) if p.variadic else 1)]
    slots = form.place(listed, op.types)
    assert not isinstance(slots, Misfit), slots
    args = form.gather({p.name: plain(slots[p.name]) if p.name in slots else key for p in form.params})
    again = form.operands(args, op.types)
    assert list(map(told, again)) == list(map(told, listed[:len(again)]))
    if dropped := listed[len(again):]:
        tail = form.inputs[-len(dropped):]
        assert all(p.is_default(plain(a)) or p.joined for p, a in zip(tail, dropped, strict=True))


@given(r=st.randoms(use_true_random=False), which=st.sampled_from(list(forms())))
@settings(max_examples=300)
def test_listing_undoes_placing(r: random.Random, which: tuple[OpDef, Form]) -> None:
    identity(r, *which)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda o: o.name)
def test_listing_undoes_placing_in_every_form(op: OpDef) -> None:
    r = random.Random(op.name)
    for form in (f for f in op.forms for _ in range(20)):
        identity(r, op, form)
