"""Lowerings that are broken on purpose, a rule at a time: the command names the operation the rule is about."""
from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import broken_rules
import harder_rules
from broken_rules import Fault

from nnx_convert.arrays import write_archive
from nnx_convert.cli.commands import commands
from nnx_convert.cli.entry import ended
from nnx_convert.cli.options import targeted_by
from nnx_convert.errors import ExitCode
from nnx_convert.verify.opening import Subject, Values
from nnx_convert.verify.references import ENGINES

FAULTS = broken_rules.FAULTS | harder_rules.FAULTS
#: Engines that are there, with the suffix of the files each reads.
PEERS = {form: name for name, (form, package) in ENGINES.items() if find_spec(package)}


def recorded(fault: Fault, folder: Path) -> tuple[str, str]:
    """The model's file, and an archive of all its tensors as they are while nothing is broken."""
    path, archive = folder / f"model.{fault.suffix}", folder / "all.npz"
    path.write_bytes(fault.file)
    options = commands.commands["verify"].make_context("verify", [str(path), *fault.options]).params
    subject = Subject(str(path), targeted_by(options)["target"])
    write_archive(str(archive), {**Values(subject)({"x": fault.x}), "in0": fault.x})
    return str(path), str(archive)


def found(args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """How the command ends, and its object."""
    code = ended(["verify", *args, "--per-op", "--json"])
    out, err = capsys.readouterr()
    assert not err
    return code, json.loads(out)


@pytest.mark.parametrize("name", FAULTS)
def test_the_operation_of_a_broken_rule_is_named_first(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    fault = FAULTS[name]
    path, archive = recorded(fault, tmp_path)
    args = [path, "--against", archive, *fault.options]
    code, whole = found(args, capsys)
    assert (code, whole["good"], whole["first"]) == (ExitCode.GOOD, True, None)
    assert len(whole["tensors"]) >= 2
    fault.breaks(monkeypatch)
    code, wrong = found(args, capsys)
    assert (code, wrong["good"]) == (ExitCode.DIFFERENT, False)
    assert fault.operation in wrong["first"]["operations"]
    assert wrong["tensors"][-1]["good"] is fault.shaped, "what comes after is fed with what is right"
    assert fault.shaped or "has the shape" in wrong["first"]["problem"]
    assert wrong["first"]["inputs"] and all(i["min"] <= i["max"] for i in wrong["first"]["inputs"])


@pytest.mark.parametrize("name", [n for n, f in FAULTS.items() if f.suffix in PEERS and n != "hybrid"])
def test_a_runtime_names_it_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:
    fault = FAULTS[name]
    path = tmp_path / f"model.{fault.suffix}"
    path.write_bytes(fault.file)
    np.save(tmp_path / "x.npy", fault.x)
    args = [str(path), "--input", f"x={tmp_path / 'x.npy'}", *fault.options]
    code, whole = found(args, capsys)
    assert code == ExitCode.GOOD, whole["first"]
    fault.breaks(monkeypatch)
    code, wrong = found(args, capsys)
    assert code == ExitCode.DIFFERENT and fault.operation in wrong["first"]["operations"]
