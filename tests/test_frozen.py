"""Values behave as frozen dataclasses do."""
from __future__ import annotations

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
