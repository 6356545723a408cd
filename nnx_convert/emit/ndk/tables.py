"""model.cpp: a model as the tables that network.cpp builds it from."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...artifact.encode import subgraphs_first
from ...model import Lifetime, Model, Operand
from ...types import ZERO_POINTS, Array, ChannelQuant, Quant

#: NNAPI copies values of up to this many bytes; they stand in the tables, larger ones in the weights' file.
SHORT = 128
#: Where values in the weights' file begin, in bytes.
ALIGN = 64
#: What is left of a text in a comment.
PLAIN = re.compile(r"[^\w .,:;/()\[\]=+-]", re.ASCII)


@dataclass
class Pool:
    """What the rows of all tables refer to: numbers, scales, short values, and the weights, equal ones once."""

    numbers: list[int] = field(default_factory=list[int])
    scales: list[float] = field(default_factory=list[float])
    short: bytearray = field(default_factory=bytearray)
    weights: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    known: dict[bytes, int] = field(default_factory=dict[bytes, int])
    lists: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])

    def listed(self, numbers: Sequence[int]) -> str:
        """Numbers, as a `Numbers` of them."""
        key = tuple(numbers)
        if key not in self.lists:
            self.lists[key] = len(self.numbers)
            self.numbers += key
        return f"{{{self.lists[key]}, {len(key)}}}"

    def value(self, array: Array) -> tuple[str, int, int]:
        """A constant: where it is kept, where it begins there, its bytes."""
        data = little(array)
        if len(data) <= SHORT:
            at = self.known.setdefault(data, len(self.short))
            if at == len(self.short):
                self.short += data + bytes(-len(data) % 8)      # aligned for what reads it in place
            return "here", at, len(data)
        if data not in self.known:
            self.known[data] = self.size
            padded = data + bytes(-len(data) % ALIGN)
            self.weights.append(padded)
            self.size += len(padded)
        return "in_file", self.known[data], len(data)


def little(array: Array) -> bytes:
    """An array's elements as a device has them in memory."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def tables(model: Model, name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[str, list[bytes]]:
    """The text of model.cpp, and the pieces of the weights' file; `inputs` and `outputs` are those of a run."""
    pool, order = Pool(), subgraphs_first(model)
    number = {id(m): n for n, m in enumerate(order)}
    graphs = [line for n, m in enumerate(order) for line in graph(m, n, pool, number)]
    rows = [f"    {graph_row(m, n, pool)}," for n, m in enumerate(order)]
    lines = [f"// {comment(name)}, as NNAPI's model. Written by nnx_convert.", '#include "network.hpp"', "",
             "namespace nnx {", "", "namespace {", "",
             *array("uint32_t", "numbers", map(str, pool.numbers)), *array("float", "scales", map(real, pool.scales)),
             *array("unsigned char", "bytes", map(str, pool.short)), "", *graphs,
             "const Graph graphs[] = {", *rows, "};", "",
             *ports("inputs", model, model.inputs, [p.name for p in model.rim.inputs], inputs),
             *ports("outputs", model, model.outputs, [p.name for p in model.rim.outputs], outputs), "",
             "}  // namespace", "",
             f"const Tables tables = {{{quoted(name)}, {model.level}, {pool.size}, numbers, scales, bytes,",
             f"                       graphs, {len(order)}, inputs, {len(inputs)}, outputs, {len(outputs)}}};", "",
             "}  // namespace nnx", ""]
    return "\n".join(lines), pool.weights


