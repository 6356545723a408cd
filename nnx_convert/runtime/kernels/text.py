"""Texts, as objects of bytes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ...errors import RunError
from ...ops import text as t
from ...resources import tick
from ...types import Array, Tensor
from .. import automaton
from ..given import objects, said
from ..kernel import Compute, Run, Site, kernel, sized
from ..memory import TEXT, affordable, affordable_tensor


@kernel(t.TEXT_JOIN)
def TEXT_JOIN(site: Site, x: Tensor, y: Tensor) -> Run:
    lengths = np.frompyfunc(len, 1, 1)

    def run(out: Array, x: Array, y: Array) -> None:
        own, more = np.asarray(lengths(x)), np.asarray(lengths(y))
        made = np.broadcast_to(own, out.shape).sum() + np.broadcast_to(more, out.shape).sum()
        affordable_tensor(made + own.sum() + more.sum(), "joined, the texts, beside their parts,")
        np.add(x, y, out=out)
    return run


@sized(t.TEXT_SPLIT)
def TEXT_SPLIT(site: Site, x: Tensor, separator: Tensor, most: int) -> Compute:
    def run(x: Array, separator: Array) -> Sequence[Array]:
        by = separator.item() or None
        texts = x.reshape(-1).tolist()
        affordable(sum(parts(v, by, most) for v in texts) * TEXT, "the parts of the texts")
        found = [v.split(by, most) for v in texts]
        wide = max(map(len, found), default=0)
        affordable(len(found) * wide * 8, "parts that are filled up")
        filled = [part for row in found for part in (*row, *[b""] * (wide - len(row)))]
        counts = np.array([len(row) for row in found], np.int64)
        return [objects(filled).reshape(*x.shape, wide), counts.reshape(x.shape)]
    return run


def parts(text: bytes, by: bytes | None, most: int) -> int:
    """How many parts a text has at most."""
    ends = (len(text) + 1) // 2 if by is None else text.count(by)
    return 1 + (ends if most < 0 else min(ends, most))


@sized(t.TEXT_NORMALIZE)
def TEXT_NORMALIZE(site: Site, x: Tensor, stopwords: Tensor | None, change: int, sensitive: bool) -> Compute:
    """Where case does not count, words are compared in the case that they get, in lower case where that is theirs."""
    cases: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
    compared = cases[t.KEEP if sensitive else change or t.LOWER]

    def run(x: Array, stopwords: Array | None) -> Sequence[Array]:
        stops = set() if stopwords is None else {compared(said(v)) for v in stopwords.reshape(-1).tolist()}
        kept = [w for w in map(said, x.reshape(-1).tolist()) if compared(w) not in stops]
        found = [cases[change](w).encode(errors="surrogateescape") for w in kept] or [b""]
        return [objects(found).reshape(*(1,) * (x.ndim - 1), len(found))]
    return run


@kernel(t.TEXT_MATCH)
def TEXT_MATCH(site: Site, x: Tensor, pattern: Tensor) -> Run:
    compiled = lru_cache(maxsize=8)(automaton.compiled)

    def run(out: Array, x: Array, pattern: Array) -> None:
        try:
            matcher = compiled(said(pattern.item()))
        except ValueError as error:
            raise RunError(f"the pattern is none of RE2: {error}") from error
        out[...] = np.array([matcher.matches(said(v)) for v in x.reshape(-1).tolist()], bool).reshape(out.shape)
    return run


@kernel(t.TERMS)
def TERMS(site: Site, x: Tensor, pool: Tensor, starts: Tensor, columns: Tensor, weights: Tensor | None, least: int,
          most: int, skips: int, mode: int, size: int) -> Run:
    """A tree of the pool's n-grams, walked by all windows of the rows at once."""
    def run(out: Array, x: Array, pool: Array, starts: Array, columns: Array, weights: Array | None) -> None:
        words, ids = np.unique(pool, return_inverse=True)
        rows = np.atleast_2d(x)
        at = np.searchsorted(words, rows)
        tokens = np.where(np.append(words, words[:1])[at] == rows, at, -1) if words.size else np.full(rows.shape, -1)
        counts = np.zeros((len(rows), size))
        bounds, first = [*starts.tolist(), pool.size], 0
        for n, (low, high) in enumerate(pairwise(bounds), 1):
            grams = ids[low:high].reshape(-1, n)
            if least <= n <= most and len(grams):
                for step in range(1, min(skips + 1, (rows.shape[1] - 1) // (n - 1)) + 1 if n > 1 else 2):
                    tick()                       # as many steps as a row is long
                    tally(counts, tokens, grams, columns[first:first + len(grams)], step, len(words))
            first += len(grams)
        scale = np.ones(size) if weights is None else by_column(weights, columns, size)
        found = (counts, (counts > 0) * scale, counts * scale)[mode]
        out[...] = found.reshape(out.shape)
    return run


def by_column(weights: Array, columns: Array, size: int) -> Array:
    """The weights of n-grams where their columns are."""
    found = np.ones(size)
    found[columns] = weights
    return found


def tally(counts: Array, tokens: Array, grams: Array, columns: Array, step: int, words: int) -> None:
    """Add how often each n-gram occurs in each row, its elements `step` apart."""
    n = grams.shape[1]
    wide = tokens.shape[1] - (n - 1) * step
    if wide < 1:
        return
    branch, state = np.zeros(len(grams), np.int64), np.zeros((len(tokens), wide), np.int64)
    for i in range(n):
        token = tokens[:, i * step:i * step + wide]
        edges, branch = np.unique(branch * words + grams[:, i], return_inverse=True)
        wanted = np.where((state < 0) | (token < 0), -1, state * words + token)
        at = np.minimum(np.searchsorted(edges, wanted), len(edges) - 1)
        state = np.where(edges[at] == wanted, at, -1)
    places = np.full(len(edges), -1)
    places[branch] = columns
    row, column = np.nonzero(state >= 0)
    np.add.at(counts, (row, places[state[row, column]]), 1)
