"""Builds the library's reference from its docstrings, by pdoc: `python docs/api.py FOLDER`. It needs no network."""
from __future__ import annotations

import sys
from pathlib import Path

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
    version = f"{root} {nnx_convert.__version__}"
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text=version)
    modules = {n: pdoc.doc.Module.from_name(n) for n in (root, *(f"{root}.{m}" for m in MODULES))}
    pages = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(m, modules) for name, m in modules.items()}
    pages |= {"index.html": pdoc.render.html_index(modules), "search.js": pdoc.render.search_index(modules)}
    for path, page in pages.items():
        made((folder / path).parent)
        write(folder / path, [page.encode()])


if __name__ == "__main__":
    build(Path(sys.argv[1]))
