"""The public names, and what importing them costs."""
from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

import nnx_convert

NAMES = [
    "OperandCode", "OperationCode", "OperationCodeEx", "FuseCode", "PaddingCode", "ResultCode", "FeatureLevel",
    "Target", "Check", "check", "ModelBuilder", "Model", "CompiledModel", "TensorSpec", "NnxError", "FormatError",
    "Unsupported", "ExportError", "Event", "Refusal", "Rewriter", "Rules", "Step", "register_pass",
    "ArtifactError", "ModelError", "StrictError", "InputError", "RunError", "UsageError", "convert", "compile",
    "load", "from_json", "register_custom_op", "LimitError", "Oversized", "limited", "__version__",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name: str) -> None:
    value = getattr(nnx_convert, name)
    assert name in dir(nnx_convert)
    assert getattr(value, "__name__", name) == name


def test_there_are_no_others() -> None:
    assert sorted(nnx_convert.__all__) == sorted(NAMES)


def test_every_error_is_public() -> None:
    found, todo = set(), [nnx_convert.NnxError]
    for kind in todo:
        found.add(kind.__name__)
        todo += [k for k in kind.__subclasses__() if k.__module__ == "nnx_convert.errors"]
    assert found == {n for n in NAMES if isinstance(k := getattr(nnx_convert, n), type) and issubclass(k, Exception)}


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = nnx_convert.nonsense


@pytest.mark.parametrize("first", ["import nnx_convert.convert", "from nnx_convert.convert import evaluate",
                                   "import nnx_convert.cli.commands", "from nnx_convert import convert"])
def test_the_module_does_not_hide_the_function(first: str) -> None:
    check = f"{first}\nimport nnx_convert\nassert nnx_convert.convert.__code__.co_name == 'convert'"
    subprocess.run([sys.executable, "-c", check], check=True)


CHEAP = {"nnx_convert": ("numpy", "click", "nnx_convert.codes"), "nnx_convert.errors": ("numpy", "click"),
         "nnx_convert.cli": ("numpy", "rich", "onnx", "tflite")}


@pytest.mark.parametrize("module", CHEAP)
def test_an_import_costs_little(module: str) -> None:
    found = subprocess.run([sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"], capture_output=True,
                           text=True, check=True).stdout.split()
    assert not set(CHEAP[module]) & set(found)


SIGNATURES = {
    "convert": "(source, target, *, shapes, strict, progress, signature, folder, passes, trace)",
    "compile": "(model, *, threads, shapes, backend, rounding, folder)",
    "load": "(path)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_hold(name: str) -> None:
    found = inspect.signature(getattr(nnx_convert, name)).parameters.values()
    bare = inspect.Signature([p.replace(annotation=p.empty, default=p.empty) for p in found])
    assert str(bare) == SIGNATURES[name]


@pytest.mark.parametrize("kind", [n for n in NAMES if n.endswith("Error") or n == "Unsupported"])
def test_an_error_says_its_id_its_place_and_what_to_do(kind: str) -> None:
    error = getattr(nnx_convert, kind)("is wrong", "here", "do this").at("file")
    assert str(error) == f"{error.id} {'BAD_DATA: ' * (kind == 'ModelError')}file: here: is wrong (do this)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