def graph(m: Model, n: int, pool: Pool, number: dict[int, int]) -> Iterator[str]:
    """The tables of one model."""
    channels = []
    for i, o in enumerate(m.operands):
        if isinstance(o.quant, ChannelQuant):
            channels.append(f"    {{{i}, {o.quant.axis}, {len(pool.scales)}, {len(o.quant.scales)}}},")
            pool.scales += o.quant.scales
    yield f"const Operand operands_{n}[] = {{"
    yield from (f"    {operand(o, pool, number)},  // {i}: {said(o)}" for i, o in enumerate(m.operands))
    yield "};"
    if channels:
        yield from (f"const Channels channels_{n}[] = {{", *channels, "};")
    yield f"const Operation operations_{n}[] = {{"
    for operation, origin in zip(m.operations, m.origin or ("",) * len(m.operations), strict=True):
        op, place = operation.op, f"  // {comment(origin)}" if origin else ""
        yield (f"    {{ANEURALNETWORKS_{op.name}, {'true' if op.ex else 'false'}, {pool.listed(operation.inputs)}, "
               f"{pool.listed(operation.outputs)}, {quoted(op.name)}}},{place}")
    yield from ("};", "")


def graph_row(m: Model, n: int, pool: Pool) -> str:
    """The row of one model in the table of all of them."""
    channels = sum(isinstance(o.quant, ChannelQuant) for o in m.operands)
    return (f"{{operands_{n}, {len(m.operands)}, {f'channels_{n}' if channels else 'nullptr'}, {channels}, "
            f"operations_{n}, {len(m.operations)}, {pool.listed(m.inputs)}, {pool.listed(m.outputs)}, "
            f"{'true' if m.relaxed else 'false'}}}")


def operand(o: Operand, pool: Pool, number: dict[int, int]) -> str:
    """The row of an operand."""
    scale, zero = (o.quant.scale, o.quant.zero) if isinstance(o.quant, Quant) else (0.0, 0)
    kind, at, size = "none_yet", 0, 0
    if o.lifetime is Lifetime.NO_VALUE:
        kind = "left_out"
    elif isinstance(o.value, Model):
        kind, at = "model", number[id(o.value)]
    elif o.value is not None:
        kind, at, size = pool.value(o.value)
    return (f"{{ANEURALNETWORKS_{o.type.name}, {pool.listed(o.dims)}, {real(scale)}, {zero}, Value::{kind}, {at}, "
            f"{size}}}")


def said(o: Operand) -> str:
    """An operand in a comment: its sizes, and its value where that is one number."""
    value = f" = {o.value.item()}" if isinstance(o.value, np.ndarray) and o.value.size == 1 else ""
    return f"{list(o.dims) if o.type.group == 'tensor' else ''}{comment(value)} {o.lifetime.value}".strip()


def ports(name: str, m: Model, indices: Sequence[int], names: Sequence[str], arrays: Sequence[Array]) -> Iterator[str]:
    """The table of the inputs or of the outputs."""
    rows = []
    for i, port, a in zip(indices, names, arrays, strict=True):
        o = m.operands[i]
        step = "true" if isinstance(o.quant, Quant) and o.type in ZERO_POINTS else "false"
        element = "bool8" if a.dtype == np.bool_ else a.dtype.name
        rows.append(f"    {{{quoted(port)}, Element::{element}, {step}, {a.nbytes}}},")
    return iter([f"const Port {name}[] = {{", *rows, "};"] if rows else [f"const Port* const {name} = nullptr;"])


def array(type: str, name: str, items: Iterable[str]) -> Iterator[str]:
    """A table of numbers; never an empty one, which C++ has not."""
    yield f"const {type} {name}[] = {{"
    line = "   "
    for item in [*items] or ["0"]:
        if len(line) + len(item) > 116:
            yield line
            line = "   "
        line += f" {item},"
    yield from (line, "};")


def real(value: float) -> str:
    """A number exactly, as float32 has it."""
    return f"{np.float32(value)!s}f"                            # the shortest digits that are that number


def quoted(text: str) -> str:
    """A string of C++, whatever the text has in it."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
                         for b in text.encode("utf-8", "replace")) + '"'


def comment(text: Any) -> str:
    """A text as a comment may have it: no end of a line, nothing that C++ reads."""
    return PLAIN.sub("_", str(text))
