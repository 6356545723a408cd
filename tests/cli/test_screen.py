"""Lines on a screen, and work that takes its time."""
from __future__ import annotations

import sys
import time

import pytest

from nnx_convert.cli import screen

TEXTS = [("plain ☃", "plain ☃"), ("two\nlines\tof", "two lines of"), ("\x1b[2J", "\\x1b[2J"), ("\udc80", "\\udc80"),
         ("\u202eevil", "\\u202eevil"), ("", "")]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_a_name_cannot_write_elsewhere(text: str, shown: str) -> None:
    assert screen.printable(text) == shown


@pytest.mark.parametrize(("terminal", "wait", "said"), [
    (True, 0.2, "reading ...\nlowering ...\n"), (True, 0.0, ""), (False, 0.2, "")])
def test_slow_work_says_what_it_does_on_a_terminal(terminal: bool, wait: float, said: str,
                                                   monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen, "PATIENCE", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with screen.Progress() as progress:
        progress("reading")
        time.sleep(wait)
        if wait:
            progress("lowering")
    assert capsys.readouterr().err == said
