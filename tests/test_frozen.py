"""Classes of fields are what the standard library makes of the same declarations."""
from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from nnx_convert import frozen

MAKERS: dict[str, Callable[..., Any]] = {"standard": dataclasses.dataclass, "ours": frozen.dataclass}


def several(maker: Callable[..., Any]) -> list[Any]:
    """Classes by one of both: frozen or not, compared or not, with all that a field may be and methods of their own."""
    @maker(frozen=True)
    class Point:
        """Two numbers and a note."""

        x: int
        y: int = 2
        note: str = field(default="", compare=False)
        inner: list[int] = field(default_factory=list, compare=False, repr=False)

    @maker(frozen=True)
    class One:
        """One value."""

        value: Any

    @maker(frozen=True, eq=False)
    class Other:
        """Equal to itself alone."""

        x: int = 0

    @maker
    class Open:
        """Changes."""

        x: int
        more: dict[str, int] = field(default_factory=dict)
        double: int = field(init=False)
        same: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            self.double = 2 * self.x

    @maker(frozen=True)
    class Own:  # noqa: PLW1641  (the decorator makes it)
        """Its own methods."""

        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    @maker(frozen=True)
    class Nested(Point):
        """One field more."""

        last: Any = None

    @maker(frozen=True)
    class Empty:
        """Nothing."""
    return [Point, One, Other, Open, Own, Nested, Empty]


BOTH = list(zip(*map(several, MAKERS.values()), strict=True))
ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((1,), {}), ((1, 3), {}), ((2,), {"note": "n"}), ((1,), {"note": "other"}), ((1, 2, "", [4]), {}),
    (((1, 2),), {}), ((1,), {"z": 1}), ((1, 2, "", [], 7, 8), {}), ((1,), {"last": 3}), ((1,), {"x": 2})]


def outcome(ask: Callable[[], Any]) -> Any:
    """What something gives, or the error it raises."""
    try:
        return ask()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def changed(value: Any, name: str) -> tuple[Any, Any]:
    """What becomes of setting an attribute and of deleting it."""
    return outcome(lambda: setattr(value, name, 1)), outcome(lambda: delattr(value, name))


@pytest.mark.parametrize(("theirs", "ours"), BOTH, ids=[c.__name__ for c, _ in BOTH])
def test_all_is_as_the_standard_library_has_it(theirs: Any, ours: Any) -> None:
    made = [[(outcome(lambda c=c, a=a, k=k: c(*a, **k))) for a, k in ARGUMENTS] for c in (theirs, ours)]
    assert list(map(repr, made[0])) == list(map(repr, made[1]))
    there = [[v for v in row if not isinstance(v, tuple)] for row in made]
    pairs = [[[a == b for b in row] for a in row] for row in there]
    assert pairs[0] == pairs[1] and there[0]
    hashes = [[outcome(lambda v=v: hash(v)) for v in row] for row in there]
    assert theirs.__eq__ is object.__eq__ or hashes[0] == hashes[1]
    assert there[1][0] != there[0][0] or theirs.__name__ == "Own"
    for want, found in zip(*there, strict=True):
        assert dataclasses.asdict(want) == dataclasses.asdict(found) and want.__dict__ == found.__dict__
        for name in (*want.__dict__, "absent"):
            assert changed(want, name) == changed(found, name)
    assert [f.name for f in dataclasses.fields(theirs)] == [f.name for f in dataclasses.fields(ours)]
    assert theirs.__init__.__annotations__ == ours.__init__.__annotations__
    assert theirs.__match_args__ == ours.__match_args__ and ours.__init__.__module__ == __name__


@frozen.dataclass(frozen=True)
class Kept:
    """What is pickled, and refers to itself."""

    x: int
    others: list[Any] = field(default_factory=list)


def test_values_are_replaced_pickled_and_told() -> None:
    kept = Kept(1, [2])
    assert replace(kept, x=3) == Kept(3, [2]) and pickle.loads(pickle.dumps(kept)) == kept
    assert Kept(1).others is not Kept(1).others
    kept.others.append(kept)
    assert repr(kept) == "Kept(x=1, others=[2, ...])"
    with pytest.raises(FrozenInstanceError):
        kept.x = 2  # type: ignore[misc]
    match Kept(4, []):
        case Kept(x, _):
            assert x == 4
