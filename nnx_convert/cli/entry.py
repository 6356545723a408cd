"""How the command begins and how it ends: a fault is one line on stderr and an exit code of `ExitCode`."""
from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from ..errors import ExitCode, NnxError, Notice, RunError, UsageError
from ..runtime.forks import NO_THREAD
from . import screen, streams
from .commands import commands
from .group import USUAL
from .options import Work
from .screen import complain, quiet_stdout
from .stopping import SAID, SHELL

#: What a system says that has no more of something.
EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EAGAIN, errno.EIO)
#: Bytes of addresses that work takes at least: NumPy, and the room that its BLAS asks for.
LEAST = 192 << 20
#: What a shell calls the end by Ctrl-C.
INTERRUPTED = SHELL + signal.SIGINT


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process."""
    streams.speaking()
    if not os.environ.get("NNX_DEBUG"):
        import warnings
        warnings.simplefilter("ignore")            # what NumPy warns of is in the numbers; stderr is for faults
        warnings.simplefilter("always", Notice)
        warnings.showwarning = lambda message, *_, **__: screen.notice(str(message))
    if args is None:                               # this process ends here: before cycles add up,
        gc.disable()
    code = ended(None if args is None else list(args))
    if args is None:                               # and without one more search for them
        gc.freeze()
    sys.exit(written() or code)


def written() -> int:
    """Have all that was printed written; the exit code that says whether that was possible."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        quiet_stdout()                             # who reads has seen enough
    except NnxError as error:
        return complain(error)
    return ExitCode.GOOD


def ended(args: list[str] | None) -> int:
    """Run the command; the exit code."""
    token = screen.volume.set(screen.Volume.NORMAL)
    try:
        roomy()
        found: Work | int | None = commands.main(args, prog_name=screen.COMMAND, standalone_mode=False)
        return int((found() if callable(found) else found) or ExitCode.GOOD)
    except BrokenPipeError:
        return written()
    except (KeyboardInterrupt, click.Abort):
        complain(SAID["SIGINT"])
        return INTERRUPTED
    except Exception as error:
        return failed(error)
    finally:
        screen.volume.reset(token)


def roomy() -> None:
    """Raise `RunError` where NumPy's libraries would end the process while they are loaded, for lack of addresses."""
    with suppress(ImportError):
        import resource
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY and most < LEAST:
            raise RunError(f"addresses are limited to {most:,} bytes, and work takes {LEAST:,}", hint="see ulimit -v")


def helpful(error: click.ClickException) -> str:
    """The command whose help tells of what was not understood; the one that need not be named goes without its name."""
    context = getattr(error, "ctx", None)
    return screen.COMMAND if context is None else str(context.command_path).removesuffix(f" {USUAL}")


def failed(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, NnxError):
        return complain(error)
    if isinstance(error, click.ClickException):
        return complain(UsageError(error.format_message(), hint=f"see {helpful(error)} --help"))
    if isinstance(error, MemoryError):
        return complain(RunError("out of memory"))
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return complain(RunError("the system starts no more threads", hint="--threads 1 needs none"))
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        return complain(RunError(f"the system gives no more: {error.strerror}", os.fsdecode(error.filename or "")))
    if os.environ.get("NNX_DEBUG"):
        raise error
    return complain(f"internal error, please report it: {type(error).__name__}: {error} (NNX_DEBUG=1 shows where)")
