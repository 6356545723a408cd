"""Object code that is kept: found again, made anew where it is not what was written, private, bounded."""
from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from natively import AVX2, host

from nnx_convert.runtime.codegen import cache, machine
from nnx_convert.runtime.codegen.cache import Cache, key, user_cache
from nnx_convert.runtime.codegen.ir import Function, Module
from nnx_convert.runtime.codegen.loader import Loaded
from nnx_convert.runtime.codegen.machine import AVX512, BASELINE, DOTPROD, told
from nnx_convert.runtime.codegen.objects import Library, Linked, apart, compiled, together

#: Whether this is a machine that needs no compiler to be known, nor to load what is compiled.
KNOWN = sys.platform == "linux" and host().x86
DATA = bytes(range(256)) * 40


@pytest.fixture
def kept(tmp_path: Path) -> Cache:
    """A cache with one entry."""
    found = Cache(tmp_path / "new" / "objects")
    found.keep("a", DATA)
    return found


def entry(kept: Cache) -> Path:
    """The file of the entry."""
    return kept.folder / "a"


def test_what_is_kept_is_found_by_its_key(kept: Cache) -> None:
    assert kept.find("a") == DATA and kept.find("b") is None
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700 and stat.S_IMODE(entry(kept).stat().st_mode) == 0o600
    assert os.listdir(kept.folder) == ["a"]


SPOILT: dict[str, Callable[[Path], object]] = {
    "cut": lambda p: p.write_bytes(p.read_bytes()[:-1]), "empty": lambda p: p.write_bytes(b""),
    "altered": lambda p: p.write_bytes(p.read_bytes()[:-1] + b"\0"),
    "another version's": lambda p: p.write_bytes(p.read_bytes().replace(b"-2\n", b"-1\n", 1)),
    "open to others": lambda p: p.chmod(0o620), "in an open folder": lambda p: p.parent.chmod(0o777),
    "a link": lambda p: p.rename(p.with_name("b")).parent.joinpath("a").symlink_to("b"),
    "a folder": lambda p: (p.unlink(), p.mkdir()), "a pipe": lambda p: (p.unlink(), os.mkfifo(p)),
    "in a folder that is a link": lambda p: p.parent.rename(p.parent.with_name("b")).parent.joinpath(
        "objects").symlink_to("b")}


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_not_as_it_was_written_is_not_found(how: str, kept: Cache) -> None:
    SPOILT[how](entry(kept))
    assert kept.find("a") is None


def test_what_was_cut_is_written_again(kept: Cache) -> None:
    entry(kept).write_bytes(b"nothing")
    kept.keep("a", DATA)
    assert kept.find("a") == DATA


def test_what_belongs_to_somebody_else_is_not_used(kept: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: entry(kept).stat().st_uid + 1)
    assert kept.find("a") is None
    kept.keep("b", DATA)
    assert os.listdir(kept.folder) == ["a"]


def test_those_not_used_for_longest_go(tmp_path: Path) -> None:
    kept = Cache(tmp_path, limit=35_000)
    for n, name in enumerate("abc"):
        kept.keep(name, DATA)
        os.utime(tmp_path / name, (n, n))
    (tmp_path / ".left.tmp").write_bytes(b"")
    os.utime(tmp_path / ".left.tmp", (0, time.time() - 2 * cache.ABANDONED))
    (tmp_path / ".busy.tmp").write_bytes(b"")
    assert kept.find("a") == DATA                # which makes it the one used last
    kept.keep("d", DATA)
    assert sorted(os.listdir(tmp_path)) == [".busy.tmp", "a", "d"]


def test_many_write_and_read_at_once(tmp_path: Path) -> None:
    kept = Cache(tmp_path, limit=60_000)

    def work(n: int) -> bool:
        for i in range(20):
            kept.keep(f"{(n + i) % 8}", DATA)
            if kept.find(f"{i % 8}") not in (None, DATA):
                return False
        return True
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 60_000


