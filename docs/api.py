"""Builds the library's reference from its docstrings, by pdoc: `python docs/api.py FOLDER`. It needs no network."""
from __future__ import annotations

import inspect
import sys
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any

import pdoc

import nnx_convert
from nnx_convert.artifact.files import made, write

#: What has a page beside the package: the stages, each callable by itself, what they pass on, and how to extend them.
#: The command, kernels, code generators and importers are insides; operations are in ops.md.
MODULES = (
    "aot", "arrays", "artifact", "artifact.as_json", "builder", "check", "codes", "comparison", "convert",
    "device_limits", "emit.facts", "emit.ndk", "emit.report", "emit.verdicts", "errors", "frontends.onnx",
    "frontends.tflite", "graph", "inspection", "lowering.flatten", "lowering.pipeline", "lowering.rewrite", "model",
    "onnx_backend", "ops.custom", "page", "record.reading", "runtime.compiled", "runtime.footprint",
    "runtime.profile", "target", "types", "verify.asking", "verify.metrics", "verify.opening", "verify.verdict")


def build(folder: Path) -> None:
    """Write the site, whose first page is index.html; raises `UsageError` where nothing can be written."""
    root = nnx_convert.__name__
    for name in nnx_convert.__all__:
        getattr(nnx_convert, name)                 # what is imported when it is first used, pdoc would not find
    for name in MODULES:
        for cls in vars(import_module(f"{root}.{name}")).values():
            if inspect.isclass(cls) and hasattr(cls, "__signature__"):
                constructed(cls)
    version = f"{root} {nnx_convert.__version__}"
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text=version)
    modules = {n: pdoc.doc.Module.from_name(n) for n in (root, *(f"{root}.{m}" for m in MODULES))}
    pages = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(m, modules) for name, m in modules.items()}
    pages |= {"index.html": pdoc.render.html_index(modules), "search.js": pdoc.render.search_index(modules)}
    for path, page in pages.items():
        made((folder / path).parent)
        write(folder / path, [page.encode()])


def constructed(cls: Any) -> None:
    """Have a value's constructor say its arguments itself: pdoc does not ask its class."""
    fields = inspect.signature(cls)
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    cls.__init__.__signature__ = fields.replace(parameters=[own, *fields.parameters.values()])
    cls.__init__.__module__ = cls.__module__                       # where the types' names are known


if __name__ == "__main__":
    build(Path(sys.argv[1]))
