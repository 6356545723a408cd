"""NNAPI's codes and calls as a C header of our own: what the NDK's NeuralNetworks.h has, NNAPI-EX and DENSIFY."""
from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from importlib.resources import files

from ...codes import (
    FeatureLevel, FuseCode, OperandCode, OperationCode, OperationCodeEx, PaddingCode, ResultCode)
from ...schema import HOST_CODES

#: The codes there are, and what stands between ANEURALNETWORKS_ and their names.
CODES: dict[type[IntEnum], str] = {
    OperandCode: "", OperationCode: "", OperationCodeEx: "", FuseCode: "FUSED_", PaddingCode: "PADDING_",
    ResultCode: "", FeatureLevel: "FEATURE_LEVEL_"}


def header() -> str:
    """The text of NeuralNetworks.h."""
    guard = "NNX_NEURAL_NETWORKS_H"
    lines = ["/* NNAPI's codes and calls, those of NNAPI-EX and DENSIFY among them. Written by nnx_convert. */",
             f"#ifndef {guard}", f"#define {guard}", "", "#include <stdbool.h>", "#include <stddef.h>",
             "#include <stdint.h>", "", *enumerators(), template("calls.h").rstrip(), "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def enumerators() -> Iterator[str]:
    """The codes, an enumeration each; not those of our own extension, which no device knows."""
    for codes, prefix in CODES.items():
        yield "enum {"
        for code in codes:
            if codes is not OperandCode or code < HOST_CODES:
                yield f"  ANEURALNETWORKS_{prefix}{code.name.removeprefix('LEVEL_')} = {int(code)},"
        yield "};\n"


def template(name: str) -> str:
    """A text that is the same for every model, or nearly: it has @WORDS@ to fill in."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
