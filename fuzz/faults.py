"""Faults: their kinds, the limits that are kept, and how an input is run under them in this process."""
from __future__ import annotations

import faulthandler
import resource
import signal
import traceback
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

import nnx_convert
from nnx_convert.errors import NnxError

from .targets import Different, Target

#: Seconds of processor time that an input may take, and after which a process ends that no exception reaches.
SECONDS, LAST = 5.0, 60.0
#: What a user may set lower, so that small files cannot ask for much; what is beyond is refused before it is allocated.
LIMITS = {"tensor_bytes": 1 << 28, "total_bytes": 1 << 29, "folding_bytes": 1 << 26, "folding_macs": 1 << 28,
          "rounds": 1 << 16, "loop_seconds": 1.0}
#: Bytes that the process may map, and that it may have resident.
MAPPED, RESIDENT = 6 << 30, 2 << 30


class Hang(BaseException):
    """An input that took longer than it may; no handler of the code that is run catches it."""


@dataclass(frozen=True)
class Fault:
    """A fault: its kind, the innermost place in our package, what is said, and the traceback."""

    kind: str
    place: str
    text: str
    trace: str = ""

    @property
    def key(self) -> str:
        """What is the same of two findings of one fault."""
        return f"{self.kind} {self.place}"


def limited() -> None:
    """Keep this process within its memory, and let a signal that ends it say where it was."""
    resource.setrlimit(resource.RLIMIT_AS, (MAPPED, MAPPED))
    faulthandler.enable()
    faulthandler.register(signal.SIGVTALRM, chain=True)


def fault(target: Target, data: bytes, seconds: float = SECONDS) -> Fault | None:
    """Run a target on a file; what is wrong, None where it gives a result or an `NnxError` in time."""
    before = signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, LAST)  # native code that does not end hears of no exception
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"), nnx_convert.limited(**LIMITS):
            target.run(data)
    except NnxError as error:
        return None if error.text else Fault("silent", type(error).__name__, "an error without words")
    except (Exception, Hang) as error:
        return _told(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGPROF, before)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 > RESIDENT:
        return Fault("memory", target.name, f"more than {RESIDENT >> 20} MB resident")
    return None


def _ring(_: int, __: FrameType | None) -> Any:
    raise Hang


def _told(error: BaseException) -> Fault:
    """A fault from what was raised; of a hang, where it was does not say which one it is."""
    home = nnx_convert.__path__[0]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(home)]
    inner = frames[-1] if frames else None
    place = f"{inner.filename.removeprefix(home + '/')}:{inner.name}" if inner else "nowhere"
    place = error.place if isinstance(error, Different) else place
    kind = {Hang: "hang", Different: "different"}.get(type(error), type(error).__name__)
    text = "".join(traceback.format_exception(error))
    said = str(error) if isinstance(error, Exception) else "more processor time than an input may take"
    return Fault(kind, place, said[:300], text)
