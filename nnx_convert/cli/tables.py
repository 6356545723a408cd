"""Tables on a screen: at most 100 columns, texts that are too long cut in columns that say they may be."""
from __future__ import annotations

import sys
from collections.abc import Sequence

from ..emit.report import WIDTH
from ..errors import printable
from ..frozen import frozen
from .screen import Volume, colourful, volume

#: Between columns, and what stands for the rest of a text.
GAP, MORE = "  ", "..."
#: Shares of what is kept of a text that may be its begin.
HEADS = (0.5, 0.25, 0.75, 0.0, 1.0)
#: A column that may be cut keeps so many characters at least.
LEAST = 8


@frozen
class Column:
    """A column by its title; a `flexible` one is cut where the screen ends, a `right` one has numbers."""

    title: str
    right: bool = False
    flexible: bool = False


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; with --verbose nothing is cut. A table without rows says that there is nothing."""
    cells = [[printable(c) for c in row] for row in rows]
    titles = [c.title for c in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    if volume.get() is not Volume.VERBOSE:
        widths = fitted(columns, widths)
    heads = [kept(c, width) for c, width in zip(zip(*cells, strict=True), widths, strict=False)] or [0.5] * len(columns)
    bold, plain = ("\x1b[1m", "\x1b[0m") if colourful() else ("", "")
    sys.stdout.write(f"{bold}{line(columns, widths, titles, heads)}{plain}\n")
    for row in cells:
        sys.stdout.write(line(columns, widths, row, heads) + "\n")
    if not rows:
        sys.stdout.write("none\n")


def fitted(columns: Sequence[Column], widths: Sequence[int]) -> list[int]:
    """Widths that fit into the screen: the widest flexible column gives first, then the widest of texts."""
    found = [min(n, WIDTH) if c.flexible else n for c, n in zip(columns, widths, strict=True)]
    over = sum(found) + len(GAP) * (len(found) - 1) - WIDTH
    while over > 0:
        flexible = [n for n, c in enumerate(columns) if c.flexible and found[n] > LEAST] or [
            n for n, c in enumerate(columns) if not c.right and found[n] > LEAST]
        if not flexible:
            break
        widest = max(flexible, key=lambda n: found[n])
        found[widest] -= 1
        over -= 1
    return found


def line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], heads: Sequence[float]) -> str:
    """A row's cells side by side."""
    parts = [text.rjust(width) if c.right else text.ljust(width) for c, width, text in zip(
        columns, widths, map(cut, cells, widths, heads), strict=True)]
    return GAP.join(parts).rstrip()


def kept(texts: Sequence[str], width: int) -> float:
    """The share of the begin that tells the most of a column's texts apart, a half where that does."""
    return max(HEADS, key=lambda head: len({cut(text, width, head) for text in texts}))


def cut(text: str, width: int, head: float = 0.5) -> str:
    """A text in so many characters: of its begin this share of them, and its end."""
    if len(text) <= width:
        return text
    begin = int((width - len(MORE)) * head)
    return text[:begin] + MORE + text[len(text) - (width - len(MORE) - begin):]
