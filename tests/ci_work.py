"""What may go wrong in the process of an entry; imported there by its name."""
from __future__ import annotations

import os
import signal
import sys
import time

from nnx_convert.ci.outcome import Outcome, Step
from nnx_convert.ci.settings import Entry


def by_name(entry: Entry) -> Outcome:
    """Do what the entry is called: crash, exit, hang, or be good."""
    if entry.name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if entry.name == "exit":
        sys.stdout.flush()
        os._exit(7)
    if entry.name == "hang":
        time.sleep(30)
    return Outcome(entry.name, entry.path, (Step("check", "", str(os.getpid())),))
