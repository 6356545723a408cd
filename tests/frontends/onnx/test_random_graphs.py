"""Graphs drawn of image operators and of operators that name axes: the layout must not be seen in any answer."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from one_node import model

import nnx_convert

Array = np.ndarray[Any, Any]
#: A value's name and what it is.
Named = tuple[str, Array]
MOST = 4000


@dataclass
class Drawing:
    """A graph as it grows, each value computed as it comes."""

    rng: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    values: list[Named] = field(default_factory=list)

    def f(self, *shape: int) -> Array:
        """Numbers drawn."""
        return self.rng.normal(size=shape).astype(np.float32) * np.float32(0.5)

    def below(self, n: int) -> int:
        """A number."""
        return int(self.rng.integers(n))

    def constant(self, x: Array) -> Named:
        """A named constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = x
        return name, x

    def add(self, op: str, *inputs: Named | Array, **attributes: Any) -> None:
        """One more node with one output."""
        given = [v if isinstance(v, tuple) else self.constant(v) for v in inputs]
        node = helper.make_node(op, [n for n, _ in given], [f"v{len(self.nodes)}"], **attributes)
        alone = model([node], [(n, 1 if v.dtype == np.float32 else 7, v.shape) for n, v in dict(given).items()],
                      [(node.output[0], 1, None)], 14)
        found = np.asarray(ReferenceEvaluator(alone).run(None, dict(given))[0])
        if 0 < found.size <= MOST and np.isfinite(found).all():
            self.nodes.append(node)
            self.values.append((node.output[0], found))


Step = Callable[[Drawing, Named], None]
STEPS: list[Step] = []


def step(rank: int = 1, times: int = 1) -> Callable[[Step], Step]:
    """Register a step for values of at least so many axes, of four where it says so."""
    def register(fn: Step) -> Step:
        def fitting(d: Drawing, v: Named) -> None:
            if v[1].ndim >= rank and (rank < 4 or v[1].ndim == 4):
                fn(d, v)
        STEPS.extend([fitting] * times)
        return fn
    return register


@step(4, 4)
def convolution(d: Drawing, v: Named) -> None:
    channels, pad, stride = v[1].shape[1], d.below(2), 1 + d.below(2)
    group = channels if d.below(3) == 0 else 1
    if min(v[1].shape[2:]) + 2 * pad >= 3:
        d.add("Conv", v, d.f(group * (1 + d.below(3)), channels // group, 3, 3), pads=[pad] * 4, strides=[stride] * 2,
              group=group)


@step(4)
def pool(d: Drawing, v: Named) -> None:
    if min(v[1].shape[2:]) >= 2:
        d.add(("MaxPool", "AveragePool")[d.below(2)], v, kernel_shape=[2, 2], strides=[2, 2])


@step(4)
def blocks(d: Drawing, v: Named) -> None:
    if v[1].shape[1] % 4 == 0:
        d.add("DepthToSpace", v, blocksize=2, mode=("DCR", "CRD")[d.below(2)])


@step(4)
def whole_image(d: Drawing, v: Named) -> None:
    d.add(("GlobalAveragePool", "GlobalMaxPool")[d.below(2)], v)


@step(4)
def normalisation(d: Drawing, v: Named) -> None:
    n = v[1].shape[1]
    d.add("BatchNormalization", v, d.f(n), d.f(n), d.f(n), np.abs(d.f(n)) + np.float32(0.5))


@step(2, 2)
def transposition(d: Drawing, v: Named) -> None:
    d.add("Transpose", v, perm=d.rng.permutation(v[1].ndim).tolist())


@step(2, 2)
def reshape(d: Drawing, v: Named) -> None:
    shape, at = list(v[1].shape), d.below(v[1].ndim - 1)
    merged, halved = [*shape[:at], -1, *shape[at + 2:]], [*shape[:at], 2, -1, *shape[at + 1:]]
    d.add("Reshape", v, np.array(halved if shape[at] % 2 == 0 and d.below(2) else merged))


@step(times=3)
def arithmetic(d: Drawing, v: Named) -> None:
    shape = v[1].shape[d.below(v[1].ndim):]
    other = d.f(*(n if d.below(2) else 1 for n in shape))
    pair = (v, d.constant(other))
    d.add(("Add", "Mul", "Sub", "Min")[d.below(4)], *(pair if d.below(2) else pair[::-1]))


@step()
def two_values(d: Drawing, v: Named) -> None:
    same = [u for u in d.values if u[1].shape == v[1].shape]
    d.add(("Add", "Mul", "Max")[d.below(3)], v, same[d.below(len(same))])


@step()
def reduction(d: Drawing, v: Named) -> None:
    axes = d.rng.permutation(v[1].ndim)[:1 + d.below(2)] - v[1].ndim * d.below(2)
    d.add(("ReduceMean", "ReduceMax", "ReduceL2")[d.below(3)], v, axes=axes.tolist(), keepdims=d.below(2))


@step()
def softmax(d: Drawing, v: Named) -> None:
    d.add("Softmax", v, axis=d.below(v[1].ndim))


@step()
def together(d: Drawing, v: Named) -> None:
    d.add("Concat", v, v, axis=d.below(v[1].ndim))


@step()
def part(d: Drawing, v: Named) -> None:
    back = d.below(2)
    d.add("Slice", v, np.array([-1 if back else 0]), np.array([-1000 if back else 1000]),
          np.array([d.below(v[1].ndim)]), np.array([-1 if back else 2]))


@step()
def gather(d: Drawing, v: Named) -> None:
    axis = d.below(v[1].ndim)
    d.add("Gather", v, d.rng.integers(-v[1].shape[axis], v[1].shape[axis], 3), axis=axis)


@step(2)
def product(d: Drawing, v: Named) -> None:
    d.add("MatMul", v, d.f(v[1].shape[-1], 3))


@step()
def padding(d: Drawing, v: Named) -> None:
    d.add("Pad", v, d.rng.integers(0, 2, 2 * v[1].ndim), mode=("constant", "edge")[d.below(2)])


@pytest.mark.parametrize("seed", range(40))
def test_the_layout_is_not_seen(seed: int) -> None:
    d = Drawing(np.random.default_rng(seed))
    x = d.f(1 + seed % 2, (2, 3, 4, 6)[d.below(4)], (4, 6, 8)[d.below(3)], (4, 6, 8)[d.below(3)])
    d.values.append(("x", x))
    for _ in range(4 + d.below(10)):
        STEPS[d.below(len(STEPS))](d, d.values[max(len(d.values) - 1 - d.below(4), 0)])
    read = {n for node in d.nodes for n in node.input}
    want = {n: v for n, v in d.values if n not in read and n != "x"} or {"x": x}
    made = model(d.nodes, [("x", 1, x.shape)], [(n, 1, None) for n in want], 14,
                 initializer=[numpy_helper.from_array(v, n) for n, v in d.constants.items()])
    found = nnx_convert.compile(made.SerializeToString(), threads=1).run({"x": x})
    for name, answer in want.items():
        np.testing.assert_allclose(found[name], answer, rtol=1e-4, atol=1e-4 * max(1, float(np.abs(answer).max())))
