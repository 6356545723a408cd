"""Steps that hold models themselves: IF and WHILE with small bodies."""
from __future__ import annotations

from ..draw import Unfit
from .growing import Growing, Value, step
from .net import Net


def body(m: Growing, inputs: list[Value]) -> tuple[Growing, list[Value]]:
    """A subgraph with inputs of these types and grids."""
    inside = Growing(m.draw, m.dtype, Net())
    made = [inside.made(v.dtype, v.shape, v.low, v.high, scale=v.scale, zero=v.zero) for v in inputs]
    inside.net.inputs = [v.index for v in made]
    inside.values = list(made)
    return inside, made


def closed(m: Growing, inside: Growing, inputs: int, outputs: list[Value]) -> int:
    """The number of a subgraph that is done; `Unfit` where it has inputs or bodies of its own."""
    inside.net.outputs = [v.index for v in outputs]
    if inside.net.bodies or len(inside.net.inputs) != inputs:
        raise Unfit
    m.net.bodies.append(inside.net)
    return len(m.net.bodies)


@step("fqi", range(5))
def condition(m: Growing, x: Value) -> None:
    """IF: in one branch some steps, in the other others, both with an output like x."""
    test = m.pick(lambda v: v.kind == "b" and v.shape == ())
    if test is None:
        test = m.fed("bool", (), m.draw.integers((), 0, 1, "bool"), 0, 1)
    branches = []
    low, high = x.low, x.high
    for _ in range(2):
        inside, (own,) = body(m, [x])
        inside.grow(m.draw.between(0, 2))
        last = inside.pick(lambda v: (v.dtype, v.shape, v.grid) == (x.dtype, x.shape, x.grid)) or own
        if last is own:
            last = inside.op("RESHAPE", [own, inside.ints(list(x.shape))], [inside.like(own)], "ReshapeOptions") \
                if x.shape else own
        low, high = min(low, last.low), max(high, last.high)
        branches.append(closed(m, inside, 1, [last]))
    y = m.made(x.dtype, x.shape, low, high, scale=x.scale, zero=x.zero)
    m.op("IF", [test, x], [y], "IfOptions", {"ThenSubgraphIndex": branches[0], "ElseSubgraphIndex": branches[1]})


@step("f", range(5))
def loop(m: Growing, x: Value) -> None:
    """WHILE: a counter below a bound, and a value that is changed each time."""
    x = m.tamed(x)
    times = m.draw.between(0, 5)
    counter = Value(m.ints(0), "int32", (), None, None, 0, times, constant=True)
    test, (n, _) = body(m, [counter, x])
    truth = test.op("LESS", [n, test.ints(times)], [test.made("bool", (), 0, 1)], "LessOptions")
    cond = closed(m, test, 2, [truth])
    inside, (n, own) = body(m, [counter, x])
    following = inside.op("ADD", [n, inside.ints(1)], [inside.made("int32", (), 0, times + 1)], "AddOptions")
    factor = inside.constant(own, m.draw.broadcast(own.shape), -1, 1)
    last = inside.op("MUL", [own, factor], [inside.made("float32", own.shape, -x.bound, x.bound)], "MulOptions")
    if m.draw.chance(0.5):
        last = inside.op("TANH", [last], [inside.made("float32", own.shape, -1, 1)])
    done = closed(m, inside, 2, [following, last])
    bound = max(x.bound, 1)
    m.op("WHILE", [counter, x], [m.made("int32", (), 0, times + 1), m.made("float32", x.shape, -bound, bound)],
         "WhileOptions", {"CondSubgraphIndex": cond, "BodySubgraphIndex": done})
