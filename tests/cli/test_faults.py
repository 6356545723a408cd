"""Faults of the machine: a kill at any moment, a disk that is full, folders that take nothing, streams shut."""
from __future__ import annotations

import errno
import os
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import ROOT, Host
from sample_models import SAMPLES

from nnx_convert.artifact import files
from nnx_convert.errors import ExitCode

MODEL = str(ROOT / "models" / "digits_cnn_int8.tflite")
OTHER = str(ROOT / "models" / "digits_cnn.tflite")
#: What each command writes, by its words.
WRITES = {
    "convert": ("dense.nnx", "-o", "out/a.nnx"),
    "json": ("dense.nnx", "-o", "out/a.nnx", "--emit", "json:out/a.json"),
    "html": ("dense.nnx", "--emit", "html:out/a.html"),
    "ndk": ("dense.nnx", "--emit", "ndk:out"),
    "object": ("dense.nnx", "--emit", "object:out"),
    "run": ("run", "dense.nnx", "--random", "1", "--output", "out/a.npz"),
    "profile": ("run", "dense.nnx", "--random", "1", "--profile", "out/a.txt"),
    "verify": ("verify", "dense.nnx", "--against", "dense.nnx", "--junit", "out/a.xml"),
    "record-lib": ("record-lib", "out"),
}
OLD = b"old"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a model and one for what is written."""
    SAMPLES["dense"]().save(tmp_path / "dense.nnx")
    (tmp_path / "out").mkdir()
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder, by their paths."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def aged(folder: Path) -> dict[str, bytes]:
    """What is in a folder, every file of it old."""
    for p in folder.rglob("*"):
        if p.is_file():
            p.write_bytes(OLD)
    return contents(folder)


@pytest.mark.parametrize("kind", WRITES)
def test_a_disk_that_is_full_leaves_every_old_file(kind: str, host: Host, here: Path) -> None:
    assert host.ran(*WRITES[kind], cwd=here).code == ExitCode.GOOD
    assert (before := aged(here / "out"))
    found = host.ran(*WRITES[kind], cwd=here, fails=("os:fsync", errno.ENOSPC))
    assert found.code == ExitCode.USAGE
    assert re.fullmatch(r"NNX501 \S*: cannot be written: No space left on device", found.line)
    assert contents(here / "out") == before


@pytest.mark.parametrize(("where", "number", "mode"), [
    ("io:open", errno.EROFS, "xb"), ("io:open", errno.EACCES, "xb"), ("io:open", errno.EMFILE, "xb"),
    ("io:open", errno.EDQUOT, "xb"), ("os:fsync", errno.EIO, ""), ("os:replace", errno.EACCES, ""),
    ("os:replace", errno.EROFS, "")])
def test_a_place_that_takes_nothing_is_one_line(where: str, number: int, mode: str, host: Host, here: Path) -> None:
    found = host.ran(*WRITES["convert"], cwd=here, fails=(where, number, mode))
    assert found.code == ExitCode.USAGE
    assert found.line == f"NNX501 out/a.nnx: cannot be written: {os.strerror(number)}"
    assert contents(here / "out") == {}


@pytest.mark.parametrize("size", [100, 700])
def test_a_file_that_is_cut_short_is_none(size: int, host: Host, here: Path) -> None:
    found = host.ran(*WRITES["convert"], cwd=here, limit=("FSIZE", size))
    assert (found.code, found.line) == (ExitCode.USAGE, "NNX501 out/a.nnx: cannot be written: File too large")
    assert contents(here / "out") == {}


#: What writes, and where it is.
WRITERS = {"artifact/files.py": ("write_all", "_beside", "_tidy"), "codegen/cache.py": ("keep", "_pruned")}


def moments(host: Host, here: Path, file: str, step: int, *args: str, **env: str) -> Iterator[None]:
    """The command, killed before each line in turn that writes, or every few of them, until it has no more."""
    for count in range(1, 200, step):
        found = host.ran(*args, cwd=here, killed=(file, WRITERS[file], count), env=env)
        yield
        if found.code == ExitCode.GOOD:
            assert count > 20, "the file is not gone through"
            return
        assert found.code == -signal.SIGKILL
    raise AssertionError("it does not end")


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new(host: Host, here: Path) -> None:
    out, seen = here / "out", set[bytes]()
    host.ran(*WRITES["convert"], cwd=here)
    new = (out / "a.nnx").read_bytes()
    (out / "a.nnx").write_bytes(OLD)
    for _ in moments(host, here, "artifact/files.py", 1, *WRITES["convert"]):
        found = contents(out)
        seen.add(found.pop("a.nnx"))
        assert all(files.UNFINISHED.fullmatch(name) for name in found)
    assert seen == {OLD, new} and len(contents(out)) > 1


def test_what_a_killed_process_left_goes_when_it_is_old(host: Host, here: Path) -> None:
    left, young, other = (here / "out" / n for n in (f".nnx-{'0' * 16}.tmp", f".nnx-{'1' * 16}.tmp", ".nnx-notes.tmp"))
    for path in (left, young, other):
        path.write_bytes(b"half")
    for path in (left, other):
        os.utime(path, (0, 0))
    host.ran(*WRITES["convert"], cwd=here)
    assert sorted(contents(here / "out")) == [young.name, other.name, "a.nnx"]


RUN = ("run", "dense.nnx", "--random", "1", "--backend", "native", "--output", "out/a.npz")


def test_a_kill_at_any_moment_leaves_a_cache_that_works(host: Host, here: Path) -> None:
    host.ran(*RUN, cwd=here)
    want = contents(here / "out")
    for _ in moments(host, here, "codegen/cache.py", 4, *RUN, NNX_CACHE=str(here / "cache")):
        pass
    found = host.ran(*RUN, cwd=here, env={"NNX_CACHE": str(here / "cache")})
    assert found.code == ExitCode.GOOD and contents(here / "out") == want


def spoilt(folder: Path, how: str) -> None:
    """Do something to each entry of a cache, or to the cache."""
    for p in (folder / "objects").iterdir():
        data = p.read_bytes()
        if how == "altered":
            p.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
        else:
            p.write_bytes(data[:int(len(data) * float(how))])


@pytest.mark.parametrize("how", ["altered", "0", "0.5", "0.99"])
def test_a_cache_that_is_not_what_was_written_is_made_again(how: str, host: Host, here: Path) -> None:
    env = {"NNX_CACHE": str(here / "cache")}
    host.ran(*RUN, cwd=here, env=env)
    want, entries = contents(here / "out"), contents(here / "cache")
    assert entries
    spoilt(here / "cache", how)
    assert host.ran(*RUN, cwd=here, env=env).code == ExitCode.GOOD
    assert contents(here / "out") == want and contents(here / "cache").keys() == entries.keys()


PLACES: dict[str, dict[str, Any]] = {
    "no home": {"unset": ("HOME", "XDG_CACHE_HOME", "NNX_CACHE")},
    "a home that is not there": {"unset": ("NNX_CACHE", "XDG_CACHE_HOME"), "env": {"HOME": "/proc/none"}},
    "none": {"env": {"NNX_CACHE": "0"}}, "one in a device": {"env": {"NNX_CACHE": os.devnull}},
    "one in what is no folder": {"env": {"NNX_CACHE": "dense.nnx"}},
    "one where nothing can be made": {"env": {"NNX_CACHE": "/proc/none"}},
    "one that cannot be written": {"env": {"NNX_CACHE": "cache"}, "fails": ("os:open", errno.EROFS, os.O_CREAT)},
    "a disk that is full": {"env": {"NNX_CACHE": "cache"}, "fails": ("os:fdopen", errno.ENOSPC, "wb")}}


@pytest.mark.parametrize("place", PLACES)
def test_a_cache_is_not_needed(place: str, host: Host, here: Path) -> None:
    found = host.ran(*RUN, cwd=here, **PLACES[place])
    assert (found.code, found.said) == (ExitCode.GOOD, "")
    assert (here / "out" / "a.npz").is_file()


def test_processes_that_compile_the_same_model_at_once_do_no_harm(host: Host, here: Path) -> None:
    args = ("run", OTHER, "--random", "1", "--backend", "native", "--output")
    children = [host.begun(*args, f"out/{n}.npz", cwd=here, env={"NNX_CACHE": str(here / "cache")}) for n in range(3)]
    found = [c.ended() for c in children]
    assert [f.code for f in found] == [ExitCode.GOOD] * 3 and not any(f.said for f in found)
    assert len(set(contents(here / "out").values())) == 1
    cache = here / "cache" / "objects"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700 and not [*cache.glob(".*")]


@pytest.mark.parametrize("args", [("dense.nnx",), ("dense.nnx", "--json"), ("--help",), ("ops",),
                                  ("inspect", "dense.nnx", "--ops"), ("absent.tflite",)], ids=" ".join)
@pytest.mark.parametrize("faults", [{"stdout": "/dev/full"}, {"closed": (0,)}, {"closed": (1,)}, {"closed": (2,)},
                                    {"closed": (0, 1, 2)}, {"err": "/dev/full"}], ids=str)
def test_streams_that_are_shut_or_full_are_no_fault_of_the_program(args: tuple[str, ...], faults: dict[str, Any],
                                                                   host: Host, here: Path) -> None:
    fails = args == ("absent.tflite",)
    found = host.ran(*args, cwd=here, **faults)
    if "stdout" in faults and not fails:
        assert (found.code, found.line) == (ExitCode.USAGE, "NNX501 stdout: cannot be written: No space left on device")
    else:
        assert found.code == (ExitCode.UNREADABLE if fails else ExitCode.GOOD)
        assert found.said.startswith("NNX101 absent.tflite: ") if fails and found.said else not found.said


@pytest.mark.parametrize("option", [("-o", "/dev/full"), ("--emit", "html:/dev/full")])
def test_a_device_that_is_full_is_one_line(option: tuple[str, str], host: Host, here: Path) -> None:
    found = host.ran(MODEL, "-o", "out/a.nnx", *option, cwd=here)
    assert (found.code, found.line) == (ExitCode.USAGE, "NNX501 /dev/full: cannot be written: No space left on device")


def test_files_do_not_get_the_number_of_a_stream_that_is_shut(host: Host, here: Path) -> None:
    host.ran(*WRITES["convert"], cwd=here)
    want = contents(here / "out")
    host.ran(*WRITES["convert"], cwd=here, closed=(0, 1, 2))
    assert contents(here / "out") == want


def test_a_fault_of_the_host_is_not_that_of_the_next_test(host: Host, here: Path) -> None:
    with pytest.raises(ValueError):                # no answer
        host.asked("wait", os.getpid())            # no child of its own, which ends it
    assert host.ran("ops", cwd=here).code == ExitCode.GOOD
