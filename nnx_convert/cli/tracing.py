"""`--trace-passes`: what each rule of lowering did to which operation, and why a rule left one alone."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .screen import complain

if TYPE_CHECKING:
    from ..lowering.rewrite import Event


@contextmanager
def told(wanted: bool, report: str) -> Iterator[list[Event] | None]:
    """A list for the events of what is done meanwhile; without --json they are lines on stderr, however that ends."""
    events: list[Event] | None = [] if wanted else None
    try:
        yield events
    finally:
        for e in events or () if report == "text" else ():
            complain(f"{e.step}: {e}")


def as_json(events: Sequence[Event] | None) -> dict[str, Any]:
    """The events as a part of a report; nothing where they were not asked for."""
    return {} if events is None else {"trace": [
        {"pass": e.step, "rule": e.rule, "origin": str(e.at), "operation": e.op, "did": e.did, "why": e.why or None}
        for e in events]}
