"""Texts against Python's own, as constants, fed and in numbers that only a run tells."""
from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from three_ways import WAYS, Node, built, check, n

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, RunError

F = np.float32


def texts(*values: Any) -> np.ndarray:
    """Texts, of one axis or two."""
    return np.array(values, object)


def split(x: list[str], by: str | None, most: int = -1) -> list[np.ndarray]:
    """The parts of texts, filled up, and how many there are."""
    found = [v.split(by, most) for v in x]
    wide = max(map(len, found), default=0)
    return [np.array([row + [""] * (wide - len(row)) for row in found], object).reshape(len(x), wide),
            np.array([len(row) for row in found], np.int64)]


DAYS = texts("Monday", "TUESDAY", "monday", "Ärger", "")
PATHS = ["a/b//c", "", "/", "abc", "é/ü"]
CASES: list[Node] = [
    n("StringConcat", texts("a", "é", ""), texts("1", "2", "3"), want=[texts("a1", "é2", "3")]),
    n("StringConcat", texts(["a"], ["b"]), texts("1", "2"), want=[texts(["a1", "a2"], ["b1", "b2"])]),
    n("StringConcat", texts("a", "b"), np.array("-", object), want=[texts("a-", "b-")]),
    *(n("StringSplit", texts(*PATHS), delimiter="/", maxsplit=m, outputs=2, want=split(PATHS, "/", m))
      for m in (-1, 0, 1, 2)),
    n("StringSplit", texts(" a  b ", "c", " "), outputs=2, want=split([" a  b ", "c", " "], None)),
    n("StringSplit", texts(["a b", "c"]), outputs=2, want=[texts([["a", "b"], ["c", ""]]), np.array([[2, 1]])]),
    n("StringSplit", texts("a--b-c"), delimiter="--", outputs=2, want=split(["a--b-c"], "--")),
    n("StringNormalizer", DAYS, want=[DAYS]),
    n("StringNormalizer", DAYS, case_change_action="LOWER", want=[texts(*(v.lower() for v in DAYS))]),
    n("StringNormalizer", DAYS, case_change_action="UPPER", stopwords=["monday"], locale="en_US",
      want=[texts("TUESDAY", "ÄRGER", "")]),
    n("StringNormalizer", DAYS, stopwords=["monday"], is_case_sensitive=1, want=[texts(*(DAYS[[0, 1, 3, 4]]))]),
    n("StringNormalizer", texts("a", "A"), stopwords=["a"], want=[texts("")]),
    *(n("RegexFullMatch", texts(["ab1", "ab"], ["", "ab\n"]), pattern=p, want=[np.array(
        [[bool(re.fullmatch(p, v)) for v in row] for row in (["ab1", "ab"], ["", "ab\n"])])])
      for p in (r"\w+\d", "(a|b)*", ".*", r"(?s).+", "")),
    n("RegexFullMatch", texts("www.a.org", "wwwa.org"), pattern=r"www\.[[:word:]]+\.\bor\w\z",
      want=[np.array([True, False])])]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_texts(case: Node, way: str) -> None:
    check(case, way)


def test_a_text_alone() -> None:
    one = np.array("a b", object)
    check(n("StringSplit", one, outputs=2, want=[texts("a", "b"), np.array(2)]), "fed")
    check(n("RegexFullMatch", one, pattern="a.b", want=[np.array(True)]), "fed")
    check(n("StringConcat", one, one, want=[np.array("a ba b", object)]), "fed")


# Terms.
POOL, COUNTS, WEIGHTS = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], [0, 4], [1.5, 2, 0.5, 3, 2, 1, 4]
COLUMNS = [0, 1, 2, 3, 4, 5, 6]
ROW = [1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]


def grams(row: list[Any], pool: list[Any], least: int, most: int, skips: int) -> list[int]:
    """How often each n-gram of one or two words occurs: the first four of one, the rest of two."""
    seen = Counter[tuple[Any, ...]]((v,) for v in row if least <= 1)
    for step in range(1, skips + 2):
        seen.update((row[i], row[i + step]) for i in range(len(row) - step) if most >= 2)
    wanted = [(v,) for v in pool[:4]] + list(zip(pool[4::2], pool[5::2], strict=True))
    return [seen[g] for g in wanted]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most", "skips"), [(1, 1, 0), (1, 2, 0), (2, 2, 0), (2, 2, 3), (1, 2, 50)])
