"""The TOML file: what it says, and what is said of one that makes no sense, with its place."""
from __future__ import annotations

from pathlib import Path

import pytest

from nnx_convert.ci.settings import Entry, chosen, load
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.target import Target


def read(folder: Path, text: str) -> tuple[Entry, ...]:
    (folder / "nnx.toml").write_text(text)
    return load(str(folder / "nnx.toml"))


def test_all_there_is_to_say(tmp_path: Path) -> None:
    (tmp_path / "g.npz").touch()
    entry, = read(tmp_path, """
        [models."a b"]
        path = "m.onnx"
        shapes = {x = [1, 3, 8, 8]}
        targets = [28, "fl7", {level = 31, ex = false, sparse = "fold"}]
        fail_on = ["host", "level>29"]
        verify = {against = "g.npz", random = 3, feed = {x = "y"}, per_op = true, rtol = 0.1}
        budgets = {size = "20 kB", arena = "1.5 MiB", macs = 12, latency = {ratio = 1.25, vs = "onnxruntime"}}
        diff = {baseline = "old.nnx", fail_on = "ops, macs+5%"}
        timeout = "500 ms"
        """)
    assert (entry.name, entry.path, entry.timeout) == ("a b", str(tmp_path / "m.onnx"), 0.5)
    assert entry.shapes == {"x": (1, 3, 8, 8)} and entry.fail_on == "host,level>29"
    assert entry.targets == (Target(28), Target(7), Target(31, ex=False, sparse="fold"))
    assert entry.budgets == {"size": 20000, "arena": 1.5 * 2**20, "macs": 12}
    comparison, = entry.verify
    assert (comparison.against, comparison.random, comparison.limit) == (str(tmp_path / "g.npz"), 3, "rtol 0.1")
    assert entry.latency is not None and (entry.latency.ratio, entry.latency.vs) == (1.25, "onnxruntime")
    assert entry.diff is not None and entry.diff.fail_on == "ops, macs+5%"


def test_what_an_entry_does_not_say_is_the_defaults(tmp_path: Path) -> None:
    a, b = read(tmp_path, """
        [defaults]
        target = 29
        fail_on = "host"
        budgets = {size = 1}
        [models.a]
        path = "a.onnx"
        [models.b]
        path = "b.onnx"
        targets = [27, 28]
        fail_on = []
        budgets = {}
        """)
    assert (a.targets, a.fail_on, a.budgets) == ((Target(29),), "host", {"size": 1})
    assert (b.targets, b.fail_on, b.budgets) == ((Target(27), Target(28)), "", {})


def test_entries_are_chosen_by_name_or_pattern() -> None:
    entries = tuple(Entry(n, "m") for n in ("digits", "digits-int8", "pose"))
    assert [e.name for e in chosen(entries, ("digits*",))] == ["digits", "digits-int8"]
    assert chosen(entries, ()) == entries


