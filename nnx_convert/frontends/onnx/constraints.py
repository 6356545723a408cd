"""Which types operators take, and which of their inputs have one: ONNX's schemas as a small table.

The package's own take a twentieth of a second to come. `constraints.txt` has a line for each operator and version
since which its inputs are these: domain, name, version, inputs. An input is `T=mask`, without `T=` where no other
input has its type; the mask has a bit for each element type by ONNX's number, and bit 0 for what is no tensor. An
input that ends with `*` repeats, all of one type, one that ends with `~` does so with any types. A `>mask` at the end
is what an attribute may choose as the type of the output.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Any

from ...errors import FormatError
from ...frozen import frozen
from ...graph import Value
from ...types import LIST
from .constants import ELEMENTS
from .registry import Given

TABLE = Path(__file__).with_name("constraints.txt")
#: The attributes that choose a type of the output.
CHOOSING = {"to", "dtype", "output_dtype", "output_datatype"}
#: Operators that ONNX Runtime's optimiser writes into files of any version.
EARLY = {("", "LayerNormalization")}


@frozen
class Takes:
    """What one input takes: `shared` names a type that inputs have in common, `mask` says which types it may be."""

    shared: str
    mask: int
    repeats: bool

    @classmethod
    def read(cls, text: str) -> Takes:
        """An input as the table has it."""
        shared, _, mask = text.rstrip("*~").rpartition("=")
        return cls(shared or ("*" if text.endswith("*") else ""), int(mask, 16), text.endswith(("*", "~")))


@cache
def rows() -> dict[tuple[str, str], list[tuple[int, str]]]:
    """The table: for each operator, since which version its inputs are these."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for line in TABLE.read_text(encoding="ascii").splitlines():
        domain, name, since, *inputs = line.split(" ")
        found.setdefault((domain.strip("-"), name), []).append((int(since), " ".join(inputs)))
    return found


@cache
def takes(domain: str, name: str, version: int) -> tuple[Takes, ...] | None:
    """What the inputs of an operator take; None of an operator that is none of ONNX's."""
    fitting = [text for since, text in rows().get((domain, name), ()) if since <= version]
    return tuple(map(Takes.read, fitting[-1].partition(">")[0].split())) if fitting else None


@cache
def gives(domain: str, name: str, version: int) -> int:
    """The mask of what an attribute may choose for the output of an operator; 0 where none does."""
    fitting = [text for since, text in rows().get((domain, name), ()) if since <= version]
    return int(fitting[-1].partition(">")[2] or "0", 16) if fitting else 0


def agree(domain: str, name: str, version: int, given: Sequence[Given]) -> None:
    """Raise `FormatError` where inputs have types that the operator does not take, or different ones.

    So it does where the operator is newer than the version of its domain that the file imports.
    """
    inputs = takes(domain, name, version)
    oldest = next((since for since, _ in rows().get((domain, name), ())), 0)
    if version < oldest and (domain, name) not in EARLY:
        raise FormatError(f"is an operator of version {oldest} of {domain or 'ai.onnx'} on, and the file imports "
                          f"version {version}")
    if not inputs:
        return
    found: dict[str, tuple[int, str]] = {}
    for i, v in enumerate(given):
        if v is None or i >= len(inputs) and not inputs[-1].repeats:
            continue
        wants, kind = inputs[min(i, len(inputs) - 1)], v.type.name if isinstance(v, Value) else LIST.name
        element = ELEMENTS.get(v.type, 0) if isinstance(v, Value) else 0
        if not wants.mask >> element & 1:
            raise FormatError(f"does not take {kind} as input {i}")
        first, said = found.setdefault(wants.shared or f"{i}", (i, kind))
        if said != kind and element:
            raise FormatError(f"input {first} is {said} and input {i} {kind}: they must have one type")


def given(domain: str, name: str, version: int, results: Sequence[Given]) -> None:
    """Raise `FormatError` where an attribute has chosen a type for the output that the operator does not give."""
    mask = gives(domain, name, version)
    if mask and results and isinstance(v := results[0], Value) and not mask >> ELEMENTS.get(v.type, 0) & 1:
        raise FormatError(f"does not give {v.type.name}")


def written() -> Iterator[str]:
    """The lines of the table as the package `onnx` has them now."""
    from onnx import defs
    operators: dict[tuple[str, str], list[Any]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version)):
        operators.setdefault((schema.domain, schema.name), []).append(schema)
    for (domain, name), versions in operators.items():
        widest = _widest(versions)
        last = None
        for schema in versions:
            inputs = " ".join((*_inputs(schema, widest), *_chosen(versions, schema)))
            if inputs != last:
                yield f"{domain or '-'} {name} {schema.since_version} {inputs}".rstrip()
            last = inputs


def _mask(formal: Any) -> int:
    from onnx import TensorProto
    mask = 0
    for t in formal.types:
        element = t.removeprefix("tensor(").removesuffix(")").upper() if t.startswith("tensor(") else ""
        mask |= 1 << (TensorProto.DataType.Value(element) if element else 0)
    return mask


def _widest(versions: Sequence[Any]) -> dict[int, int]:
    """What any version takes for an input: files of an old version with a newer type are common and mean no harm."""
    widest: dict[int, int] = {}
    for schema in versions:
        for i, formal in enumerate(schema.inputs):
            widest[i] = widest.get(i, 0) | _mask(formal)
    return widest


def _inputs(schema: Any, widest: dict[int, int]) -> Iterator[str]:
    variables = [f.type_str for f in schema.inputs]
    for i, f in enumerate(schema.inputs):
        repeats = f.option == f.option.Variadic
        mark = ("*" if f.is_homogeneous else "~") if repeats else ""
        shared = f"{f.type_str}=" if variables.count(f.type_str) > 1 and "(" not in f.type_str else ""
        yield f"{'' if mark == '~' else shared}{widest[i]:x}{mark}"


def _chosen(versions: Sequence[Any], schema: Any) -> Iterator[str]:
    """What any version gives, where an attribute of this one chooses it."""
    if CHOOSING & set(schema.attributes):
        yield f">{reduce(or_, (_mask(s.outputs[0]) for s in versions)):x}"


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for line in written()), encoding="ascii")
