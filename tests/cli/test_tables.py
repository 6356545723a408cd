"""Tables: columns align, and what is too long is cut where a column says it may be."""
from __future__ import annotations

import pytest

from nnx_convert.cli import screen
from nnx_convert.cli.tables import Column, cut, show_table

LONG = "a/very/long/name/that/goes/on/and/on/and/on/and/differs/at/the/end/" * 2


@pytest.mark.parametrize(("text", "width", "found"), [
    ("short", 10, "short"), ("abcdefghijkl", 9, "abc...jkl"), ("abcdefghijkl", 8, "ab...jkl")])
def test_cut(text: str, width: int, found: str) -> None:
    assert cut(text, width) == found


@pytest.mark.parametrize("names", [
    [f"model/{'x' * 60}/conv_{n}/kernel_{'y' * 25}" for n in range(30)], [f"conv_{n}/{'x' * 90}" for n in range(30)],
    [f"{'x' * 90}/conv_{n}" for n in range(30)]], ids=["amid", "begin", "end"])
def test_what_is_cut_is_told_apart(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    show_table([Column("name", flexible=True), Column("other")], [[n, "z" * 40] for n in names])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(set(lines)) == len(names) and max(map(len, lines)) <= 100


def test_columns_align(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([Column("name", flexible=True), Column("n", right=True), Column("more", flexible=True)],
               [[LONG + "1", "1", "x"], ["b", "22", LONG + "2"], ["c\n\x1b[2J", "333", ""]])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and max(map(len, lines)) == 100
    ends = {line.index(n) + len(n) for line, n in zip(lines[1:], ("  1", " 22", "333"), strict=True)}
    assert len(ends) == 1 and "\x1b" not in "".join(lines)


def test_verbose_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    token = screen.volume.set(screen.Volume.VERBOSE)
    show_table([Column("name", flexible=True)], [[LONG]])
    screen.volume.reset(token)
    assert LONG in capsys.readouterr().out


def test_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([Column("name")], [])
    assert capsys.readouterr().out == "name\nnone\n"
