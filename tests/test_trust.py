"""What docs/security.md promises of the package's own text: nothing in it runs a file's words, or calls anybody."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "nnx_convert"
MODULES = sorted(PACKAGE.rglob("*.py"))
#: What would run what it reads, or reach out of the machine.
MODULES_REFUSED = {
    "pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "code", "codeop", "runpy",
    "socket", "socketserver", "ssl", "http", "urllib", "ftplib", "smtplib", "telnetlib", "xmlrpc", "asyncio",
    "requests", "httpx", "aiohttp", "urllib3", "webbrowser", "xml", "pty"}
CALLS_REFUSED = {"eval", "exec", "compile", "__import__", "breakpoint"}
ATTRIBUTES_REFUSED = {
    ("os", "system"), ("os", "popen"), ("os", "startfile"), ("builtins", "eval"), ("builtins", "exec"),
    ("tempfile", "mktemp"),
    *(("os", how + what) for how in ("exec", "spawn") for what in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *((owner, name) for owner in ("np", "numpy") for name in ("fromregex", "save", "savez", "savez_compressed"))}
#: The exceptions: where, what, and why that runs no file's words.
ALLOWED = {
    ("signature.py", "eval"): "annotations of functions that are written in this package or by its caller",
    ("frozen.py", "exec"): "field_0, field_1 and so on, whose number alone is given",
    ("ci/junit.py", "xml"): "written only", ("verify/junit.py", "xml"): "written only",
}


def faults(path: Path) -> Iterator[str]:
    """What a module does that it should not."""
    shown = str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else path.name
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # The package has a function `compile` of its own.
    own = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level for a in n.names}
    own |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name.partition(".")[0] for a in node.names if a.name.partition(".")[0] in MODULES_REFUSED]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [m for m in [node.module.partition(".")[0]] if m in MODULES_REFUSED]
        elif isinstance(node, ast.Call):
            names = [name for name in called(node) if name not in own]
        yield from (f"{name}, line {node.lineno}" for name in names  # type: ignore[attr-defined]
                    if (shown, name) not in ALLOWED)


def called(node: ast.Call) -> Iterator[str]:
    """What a call does that no file's words should decide."""
    f, given = node.func, {k.arg: ast.unparse(k.value) for k in node.keywords}
    if isinstance(f, ast.Name) and f.id in CALLS_REFUSED:
        yield f.id
    if isinstance(f, ast.Attribute):
        owner = ast.unparse(f.value)
        if (owner, f.attr) in ATTRIBUTES_REFUSED:
            yield f"{owner}.{f.attr}"
        if (owner, f.attr) in (("np", "load"), ("numpy", "load")) and given.get("allow_pickle") != "False":
            yield "np.load"
    if given.get("shell", "False") != "False":
        yield "shell"
    if given.get("allow_pickle", "False") != "False":
        yield "allow_pickle"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_runs_what_it_reads_or_calls_anybody(path: Path) -> None:
    assert not [*faults(path)]


@pytest.mark.parametrize("text", [
    "import pickle", "from urllib.request import urlopen", "eval(x)", "exec(x)", "import os\nos.system(x)",
    "import numpy as np\nnp.load(f)", "import numpy as np\nnp.load(f, allow_pickle=True)", "run(x, shell=True)",
    "import numpy\nnumpy.savez_compressed(f, x)", "compile(x, 'f', 'exec')", "def f():\n    import socket",
    "import yaml", "__import__(x)"])
def test_such_a_module_would_be_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(text)
    assert [*faults(tmp_path / "m.py")]
