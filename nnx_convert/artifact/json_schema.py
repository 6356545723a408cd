"""The schema of a model's JSON file, docs/model.schema.json; `python -m nnx_convert.artifact.json_schema` writes it."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..codes import OperandCode
from ..model import Lifetime
from .as_json import FORMAT, KEYS, VERSION

PAGE = Path("docs/model.schema.json")
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}


def many(items: Schema, said: str = "") -> Schema:
    """A list."""
    return {"type": "array", "items": items, **({"description": said} if said else {})}


def pair(item: Schema) -> Schema:
    """Two of a kind."""
    return many(item) | {"minItems": 2, "maxItems": 2}


def ref(kind: str) -> Schema:
    """An object of a kind that is told once."""
    return {"$ref": f"#/$defs/{kind}"}


def none_or(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [{"type": "null"}, schema]}


#: What each key of each kind of object holds.
FIELDS: dict[str, dict[str, Schema]] = {
    "file": {"format": {"const": FORMAT}, "version": {"const": VERSION}, "weights": none_or(ref("weights")),
             "models": many(ref("model"), "each after the models that its operands hold; the main model is the last")
             | {"minItems": 1}},
    "weights": {"file": TEXT | {"description": "the name of a file beside this one: constants, little-endian, row by "
                                               "row, in their operand's type, texts as TFLite packs them"},
                "bytes": WHOLE, "crc32": WHOLE},
    "model": {"operands": many(ref("operand")),
              "operations": many(ref("operation"), "in an order in which they can run"),
              "inputs": many(WHOLE, "operands by index"), "outputs": many(WHOLE, "operands by index"),
              "relaxed": {"type": "boolean", "description": "float32 may be computed as float16"},
              "notes": many(TEXT, "what lowering did and could not do"), "ports": ref("ports"),
              "signatures": many(ref("signature")), "source": none_or(ref("source"))},
    "operand": {"type": {"enum": [t.name for t in OperandCode]},
                "dims": many(WHOLE, "0: a size not known yet; a tensor without any has a rank not known"),
                "lifetime": {"enum": [v.value for v in Lifetime]}, "quant": ref("quant"),
                "value": many({"type": ["number", "boolean"]}, "a short constant, row by row"), "data": ref("data"),
                "model": WHOLE | {"description": "index of the subgraph that it holds"}},
    "operation": {"name": TEXT | {"description": "as `nnx-convert ops` lists them; host.NAME runs on the host"},
                  "code": WHOLE | {"description": "NNAPI's or NNAPI-EX's; 65536 and more are the host's"},
                  "inputs": many(WHOLE, "operands by index"), "outputs": many(WHOLE, "operands by index"),
                  "origin": TEXT | {"description": "its place in the source file, empty where there is none"}},
    "data": {"offset": WHOLE | {"multipleOf": 64}, "bytes": WHOLE},
    "ports": {"inputs": many(ref("port")), "outputs": many(ref("port"))},
    "port": {"name": TEXT, "dtype": TEXT | {"description": "NumPy's name, or as sequence(float32)"},
             "shape": none_or(many({"type": ["integer", "null"]}, "null: a size that each run chooses")),
             "quant": ref("quant"), "state": {"type": "boolean", "description": "written by one run, read by the next"},
             "initial": ref("initial"), "range": pair(NUMBER), "norm": pair(many(NUMBER)) | {
                 "description": "means and deviations that the source file normalises an image with"},
             "sizes": many(TEXT, "names of the sizes of the shape")},
    "initial": {"value": many({"type": ["number", "boolean"]}), "data": ref("data")},
    "grid": {"scale": NUMBER, "zero": {"type": "integer", "description": "real = scale * (q - zero)"}},
    "grids": {"scales": many(NUMBER, "one for each index of the axis"), "axis": WHOLE}}

NAMES = pair(TEXT) | {"description": "the signature's name, the port's name"}
#: Objects that are dataclasses, all keys of which are there.
RECORDS: dict[str, dict[str, Schema]] = {
    "signature": {"name": TEXT, "inputs": many(NAMES), "outputs": many(NAMES)},
    "source": {"format": TEXT, "version": TEXT, "operators": WHOLE, "sparse": WHOLE, "description": TEXT,
               "signatures": many(TEXT), "metadata": many(pair(TEXT)), "files": many(TEXT), "labels": many(TEXT)}}


def thing(fields: dict[str, Schema], needed: tuple[str, ...]) -> Schema:
    """An object with these keys and no others."""
    return {"type": "object", "properties": fields, "required": list(needed), "additionalProperties": False}


def schema() -> Schema:
    """The whole schema, of draft 2020-12."""
    kinds = {kind: thing(fields, KEYS[kind][0]) for kind, fields in FIELDS.items()}
    kinds |= {kind: thing(fields, tuple(fields)) for kind, fields in RECORDS.items()}
    kinds["quant"] = {"oneOf": [ref("grid"), ref("grids")]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a model of nnx-convert",
            **kinds.pop("file"), "$defs": kinds}


def page() -> str:
    """The file's text."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
