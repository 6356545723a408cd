"""Decision trees walked row by row, several trees at a time, so that one's memory access covers another's.

Every question is brought to one form: is x <= split, or x == split. Leaves lead to themselves, so that a walk takes as
many turns as the deepest of its trees is deep, whatever its way.
"""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import classical as c
from ...types import F32, Array
from ..bind import Bound
from .ir import SHARED, Function, Module, number
from .machine import Machine
from .places import Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native

#: Trees that are walked together.
TOGETHER = 8
#: A tree that is deeper is none that was learnt.
DEEPEST = 256
#: A node as it is stored: what it compares with, the offset of a feature in a row, and of the nodes it leads to.
NODE = np.dtype([("split", "<f4"), ("feature", "<i4"), ("yes", "<i4"), ("no", "<i4")])
#: What a leaf adds to a target, which lies so many bytes into the sums; as many bytes as a power of two.
ENTRY = np.dtype([("weight", "<f8"), ("target", "<i8")])
SPLIT, FEATURE, YES, NO = 0, 4, 8, 12
#: Bytes of a sum, and of the word in front of a group's roots that says how deep its trees are.
SUM, WORD = 8, 4
CONSTANTS = ("feature", "split", "mode", "yes", "no", "missing", "roots", "first", "target", "weight")


@frozen
class Trees:
    """Offsets of tables in the weights, and how they are read.

    A node's bits are the lowest of its feature's offset. `odd`: with bit 1, what is no number passes the question;
    else it fails. `equal`: with bit 2, the question is for equality.
    """

    x: Place
    out: Place
    sums: Place
    nodes: int
    roots: int
    first: int
    entries: int
    groups: int
    trees: int
    aggregate: int
    odd: bool
    equal: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("trees", self), lambda name: self._build(m, name))

    @property
    def start(self) -> float:
        """What weights are added to, or compared with first."""
        return {c.LEAST: np.inf, c.MOST: -np.inf}.get(self.aggregate, 0.0)

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.shape[0])
        sums = f.at("%arena", f.add(f.mul("%thread", self.sums.strides[0]), self.sums.offset))

        def row(i: str, _: list[str]) -> None:
            x = f.at(self.x.base, f.add(f.mul(i, self.x.strides[0]), self.x.offset))
            out = f.at(self.out.base, f.add(f.mul(i, self.out.strides[0]), self.out.offset))
            targets = self.out.shape[1]
            f.loop(0, targets, 1, [], lambda t, _: f.store(
                "double", number("double", self.start), sums, f.mul(t, SUM), SUM))
            f.loop(0, self.groups, 1, [], lambda g, _: self._group(f, x, sums, g))
            f.loop(0, targets, 1, [], lambda t, _: self._told(f, sums, out, t))
        f.loop(first, last, 1, [], row)
        f.finish()

    def _group(self, f: Function, x: str, sums: str, group: str) -> None:
        """The weights of the leaves that a row comes to in some trees."""
        size = WORD * (1 + TOGETHER)
        table = f.at("%weights", f.add(f.mul(group, size), self.roots))
        roots = [f.let(f"sext i32 {f.load('i32', table, WORD * (1 + n))} to i64") for n in range(TOGETHER)]
        depth = f.let(f"sext i32 {f.load('i32', table)} to i64")
        leaves = f.loop(0, depth, 1, [("i64", root) for root in roots],
                        lambda _, now: [self._next(f, x, node) for node in now])
        for leaf in leaves:
            at = f.at("%weights", f.add(f.let(f"lshr i64 {leaf}, 2"), self.first))
            low, high = (f.let(f"sext i32 {f.load('i32', at, n)} to i64") for n in (0, WORD))
            f.loop(low, high, 1, [], lambda n, _: self._add(f, sums, n))

    def _next(self, f: Function, x: str, offset: str) -> str:
        """The offset of the node that a node leads a row to."""
        node = f.at("%weights", f.add(offset, self.nodes))
        word, split = f.load("i32", node, FEATURE), f.load("float", node, SPLIT)
        place = f.let(f"and i32 {word}, -4") if self.odd or self.equal else word
        value = f.load("float", x, f.let(f"zext i32 {place} to i64"))
        no = f.let(f"fcmp ugt float {value}, {split}")
        if self.equal:
            no = self._bit(f, word, 2, f.let(f"fcmp une float {value}, {split}"), no)
        if self.odd:
            fails = self._bit(f, word, 1, f.let(f"fcmp ord float {value}, {value}"), "true")
            no = f.let(f"and i1 {no}, {fails}")
        way = f.let(f"zext i1 {no} to i64")
        return f.let(f"sext i32 {f.load('i32', f.at(node, f.mul(way, NO - YES)), YES)} to i64")

    @staticmethod
    def _bit(f: Function, word: str, bit: int, yes: str, no: str) -> str:
        return f.select(f.let(f"icmp ne i32 {f.let(f'and i32 {word}, {bit}')}, 0"), "i1", yes, no)

    def _add(self, f: Function, sums: str, n: str) -> None:
        """One weight of a leaf."""
        entry = f.at("%weights", f.add(f.mul(n, ENTRY.itemsize), self.entries))
        weight, target = f.load("double", entry, 0, 8), f.at(sums, f.load("i64", entry, SUM, 8))
        sum_ = f.load("double", target, 0, SUM)
        if self.aggregate in (c.LEAST, c.MOST):
            better = f.let(f"fcmp {'olt' if self.aggregate == c.LEAST else 'ogt'} double {weight}, {sum_}")
            found = f.select(better, "double", weight, sum_)
        else:
            found = f.let(f"fadd double {sum_}, {weight}")
        f.store("double", found, target, 0, SUM)

    def _told(self, f: Function, sums: str, out: str, target: str) -> None:
        """A sum as a result; 0 where an extreme has nothing to be of."""
        found = f.load("double", sums, f.mul(target, SUM), SUM)
        if self.start:
            none = f.let(f"fcmp oeq double {found}, {number('double', self.start)}")
            found = f.select(none, "double", number("double", 0), found)
        if self.aggregate == c.AVERAGE:
            found = f.let(f"fdiv double {found}, {number('double', self.trees)}")
        f.store("float", f.let(f"fptrunc double {found} to float"), out, f.mul(target, 4))


