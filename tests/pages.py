"""Runs the fenced blocks of a page of documentation, in order, as its reader would.

A block of `bash` or `python` is run, one after the other in one folder that has `models/`, one environment and one
set of Python's names. A mark, a comment of HTML in the line before a block, says what else there is to do with it:

    <!-- file: NAME -->        write it to this file
    <!-- output -->            compare it with what the block before it said; `...` stands for anything
    <!-- ends with 4 -->       run it; the last of its commands ends with this code
    <!-- with: TOOL TOOL -->   run it where these are installed, else do as with those that cannot be run
    <!-- elsewhere: WHY -->    it cannot be run here: only what can be told without running it is tested
    <!-- the first command --> (or another of TESTED) a test of its own runs it
"""
from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nnx_convert.cli.commands import commands
from nnx_convert.cli.entry import ended
from nnx_convert.lowering.pipeline import PASSES
from nnx_convert.ops.custom import CUSTOM_OPS

FENCE = re.compile(r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
COMMAND = "nnx-convert"
#: Marks of blocks that tests/test_readme.py runs.
TESTED = ("the first command", "the test command")
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block, the line of the page that it begins in, and what its mark asks for."""

    language: str
    text: str
    line: int
    mark: str = ""

    @property
    def asked(self) -> tuple[str, str]:
        """The mark's word and what follows it."""
        word, _, rest = self.mark.replace("ends with ", "ends: ").partition(":")
        return word, rest.strip()


def blocks(page: str) -> list[Block]:
    """The blocks of a page; every fence is one of a block."""
    found = [Block(m["language"], m["text"], page.count("\n", 0, m.start("text")), m["mark"] or "")
             for m in FENCE.finditer(page)]
    assert len(re.findall("^```", page, re.M)) == 2 * len(found), "a fence that is not closed, or not one alone"
    return found


@dataclass
class Reader:
    """Who does what a page says, in a folder: an environment, names of Python, and what was said last."""

    folder: Path
    environment: dict[str, str]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    registered: tuple[dict[str, Any], list[Any]] = field(default_factory=lambda: ({}, []))
    said: str | None = ""

    def follow(self, page: str) -> None:
        """All of the page."""
        for block in blocks(page):
            try:
                self.do(block)
            except Exception as error:
                raise AssertionError(f"line {block.line}: {type(error).__name__}: {error}") from error

    def do(self, block: Block) -> None:
        """One block."""
        word, rest = block.asked
        if word == "with" and any(shutil.which(tool) is None for tool in rest.split()):
            looked_at(block)
            self.said = None
        elif word == "output":
            assert block.text.strip(" .\n"), "an output of which nothing is shown"
            same = self.said is None or doctest.OutputChecker().check_output(block.text, self.said, LIKE)
            assert same, f"it says\n{self.said}\nand not\n{block.text}"
        elif word == "file":
            (self.folder / rest).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / rest).write_text(block.text, encoding="utf-8")
        elif word == "elsewhere":
            assert rest, "why it is not run"
            looked_at(block)
        elif word not in TESTED:
            assert word in ("", "ends", "with"), f"there is no mark {block.mark!r}"
            run: dict[str, Callable[[Block, int], None]] = {"bash": self.bash, "python": self.python}
            assert block.language in run, f"a block of {block.language or 'no language'} that has no mark"
            run[block.language](block, int(rest or 0) if word == "ends" else 0)

    def bash(self, block: Block, code: int) -> None:
        """Commands: in this process where no shell is needed for them."""
        simple = [plain(line) for line in lines(block.text)]
        if all(simple):
            said = ""
            for n, words in enumerate(filter(None, simple), 1):
                ended_with, wanted = self.command(*words), code if n == len(simple) else 0
                assert ended_with == wanted, f"{' '.join(words[0])} ends with {ended_with}: {self.said}"
                said += self.said or ""
            self.said = said
            return
        after = self.folder / ".environment"
        script = f"{block.text}\nenv -0 > {shlex.quote(str(after))}\n"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.said = done.stdout
        assert done.returncode == code, f"it ends with {done.returncode}: {done.stdout}"
        if after.exists():
            self.environment = dict(v.split("=", 1) for v in after.read_text().split("\0") if "=" in v)
            after.unlink()

    def command(self, words: list[str], to: str) -> int:
        """One command of ours; the code it ends with. What it says goes to a file, where that is given."""
        out, both = io.StringIO(), io.StringIO()
        with self.here(), contextlib.redirect_stdout(out if to else both), contextlib.redirect_stderr(both):
            code = ended(words)
        if to:
            (self.folder / to).write_text(out.getvalue(), encoding="utf-8")
        self.said = both.getvalue()
        return code

    def python(self, block: Block, code: int) -> None:
        """Statements; what they register is known to them alone, as to a process of their own."""
        assert not code, "Python that ends with a code"
        said = io.StringIO()
        program = compile("\n" * block.line + block.text, "the page", "exec", dont_inherit=True)
        with self.here(), self.registrations(), contextlib.redirect_stdout(said):
            exec(program, self.names)
        self.said = said.getvalue()

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """This process in the reader's folder, with the reader's environment."""
        before = dict(os.environ)
        with contextlib.chdir(self.folder):
            os.environ.update(self.environment)
            try:
                yield
            finally:
                os.environ.clear()
                os.environ.update(before)

    @contextlib.contextmanager
    def registrations(self) -> Iterator[None]:
        """Operators and passes that the page's Python registered."""
        operators, passes = dict(CUSTOM_OPS), list(PASSES)
        CUSTOM_OPS.update(self.registered[0])
        PASSES.extend(self.registered[1])
        try:
            yield
        finally:
            self.registered = ({n: o for n, o in CUSTOM_OPS.items() if operators.get(n) is not o},
                               [p for p in PASSES if p not in passes])
            CUSTOM_OPS.clear()
            CUSTOM_OPS.update(operators)
            PASSES[:] = passes


