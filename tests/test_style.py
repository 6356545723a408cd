"""The house style, as far as a program can tell."""
from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("nnx_convert", "tests", "models", "benchmarks", "docs", "fuzz")
FILES = sorted(p for d in FOLDERS for p in (ROOT / d).rglob("*.py"))
PACKAGE = [p for p in FILES if p.is_relative_to(ROOT / "nnx_convert")]
FILE_LINES, FUNCTION_LINES = 500, 40
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Spelt in two halves, so that this file does not hold them.
UNFINISHED = re.compile(r"\b(?:TO" "DO|FIX" "ME|XX" "X|HA" r"CK)\b|pytest\.(?:mark\.)?sk" r"ip\b|importor" "skip")
#: Paths of the machine a file was written on mean nothing on another.
ELSEWHERE = re.compile(r"[\"'( ]/(?:wo" "rk|op" "t|ho" r"me)/")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES
    functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, Function))
    long = {f.name: n for f in functions if (n := (f.end_lineno or 0) - f.lineno + 1) > FUNCTION_LINES}
    assert not long


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_is_left_for_later(path: Path) -> None:
    assert not UNFINISHED.findall(path.read_text())


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_file_knows_the_machine_it_was_written_on(path: Path) -> None:
    assert not ELSEWHERE.findall(path.read_text())


def public(tree: ast.Module) -> Iterator[ast.AST]:
    """The module and its public classes, functions and methods; not functions inside functions."""
    yield tree
    todo: list[ast.Module | ast.ClassDef] = [tree]
    for scope in todo:
        for n in scope.body:
            if isinstance(n, ast.ClassDef | Function) and not n.name.startswith("_"):
                yield n
                todo += [n] if isinstance(n, ast.ClassDef) else []


def says_enough(n: ast.AST) -> bool:
    """Whether a definition has a docstring, or is registered by a call that says what it is for, or an overload."""
    if ast.get_docstring(n) is not None:  # type: ignore[arg-type]
        return True
    return any(isinstance(d, ast.Call) or ast.unparse(d) == "overload" for d in getattr(n, "decorator_list", []))


@pytest.mark.parametrize("path", PACKAGE, ids=name)
def test_public_functions_say_their_contract(path: Path) -> None:
    silent = [getattr(n, "name", "module") for n in public(ast.parse(path.read_text())) if not says_enough(n)]
    assert not silent


def run(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONWARNINGS": "ignore"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_is_content() -> None:
    run("ruff", "check", "--no-cache", ".")


def test_mypy_is_content() -> None:
    run("mypy")
