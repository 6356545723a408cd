"""A group of commands, one of which need not be named."""
from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem

from ..errors import UsageError, near
from . import screen

#: The command that is meant where none is named.
USUAL = "convert"


class Commands(click.Group):
    """A group with a command that need not be named: the conversion."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the command where it is left out; raises `UsageError` on what is like a command, and no file."""
        unfinished = ctx.resilient_parsing and not args                # a shell asks what may come first
        if unfinished or args and args[0] in (*self.commands, "--help", "--version"):
            return super().parse_args(ctx, args)
        word = args and not args[0].startswith("-") and not {".", os.sep} & set(args[0])
        if word and not os.path.exists(args[0]) and (hint := near(args[0], self._shown())):
            raise UsageError(f"there is neither a file nor a command {args[0]!r}", hint=hint)
        return super().parse_args(ctx, [USUAL, *args])

    def _shown(self) -> dict[str, click.Command]:
        """The commands that are for people."""
        return {name: c for name, c in self.commands.items() if not c.hidden}

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The conversion's help, then the other commands."""
        inner = self.commands[USUAL]
        wide = ctx.max_content_width
        inner.format_help(click.Context(inner, info_name=ctx.info_name, max_content_width=wide), formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(f"{name} {_arguments(c)}".rstrip(), c.get_short_help_str(80))
                                for name, c in self._shown().items()])
            formatter.write_dl([(f"{screen.COMMAND} COMMAND --help", "a command's options and examples")])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and what the usual one takes."""
        inner = self.commands[USUAL]
        own = inner.shell_complete(click.Context(inner, ctx, info_name=USUAL), incomplete)
        return [*super().shell_complete(ctx, incomplete), *own, *self._files(inner, incomplete)]

    @staticmethod
    def _files(inner: click.Command, incomplete: str) -> list[CompletionItem]:
        """What its first argument may be."""
        argument = next(p for p in inner.params if isinstance(p, click.Argument))
        return [] if incomplete.startswith("-") else argument.shell_complete(click.Context(inner), incomplete)


def _arguments(command: click.Command) -> str:
    """A command's arguments as its help spells them."""
    return " ".join(p.make_metavar(click.Context(command)) for p in command.params if isinstance(p, click.Argument))