@pytest.mark.parametrize("folder", ["file/objects", "a\0b"])
def test_a_place_that_takes_nothing_is_no_error(folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = Cache(tmp_path / folder)
    kept.keep("a", DATA)
    assert kept.find("a") is None


@pytest.mark.parametrize(("platform", "given", "folder"), [
    ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/nnx_convert/objects"), ("linux", {"HOME": "/h"},
                                                                   "/h/.cache/nnx_convert/objects"),
    ("linux", {"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/nnx_convert/objects"),
    ("darwin", {"HOME": "/h"}, "/h/Library/Caches/nnx_convert/objects"),
    ("win32", {"LOCALAPPDATA": "/l"}, "/l/nnx_convert/objects"), ("win32", {}, None),
    ("linux", {"NNX_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c/objects"), ("linux", {"NNX_CACHE": "0"}, None),
    ("linux", {"NNX_CACHE": ""}, None)])
def test_the_user_says_where(platform: str, given: dict[str, str], folder: str | None,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NNX_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    found = user_cache()
    assert (found and str(found.folder)) == folder


def test_no_home_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("no home")
    monkeypatch.delenv("NNX_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert user_cache() is None


def test_a_key_tells_its_parts_apart() -> None:
    keys = [key(parts) for parts in (["ab"], ["a", "b"], ["a"], ["b", "a"], [])]
    assert len(set(keys)) == len(keys) and key(["a", "b"]) == keys[1]


def test_objects_are_taken_apart_as_they_were_joined() -> None:
    for images in ((b"a",), (b"", b"bc", DATA)):
        assert apart(together(images)) == images


def test_linux_tells_what_llvm_finds(tmp_path: Path) -> None:
    import llvmlite.binding as llvm
    there = {name for name, found in llvm.get_host_cpu_features().items() if found}
    used = AVX2 | AVX512 | BASELINE | {"avx512vnni", "avxvnni", "amx-tile", "amx-int8", *machine.USED.values()}
    if KNOWN:
        assert host().features & used == there & used and host().features <= there
        assert host().triple == llvm.get_process_triple()
    (tmp_path / "cpuinfo").write_text("processor: 0\nflags\t\t: fpu pni avx512_vnni amx_tile never_heard_of\n")
    assert told(str(tmp_path / "cpuinfo")) == {"sse3", "avx512vnni", "amx-tile"}
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd asimddp sve\n")
    assert told(str(tmp_path / "cpuinfo")) == DOTPROD
    assert told(str(tmp_path / "nothing")) is None


TWICE = """
import sys
sys.path[:0] = {paths}
from natively import net
from nnx_convert import CompiledModel
from nnx_convert.runtime.codegen import program
if {warm}:
    program.segments = None
made = net()
print(CompiledModel(made.model, backend="native", threads=1).run(made.given)[0].tobytes().hex())
assert not ({known} and {warm}) or "llvmlite" not in sys.modules
"""


def test_a_second_process_makes_nothing(tmp_path: Path) -> None:
    paths = [p for p in sys.path if p] + [str(Path(__file__).parent)]

    def run(warm: bool) -> str:
        text = TWICE.format(paths=paths, warm=warm, known=KNOWN)
        done = subprocess.run([sys.executable, "-c", text], env=os.environ | {"NNX_CACHE": str(tmp_path)},
                              capture_output=True, text=True, check=False, timeout=60)
        assert not done.returncode, done.stderr
        return done.stdout
    want = run(warm=False)
    assert len(want) > 1000 and run(warm=True) == want
    for path in (tmp_path / "objects").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    assert run(warm=False) == want and run(warm=True) == want



def in_parts(count: int) -> tuple[bytes, ...]:
    """Functions that call each other around, each 1,000 more than the next, in so many object files."""
    m = Module(host())
    for n in range(6):
        f = Function(m, f"f{n}", (("i64", "%x"),), exported=n == 0)
        for _ in range(1000):
            f.let("add i64 %x, 1")               # text, which makes it worth a module of its own
        more = f.let(f"call i64 @f{n + 1}(i64 %x)") if n < 5 else "%x"
        f.finish(f"i64 {f.let(f'add i64 {more}, {10 ** n}')}")
    texts = m.texts(count)
    assert len(texts) == (1 if count == 1 else min(count, 2))
    return compiled(texts, host())


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("kind", [Library, Linked])
def test_functions_of_several_objects_call_each_other(kind: type, count: int) -> None:
    library = kind(in_parts(count), ("f0",), host())
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("f0"))(7) == 111118


def test_what_is_no_object_file_is_refused() -> None:
    with pytest.raises(ValueError, match="no object file"):
        Loaded([b"\x7fELF" + bytes(100)])
    with pytest.raises(RuntimeError):
        compiled(["define void @f() { ret i64 }", "nothing"], host())


@pytest.mark.parametrize("failing", ["open", "replace", "fdopen"])
def test_a_disk_that_takes_no_more_keeps_nothing(failing: str, kept: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A file that takes a part of what is written."""

        def __init__(self, handle: int, _: str) -> None:
            self._handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self._handle)

        def writelines(self, parts: tuple[bytes, ...]) -> None:
            os.write(self._handle, parts[0])
            raise OSError(errno.ENOSPC, "no space left")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "read-only")
    monkeypatch.setattr(Path if failing == "replace" else os, failing, Full if failing == "fdopen" else refuse)
    kept.keep("b", DATA)
    monkeypatch.undo()
    assert os.listdir(kept.folder) == ["a"] and kept.find("a") == DATA


WRITER = """
import sys
sys.path[:0] = {paths}
from pathlib import Path
from nnx_convert.runtime.codegen.cache import Cache
kept = Cache(Path({folder!r}), limit=60_000)
for n in range(200):
    name = str((n * {step}) % 8)
    kept.keep(name, (name * 10_000).encode())
    assert kept.find(name) in (None, (name * 10_000).encode())
"""


def test_processes_write_and_read_at_once(tmp_path: Path) -> None:
    paths = [p for p in sys.path if p]
    running = [subprocess.Popen([sys.executable, "-c", WRITER.format(paths=paths, folder=str(tmp_path), step=step)])
               for step in (1, 3, 5)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 60_000