def _takes(b: Bound, _: Machine) -> bool:
    """Nodes are known, ask for features that are there, and lead to leaves; weights are finite. NumPy's kernel
    says what is wrong with others.
    """
    a = b.args
    if a["x"].type != F32 or a["x"].size == 0 or any(a[n].data is None for n in CONSTANTS) or a["roots"].size == 0:
        return False
    feature, yes, no, first, mode = (a[n].data for n in ("feature", "yes", "no", "first", "mode"))
    inner, count = mode != c.LEAF, mode.size
    at = np.concatenate([yes[inner], no[inner], a["roots"].data])
    fits = bool(((at >= 0) & (at < count)).all()) and count < 1 << 26 and bool((
        (feature[inner] >= 0) & (feature[inner] < a["x"].shape[1])).all())
    good = bool((np.diff(first) >= 0).all()) and first[0] >= 0 and first[-1] <= a["weight"].size and bool((
        (a["target"].data >= 0) & (a["target"].data < a["targets"])).all())
    numbers = bool(np.isfinite(a["weight"].data).all()) and not np.isnan(a["split"].data[inner]).any()
    return fits and good and numbers and _depths(mode, yes, no) is not None


def _depths(mode: Array, yes: Array, no: Array) -> Array | None:
    """How far each node is from its farthest leaf; None where some lead in circles, or are deeper than any tree."""
    leaf = mode == c.LEAF
    here = np.arange(mode.size)
    ways = np.where(leaf, here, yes), np.where(leaf, here, no)
    found = np.zeros(mode.size, np.int64)
    for _ in range(DEEPEST):
        more = np.where(leaf, 0, 1 + np.maximum(found[ways[0]], found[ways[1]]))
        if np.array_equal(more, found):
            return found
        found = more
    return None


def _nodes(b: Bound) -> tuple[Array, bool, bool]:
    """The nodes as they are stored, one more at the end that is a leaf of nothing; whether bits of theirs count."""
    a = b.args
    mode, split = a["mode"].data, a["split"].data.astype(np.float32)
    leaf, turned = mode == c.LEAF, np.isin(mode, [c.MODES.index(n) for n in ("GTE", "GT", "NEQ")])
    equal, below = (np.isin(mode, [c.MODES.index(n) for n in names]) for names in (("EQ", "NEQ"), ("LT", "GTE")))
    # What is no number passes a question for inequality, and those of nodes that are told to let it pass.
    passes = ~leaf & ((a["missing"].data != 0) | (mode == c.MODES.index("NEQ"))) ^ turned & ~leaf
    made, here = np.zeros(mode.size + 1, NODE), np.arange(mode.size + 1) * NODE.itemsize
    # x < split is x <= the number before it; nothing is below the least, as nothing is below what is no number.
    before = np.where(split == -np.inf, np.float32(np.nan), np.nextafter(split, np.float32(-np.inf)))
    made["split"][:-1] = np.where(below, before, split)
    made["feature"][:-1] = np.where(leaf, 0, a["feature"].data) * 4 + np.where(passes, 1, 0) + np.where(equal, 2, 0)
    yes, no = (a[n].data * NODE.itemsize for n in ("yes", "no"))
    made["yes"], made["no"] = here, here
    made["yes"][:-1] = np.where(leaf, here[:-1], np.where(turned, no, yes))
    made["no"][:-1] = np.where(leaf, here[:-1], np.where(turned, yes, no))
    return made, bool(passes.any()), bool(equal.any())


def _roots(b: Bound, empty: int) -> Array:
    """For each group of trees how deep they are, and where they begin; as many as are missing are an empty leaf."""
    a = b.args
    depths = _depths(*(a[n].data for n in ("mode", "yes", "no")))
    if depths is None:
        raise TypeError("the nodes of a tree lead in circles")
    roots, groups = a["roots"].data, -(-a["roots"].size // TOGETHER)
    all_ = np.full(groups * TOGETHER, empty, np.int64)
    all_[:roots.size] = roots
    deep = np.append(depths, 0)[all_].reshape(groups, TOGETHER).max(1, keepdims=True)
    return np.concatenate([deep, all_.reshape(groups, TOGETHER) * NODE.itemsize], 1).astype(np.int32)


def _make(w: Workshop, group: Group) -> Task:
    b, a = group.head, group.head.args
    nodes, odd, equal = _nodes(b)
    roots = _roots(b, nodes.size - 1)
    entries = np.zeros(a["weight"].size, ENTRY)
    entries["weight"], entries["target"] = a["weight"].data, a["target"].data * SUM
    first = np.append(a["first"].data, a["first"].data[-1]).astype(np.int32)
    places = w.place(b.slots["x"]), w.place(b.outputs[0]), w.places[SCRATCH]
    tables = w.pack(nodes), w.pack(roots), w.pack(first), w.pack(entries)
    return Trees(*places, *tables, len(roots), a["roots"].size, a["aggregate"], odd, equal)


def _scratch(group: Group, _: Machine) -> int:
    return int(group.head.args["targets"]) * SUM


NATIVE = (native(Family(_takes, _make, scratch=_scratch), c.TREES),)
