"""The graph as its user sees it: inputs, outputs, and what the file declares of values between them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import FormatError, UsageError, among
from ...graph import Value
from ...schema import describe
from ...symbols import name_of, resolve, symbol
from ...types import LIST, UNKNOWN, Port, Rim, Shape, Source, Tensor, known, sharper
from .checks import declared
from .constants import dtype_of
from .reader import Model
from .lists import holds
from .scope import Session
from .tensors import grid


def declared_input(session: Session, port: Any) -> Value:
    """An input of the graph; raises `FormatError`, and `UsageError` where the caller wants impossible sizes."""
    kind, dims = declared(port)
    if kind == LIST:
        value = Value(port.name, Tensor(LIST, (UNKNOWN,)))
        session.kinds[value] = port.type
        return value
    if kind is None:
        raise FormatError(f"input {port.name!r} has no type")
    dims = wanted(session, port.name, dims)
    if dims is not None:
        dims = tuple(own(port.name, i) if n is UNKNOWN else n for i, n in enumerate(dims))
    value = Value(port.name, Tensor(kind, (1,) if dims == () else dims, grid(kind)))
    if dims == ():
        session.scalars.add(value)
    return value


def inputs_of(graph: Any) -> list[Any]:
    """The inputs of the main graph that a caller gives: those that no initializer does."""
    held = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [p for p in graph.input if p.name not in held]


def named_sizes(model: Model, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """The named sizes that a caller's shapes say, but for a name of which they say several: it is no one size.

    Raises `UsageError` on a shape of what is no input.
    """
    said, inputs = dict[str, set[int]](), {p.name: p for p in inputs_of(model.graph)}
    if lost := [name for name in shapes if name not in inputs]:
        raise UsageError(f"there is no input {lost[0]!r}", hint=among(lost[0], inputs, "inputs"))
    for name, shape in shapes.items():
        for size, n in zip(declared(inputs[name])[1] or (), shape, strict=False):
            if label := name_of(size):
                said.setdefault(label, set()).add(n)
    return {label: sizes.pop() for label, sizes in said.items() if len(sizes) == 1}


def wanted(session: Session, name: str, dims: Shape | None) -> Shape | None:
    """The sizes of an input, the caller's where there are any; raises `UsageError` where they contradict the file."""
    asked = session.shapes.get(name)
    if asked is None:
        return dims and tuple(resolve(n, session.sizes) for n in dims)
    fits = dims is None or len(dims) == len(asked) and all(
        not known(n) or n == m for n, m in zip(dims, asked, strict=True))
    if not fits or any(n < 0 for n in asked):
        raise UsageError(f"input {name!r} cannot have the shape {list(asked)}",
                         hint=f"the file says {list(dims or ())}")
    return asked


def merged(session: Session, v: Value, port: Any) -> Tensor:
    """A value's tensor with what the file declares of it; raises `FormatError` where that cannot be."""
    if port is None:
        return v.tensor
    kind, dims = declared(port)
    if kind is not None and kind != v.type:
        raise FormatError(f"{port.name!r} is declared {kind.name}, its operator gives {v.type.name}")
    if v.type == LIST:
        session.kinds.setdefault(v, port.type)
        return v.tensor
    if dims is None or session.stale:
        return v.tensor
    # Names of sizes are not held to: exporters give the batch's name to what is a multiple of it.
    if not Tensor(v.type, numbers(dims) or (1,)).agrees(Tensor(v.type, v.tensor.dims)):
        raise FormatError(f"{port.name!r} is declared to have the shape {list(dims)}, "
                          f"its operator gives {describe(v.tensor)}")
    if dims == () and v.tensor.dims is None:
        session.scalars.add(v)
    return replace(v.tensor, dims=sharper(v.tensor.dims, dims or (1,)))


def numbers(dims: Shape) -> Shape:
    """Sizes without their names."""
    return tuple(n if known(n) else UNKNOWN for n in dims)


def rim_of(session: Session, model: Model, inputs: Sequence[Value], outputs: Sequence[Value]) -> Rim:
    """The ports of a graph, and where it is from. An output of a name that another has is followed by its number."""
    ins = tuple(_port(session, v, v.name, session.kinds.get(v)) for v in inputs)
    outs: dict[str, Port] = {}
    for v, p in zip(outputs, model.graph.output, strict=True):
        name = p.name
        while name in outs:
            name = f"{name}_{len(outs)}"
        merged(session, v, p)
        outs[name] = _port(session, v, name, p.type)
    versions = [f"{domain or 'opset'} {n}" for domain, n in sorted(model.versions.items())]
    return Rim(ins, tuple(outs.values()), source=Source(
        "ONNX", ", ".join(versions), model.operators, len(model.graph.sparse_initializer),
        model.description, metadata=model.metadata))


def _port(session: Session, v: Value, name: str, kind: Any) -> Port:
    if v.type == LIST:
        return Port(name, str(holds(kind if kind.WhichOneof("value") else session.kinds[v])), None)
    dims = () if v in session.scalars else v.tensor.dims
    shape = None if dims is None else tuple(n if known(n) else None for n in dims)
    return Port(name, dtype_of(v.type), shape, sizes=named(name, dims or ()))


def named(port: str, dims: Shape) -> tuple[str, ...]:
    """The names of a port's sizes; nothing where none has one but the place it stands at."""
    names = tuple("" if known(n) or n is UNKNOWN or str(n) == str(own(port, i)) else name_of(n) or str(n)
                  for i, n in enumerate(dims))
    return names if any(names) else ()


def own(port: str, axis: int) -> int:
    """The size of an axis of an input for which the file has no name."""
    return symbol(f"{port}.{axis}")
