"""Lines on a screen, and work that takes its time."""
from __future__ import annotations

import sys
import time

import pytest
import rich.status  # noqa: F401  it is imported where it is needed, which takes its time

from nnx_convert.cli import screen
from nnx_convert.cli.screen import Volume

TEXTS = [("plain ☃", "plain ☃"), ("two\nlines\tof", "two lines of"), ("\x1b[2J", "\\x1b[2J"), ("\udc80", "\\udc80"),
         ("\u202eevil", "\\u202eevil"), ("", "")]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_a_name_cannot_write_elsewhere(text: str, shown: str) -> None:
    assert screen.printable(text) == shown


@pytest.mark.parametrize(("terminal", "volume", "wait", "said"), [
    (True, Volume.NORMAL, 0.3, ["reading ...", "lowering ..."]), (True, Volume.NORMAL, 0.0, []),
    (False, Volume.NORMAL, 0.3, []), (True, Volume.QUIET, 0.3, []),
    (False, Volume.VERBOSE, 0.0, ["reading: 0.", " s\nlowering: 0."])])
def test_slow_work_says_what_it_does(terminal: bool, volume: Volume, wait: float, said: list[str],
                                     monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen, "PATIENCE", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    token = screen.volume.set(volume)
    with screen.Progress() as progress:
        progress("reading")
        time.sleep(wait)
        progress("lowering")
        time.sleep(wait)
    screen.volume.reset(token)
    shown = capsys.readouterr()
    assert not shown.out and bool(shown.err) == bool(said)
    assert all(words in shown.err for words in said)


@pytest.mark.parametrize(("volume", "said"), [
    (Volume.NORMAL, "slow\n"), (Volume.QUIET, ""), (Volume.VERBOSE, "slow\n")])
def test_notices_keep_quiet_where_asked(volume: Volume, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    token = screen.volume.set(volume)
    screen.notice("slow")
    screen.volume.reset(token)
    assert capsys.readouterr().err == said
