"""Arrays that lie in others: joined and cut images, among convolutions and others, with borders and without."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both

from nnx_convert import OperandCode
from nnx_convert.runtime.bind import Options, bind
from nnx_convert.runtime.codegen.copies import Copies
from nnx_convert.runtime.codegen.fusion import groups
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.program import Planner, stretches
from nnx_convert.runtime.codegen.tasks import Workshop, taken
from nnx_convert.runtime.runner import call
from nnx_convert.types import Tensor

INT32, FLOAT32 = OperandCode.TENSOR_INT32, OperandCode.TENSOR_FLOAT32
Image = tuple[int, int]                      # an operand and its channels


class Images(Net):
    """A net of images [n, h, w, channels]."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng, self.size = rng, (int(rng.integers(1, 3)), *(int(v) for v in rng.integers(3, 12, 2)))

    def conv(self, x: Image, k: int, channels: int) -> Image:
        w, b = (self.const(self.rng.standard_normal(s) / (k * x[1] ** 0.5)) for s in (
            (channels, k, k, x[1]), (channels,)))
        p, q = (k - 1) // 2, k // 2
        return self.op("CONV_2D", x[0], w, b, *map(self.scalar, (p, q, p, q, 1, 1, int(self.rng.integers(0, 2)))),
                       shape=(*self.size, channels)), channels

    def depthwise(self, x: Image) -> Image:
        w, b = (self.const(self.rng.standard_normal(s) / 3) for s in ((1, 3, 3, x[1]), (x[1],)))
        return self.op("DEPTHWISE_CONV_2D", x[0], w, b, *map(self.scalar, (1, 1, 1, 1, 1, 1, 1, 0)),
                       shape=(*self.size, x[1])), x[1]

    def pool(self, x: Image) -> Image:
        return self.op("MAX_POOL_2D", x[0], *map(self.scalar, (1, 1, 1, 1, 1, 1, 3, 3, 0)),
                       shape=(*self.size, x[1])), x[1]

    def tanh(self, x: Image) -> Image:
        return self.op("TANH", x[0], shape=(*self.size, x[1])), x[1]

    def add(self, x: Image) -> Image:
        return self.op("ADD", x[0], self.input(self.rng.standard_normal((*self.size, x[1]))), self.scalar(0),
                       shape=(*self.size, x[1])), x[1]

    def one(self, x: Image) -> Image:
        """One operation of those that read images, or write them, by their strides or otherwise."""
        channels = int(self.rng.integers(1, 40))
        makes = (lambda x: self.conv(x, 1, channels), lambda x: self.conv(x, 3, channels), self.depthwise, self.pool,
                 self.tanh, self.add)
        return makes[int(self.rng.integers(0, len(makes)))](x)

    def join(self, xs: Sequence[Image], axis: int = 3) -> Image:
        channels = sum(c for _, c in xs)
        return self.op("CONCATENATION", *(x for x, _ in xs), self.scalar(axis), shape=(*self.size, channels)), channels

    def halves(self, x: Image) -> list[Image]:
        """Two equal parts of the channels, or two by computed sizes."""
        if x[1] % 2 == 0:
            parts = self.ops("SPLIT", x[0], self.scalar(3), self.scalar(2),
                             outs=[((*self.size, x[1] // 2), FLOAT32)] * 2)
            return [(p, x[1] // 2) for p in parts]
        sizes = [1, x[1] - 1]
        parts = self.ops("SPLIT_BY", x[0], self.const(sizes, INT32), self.scalar(3),
                         outs=[((*self.size, n), FLOAT32) for n in sizes])
        return list(zip(parts, sizes, strict=True))


def images(rng: np.random.Generator) -> Net:
    """Layers of images that are joined, and cut, and read by others as well."""
    net = Images(rng)
    there: list[Image] = [(net.input(rng.standard_normal((*net.size, 4))), 4)]
    outs: list[Image] = []
    for _ in range(int(rng.integers(1, 4))):
        made = [net.one(there[int(rng.integers(0, len(there)))]) for _ in range(int(rng.integers(1, 4)))]
        joined = net.join([*made, *([there[-1]] if rng.random() < 0.4 else [])])
        there += [*made, joined]
        if joined[1] > 1 and rng.random() < 0.5:
            there += net.halves(joined)
        outs.append(net.one(there[-1]))
    net.model = net.finish(*(x for x, _ in outs), *([there[-1][0]] if rng.random() < 0.3 else []))
    return net


def rows(rng: np.random.Generator) -> Net:
    """Arrays joined, stacked and cut along their first axis, views of them among these."""
    net, (n, m) = Net(), (int(v) for v in rng.integers(1, 9, 2))
    given = [net.input(rng.standard_normal((n, m))) for _ in range(3)]
    made = [net.op("TANH", x, shape=(n, m)) for x in given]
    flat = net.op("RESHAPE", made[0], net.const([1, n * m], INT32), shape=(1, n * m))
    wide = net.op("CONCATENATION", flat, net.op("RESHAPE", made[1], net.const([1, n * m], INT32), shape=(1, n * m)),
                  flat if rng.random() < 0.3 else net.op("RELU", flat, shape=(1, n * m)), net.scalar(1),
                  shape=(1, 3 * n * m))
    stack = net.op("PACK", net.scalar(0), made[2], net.op("NEG", made[0], shape=(n, m)), shape=(2, n, m))
    parts = net.ops("SPLIT", stack, net.scalar(0), net.scalar(2), outs=[((1, n, m), FLOAT32)] * 2)
    cut = net.op("SLICE", wide, net.const([0, 1 if n * m > 1 else 0], INT32), net.const([1, n * m], INT32),
                 shape=(1, n * m))
    outs = [net.op("EXP", x, shape=s) for x, s in ((parts[1], (1, n, m)), (cut, (1, n * m)), (made[1], (n, m)))]
    net.model = net.finish(*outs, parts[0], wide)
    return net


def written_over(rng: np.random.Generator) -> Net:
    """Rows and elements written over in turn, in what is read once, twice, given, or given back as well."""
    net, (n, m) = Net(), (int(v) for v in rng.integers(2, 9, 2))
    there = [net.input(rng.standard_normal((n, m)))]
    there.append(net.op("TANH", there[0], shape=(n, m)))
    outs = list[int]()
    for _ in range(int(rng.integers(2, 6))):
        x = there[int(rng.integers(0, len(there)))]
        if rng.random() < 0.5:
            start = net.input(rng.integers(-1, n, 2), INT32)
            y = net.op("host.DYNAMIC_UPDATE_SLICE", x, net.input(rng.standard_normal((1, m - 1))), start, shape=(n, m))
        else:
            at = net.input(rng.integers(0, n, (3, 1)), INT32)
            y = net.op("SCATTER_TUPLES", x, at, net.input(rng.standard_normal((3, m))), net.scalar(1), shape=(n, m))
        there.append(net.op("NEG", y, shape=(n, m)) if rng.random() < 0.5 else y)
        if rng.random() < 0.3:
            outs.append(there[-1])
    net.model = net.finish(*dict.fromkeys((*outs, there[-1])))
    return net


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("make", [images, rows, written_over], ids=lambda m: m.__name__)
def test_native_code_gives_what_numpy_gives(make: type[Net], machine: str) -> None:
    rng = np.random.default_rng(23)
    for n in range(40 if machine == "host" else 6):
        net = make(rng)
        want, got, _ = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert apart(got, want) <= NEAR, n


def tasks(net: Net, machine: Machine) -> list[object]:
    """The native tasks of a net."""
    tensors = [Tensor(net.model.operands[i].type, a.shape) for i, a in zip(net.model.inputs, net.given, strict=True)]
    program = bind(net.model, tensors, Options(1, call, elsewhere=lambda b: taken(b, machine)))
    planner = Planner(program, machine, 1)
    layout = planner.layout(list(groups(program, machine)))
    found = stretches(layout, planner, Workshop(machine, layout.places, program.constants, layout.fault))
    return [task for part in found if isinstance(part, list) for task in part]


def test_what_is_joined_and_cut_is_not_copied() -> None:
    """Two branches of convolutions of a joined image, one of which wants a border, and halves of it."""
    net = Images(np.random.default_rng(1))
    x = net.input(net.rng.standard_normal((*net.size, 4))), 4
    joined = net.join([net.conv(x, 1, 16), net.conv(x, 3, 16)])
    outs = [net.conv(part, 3, 8) for part in (joined, *net.halves(joined))]
    net.model = net.finish(*(y for y, _ in outs))
    assert not any(isinstance(task, Copies) for task in tasks(net, MACHINES["host"]))
    want, got, native = both(net.model, net.given, MACHINES["host"], 2)
    assert native == len(net.model.operations) and apart(got, want) <= NEAR


@pytest.mark.parametrize(("given", "read", "copied"), [(False, False, 0), (True, False, 1), (False, True, 1)])
def test_what_is_written_over_is_copied_where_somebody_else_has_it(given: bool, read: bool, copied: int) -> None:
    net, rng = Net(), np.random.default_rng(0)
    first = net.input(rng.standard_normal((5, 3)))
    rows = first = first if given else net.op("NEG", first, shape=(5, 3))
    for _ in range(2):
        rows = net.op("host.DYNAMIC_UPDATE_SLICE", rows, net.input(rng.standard_normal((1, 3))),
                      net.input(rng.integers(0, 5, 2), INT32), shape=(5, 3))
    net.model = net.finish(rows, *([net.op("NEG", first, shape=(5, 3))] if read else []))
    assert sum(isinstance(task, Copies) for task in tasks(net, MACHINES["host"])) == copied
    want, got, _ = both(net.model, net.given, MACHINES["host"], 1)
    assert apart(got, want) == 0
