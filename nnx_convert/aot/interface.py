"""How a model looks from C: identifiers, literals, the rows of its tables. No name of a model or a tensor is code."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import ExportError
from ..types import Quant
from .code import ALIGN, Code, Side

#: Characters of an identifier that are taken from a model's name.
LONGEST = 40
#: Axes that a row of the table has room for.
RANK = 8
#: The header's types by NumPy's.
TYPES = {"float16": "NNX_FLOAT16", "float32": "NNX_FLOAT32", "float64": "NNX_FLOAT64", "int8": "NNX_INT8",
         "uint8": "NNX_UINT8", "int16": "NNX_INT16", "uint16": "NNX_UINT16", "int32": "NNX_INT32",
         "uint32": "NNX_UINT32", "int64": "NNX_INT64", "uint64": "NNX_UINT64", "bool": "NNX_BOOL"}
#: What stands in a C string as it is.
PLAIN = re.compile(r"[\w ./:;,+=\[\]()-]", re.ASCII)


def identifier(name: str) -> str:
    """A name as a part of identifiers: lower-case letters, digits, single underscores."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower())[:LONGEST].strip("_") or "model"


def literal(text: str) -> str:
    """A text as a C string, in UTF-8."""
    return '"' + "".join(c if PLAIN.fullmatch(c) else "".join(f"\\{b:03o}" for b in c.encode("utf-8", "replace"))
                         for c in text) + '"'


def shown(text: str) -> str:
    """A text in a comment or on a page: what may have a meaning there is left out."""
    return re.sub(r"[^\w .,+=-]", "_", text, flags=re.ASCII)


def row(side: Side) -> str:
    """An input or output as a row of its table. Raises `ExportError` where C has no such type or array."""
    dtype, shape = side.tensor.type.dtype, sizes(side)
    if dtype.name not in TYPES:
        raise ExportError(f"{side.port.name!r} is of {dtype.name}, for which there is no C type")
    if len(shape) > RANK:
        raise ExportError(f"{side.port.name!r} has {len(shape)} axes, more than {RANK}")
    quant = side.tensor.quant
    scale, zero = (quant.scale, quant.zero) if isinstance(quant, Quant) else (0.0, 0)
    axes = ", ".join(map(str, (*shape, *[1] * (RANK - len(shape)))))
    return (f"    {{{literal(side.port.name)}, {TYPES[dtype.name]}, {len(shape)}, {{{axes}}}, "
            f"{size(side)}, {float(np.float32(scale))!r}f, {int(zero)}}},")


def sizes(side: Side) -> tuple[int, ...]:
    """The shape as the source file has it, where that is the same elements; else as the operand has it."""
    own, port = side.tensor.shape, side.port.shape
    if port is None or None in port:
        return own
    told = tuple(n or 0 for n in port)
    return told if math.prod(told) == side.tensor.size else own


def size(side: Side) -> int:
    """Bytes of the array that is given or returned."""
    return side.tensor.size * side.tensor.type.dtype.itemsize


def table(sides: Sequence[Side]) -> str:
    """The rows of a table; C has no empty one."""
    return "\n".join(map(row, sides)) or '    {"", NNX_FLOAT32, 0, {1, 1, 1, 1, 1, 1, 1, 1}, 0, 0.0f, 0},'


def listed(sides: Sequence[Side]) -> str:
    """The rows for a reader."""
    return "\n".join(f"| `{shown(s.port.name)}` | {s.tensor.type.dtype.name} | {list(sizes(s))} | {size(s)} |"
                     for s in sides)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A template with values in place of @names@; what a value holds stays as it is."""
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], text)


def words(found: Code) -> dict[str, str]:
    """What templates say of a model's interface."""
    results = sum(-(-size(s) // ALIGN) * ALIGN for s in found.outputs)
    return {"arena": str(found.arena), "weights": str(found.weights.nbytes), "states": str(len(found.kept)),
            "inputs": str(len(found.inputs)), "outputs": str(len(found.outputs)),
            "input_rows": table(found.inputs), "output_rows": table(found.outputs),
            "input_list": listed(found.inputs), "output_list": listed(found.outputs),
            "result_bytes": str(max(results, ALIGN)),
            "fault_rows": "\n".join(f"    {literal(text)}," for text in ("", *found.faults))}