def lines(script: str) -> Iterator[str]:
    """The lines of a script that hold a command; one that is continued is one."""
    yield from (line for line in script.replace("\\\n", " ").splitlines() if shlex.split(line, comments=True))


def plain(line: str) -> tuple[list[str], str] | None:
    """The words of a command of ours and the file that takes its output; None of what a shell is needed for."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    to = words[-1] if words[-2:-1] == [">"] else ""
    words = words[:-2] if to else words
    needed = re.search(r"[$`*~\[{]", line) or any(set(w) <= set(lexer.punctuation_chars) for w in words)
    return None if needed or words[0] != COMMAND else (words[1:], to)


def looked_at(block: Block) -> None:
    """A block that is not run is in order, as far as can be told."""
    if block.language == "bash":
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        script = list(lines(block.text))
    else:
        assert block.language == "yaml", f"nobody can tell whether {block.language} is in order"
        script = list(steps(yaml.safe_load(block.text)))
    for line in script:
        words = shlex.split(line.partition(" > ")[0], comments=True)
        if words[0] == COMMAND:
            assert callable(commands.main(words[1:], standalone_mode=False)), "its work, which is not done"


def steps(found: Any) -> Iterator[str]:
    """The lines of a pipeline that a shell runs."""
    if isinstance(found, dict):
        run = found.get("run")
        yield from [run] if isinstance(run, str) else found.get("script", [])
    if isinstance(found, dict | list):
        for value in found.values() if isinstance(found, dict) else found:
            yield from steps(value)


def reader(folder: Path, models: Path, cache: Path) -> Reader:
    """A reader with models to begin with: the command is in the path, and computes as it does where nobody asks."""
    (folder / "models").symlink_to(models)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return Reader(folder, os.environ | {"PATH": path, "NNX_BACKEND": "", "NNX_CACHE": str(cache),
                                        "CMAKE_BUILD_TYPE": "None", "COLUMNS": "100",
                                        "PYTEST_PLUGINS": "nnx_convert.ci.plugin"})