MODEL = '[models.a]\npath = "m.onnx"\n'
FAULTS = {
    "top": ('[model.a]\npath = "m"', "model: there is no such key (did you mean models?"),
    "nothing": ("", "models: there is no table of a model"),
    "no tables": ("models = 3", "models: there is no table of a model"),
    "no entry": ("models = {a = 1}", "models.a: is a table, not 1"),
    "no path": ("[models.a]\ntarget = 29", "[models.a] path: is missing"),
    "key": (MODEL + "tragets = [28]", "[models.a] tragets: there is no such key (did you mean targets"),
    "default": ('[defaults]\nfailon = "host"\n' + MODEL, "[defaults] failon: there is no such key (did you mean"),
    "unused": ('[defaults]\ntarget = 26\n' + MODEL + "target = 28", "[defaults] target: there is no feature level 26"),
    "level": (MODEL + 'target = "new"', "target: is a feature level as 29 or \"fl7\", or a .toml file, not 'new'"),
    "true": (MODEL + "target = true", "[models.a] target: is a feature level"),
    "two": (MODEL + "target = 29\ntargets = [29]", "[models.a] target: there is targets, too"),
    "no targets": (MODEL + "targets = []", "[models.a] targets: is a list of targets, not []"),
    "device": (MODEL + "target = {levle = 29}", "[models.a.target] levle: there is no such key (did you mean level?"),
    "device's file": (MODEL + 'target = "no.toml"', "no.toml: cannot be read"),
    "way": (MODEL + 'target = {sparse = "drop"}', "target: sparse is 'keep' or 'fold', not 'drop'"),
    "condition": (MODEL + 'fail_on = ["hosts"]', "[models.a] fail_on: --fail-on does not know 'hosts'"),
    "conditions": (MODEL + "fail_on = [3]", "[models.a] fail_on: is a list of texts, not [3]"),
    "shapes": (MODEL + "shapes = {x = [1, -2]}", "[models.a] shapes: x is a list of sizes, not [1, -2]"),
    "engine": (MODEL + 'verify = {against = "litrt"}', "[models.a.verify] against: there is neither a file nor an "
               "engine 'litrt' (did you mean litert?)"),
    "verify": (MODEL + "verify = [{atoll = 1}]", "[models.a.verify] atoll: there is no such key (did you mean atol"),
    "negative": (MODEL + "verify = {atol = -1.0}", "[models.a.verify] atol: is a number, 0 or more, not -1.0"),
    "fraction": (MODEL + "verify = {runs = 1.5}", "[models.a.verify] runs: is a whole number, 1 or more, not 1.5"),
    "flag": (MODEL + 'verify = {per_op = "yes"}', "[models.a.verify] per_op: is true or false, not 'yes'"),
    "backend": (MODEL + 'verify = {backend = "numpi"}', "[models.a.verify] backend: is auto, numpy, native"),
    "feed": (MODEL + "verify = {feed = {x = 1}}", "[models.a.verify] feed: is a table of texts"),
    "budget": (MODEL + "budgets = {mac = 3}", "[models.a.budgets] mac: there is no such key (did you mean macs?"),
    "unit": (MODEL + 'budgets = {size = "3 lb"}', "[models.a.budgets] size: is a number or a text as \"20 kB\""),
    "latency": (MODEL + "budgets = {latency = {}}", "[models.a.budgets.latency] median: neither median nor ratio"),
    "alone": (MODEL + "budgets = {latency = {ratio = 1}}", "latency] ratio: ratio and vs go together"),
    "peer": (MODEL + 'budgets = {latency = {ratio = 1, vs = "onnxrt"}}', "latency] vs: is litert, onnxruntime, open"),
    "bare i": (MODEL + 'budgets = {size = "3 iB"}', "[models.a.budgets] size: is a number or a text as \"20 kB\""),
    "huge": (MODEL + f"timeout = {10**400}", "[models.a] timeout: is a number, 0 or more, not 1000"),
    "time": (MODEL + 'timeout = "1 h"', "[models.a] timeout: is a number of seconds or a text as \"3 ms\""),
    "diff": (MODEL + 'diff = {fail_on = "ops"}', "[models.a.diff] baseline: is missing"),
    "growth": (MODEL + 'diff = {baseline = "b", fail_on = "mac+5%"}', "a.diff] fail_on: --fail-on does not know"),
    "inner": (MODEL + "budgets = 3", "[models.a] budgets: is a table, not 3"),
    "several": (MODEL + "budgets = [{size = 1}, {size = 2}]", "[models.a] budgets: is a table, not [{'size': 1}"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_file_table_and_key(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, said = FAULTS[name]
    (tmp_path / "nnx.toml").write_text(text)
    assert ended(["ci", str(tmp_path / "nnx.toml")]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and err.startswith("NNX501 nnx.toml: ") and said in err


@pytest.mark.parametrize(("content", "said"), [
    (b"[models", "is no TOML: "), (b"\xff\xfe", "is no TOML: "), (None, "cannot be read: No such file")])
def test_a_file_that_is_none(content: bytes | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
                             ) -> None:
    if content is not None:
        (tmp_path / "nnx.toml").write_bytes(content)
    assert ended(["ci", str(tmp_path / "nnx.toml")]) == ExitCode.UNREADABLE
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and said in err


def test_an_entry_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nnx.toml").write_text(MODEL)
    assert ended(["ci", str(tmp_path / "nnx.toml"), "--only", "b"]) == ExitCode.USAGE
    assert "there is no entry 'b' (the entries are a)" in capsys.readouterr().err
