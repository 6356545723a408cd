"""The command as a process with a fault of its machine: forked off one that has imported it, which takes milliseconds.

`Host` is for tests; `serve` is what its process does. A fault is set up in the child, before the command begins.
"""
from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from scarce import addresses

ROOT = Path(__file__).resolve().parent.parent
#: What a process that begins has imported by the time that it works.
IMPORTED = ("cli.entry", "cli.converting", "cli.running", "cli.verifying", "cli.timing", "cli.recording", "page",
            "emit.ndk", "cli.exporting", "cli.device", "frontends.tflite", "runtime.codegen.program", "aot")
#: Seconds after which a child is taken to hang.
HANGS = 100.0


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (less than 0: a signal's), what it said, its processor seconds after `since`."""

    code: int
    out: str
    said: str
    seconds: float

    @property
    def line(self) -> str:
        """What it said, in one line without the end of line."""
        assert self.said.count("\n") == 1 and self.said.endswith("\n"), self.said
        return self.said[:-1]


@dataclass
class Child:
    """A command at work."""

    host: Host
    pid: int
    files: tuple[Path, Path]
    since: float = 0.0

    def reached(self, mark: Path) -> None:
        """Wait until it is where a `mark` was set."""
        end = time.monotonic() + HANGS
        while not mark.exists():
            assert time.monotonic() < end, self.ended(signal.SIGKILL)
            time.sleep(0.005)

    def ended(self, by: signal.Signals | None = None) -> Ended:
        """How it ends, by a signal or by itself."""
        if by is not None:
            self.since = spent(self.pid)
            os.kill(self.pid, by)
        code, seconds = self.host.asked("wait", self.pid)
        out, said = (p.read_text(encoding="utf-8") for p in self.files)
        return Ended(code, out, said, seconds - self.since)


def spent(pid: int) -> float:
    """The processor seconds of a process up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Host:
    """The process that children are forked off. One that has ended, or owes an answer, is replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._process: subprocess.Popen[str] | None = None

    def asked(self, what: str, value: object) -> Any:
        """An answer of its process."""
        self._process = self._process or started()
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps([what, value]), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except BaseException:                      # a late answer would be taken for that of the next test
            self.close()
            raise

    def begun(self, *args: str, cwd: Path, **faults: Any) -> Child:
        """A command that is at work; faults by the name of what sets them up, below."""
        self._count += 1
        out, err = (self._folder / f"{self._count}.{n}" for n in ("out", "err"))
        own = {"cwd": str(cwd), "args": args, "err": str(err)}
        for path in (out, err):
            path.touch()
        pid = self.asked("start", own | {"stdout": str(out)} | faults)
        return Child(self, pid, (out, err))

    def ran(self, *args: str, cwd: Path, **faults: Any) -> Ended:
        """A command that has ended."""
        return self.begun(*args, cwd=cwd, **faults).ended()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def started() -> subprocess.Popen[str]:
    """A process that serves."""
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    return subprocess.Popen([sys.executable, "-c", "import faulty; faulty.serve()"], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths})


def serve() -> None:
    """Start children as stdin says, and say how they end."""
    for name in IMPORTED:
        import_module(f"nnx_convert.{name}")
    import_module("llvmlite.binding")
    with redirect_stdout(StringIO()):              # what is found out once in a process is known to its children
        entry: Any = import_module("nnx_convert.cli.entry")
        entry.ended([str(ROOT / "models" / "digits_cnn.tflite"), "-o", os.devnull, "--emit", f"html:{os.devnull}"])
    for line in sys.stdin:
        what, value = json.loads(line)
        if what == "start":
            answer: Any = os.fork()
            if not answer:
                child(value)
        else:
            answer = ends(value)
        print(json.dumps(answer), flush=True)


def ends(pid: int) -> tuple[int, float]:
    """The exit code and the processor seconds of a child; one that hangs is killed."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    _, status, used = os.wait4(pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def heard() -> None:
    """Signals do what they do at first, also where the tests run in the background, which has some of them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def child(asked: Mapping[str, Any]) -> None:
    """The command, with what is asked for."""
    heard()
    signal.signal(signal.SIGINT, signal.default_int_handler)          # as Python has it when it starts
    os.chdir(asked["cwd"])
    os.environ |= asked.get("env", {})
    for name in asked.get("unset", ()):
        os.environ.pop(name, None)
    for number, path in ((0, os.devnull), (1, asked["stdout"]), (2, asked["err"])):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    for number in asked.get("closed", ()):
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    for name in FAULTS.keys() & asked.keys():
        FAULTS[name](*asked[name])
    sys.argv = ["nnx-convert", *asked["args"]]
    from nnx_convert.cli import main
    main()


def limit(which: str, size: int) -> None:
    """At most so much of something of RLIMIT_*; of memory, so much more than there is."""
    if which == "AS":
        size = addresses(size)
    resource.setrlimit(getattr(resource, f"RLIMIT_{which}"), (size, size))


def fails(where: str, number: int, mode: str | int = "") -> None:
    """A call of the system's fails; of those that open, the ones with this mode or flag."""
    def refuses(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if mode and not (args[1] & mode if isinstance(mode, int) else args[1] == mode):
            return call(*args, **named)
        raise OSError(number, os.strerror(number))
    wrapped(where, refuses)


def marked(where: str, mark: str, slow: float = 0.0) -> None:
    """Say with a file when the command comes by a function; there it may wait."""
    def says(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        Path(mark).touch()
        time.sleep(slow)
        return call(*args, **named)
    wrapped(where, says)


def wrapped(where: str, by: Callable[..., Any]) -> None:
    """Put something around a function of a module, or of a class there."""
    module, _, name = where.partition(":")
    holder: Any = import_module(module)
    *outer, last = name.split(".")
    for part in outer:
        holder = getattr(holder, part)
    call = getattr(holder, last)
    setattr(holder, last, lambda *args, **named: by(call, *args, **named))


def killed(file: str, functions: Sequence[str], count: int) -> None:
    """The process is killed before so many lines of functions in a file are done."""
    left = count

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal left
        if frame.f_code.co_name not in functions or not frame.f_code.co_filename.endswith(file):
            return None
        left -= event == "line"
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)


def threadless() -> None:
    """No thread can be started."""
    def refuses(*_: Any, **__: Any) -> Any:
        raise RuntimeError("can't start new thread")
    wrapped("threading:_start_new_thread", refuses)


def ignored(*names: str) -> None:
    """Signals that the shell has ignored."""
    for name in names:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


FAULTS: dict[str, Callable[..., None]] = {
    "limit": limit, "fails": fails, "marked": marked, "killed": killed, "ignored": ignored,
    "threadless": threadless}
