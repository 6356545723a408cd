"""The layers of the package, by what its modules import; imports inside functions count."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "nnx_convert"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Layer -> the layers it may import beside itself.
TABLE = ("codes", "symbols", "types", "errors", "signature", "schema", "kinds", "ops")
MODEL = (*TABLE, "model")
GRAPH = (*TABLE, "graph")
EVERYTHING = (*MODEL, "target", "graph", "frontends", "lowering", "runtime", "emit", "convert", "verify", "ci", "cli",
              "top")
MAY: dict[str, tuple[str, ...]] = {
    "codes": (), "symbols": ("codes",), "types": ("codes", "symbols"), "errors": ("codes",),
    **{TABLE[i]: TABLE[:i] for i in range(4, len(TABLE))},
    "target": TABLE, "graph": TABLE, "model": TABLE, "frontends": GRAPH, "lowering": (*GRAPH, "model", "target"),
    "runtime": MODEL, "emit": (*MODEL, "target"), "convert": EVERYTHING, "cli": EVERYTHING, "top": EVERYTHING,
    "onnx_backend": EVERYTHING, **dict.fromkeys(("verify", "ci"), tuple(n for n in EVERYTHING if n != "cli")),
}
#: What a top-level module or package belongs to, where that is not its own name.
LAYER = {"contents": "types", "frozen": "codes", "garbage": "errors", "resources": "errors", "reading": "errors",
         "device_limits": "target", "since": "target", "builder": "model", "artifact": "model", "__init__": "top",
         "__main__": "cli", "cli_run": "cli",
         **dict.fromkeys(("aot", "archived", "arrays", "check", "comparison", "inspection", "measuring", "page",
                          "peers", "record"), "convert")}
#: Heavy packages -> the layers that may import them.
OUTSIDE = {"onnx": {"frontends", "onnx_backend", "verify"}, "tflite": {"frontends"}, "flatbuffers": {"frontends"},
           "click": {"cli"}, "rich": {"cli", "emit"}, "threadpoolctl": {"runtime"}}


def layer(dotted: str) -> str:
    """The layer of a module named as `runtime.kernels.conv`, from the package down."""
    head = dotted.partition(".")[0]
    return LAYER.get(head, head)


def name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imported(path: Path) -> Iterator[str]:
    """Every module a file imports, whole names, ours as nnx_convert.x.y."""
    here = ("nnx_convert", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = ".".join((*here[:len(here) - node.level + 1], *filter(None, [node.module])) if node.level
                            else filter(None, [node.module]))
            yield from ((f"{stem}.{a.name}" for a in node.names) if stem == "nnx_convert" else (stem,))


def own(path: Path) -> set[str]:
    """The layers of ours a file reaches into, beside its own."""
    known = {p.stem for p in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    heads = (m.split(".")[1] for m in imported(path) if m.startswith("nnx_convert."))
    return {layer(h if h in known else "__init__") for h in heads} - {layer(name(path))}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_what_stands_to_its_left(path: Path) -> None:
    assert own(path) <= set(MAY[layer(name(path))])


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_heavy_packages_stay_where_their_work_is(path: Path) -> None:
    heads = {m.partition(".")[0] for m in imported(path)}
    assert not [p for p, where in OUTSIDE.items() if p in heads and layer(name(path)) not in where]


FRONTENDS = [p for p in MODULES if "frontends" in p.parts and p.parent.name != "frontends"]


@pytest.mark.parametrize("path", FRONTENDS, ids=name)
def test_a_frontend_does_not_import_the_other(path: Path) -> None:
    mine = path.relative_to(PACKAGE / "frontends").parts[0]
    reached = (m.split(".") for m in imported(path) if m.startswith("nnx_convert.frontends."))
    assert {r[2] for r in reached} <= {mine, *(p.stem for p in (PACKAGE / "frontends").glob("*.py"))}


def test_lazy_and_relative_imports_are_seen(tmp_path: Path) -> None:
    found = set(imported(PACKAGE / "model.py"))
    assert {"nnx_convert.artifact", "nnx_convert.codes"} <= found


def test_every_layer_of_the_table_is_there() -> None:
    assert {layer(name(p)) for p in MODULES} <= set(MAY)
