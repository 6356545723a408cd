"""Regular expressions of RE2's kind, against the standard library's where that is quick, and where it is not."""
from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, strategies as st

from nnx_convert.runtime.automaton import compiled

PATTERNS = ["", "a", "a*", "(ab|a)(bc|c)?", "[a-c]+[^b]", "a{2,3}b{0,2}", r"\d+\.\d*", r"\w+@\w+\.(com|org)", "(?i)AbC",
            "(?s).*", ".+?c", r"\bab\b.*", "^a.*c$", r"[\s\d]+", "(a|b)*c{2}", "(?:ab)+", r"\Aab*\Z"]
TEXTS = ["", "a", "ab", "abc", "aabb", "aaabb", "abcabc", "ABC", "ab cd", "12.5", "12.", "me@site.com", "me@site.net",
         "a\nc", "c", "bcc", " 1 2", "aaaa", "ababab", "é"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_matches_what_the_standard_library_matches(pattern: str) -> None:
    found = compiled(pattern)
    for text in TEXTS:
        want = re.fullmatch(pattern, text, re.ASCII) is not None
        if not (pattern.endswith("$") and text.endswith("\n")):
            assert found.matches(text) == want, text


@given(st.lists(st.sampled_from(["a", "b", "[ab]", "a*", "b+", "(a|b)", "a?", "(ab)*", "."]), max_size=5),
       st.text("ab", max_size=8))
def test_patterns_put_together(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    assert compiled(pattern).matches(text) == (re.fullmatch(pattern, text) is not None)


def test_what_makes_others_go_back_for_ever_ends() -> None:
    start = time.perf_counter()
    assert not compiled("(a*)*b").matches("a" * 2000)
    assert not compiled("(a|a)*(a|aa)+$b").matches("a" * 300)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(("pattern", "yes", "no"), [
    ("[[:alpha:]_]+", "ab_", "a1"), ("[[:^digit:]]+", "abé", "a1"), ("[^[:space:]]*", "ab", "a b"),
    ("[:alpha:]+", "alph:", "b"), (r"[\[:alpha:]]", "[]", "a"), (r"a\z", "a", "a\n"), ("[]a]+", "]a", "b"),
    (r"\[[:digit:]\]", "[d]", "[1]"), ("(?i)[[:lower:]]+", "AB", "1"), (r"\\[[:digit:]]", "\\1", "1"),
    ("[[:xdigit:][:punct:]]*", "fF0-", "g"), ("(?s)a.b", "a\nb", "ab"), ("a.b", "a b", "a\nb")])
def test_classes_and_ends_are_those_of_re2(pattern: str, yes: str, no: str) -> None:
    found = compiled(pattern)
    assert found.matches(yes) and not found.matches(no)


def test_nothing_repeated_is_nothing() -> None:
    assert compiled("((((){65535}){65535}){65535}){65535}a").matches("a")


@pytest.mark.parametrize("pattern", ["(", "[", r"(a)\1", "(?=a)", "(?<!a)b", "a{9999}{9999}", "(" * 3000, "[[:foo:]]",
                                     "(?x)a", r"\Qa\E", "a++", "((a?){60000}){60000}"])
def test_what_re2_does_not_take_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compiled(pattern)
