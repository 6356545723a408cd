"""`check` and `inspect` on every model of the zoo: one screen or one line of what is wrong, and at once."""
from __future__ import annotations

import time
from pathlib import Path

import pytest
from shared import SHARED

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

MODELS = sorted((SHARED / "zoo").glob("*/model.*")) if SHARED else []
#: Models with operators that nobody knows.
REFUSED = {"edge_fake_custom_op_double", "posenet_353x481_customdecoder"}
#: Seconds of processor time (others may keep this process waiting) for a file of up to so many bytes, and for others.
QUICK, SMALL, SECONDS = 1.0, 5_000_000, 5.0
#: Times that are told apart from one that something else has slowed down.
TRIES = 3


COMMANDS = [["check"], ["inspect"], ["inspect", "--ops", "--tensors", "--quant"]]


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """What is imported once takes part in no model's time: start-up has a bound of its own."""
    for path in MODELS[:2]:
        ended(["check", str(path), "--quiet"])
        ended(["inspect", str(path), "--json"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.parent.name)
def test_all_end_well_and_soon(path: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    taken = []
    while len(taken) < TRIES and (not taken or min(taken) > QUICK):
        begun = time.process_time()
        code = ended([*command, str(path)])
        taken.append(time.process_time() - begun)
        out, err = capsys.readouterr()
    if path.parent.name in REFUSED:
        assert (code, out, err.count("\n")) == (ExitCode.UNREADABLE, "", 1)
        return
    assert code == ExitCode.GOOD and not err and max(map(len, out.splitlines())) <= 100
    assert command != ["check"] or out.splitlines()[-1].startswith("verdict")
    assert min(taken) < (QUICK if path.stat().st_size <= SMALL else SECONDS), taken
