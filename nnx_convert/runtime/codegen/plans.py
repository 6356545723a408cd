"""What was found out about a program when it was compiled before: answers that take longer to find than to read.

They are kept beside the object code, all of a program's in one entry. An answer is known by a hash of its whole
question, so that the program's name only has to lead to the right entry most of the time.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b

from .cache import Cache, key, user_cache
from .objects import apart, together

#: Answers of the program that is compiled in this thread, those found now among them; None outside of `recalling`.
_known: ContextVar[dict[bytes, bytes] | None] = ContextVar("known", default=None)


@contextmanager
def recalling(program: Iterable[str]) -> Iterator[None]:
    """Within it, `recalled` remembers what it found for this program; what is new is kept at the end."""
    there = user_cache()
    name = None if there is None else key(("plans", *program))
    known = {} if there is None or name is None else _read(there, name)
    before, mark = len(known), _known.set(known)
    try:
        yield
    finally:
        _known.reset(mark)
    if there is not None and name is not None and len(known) > before:
        there.keep(name, together([part for pair in known.items() for part in pair]))


def _read(there: Cache, name: str) -> dict[bytes, bytes]:
    data = there.find(name)
    parts = () if data is None else apart(data)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def recalled(question: Iterable[bytes], find: Callable[[], bytes]) -> bytes:
    """The answer to a question that is all in these bytes: as it was found before, else as `find` gives it."""
    known = _known.get()
    if known is None:
        return find()
    asked = blake2b(together(list(question)), digest_size=24).digest()
    if asked not in known:
        known[asked] = find()
    return known[asked]