def test_terms_are_counted(least: int, most: int, skips: int, mode: str, words: bool, way: str) -> None:
    rows = [ROW, ROW[::-1]]
    pool: list[Any] = [f"w{v}" for v in POOL] if words else POOL
    x = np.array([[f"w{v}" for v in row] for row in rows], object) if words else np.array(rows)
    count = np.array([grams([f"w{v}" for v in row] if words else row, pool, least, most, skips) for row in rows], F)
    want = {"TF": count, "IDF": (count > 0) * np.array(WEIGHTS, F), "TFIDF": count * np.array(WEIGHTS, F)}[mode]
    terms = {"pool_strings" if words else "pool_int64s": pool}
    check(n("TfIdfVectorizer", x, want=[want], min_gram_length=least, max_gram_length=most, max_skip_count=skips,
            mode=mode, ngram_counts=COUNTS, ngram_indexes=COLUMNS, weights=WEIGHTS, **terms), way)


def test_terms_have_columns_of_their_own() -> None:
    for x in (np.array([3, 2, 3]), np.array([3, 2, 3], np.int32)):
        check(n("TfIdfVectorizer", x, want=[np.array([0, 1, 0, 2], F)], min_gram_length=1, max_gram_length=1,
                max_skip_count=0, mode="TF", ngram_counts=[0], ngram_indexes=[1, 3], pool_int64s=[2, 3]), "fed")


def term(**changes: Any) -> Node:
    """A case of terms."""
    found: dict[str, Any] = {
        "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "mode": "TF", "ngram_counts": COUNTS,
        "ngram_indexes": COLUMNS, "pool_int64s": POOL} | changes
    return n("TfIdfVectorizer", np.array(ROW), want=[np.zeros(7, F)], **found)


BROKEN: dict[str, Node] = {
    "mode": term(mode="TFTF"), "columns": term(ngram_indexes=[0]),
    "a column": term(ngram_indexes=[0, 1, 2, 3, 4, 5, -1]),
    "a column far off": term(ngram_indexes=[0, 1, 2, 3, 4, 5, 1 << 40]), "counts": term(ngram_counts=[0, 99]),
    "counts below": term(ngram_counts=[-1, 4]), "counts later": term(ngram_counts=[1, 4]),
    "odd": term(ngram_counts=[0, 3]),
    "no counts": term(ngram_counts=[4, 0]), "weights": term(weights=[1.0]), "a pool": term(pool_int64s=[1, 2]),
    "a gap": term(max_skip_count=-1), "a pool of texts": Node("TfIdfVectorizer", [texts("a")], dict(
        term().attributes), want=[np.zeros(7, F)]),
    "case": n("StringNormalizer", DAYS, case_change_action="TITLE", want=[DAYS]),
    "two rows": n("StringNormalizer", texts(["a"], ["b"]), want=[DAYS]),
    "three axes": n("StringNormalizer", texts([["a"]]), want=[DAYS]),
    "shapes": n("StringConcat", texts("a", "b"), texts("a", "b", "c"), want=[DAYS])}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused(name: str) -> None:
    made, _ = built(BROKEN[name], "fed")
    with pytest.raises(FormatError, match=BROKEN[name].op):
        nnx_convert.compile(made.SerializeToString())


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "(?<!a)b", "[[:nothing:]]", "a{9999}{9999}{9999}"])
def test_a_pattern_that_is_none_of_re2_is_refused(pattern: str) -> None:
    made, fed = built(n("RegexFullMatch", texts("a"), pattern=pattern, want=[np.array([True])]), "fed")
    with pytest.raises(NnxError, match="RE2"):
        nnx_convert.compile(made.SerializeToString()).run(list(fed.values()))


def test_a_long_gap_ends() -> None:
    case = term(max_skip_count=2 ** 31 - 1)
    made, fed = built(case, "fed")
    found = nnx_convert.compile(made.SerializeToString()).run(list(fed.values()))[0]
    assert found.tolist() == grams(ROW, POOL, 1, 2, len(ROW))


def test_bytes_that_are_no_utf8_are_kept() -> None:
    made, _ = built(n("StringConcat", texts("a"), texts("b"), want=[texts("ab")]), "fed")
    given = [np.array([b"\xff"], object), np.array([b"\xfe"], object)]
    found = nnx_convert.compile(made.SerializeToString()).run(given)
    assert found[0].tolist() == [b"\xff\xfe".decode(errors="surrogateescape")]


def test_two_sizes_that_differ_in_a_run_fail() -> None:
    made, _ = built(n("StringConcat", texts("a", "b"), texts("a", "b"), fixed=[], want=[texts("aa", "bb")]), "open")
    with pytest.raises(RunError):
        nnx_convert.compile(made.SerializeToString()).run([texts("a", "b"), texts("a", "b", "c")])
