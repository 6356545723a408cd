"""Texts."""
from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import text as t
from ....types import F32, I32, I64, STR
from ..importer import Op
from ..registry import imports

CASES = {"NONE": t.KEEP, "LOWER": t.LOWER, "UPPER": t.UPPER}
MODES = {"TF": t.TF, "IDF": t.IDF, "TFIDF": t.TFIDF}


def texts(g: Op, values: tuple[str, ...] | str) -> Value:
    """A constant of texts."""
    words = [values] if isinstance(values, str) else list(values)
    found = np.empty(len(words), object)
    found[:] = [w.encode() for w in words]
    return g.const(found, STR)


def chosen(name: str, value: str, there: dict[str, int]) -> int:
    """The code of an attribute's word; raises `FormatError` where it is none."""
    if value not in there:
        raise FormatError(f"has the {name} {value!r}, which is none of {', '.join(there)}")
    return there[value]


@imports()
def StringConcat(g: Op, x: Value, y: Value) -> Value:
    return g.elementwise(t.TEXT_JOIN, x, y)


@imports()
def StringSplit(g: Op, x: Value, *, delimiter: str = "", maxsplit: int = -1) -> list[Value]:
    """Of a scalar, the parts are the first axis, and their number is a scalar."""
    parts, counts = g.add(t.TEXT_SPLIT, x, texts(g, delimiter), most=max(min(maxsplit, 2 ** 31 - 1), -1))
    if g.rank(x):
        return [parts, counts]
    return [g.reshape(parts, parts.shape[-1:]), g.scalar(counts)]


@imports()
def StringNormalizer(g: Op, x: Value, *, case_change_action: str = "NONE", is_case_sensitive: int = 0,
                     locale: str = "", stopwords: tuple[str, ...] = ()) -> Value:
    """Letters change case as Unicode has it, whatever the locale."""
    change = chosen("case_change_action", case_change_action, CASES)
    return g(t.TEXT_NORMALIZE, x, texts(g, stopwords) if stopwords else None, change=change,
             sensitive=bool(is_case_sensitive))


@imports()
def RegexFullMatch(g: Op, x: Value, *, pattern: str = "") -> Value:
    found = g(t.TEXT_MATCH, x, texts(g, pattern))
    return found if g.rank(x) else g.scalar(found)


@imports()
def TfIdfVectorizer(g: Op, x: Value, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
                    ngram_counts: tuple[int, ...], ngram_indexes: tuple[int, ...],
                    pool_int64s: tuple[int, ...] = (), pool_strings: tuple[str, ...] = (),
                    weights: tuple[float, ...] = ()) -> Value:
    if (x.type == STR) != bool(pool_strings):
        raise FormatError("has a pool of another type than its input")
    size = len(pool_strings or pool_int64s)
    bounds = [*ngram_counts, size]
    grams = [(b - a) // n for n, (a, b) in enumerate(pairwise(bounds), 1)]
    whole = all(a <= b and (b - a) % n == 0 for n, (a, b) in enumerate(pairwise(bounds), 1))
    if not whole or bounds[0] != 0 or sum(grams) != len(ngram_indexes) or min(ngram_indexes, default=0) < 0:
        raise FormatError(f"has the ngram_counts {list(ngram_counts)} for {len(ngram_indexes)} n-grams of {size} words")
    if weights and len(weights) != len(ngram_indexes):
        raise FormatError(f"has {len(weights)} weights for {len(ngram_indexes)} n-grams")
    columns = max(ngram_indexes, default=-1) + 1
    if not 0 < columns <= 1 << 24:
        raise FormatError(f"counts in {columns} columns")
    pool = texts(g, pool_strings) if pool_strings else g.const(np.array(pool_int64s, np.int64), I64)
    words = g.cast(x, I64) if x.type == I32 else x
    return g(t.TERMS, words, pool, g.const(list(ngram_counts), I64), g.const(list(ngram_indexes), I64),
             g.const(list(weights), F32) if weights else None, least=min_gram_length, most=max_gram_length,
             skips=max_skip_count, mode=chosen("mode", mode, MODES), size=columns)
