"""docs/errors.md, written from errors.py: the exit codes, and every error with its id and its meaning.

`python -m nnx_convert.emit.errors_page` writes it.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from ..errors import ExitCode, NnxError

PAGE = Path("docs/errors.md")
HEAD = """# Errors and exit codes

Written by `python -m nnx_convert.emit.errors_page`; do not edit.

The command says what is wrong in one line on stderr, as `NNX101 pose.tflite: op 3 CONV_2D: what is wrong (what to
do)`, and ends with one of these codes. In Python the same fault is an exception; every one is a
`nnx_convert.NnxError` and has `id`, `where`, `text`, `hint` and `exit_code`. Ids do not change their meaning.

A fault of the program itself is a line that begins with `internal error` and ends with code 5; with `NNX_DEBUG=1`
in the environment its traceback follows.

A signal that ends it (Ctrl-C, SIGTERM, SIGHUP) does so within a second, with one line (`interrupted`), no file half
written, and 128 and its number as code, as shells count: 130 after Ctrl-C. A reader of stdout that has gone is no
fault.

| Exit code | Name | Meaning |
|---|---|---|
"""
COLUMNS = """
| Id | Exception | Ends with | Meaning |
|---|---|---|---|
"""


def errors(base: type[NnxError] = NnxError) -> Iterator[type[NnxError]]:
    """The kinds of error, each after the one it is a kind of."""
    yield base
    for kind in base.__subclasses__():
        yield from errors(kind)


def exits() -> Iterator[str]:
    """A line for each exit code."""
    return (f"| {int(code)} | {code.name} | {code.meaning} |" for code in ExitCode)


def row(kind: type[NnxError]) -> str:
    """The line of an error."""
    meaning = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return f"| {kind.id} | {kind.__name__} | {int(kind.exit_code)} | {meaning} |"


def page() -> str:
    """The whole page."""
    listed = sorted(errors(), key=lambda e: e.id)
    return HEAD + "\n".join(exits()) + "\n" + COLUMNS + "\n".join(map(row, listed)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
