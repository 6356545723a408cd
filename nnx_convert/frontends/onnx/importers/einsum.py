"""Einsum, as products of matrices two by two."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import FormatError
from ....graph import Value
from ....ops import functions as f, host, reduce as r
from ....ops.shape import TRANSPOSE
from ....types import I32, Shape, known, product
from ..importer import Op
from ..registry import imports
from .elementwise import mul
from .matmul import DENSE, linear

#: A label of an axis: a letter, or the place of an axis of the ellipsis, counted from the last.
Label = str | int
Labels = tuple[Label, ...]


@imports(arithmetic=True)
def Einsum(g: Op, *xs: Value, equation: str) -> Value:
    """Products and sums of NNAPI's where the elements are floats and no operand has a label twice."""
    terms, after = parsed("".join(equation.split()))
    if len(terms) != len(xs):
        raise FormatError(f"the equation has {len(terms)} operands, not {len(xs)}")
    labels = [spelt(t, g.rank(x)) for t, x in zip(terms, xs, strict=True)]
    dots = max((sum(isinstance(v, int) for v in t) for t in labels), default=0)
    result = tuple(v for c in after for v in (range(-dots, 0) if c == "." else c))
    if any(missing := [v for v in result if not any(v in t for t in labels)]):
        raise FormatError(f"the result has {missing[0]!r}, which no operand has")
    plain = all(len(set(t)) == len(t) for t in (*labels, result)) and xs[0].type in DENSE
    if not plain or stretched(g, xs, labels):
        return whole(g, xs, f"{','.join(terms)}>{after}", not result)
    return contracted(g, list(zip(xs, labels, strict=True)), result)


def whole(g: Op, xs: Sequence[Value], equation: str, scalar: bool) -> Value:
    """The host's operation."""
    found = g(f.EINSUM, xs=tuple(xs), equation=g.const([ord(c) for c in equation], I32))
    return g.scalar(found) if scalar else found


def parsed(equation: str) -> tuple[list[str], str]:
    """The terms and the result, "..." as "."; a result that is not said has the letters that come once, sorted."""
    left, arrow, after = equation.replace("...", ".").partition("->")
    terms = left.split(",")
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        after = "." * ("." in left) + "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    if any(t.count(".") > 1 or not t.replace(".", "").isalpha() and t.strip(".") for t in (*terms, after)):
        raise FormatError(f"{equation!r} is no equation")
    return terms, after


def spelt(term: str, rank: int) -> Labels:
    """The labels of an operand's axes."""
    head, dots, tail = term.partition(".")
    spare = rank - len(head) - len(tail)
    if spare < 0 or spare and not dots:
        raise FormatError(f"{term!r} is not an operand of rank {rank}")
    return (*head, *range(-spare, 0), *tail)


def stretched(g: Op, xs: Sequence[Value], labels: Sequence[Labels]) -> bool:
    """Whether an axis of size 1 stands for a longer one of the same label, or for one that may be longer."""
    sizes: dict[Label, set[int | None]] = {}
    for x, term in zip(xs, labels, strict=True):
        for label, n in zip(term, g.shape(x), strict=True):
            sizes.setdefault(label, set()).add(n if known(n) else None)
    return any(len(s - {None}) > 1 or {1, None} <= s for s in sizes.values())


def contracted(g: Op, rest: list[tuple[Value, Labels]], result: Labels) -> Value:
    """Operands two by two, each label summed over as soon as nothing after wants it."""
    x, have = rest.pop(0)
    x, have = reduced(g, x, have, {v for _, t in rest for v in t} | {*result})
    while rest:
        y, its = rest.pop(0)
        wanted = {v for _, t in rest for v in t} | {*result}
        y, its = reduced(g, y, its, wanted | {*have})
        x, have = reduced(g, x, have, wanted | {*its})
        x, have = joined(g, x, have, y, its, wanted)
    return ordered(g, x, have, result)


def reduced(g: Op, x: Value, have: Labels, wanted: set[Label]) -> tuple[Value, Labels]:
    """The sums over axes that nothing else wants."""
    axes = [i for i, v in enumerate(have) if v not in wanted]
    if not axes:
        return x, have
    left = tuple(v for v in have if v in wanted)
    sums = g(r.REDUCE_SUM, x, axes, keep=True)
    return g.reshape(sums, tuple(n for v, n in zip(have, g.shape(x), strict=True) if v in wanted)), left


def ordered(g: Op, x: Value, have: Labels, want: Labels) -> Value:
    """x with its axes in another order."""
    return x if have == want else g(TRANSPOSE, x, [have.index(v) for v in want])


def joined(g: Op, x: Value, have: Labels, y: Value, its: Labels, wanted: set[Label]) -> tuple[Value, Labels]:
    """The product of two operands, summed over what both have and nothing wants."""
    summed = tuple(v for v in have if v in its and v not in wanted)
    batch = tuple(v for v in have if v in its and v in wanted)
    left, right = (tuple(v for v in t if v not in other) for t, other in ((have, its), (its, have)))
    if not summed:
        return multiplied(g, x, have, y, its)
    if not batch and g.known(y) is not None and y.type in DENSE:
        w = ordered(g, y, its, (*right, *summed))
        if right:
            return linear(g, ordered(g, x, have, (*left, *summed)), w, flat=len(summed)), (*left, *right)
    sizes = dict(zip((*have, *its), (*g.shape(x), *g.shape(y)), strict=True))
    outer = (batch,) if len(batch) > 2 else tuple((v,) for v in batch)
    rows = grouped(g, ordered(g, x, have, (*batch, *left, *summed)), (*outer, left, summed), sizes)
    columns = grouped(g, ordered(g, y, its, (*batch, *summed, *right)), (*outer, summed, right), sizes)
    found = g(host.MATMUL, rows, columns, adj_x=False, adj_y=False)
    order = (*batch, *left, *right)
    return g.reshape(found, tuple(sizes[v] for v in order)), order


def grouped(g: Op, x: Value, groups: Iterable[Labels], sizes: dict[Label, int]) -> Value:
    """x with the axes of each group as one."""
    shape: Shape = tuple(product(tuple(sizes[v] for v in group)) for group in groups)
    return g.reshape(x, shape)


def multiplied(g: Op, x: Value, have: Labels, y: Value, its: Labels) -> tuple[Value, Labels]:
    """Products without a sum: both with all the labels, axes of size 1 for those an operand has not."""
    full = (*have, *(v for v in its if v not in have))
    there = ordered(g, y, its, tuple(v for v in full if v in its))
    sizes = dict(zip(its, g.shape(y), strict=True))
    left = g.reshape(x, g.shape(x) + (1,) * (len(full) - len(have)))
    return mul(g, left, g.reshape(there, tuple(sizes.get(v, 1) for v in full))), full
