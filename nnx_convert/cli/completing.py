"""`nnx-convert completion SHELL`: what makes a shell complete the command, as click writes it."""
from __future__ import annotations

from typing import TextIO

import click
from click.shell_completion import get_completion_class

from ..errors import UsageError
from . import screen

#: What a shell asks the command through, by click's rule.
VARIABLE = "_NNX_CONVERT_COMPLETE"


def show_completion(group: click.Group, shell: str, out: TextIO) -> None:
    """Print the lines for a shell; raises `UsageError` where there are none for it."""
    form = get_completion_class(shell)
    if form is None:
        raise UsageError(f"there is no completion for the shell {shell!r}", hint="name one: bash, zsh or fish")
    # `source()` of click's bash class runs bash for its version, which may not be there: the text is all we want.
    made = form(group, {}, screen.COMMAND, VARIABLE)
    out.write(made.source_template % made.source_vars() + "\n")
