"""A browser without a screen, for pages: Chromium, driven by Playwright; what is missing of it here."""
from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATH = next(filter(None, map(shutil.which, PROGRAMS)), None)
MISSING = (*(["chromium"] if PATH is None else []), *(["playwright"] if find_spec("playwright") is None else []))
#: It needs no sandbox of its own, draws without a screen, and asks nothing of the network.
OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic", "--disable-background-networking",
           "--disable-component-update", "--disable-sync")


@contextmanager
def browser() -> Iterator[Browser]:
    """One that runs, for as long as it is needed."""
    from playwright.sync_api import sync_playwright
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=PATH, args=list(OPTIONS))
        yield found
        found.close()
