"""What a list holds, in words."""
from __future__ import annotations

import pytest

from nnx_convert.contents import Contents, contents


@pytest.mark.parametrize(("text", "want"), [
    ("float32", "float32"), ("bfloat16", "bfloat16"), ("sequence(int4)", Contents("sequence", ("int4",))),
    ("optional(sequence(object))", Contents("optional", (Contents("sequence", ("object",)),))),
    ("sequence(map(object,float32))", Contents("sequence", (Contents("map", ("object", "float32")),)))])
def test_words_are_read_and_written(text: str, want: Contents | str) -> None:
    assert contents(text) == want and str(want) == text


@pytest.mark.parametrize("text", [
    "", "float", "sequence", "sequence()", "sequence(float32", "sequence(float32))", "sequence float32", "map(int64)",
    "map(int64,float32,bool)", "list(float32)", "sequence(float32) ", " float32", "sequence(" * 99 + "bool" + ")" * 99])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no type"):
        contents(text)
