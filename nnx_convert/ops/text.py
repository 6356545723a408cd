"""Texts: joined, cut, normalised, matched, counted. A text is UTF-8."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Int, T, broadcast, broadcasts, rank
from ..schema import Rule, host
from ..signature import Kind
from ..types import B8, F32, I32, I64, STR, UNKNOWN, Tensor

Text = Annotated[Tensor, Kind({STR: 27})]
Counts = Annotated[Tensor, Kind({I64: 27})]
#: What is done to letters.
KEEP, LOWER, UPPER = range(3)
#: How terms are weighted: their count, their weight where they occur, both.
TF, IDF, TFIDF = range(3)

ONE_TEXT = Rule("separator is one text", lambda separator: separator.shape == (1,))


@host(60680, {STR: 27}, Rule("the shapes of x and y broadcast", lambda x, y: broadcasts(x.shape, y.shape)))
def TEXT_JOIN(x: T, y: Text) -> T:
    """x and y one behind the other."""
    return Tensor(STR, broadcast(x.shape, y.shape))


@host(60681, {STR: 27}, ONE_TEXT, outs=("parts", "counts"))
def TEXT_SPLIT(x: T, separator: Text, most: Int) -> tuple[T, Counts]:
    """x cut at each separator (white space: empty), `most` times at most; counts say how many parts a text has."""
    return Tensor(STR, (*x.shape, UNKNOWN)), Tensor(I64, x.shape)


@host(60682, {STR: 27}, Rule("change is 0 none, 1 lower case or 2 upper case", lambda change: change in range(3)),
      Rule("x is one row", lambda x: x.rank == 1 or x.shape[0] == 1))
def TEXT_NORMALIZE(x: Annotated[T, rank(1, 2)], stopwords: Text | None, change: Int, sensitive: Bool) -> T:
    """The texts x that are no stopword, in another case; one empty text where none is left."""
    return Tensor(STR, (UNKNOWN,) if x.rank == 1 else (1, UNKNOWN))


@host(60683, {STR: 27}, Rule("pattern is one text", lambda pattern: pattern.shape == (1,)))
def TEXT_MATCH(x: T, pattern: Text) -> Annotated[Tensor, Kind({B8: 27})]:
    """Whether a regular expression (RE2's syntax) matches the whole of x."""
    return Tensor(B8, x.shape)


@host(60684, {STR: 27, I32: 27, I64: 27},
      Rule("pool is of the type of x", lambda x, pool: x.type == pool.type),
      Rule("mode is 0 TF, 1 IDF or 2 TFIDF", lambda mode: mode in range(3)),
      Rule("skips is not negative", lambda skips: skips >= 0))
def TERMS(x: Annotated[T, rank(1, 2)], pool: Annotated[Tensor, Kind({STR: 27, I32: 27, I64: 27})], starts: Counts,
          columns: Counts, weights: Annotated[Tensor, Kind({F32: 27})] | None, least: Int, most: Int, skips: Int,
          mode: Int, size: Int) -> Annotated[Tensor, Kind({F32: 27})]:
    """How often each n-gram of the pool occurs in each row, its elements 1 to skips + 1 apart, in its columns[i]."""
    return Tensor(F32, (*x.shape[:-1], size))
