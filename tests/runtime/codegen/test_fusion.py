"""Which operations become one function, and that it gives what NumPy gives."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, Net, apart, both

from nnx_convert import Model, OperandCode
from nnx_convert.runtime.bind import Options, bind
from nnx_convert.runtime.codegen.fusion import groups
from nnx_convert.runtime.codegen.tasks import Group, taken
from nnx_convert.runtime.runner import call

INT32 = OperandCode.TENSOR_INT32
Q8, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
#: Rows of channels that operations of elements see as an image.
ROWS, IMAGE = (12, 20), (1, 3, 4, 20)


def dense(net: Net, rng: np.random.Generator) -> int:
    """Rows by a constant matrix."""
    w, b = net.const(rng.standard_normal((20, 7))), net.const(rng.standard_normal(20))
    return net.op("FULLY_CONNECTED", net.input(rng.standard_normal((12, 7))), w, b, net.scalar(0), shape=ROWS)


def pair(net: Net, name: str, x: int, y: int, shape: tuple[int, ...] = IMAGE) -> int:
    return net.op(name, x, y, net.scalar(0), shape=shape)


def seen(net: Net, x: int, shape: tuple[int, ...] = IMAGE) -> int:
    """The same elements in another shape."""
    return net.op("RESHAPE", x, net.const(shape, INT32), shape=shape)


def gelu(net: Net, rng: np.random.Generator) -> list[int]:
    """By tanh, with its argument read four times."""
    x = seen(net, dense(net, rng))
    cube = pair(net, "MUL", pair(net, "MUL", x, x), x)
    inner = pair(net, "ADD", x, pair(net, "MUL", cube, net.const([0.044715])))
    curve = net.op("TANH", pair(net, "MUL", inner, net.const([0.7978846])), shape=IMAGE)
    return [pair(net, "MUL", pair(net, "MUL", x, net.const([0.5])), pair(net, "ADD", curve, net.const([1.0])))]


def residual(net: Net, rng: np.random.Generator) -> list[int]:
    """x * logistic(x), scaled by channel, added to what has the image's shape, and seen as rows again."""
    x = seen(net, dense(net, rng))
    y = pair(net, "MUL", x, net.op("LOGISTIC", x, shape=IMAGE))
    y = pair(net, "MUL", y, net.const(rng.standard_normal((1, 1, 1, 20))))
    return [seen(net, pair(net, "ADD", net.input(rng.standard_normal(IMAGE)), y), (6, 40))]


def twice(net: Net, rng: np.random.Generator) -> list[int]:
    """A sum of two products is done by the later one."""
    return [net.op("RELU", pair(net, "ADD", dense(net, rng), dense(net, rng), ROWS), shape=ROWS)]


def given_away(net: Net, rng: np.random.Generator) -> list[int]:
    """What is an output is stored, and what reads it is a function of its own."""
    x = dense(net, rng)
    return [x, net.op("RELU", x, shape=ROWS)]


def broad(net: Net, rng: np.random.Generator) -> list[int]:
    """A number a row is no part of what is done to products, and none of what changes its shape."""
    x = seen(net, pair(net, "ADD", dense(net, rng), net.input(rng.standard_normal((12, 1))), ROWS))
    return [net.op("TANH", pair(net, "MUL", x, net.input(rng.standard_normal((1, 3, 1, 1)))), shape=IMAGE)]


def regridded(net: Net, rng: np.random.Generator) -> list[int]:
    """Bytes without a sign, as reals, as bytes with one; reals that are told end the first."""
    outs = list[int]()
    for told in (False, True):
        x = net.input(rng.integers(0, 256, ROWS), Q8, (0.5, 128))
        reals = net.op("DEQUANTIZE", x, shape=ROWS)
        outs += [net.op("host.QUANTIZE", reals, shape=ROWS, kind=Q8S, grid=(0.5, 0)), *([reals] if told else [])]
    return outs


def every_other(net: Net, x: int, axis: int, shape: tuple[int, ...], cut: tuple[int, ...]) -> int:
    """Every other element of an image along an axis."""
    lists = (net.const(v, INT32) for v in ([0] * 4, shape, [1 + (a == axis) for a in range(4)]))
    return net.op("STRIDED_SLICE", x, *lists, *map(net.scalar, (0, 0, 0)), shape=cut)


def views(net: Net, rng: np.random.Generator) -> list[int]:
    """Rows and then cells left out, axes turned; where elements are seen in another shape, a function ends."""
    x = net.input(rng.standard_normal((1, 6, 8, 20)))
    x = every_other(net, every_other(net, x, 1, (1, 6, 8, 20), (1, 3, 8, 20)), 2, (1, 3, 8, 20), IMAGE)
    x = net.op("TRANSPOSE", x, net.const((0, 3, 1, 2), INT32), shape=(1, 20, 3, 4))
    return [net.op("TRANSPOSE", seen(net, x, (20, 12)), net.const((1, 0), INT32), shape=ROWS)]


Make = Callable[[Net, np.random.Generator], list[int]]
#: How many operations of each case its functions do, in order.
CASES: list[tuple[Make, list[int]]] = [
    (gelu, [10]), (residual, [5]), (twice, [1, 3]), (given_away, [1, 1]), (broad, [1, 1, 2]),
    (regridded, [2, 1, 1]), (views, [3, 1])]


def found(model: Model, shapes: list[tuple[int, ...]]) -> list[Group]:
    tensors = [model.operands[i].tensor() for i in model.inputs]
    assert [t.shape for t in tensors] == shapes
    machine = MACHINES["host"]
    program = bind(model, tensors, Options(1, call, elsewhere=lambda b: taken(b, machine)))
    return [unit for unit in groups(program, machine) if isinstance(unit, Group)]


@pytest.mark.parametrize(("make", "sizes"), CASES, ids=[make.__name__ for make, _ in CASES])
@pytest.mark.parametrize("machine", MACHINES)
def test_operations_become_one_function(make: Make, sizes: list[int], machine: str) -> None:
    net = Net()
    model = net.finish(*make(net, np.random.default_rng(3)))
    assert [len(g.members) for g in found(model, [g.shape for g in net.given])] == sizes
    for threads in (1, 2):
        want, got, _ = both(model, net.given, MACHINES[machine], threads)
        assert apart([g.astype(float) for g in got], [w.astype(float) for w in want]) <= 1e-6
