"""Random models: the two backends agree on them, and with the reference runtime of their format where it is there."""
from __future__ import annotations

import pytest
from fuzz.differential import __main__ as command, judging
from fuzz.differential.engines import installed
from fuzz.differential.models import MODELS, model

#: Models of each format.
COUNT = 24


@pytest.mark.parametrize("form", MODELS)
def test_the_backends_agree_and_with_the_reference_where_it_is_there(form: str) -> None:
    for seed in range(COUNT):
        found = judging.judge(model(form, seed), installed(form))
        assert found.kind not in command.BAD, (seed, found)


@pytest.mark.parametrize("form", MODELS)
def test_a_seed_is_a_recipe(form: str) -> None:
    first, again = model(form, 3), model(form, 3)
    assert first.data == again.data and first.data != model(form, 4).data
    assert {n: a.tobytes() for n, a in first.given.items()} == {n: a.tobytes() for n, a in again.given.items()}
