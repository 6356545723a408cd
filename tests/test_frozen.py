"""Values behave as frozen dataclasses do."""
from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from nnx_convert.frozen import frozen


@frozen
class Ours:
    """Two fields."""

    a: int
    b: tuple[int, ...] = field(default=())
    aside: object = field(default=None, compare=False, repr=False)

    @property
    def first(self) -> int:
        """The first of b."""
        return self.b[0]


@dataclass(frozen=True)
class Theirs:
    """The same."""

    a: int
    b: tuple[int, ...] = ()
    aside: object = field(default=None, compare=False, repr=False)


@frozen
class One(Ours):
    """One more."""

    c: str = "c"


@frozen
class Single:
    """A single field, which is no number."""

    a: tuple[int, ...]


@pytest.mark.parametrize("given", [(1,), (1, (2, 3)), (2, (), "x")])
def test_values_are_as_dataclasses_are(given: Any) -> None:
    ours = Ours(*given)
    theirs: Any = Theirs(*given)
    assert repr(ours).replace("Ours", "Theirs") == repr(theirs) and hash(ours) == hash(theirs)
    assert is_dataclass(ours) and [f.name for f in fields(ours)] == ["a", "b", "aside"]
    assert replace(ours, aside=[1]) == ours
    assert ours == Ours(*given) and ours != theirs and ours != One(*given) and ours != replace(ours, a=7)
    assert {ours: 1}[Ours(*given)] == 1 and pickle.loads(pickle.dumps(ours)) == ours


def test_one_field_is_a_value_too() -> None:
    assert Single((1, 2)) == Single((1, 2)) != Single((1,)) and repr(Single((1,))) == "Single(a=(1,))"
    assert len({Single((1, 2)), Single((1, 2))}) == 1


def test_a_class_may_have_more_fields_than_the_one_it_is_made_of() -> None:
    assert repr(One(1, (4,))) == "One(a=1, b=(4,), c='c')" and One(1, (4,)).first == 4 and One(1) != One(1, c="d")


@pytest.mark.parametrize("kind", [Ours, Theirs, One])
@pytest.mark.parametrize("name", ["a", "b", "aside", "other", "first"])
def test_nothing_of_a_value_can_be_set_or_taken_away(kind: Any, name: str) -> None:
    value = kind(1, aside=[2])
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, 3)
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)
    assert value == kind(1) and value.aside == [2]


@frozen
class Held:
    """A list of its own, and what follows from it."""

    a: int
    rest: list[int] = field(default_factory=list)
    whole: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", self.a + sum(self.rest))


def test_a_value_has_a_list_of_its_own_and_what_follows_from_its_fields() -> None:
    one, other = Held(1), Held(1)
    assert one.rest == [] and one.rest is not other.rest and one == other
    assert Held(1, [2, 3]).whole == replace(one, rest=[5]).whole == 6
    assert Held(a=1, rest=[1]) == Held(1, rest=[1]) != one


@frozen(eq=False)
class Itself:
    """Compared by which it is."""

    a: int


def test_a_value_may_be_equal_to_itself_alone() -> None:
    one = Itself(1)
    assert one in [one] and one != Itself(1) and len({one, Itself(1)}) == 2 and repr(one) == "Itself(a=1)"
    with pytest.raises(FrozenInstanceError):
        one.a = 2                                # type: ignore[misc]


@pytest.mark.parametrize(("args", "named"), [
    ((), {}), ((1, (), None, 4), {}), ((1,), {"a": 1}), ((1,), {"c": 1}), ((), {"b": ()}), ((1, ()), {"b": (), "c": 3}),
    ((), {"aside": 1, "c": 2})])
def test_what_no_function_of_these_arguments_takes_is_refused(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*args, **named)


def test_arguments_are_shown_as_those_of_a_dataclass() -> None:
    ours, theirs = inspect.signature(Ours).parameters, inspect.signature(Theirs).parameters
    assert [(p.name, p.default, p.annotation) for p in ours.values()] == [
        (p.name, p.default, p.annotation) for p in theirs.values()]
    assert [p.default for p in inspect.signature(Held).parameters.values()] == [inspect.Parameter.empty, []]
