"""Steps that hold graphs themselves: If, Loop and Scan with small bodies."""
from __future__ import annotations

from onnx import GraphProto, ValueInfoProto, helper, numpy_helper

from ..draw import Unfit
from .growing import Growing, Value, step, type_code


def body(m: Growing, inputs: list[Value], seen: list[Value]) -> tuple[Growing, list[Value]]:
    """A graph with inputs of these types, which sees some values of the one around it."""
    inside = Growing(m.draw, m.version, m.fresh("b") + "_")
    own = [inside.made(v.dtype, v.shape, v.low, v.high) for v in inputs]
    inside.values = [*seen, *own]
    return inside, own


def graph(inside: Growing, inputs: list[Value], outputs: list[Value]) -> GraphProto:
    """It as ONNX has it; `Unfit` where it has inputs of its own."""
    if inside.given:
        raise Unfit
    return helper.make_graph(
        inside.nodes, inside.prefix, [info(v) for v in inputs], [info(v, False) for v in outputs],
        [numpy_helper.from_array(a, n) for n, a in inside.constants.items()])


def info(v: Value, sized: bool = True) -> ValueInfoProto:
    """A value's name, type and shape."""
    return helper.make_tensor_value_info(v.name, type_code(v.dtype), list(v.shape) if sized else None)


@step("fi", range(5))
def condition(m: Growing, x: Value) -> None:
    """If: some steps on what is around in each branch."""
    if m.prefix:
        raise Unfit
    test = m.pick(lambda v: v.kind == "b" and v.shape == ()) or m.fed(m.draw.integers((), 0, 1, "bool"), 0, 1)
    branches, low, high = [], x.low, x.high
    for _ in range(2):
        inside, _ = body(m, [], [x])
        inside.grow(m.draw.between(0, 2))
        last = inside.pick(lambda v: (v.dtype, v.shape) == (x.dtype, x.shape)) or x
        if last is x:
            last = inside.op("Identity", [x], [inside.like(x)])
        low, high = min(low, last.low), max(high, last.high)
        branches.append(graph(inside, [], [last]))
    m.op("If", [test], [m.made(x.dtype, x.shape, low, high)], then_branch=branches[0], else_branch=branches[1])


@step("f", range(5))
def loop(m: Growing, x: Value) -> None:
    """Loop: a value that changes each time, what it was as a scanned output at times."""
    if m.prefix or not x.size:
        raise Unfit
    x = m.tamed(x)
    times = m.draw.between(1, 5)
    turn, going = Value("", "int64", (), 0, times), Value("", "bool", (), 0, 1)
    inside, own = body(m, [turn, going, x], [])
    inside.values = [own[2]]
    factor = inside.numbers(own[2], m.draw.broadcast(x.shape), -1, 1)
    last = inside.op("Mul", [own[2], factor], [inside.made("float32", x.shape, -x.bound, x.bound)])
    if m.draw.chance(0.5):
        last = inside.simple("Tanh", last, -1, 1)
    still = inside.op("Identity", [own[1]], [inside.made("bool", (), 0, 1)])
    bound = max(x.bound, 1)
    outputs, inner = [m.made("float32", x.shape, -bound, bound)], [still, last]
    if m.draw.chance(0.5):
        inner.append(inside.op("Identity", [last], [inside.like(last)]))
        outputs.append(m.made("float32", (times, *x.shape), -bound, bound))
    m.op("Loop", [m.ints(times), m.constant(True, "bool"), x], outputs, body=graph(inside, own, inner))


@step("f", range(1, 4), since=9)
def scan(m: Growing, x: Value) -> None:
    """Scan: a running value over an axis, either way."""
    if m.prefix or not x.size:
        raise Unfit
    x = m.tamed(x)
    axis = m.draw.between(0, x.rank - 1)
    part = [n for i, n in enumerate(x.shape) if i != axis]
    state = Value("", "float32", tuple(part), -1, 1)
    inside, own = body(m, [state, Value("", "float32", tuple(part), x.low, x.high)], [])
    both = inside.op(m.draw.one(["Add", "Max"]), [own[0], own[1]], [inside.made("float32", part, -1e3, 1e3)])
    following = inside.simple("Tanh", both, -1, 1)
    each = inside.op("Identity", [both], [inside.like(both)])
    bound = x.bound + 1
    m.op("Scan", [m.floats(tuple(part), -1, 1), x],
         [m.made("float32", part, -1, 1), m.made("float32", (x.shape[axis], *part), -bound, bound)],
         body=graph(inside, own, [following, each]), num_scan_inputs=1, scan_input_axes=[axis],
         scan_input_directions=[m.draw.one([0, 1])])
