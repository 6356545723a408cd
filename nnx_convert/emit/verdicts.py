"""What a target makes of each operation of a model, and the pieces that a driver would see: in the table's words."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ..codes import FeatureLevel
from ..frozen import frozen
from ..model import Model
from ..schema import Checked, OpDef
from ..since import reason
from ..target import Target
from .facts import Hosts, kind
from .levels import Place, every_model

#: What is said of an operation that would run a model on the device which the device does not take whole.
HOLDS = "holds operations that do not run on the device"


@frozen
class Verdict:
    """What a target makes of one operation.

    `kind` is where the operation is from: base, EX, DENSIFY or host. `taken` says whether the device runs it. `level`
    is the first feature level that takes it, None where levels do not say it (NNAPI-EX is there or not). `rule` is
    the fact that makes the level what it is, or the rule that the operation breaks. `partition` counts the pieces of
    the main model that a driver would see, from 0; None of an operation that is in none. `change` is what to do
    about an operation that is not taken.
    """

    place: Place
    kind: str
    taken: bool
    level: int | None
    rule: str
    partition: int | None = None
    change: str = ""


def verdicts(model: Model, target: Target) -> tuple[Verdict, ...]:
    """The verdict on every operation of a model and its subgraphs, in the order of `every_model`."""
    taker_, hosts, found = taker(target), Hosts.of(every_model(model)), []
    for k, m in enumerate(every_model(model)):
        taken = [taker_(m, n) for n in range(len(m.operations))]
        pieces = partitions(m, taken) if k == 0 else ()
        piece = {n: number for number, piece in enumerate(pieces) for n in piece}
        for n, (o, c) in enumerate(zip(m.operations, m.checked, strict=True)):
            place = Place(k, n, o.op.name.removeprefix("host."), m.origin[n] if m.origin else "")
            levelled = not (o.op.host or o.op.ex or c.level == FeatureLevel.EXPERIMENTAL)
            rule = hosts.why(place.origin, place.name) if o.op.host else broken(o.op, c, target)
            rule = rule or HOLDS * (not taken[n]) or (
                reason(o.op, c) if levelled and c.level > FeatureLevel.LEVEL_1 else home(o.op))
            found.append(Verdict(place, kind(o.op), taken[n], c.level if levelled else None, rule, piece.get(n)))
    return tuple(found)


def home(op: OpDef) -> str:
    """What is said of an operation that needs no level: where it is from."""
    return {"EX": "is of NNAPI-EX", "DENSIFY": "is experimental"}.get(kind(op), "is there from the first level on")


def broken(op: OpDef, c: Checked, target: Target) -> str:
    """Why the device does not take an operation that is none of the host's by itself; empty where it does."""
    return target.fault(op, c).removeprefix(f"{op.name} ")


def taker(target: Target) -> Callable[[Model, int], bool]:
    """Tells of the n-th operation of a model whether the device runs it, with all that its subgraphs hold."""
    whole = dict[int, bool]()

    def taken(m: Model, n: int) -> bool:
        o = m.operations[n]
        inner = [v for i in o.inputs if isinstance(v := m.operands[i].value, Model)]
        for v in inner:
            if id(v) not in whole:
                whole[id(v)] = all(taken(v, k) for k in range(len(v.operations)))
        return not o.op.host and not target.fault(o.op, m.checked[n]) and all(whole[id(v)] for v in inner)
    return taken


def partitions(model: Model, taken: Sequence[bool]) -> tuple[tuple[int, ...], ...]:
    """The operations that a driver would be given at once, by number: the fewest pieces that can run in turn.

    The rule of TFLite's delegates (GraphPartitionNodeSubset): whatever is ready and of one side runs, then what of
    the other side has become ready, and so on.
    """
    makers = {i: n for n, o in enumerate(model.operations) for i in o.outputs}
    needs = [{makers[i] for i in o.inputs if i in makers} for o in model.operations]
    left, done, pieces = list(range(len(needs))), set[int](), list[tuple[int, ...]]()
    side = bool(taken) and taken[0]
    while left:
        piece = tuple(_ready(left, needs, taken, side, done))
        done.update(piece)
        left = [n for n in left if n not in done]
        if piece and side:
            pieces.append(piece)
        side = not side
    return tuple(pieces)


def _ready(left: Sequence[int], needs: Sequence[Collection[int]], taken: Sequence[bool], side: bool,
           done: Collection[int]) -> Iterator[int]:
    """What can run on one side, one after the other, before anything more of the other side does."""
    ran = set(done)
    for n in left:
        if taken[n] == side and all(i in ran for i in needs[n]):
            ran.add(n)
            yield n


def span(model: Model, piece: Sequence[int]) -> tuple[str, str]:
    """The first and the last place of a piece in the source file; numbers of operations where there is none."""
    names = [model.origin[n] for n in piece if model.origin and model.origin[n]]
    return (names[0], names[-1]) if names else (f"operation {piece[0]}", f"operation {piece[-1]}")
