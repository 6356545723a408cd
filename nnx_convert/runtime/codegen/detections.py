"""Boxes decoded from what they add to anchors, and suppressed where they overlap a better one, on one thread.

Scores, corners and areas lie in planes, so that a vector holds as many boxes as it has lanes. A score that no longer
counts is minus infinity: those that do are above a threshold.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from ...frozen import frozen
from ...ops import custom_vision, detect
from ...types import F32
from ..bind import Bound
from . import mathematics
from .elements import CODE
from .folds import across
from .ir import SHARED, Function, Module, mask, number, vector
from .machine import Machine
from .mathematics import flags, select
from .places import ITEM, Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .turns import across_rows, pieces

LEAST = -math.inf
#: Planes: the score of each box, its first corner, its second one, its area.
SCORE, TOP, LEFT, LOW, RIGHT, AREA = range(6)
PLANES = 6
#: What is picked: the number of a box, its label and its score, of four bytes each. In front of all lies the box that
#: is best now, and how many are picked, of eight bytes each.
PICKED, HEAD = 12, 16


@frozen
class Boxes:
    """How many boxes there are, where planes of them begin, and from which overlap on they go."""

    count: int
    lanes: int
    threshold: float

    @property
    def plane(self) -> int:
        """The bytes of a plane: whole vectors."""
        return -(-self.count // self.lanes) * self.lanes * ITEM

    def suppressed(self, m: Module) -> str:
        """The function `(planes, picks, label, first, end)` that picks boxes into entries from `first` up to `end`.

        It gives the number of the entry behind the last one that it made.
        """
        def build(name: str) -> None:
            args = (("ptr", "%planes"), ("ptr", "%picks"), ("i32", "%label"), ("i64", "%first"), ("i64", "%end"))
            f = Function(m, name, args)
            f.store("i64", "%first", "%picks", 8, 8)
            odd = number("float", math.nan)
            f.store("i64", self._best(f, [odd] * 5), "%picks", 0, 8)
            f.loop("%first", "%end", 1, [], lambda _, __: f.when(
                f.let(f"icmp sge i64 {f.load('i64', '%picks', 0, 8)}, 0"), lambda: self._pick(f)))
            f.finish(f"i64 {f.load('i64', '%picks', 8, 8)}")
        return m.once(("suppressed", self), build)

    def _pick(self, f: Function) -> None:
        """The best box goes into an entry; then those it overlaps go, and another one is the best."""
        best, entry = (f.load("i64", "%picks", at, 8) for at in (0, 8))
        at = f.at("%planes", f.mul(best, ITEM))
        to = f.at("%picks", f.add(f.mul(entry, PICKED), HEAD))
        f.store("i32", f.let(f"trunc i64 {best} to i32"), to)
        f.store("i32", "%label", to, 4)
        f.store("float", f.load("float", at), to, 8)
        f.store("float", number("float", LEAST), at)
        box = [f.load("float", at, plane * self.plane) for plane in range(TOP, PLANES)]
        f.store("i64", f.add(entry, 1), "%picks", 8, 8)
        f.store("i64", self._best(f, box), "%picks", 0, 8)

    def _best(self, f: Function, box: list[str]) -> str:
        """The scores of what a box overlaps put out; the first box of the highest score then, or -1."""
        type, whole = vector(self.lanes), vector(self.lanes, "i32")
        given = [f.splat(type, v) for v in box]
        ramp = "<" + ", ".join(f"i32 {i}" for i in range(self.lanes)) + ">"

        def step(at: str, now: list[str]) -> list[str]:
            f.fence()                            # a box and what is best so far take most of 16 registers
            place = f.at("%planes", at)
            gone = self._overlapped(f, given, [f.load(type, place, n * self.plane) for n in range(TOP, PLANES)])
            score = select(f, type, gone, number(type, LEAST), f.load(type, place))
            f.store(type, score, place)
            better = f.let(f"fcmp ogt {type} {score}, {now[0]}")
            return [select(f, type, better, score, now[0]), select(f, whole, better, now[2], now[1]),
                    f.let(f"add {whole} {now[2]}, {number(whole, self.lanes)}")]
        start = [(type, number(type, LEAST)), (whole, number(whole, 0)), (whole, ramp)]
        scores, places, _ = f.loop(0, self.plane, self.lanes * ITEM, start, step)
        most = across(f, type, "MAX", scores)
        equal = f.let(f"fcmp oeq {type} {scores}, {f.splat(type, most)}")
        first = f.call("i32", f"llvm.vector.reduce.umin.v{self.lanes}i32",
                       (whole, select(f, whole, equal, places, number(whole, -1))))
        found = f.let(f"fcmp ogt float {most}, {number('float', LEAST)}")
        return f.select(found, "i64", f.let(f"zext i32 {first} to i64"), "-1")

    def _overlapped(self, f: Function, box: list[str], boxes: list[str]) -> str:
        """Whether intersection over union is the threshold or more; it is 0 where the union is empty.

        What is no number in a box is so in its area, and then in the union: the second corner need not tell it.
        """
        type = vector(self.lanes)

        def first(relation: str, n: int) -> str:
            return select(f, type, f.let(f"fcmp {relation} {type} {box[n]}, {boxes[n]}"), box[n], boxes[n])
        high, wide = (f.clamp(type, f.let(f"fsub {type} {first('olt', n + 2)}, {first('ogt', n)}"), 0, None)
                      for n in (0, 1))
        both = f.let(f"fmul {type} {high}, {wide}")
        union = f.let(f"fsub {type} {f.let(f'fadd {type} {box[4]}, {boxes[4]}')}, {both}")
        empty = f.let(f"fcmp oeq {type} {union}, {number(type, 0)}")
        share = select(f, type, empty, number(type, 0), f.let(f"fdiv {type} {both}, {union}"))
        return f.let(f"fcmp oge {type} {share}, {number(type, self.threshold)}")


@frozen
class Detections:
    """The detections of images of `scores` [n, boxes, classes], of which class 0 is the background.

    With `regular`, boxes are suppressed class by class, `each` of a class at most; otherwise by their best class, and
    of those that stay the `labels` best classes are told. `shift` is the number of class 1 less that told.
    """

    given: tuple[Place, Place, Place]
    outs: tuple[Place, Place, Place, Place]
    room: Place
    scale: tuple[float, ...]
    least: float
    boxes: Boxes
    most: int
    each: int
    labels: int
    shift: int
    regular: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("detections", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)

        def alone() -> None:
            for out in self.outs:
                f.fill(f.at(out.base, out.offset), 0, out.size * ITEM)
            f.loop(0, self.given[0].shape[0], 1, [], lambda i, _: self._image(f, i))
        f.when(f.let("icmp eq i64 %thread, 0"), alone)
        f.finish()

    def _image(self, f: Function, i: str) -> None:
        scores, deltas = (f.at(p.base, f.add(p.offset, f.mul(i, p.strides[0]))) for p in self.given[:2])
        planes = f.at("%arena", self.room.offset)
        picks = f.at(planes, PLANES * self.boxes.plane)
        pieces(f, self.boxes.count, self.boxes.lanes, lambda at, count: self._decoded(f, planes, deltas, at, count))
        found = self._by_class(f, scores, planes, picks) if self.regular else self._by_box(f, scores, planes, picks)
        count = self.outs[3]
        f.store("i32", f.let(f"trunc i64 {found} to i32"), count.base, f.add(count.offset, f.mul(i, ITEM)))
        f.loop(0, found, 1, [], lambda n, _: self._tell(f, planes, f.at(picks, f.add(f.mul(n, PICKED), HEAD)),
                                                        f.add(f.mul(i, self.outs[0].shape[1]), n)))

    # Planes.
    def _decoded(self, f: Function, planes: str, deltas: str, at: str, count: int) -> None:
        """The corners and areas of some boxes, from moves and anchors, both of centre and size."""
        type, row, anchors = vector(self.boxes.lanes), self.given[1].strides[1], self.given[2]
        here = f.at(deltas, f.mul(at, row))
        move = across_rows(f, lambda n: f.at(here, n * row), count, 4)
        there = f.at(anchors.base, f.add(anchors.offset, f.mul(at, anchors.strides[0])))
        anchor = across_rows(f, lambda n: f.at(there, n * anchors.strides[0]), count, 4)
        to, plane = f.at(planes, f.mul(at, ITEM)), self.boxes.plane
        scales = [number(type, v) for v in self.scale]
        grown = [f.let(f"fdiv {type} {move[n]}, {scales[n]}") for n in (2, 3)]
        for n in (0, 1):                         # centres wait where first corners will be: 16 registers are too few
            far = f.let(f"fdiv {type} {f.let(f'fmul {type} {anchor[2 + n]}, {move[n]}')}, {scales[n]}")
            f.store(type, f.let(f"fadd {type} {anchor[n]}, {far}"), to, (TOP + n) * plane)
        f.fence()
        sizes = list[str]()
        for n in (0, 1):                         # one after the other, too
            power = f.opaque(type, mathematics.exp(f, type, f.opaque(type, grown[n])))
            half = f.let(f"fmul {type} {f.let(f'fmul {type} {anchor[2 + n]}, {power}')}, {number(type, 0.5)}")
            centre = f.load(type, to, (TOP + n) * plane)
            corners = f.let(f"fsub {type} {centre}, {half}"), f.let(f"fadd {type} {centre}, {half}")
            for first, corner in zip((TOP, LOW), corners, strict=True):
                f.store(type, corner, to, (first + n) * plane)
            sizes.append(f.let(f"fsub {type} {corners[1]}, {corners[0]}"))
        f.store(type, f.let(f"fmul {type} {sizes[0]}, {sizes[1]}"), to, AREA * plane)

    def _counted(self, f: Function, planes: str, scores: str, first: str, last: str) -> None:
        """The best score of each box from one class up to another as far as it is above the threshold."""
        type, row = vector(self.boxes.lanes), self.given[0].strides[1]

        def some(at: str, count: int) -> None:
            here = f.at(scores, f.mul(at, row))

            def more(label: str, now: list[str]) -> list[str]:
                start = f.at(here, f.mul(label, ITEM))
                score = across_rows(f, lambda n: f.at(start, n * row), count, 1)[0]
                return [CODE["MAXIMUM"][0](f, type, now[0], score)]
            best = f.loop(first, last, 1, [(type, number(type, LEAST))], more)[0]
            good = f.let(f"fcmp ogt {type} {best}, {number(type, self.least)}")
            if count < self.boxes.lanes:
                good = f.let(f"and {flags(type)} {good}, {mask(count, self.boxes.lanes)}")
            f.store(type, select(f, type, good, best, number(type, LEAST)), f.at(planes, f.mul(at, ITEM)))
        pieces(f, self.boxes.count, self.boxes.lanes, some)

    # Picks: each gives how many entries there are to tell.
    def _by_class(self, f: Function, scores: str, planes: str, picks: str) -> str:
        """Every class by itself; then the best of all are put in front."""
        end = self.given[0].shape[2]
        entries = f.at(picks, self.most * PICKED)

        def label(n: str, now: list[str]) -> list[str]:
            self._counted(f, planes, scores, n, f.add(n, 1))
            return [self._suppress(f, planes, entries, f.let(f"trunc i64 {n} to i32"), now[0], self.each)]
        total = f.loop(1, end, 1, [("i64", "0")], label)[0]

        def place(n: str) -> str:
            return f.at(entries, f.add(f.mul(n, PICKED), HEAD))

        def pick(k: str, now: list[str]) -> list[str]:
            found = self._next(f, "0", total, now, lambda n: f.load("float", place(n), 8))
            f.copy(f.at(picks, f.add(f.mul(k, PICKED), HEAD)), place(found[1]), PICKED)
            return found
        told = f.least(total, self.most)
        f.loop(0, told, 1, [("float", number("float", math.inf)), ("i64", "-1")], pick)
        return told

    def _by_box(self, f: Function, scores: str, planes: str, picks: str) -> str:
        """By the best class of each; then every entry becomes as many as labels are told."""
        self._counted(f, planes, scores, "1", str(self.given[0].shape[2]))
        entries, row = f.at(picks, self.most * self.labels * PICKED), self.given[0].strides[1]
        total = self._suppress(f, planes, entries, "0", "0", self.most)

        def spread(n: str, _: list[str]) -> None:
            box = f.load("i32", entries, f.add(f.mul(n, PICKED), HEAD))
            here = f.at(scores, f.mul(f.let(f"sext i32 {box} to i64"), row))

            def label(k: str, now: list[str]) -> list[str]:
                found = self._next(f, "1", str(self.given[0].shape[2]), now, lambda c: f.load(
                    "float", here, f.mul(c, ITEM)))
                to = f.at(picks, f.add(f.mul(f.add(f.mul(n, self.labels), k), PICKED), HEAD))
                for at, kind, value in ((0, "i32", box), (4, "i32", f.let(f"trunc i64 {found[1]} to i32")),
                                        (8, "float", found[0])):
                    f.store(kind, value, to, at)
                return found
            f.loop(0, self.labels, 1, [("float", number("float", math.inf)), ("i64", "-1")], label)
        f.loop(0, total, 1, [], spread)
        return f.mul(total, self.labels)

    def _suppress(self, f: Function, planes: str, entries: str, label: str, first: str, most: int) -> str:
        return f.call("i64", self.boxes.suppressed(f.module), ("ptr", planes), ("ptr", entries), ("i32", label),
                      ("i64", first), ("i64", f.add(first, most)))

    @staticmethod
    def _next(f: Function, first: str, last: str, before: list[str], read: Callable[[str], str]) -> list[str]:
        """The best score, and its number, of those that come after a score and its number, equals in order."""
        score, at = before

        def step(n: str, now: list[str]) -> list[str]:
            value = read(n)
            equal = f.let(f"and i1 {f.let(f'fcmp oeq float {value}, {score}')}, {f.let(f'icmp sgt i64 {n}, {at}')}")
            later = f.let(f"or i1 {equal}, {f.let(f'fcmp olt float {value}, {score}')}")
            none, above = f.let(f"icmp slt i64 {now[1]}, 0"), f.let(f"fcmp ogt float {value}, {now[0]}")
            better = f.let(f"and i1 {later}, {f.let(f'or i1 {none}, {above}')}")
            return [f.select(better, "float", value, now[0]), f.select(better, "i64", n, now[1])]
        return f.loop(first, last, 1, [("float", number("float", LEAST)), ("i64", "-1")], step)

    def _tell(self, f: Function, planes: str, entry: str, to: str) -> None:
        """What an entry says, at a place in the results."""
        scores, boxes, classes = (f.at(p.base, f.add(p.offset, f.mul(to, p.strides[1]))) for p in self.outs[:3])
        f.store("float", f.load("float", entry, 8), scores)
        f.store("i32", f.let(f"sub i32 {f.load('i32', entry, 4)}, {self.shift}"), classes)
        box = f.at(planes, f.mul(f.let(f"sext i32 {f.load('i32', entry)} to i64"), ITEM))
        for n, plane in enumerate((TOP, LEFT, LOW, RIGHT)):
            f.store("float", f.load("float", box, plane * self.boxes.plane), boxes, n * ITEM)


def _boxes(b: Bound, machine: Machine) -> Boxes:
    return Boxes(b.args["scores"].shape[1], machine.lanes, float(b.args["iou_threshold"]))


def _takes(b: Bound, _: Machine) -> bool:
    return all(b.args[n].type == F32 and b.args[n].size > 0 for n in ("scores", "deltas", "anchors"))


def _scratch(group: Group, machine: Machine) -> int:
    """Planes; what is told; what is picked before that, of every class where they are picked so."""
    b = group.head
    classes, most = b.args["scores"].shape[2], b.args["max_detections"]
    more = (classes - 1) * b.args["max_per_class"] if b.args["regular"] else most
    return int(PLANES * _boxes(b, machine).plane + (b.outs[0].shape[1] + more) * PICKED + 2 * HEAD)


def _make(w: Workshop, group: Group) -> Task:
    b, a = group.head, group.head.args
    scores, deltas, anchors = (w.place(b.slots[n]) for n in ("scores", "deltas", "anchors"))
    first, second, third, fourth = (w.place(s) for s in b.outputs)
    labels = 1 if a["regular"] else min(a["scores"].shape[2] - 1, a["max_classes"])
    scale = tuple(float(a[n]) for n in ("y_scale", "x_scale", "h_scale", "w_scale"))
    return Detections((scores, deltas, anchors), (first, second, third, fourth), w.places[SCRATCH], scale,
                      float(a["score_threshold"]), _boxes(b, w.machine), a["max_detections"], a["max_per_class"],
                      labels, 0 if a["background"] else 1, bool(a["regular"]))


NATIVE = (native(Family(_takes, _make, scratch=_scratch), detect.DETECTION_POSTPROCESSING, custom_vision.DETECTIONS),)
