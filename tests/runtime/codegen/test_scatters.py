"""Elements picked and written one by one, natively: what NumPy gives, to the bit, and what it says of wrong indices."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both, draw, runs
from odd import outcome

from nnx_convert import OperandCode
from nnx_convert.ops.indexing import ADD, REPLACE

KINDS = {n: OperandCode[f"TENSOR_{n}"] for n in ("FLOAT32", "INT32", "FLOAT64", "INT64", "BOOL8", "FLOAT16", "INT16")}
INT32, INT64 = KINDS["INT32"], KINDS["INT64"]
#: What has no arithmetic here is only put in place of others.
MOVED = ("FLOAT16",)
Shape = tuple[int, ...]


def any_of(rng: np.random.Generator, shape: Shape, kind: OperandCode) -> np.ndarray:
    """Numbers whose sums and products are exact."""
    return rng.integers(0, 2 if kind.dtype == bool else 5, shape).astype(kind.dtype)


def indices(rng: np.random.Generator, shape: Shape, size: int, back: bool) -> np.ndarray:
    return rng.integers(-size if back else 0, size, shape)


def along(rng: np.random.Generator) -> Net:
    """Picked and written along any axis, at fewer places than there are along the others."""
    net, shape = Net(), tuple(draw(rng, 1, 9, draw(rng, 1, 5, 1)[0]))
    axis = draw(rng, 0, len(shape), 1)[0]
    some = tuple(int(rng.integers(1, n + 1)) if rng.random() < 0.5 else n for n in shape)
    some = tuple(draw(rng, 1, 12, 1)[0] if n == axis else size for n, size in enumerate(some))
    outs = []
    for name, kind in KINDS.items():
        at = (INT32, INT64)[int(rng.integers(0, 2))]
        x, updates = net.input(any_of(rng, shape, kind), kind), net.input(any_of(rng, some, kind), kind)
        back = net.input(indices(rng, some, shape[axis], True), at)
        fold = REPLACE if name in MOVED else draw(rng, 0, 5, 1)[0]
        outs.append(net.op("SCATTER_ELEMENTS", x, back, updates, *map(net.scalar, (axis - len(shape), fold)),
                           shape=shape, kind=kind))
        there = net.input(indices(rng, some, shape[axis], False), INT32)
        outs.append(net.op("host.GATHER_ELEMENTS", x, there, net.scalar(axis), shape=some, kind=kind))
    net.model = net.finish(*outs)
    return net


def tuples(rng: np.random.Generator) -> Net:
    """Stretches of any length at tuples of any length, several of them at one place; and such added on zeros."""
    net, shape = Net(), (*draw(rng, 1, 5, 2), int(rng.choice([1, 3, 40, 200])))
    lead, count = tuple(draw(rng, 1, 5, draw(rng, 0, 3, 1)[0])), draw(rng, 1, 4, 1)[0]
    outs, wanted = [], lead + shape[count:]
    for name, kind in KINDS.items():
        at = (INT32, INT64)[int(rng.integers(0, 2))]
        where = [np.stack([indices(rng, lead, n, back) for n in shape[:count]], -1) for back in (True, False)]
        x, updates = net.input(any_of(rng, shape, kind), kind), net.input(any_of(rng, wanted or (1,), kind), kind)
        fold = REPLACE if name in MOVED else draw(rng, 0, 5, 1)[0]
        outs.append(net.op("SCATTER_TUPLES", x, net.input(where[0], at), updates, net.scalar(fold), shape=shape,
                           kind=kind))
        if wanted and name not in MOVED:
            outs.append(net.op("SCATTER_ND", net.input(where[1], INT32), updates, net.const(shape, INT32), shape=shape,
                               kind=kind))
    net.model = net.finish(*outs)
    return net


MAKES = {"along": along, "tuples": tuples}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    for net, want, got in runs(MAKES[family], machine, 29, 5, 2):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w, err_msg=f"{net.model.operations[i]}")


def test_what_is_no_number_is_the_least_and_the_most() -> None:
    net, shape = Net(), (2, 3)
    x, updates = net.input(np.full(shape, [1, np.nan, 3])), net.input(np.array([[np.nan, 2, np.inf], [0, 1, np.nan]]))
    at = net.input(np.broadcast_to(np.arange(3), shape), INT64)
    outs = [net.op("SCATTER_ELEMENTS", x, at, updates, net.scalar(1), net.scalar(fold), shape=shape)
            for fold in range(5)]
    want, got, native = both(net.finish(*outs), net.given, MACHINES["host"], 1)
    assert native == 5 and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("wrong", [{5: 4}, {3: -9, 7: -5}, {0: 2 ** 40}, {2: -2 ** 63, 6: 99}, {11: -2 ** 31}, {}])
@pytest.mark.parametrize("name", ["SCATTER_ELEMENTS", "SCATTER_TUPLES", "host.GATHER_ELEMENTS", "SCATTER_ND"])
def test_a_wrong_index_is_told(name: str, wrong: dict[int, int]) -> None:
    """Of several the least of 32 bits, if there is one; by both alike."""
    wide, net = name.startswith("SCATTER_") and name != "SCATTER_ND", Net()
    at = np.zeros(12, np.int64)
    for place, index in wrong.items():
        at[place] = index if wide else np.clip(index, -2 ** 31, 2 ** 31 - 1)
    shape = (4, 4) if name.endswith("ELEMENTS") else (4, 3)
    kind, x = INT64 if wide else INT32, net.input(np.ones(shape))
    if name.endswith("ELEMENTS"):
        where, more = net.input(at.reshape(3, 4), kind), [net.scalar(0)]
        given = [net.input(np.ones((3, 4))), *more, net.scalar(ADD)] if wide else more
        y = net.op(name, x, where, *given, shape=shape if wide else (3, 4))
    else:
        where, updates = net.input(at.reshape(6, 2), kind), net.input(np.ones(6))
        y = net.op(name, *([x, where, updates, net.scalar(ADD)] if wide else
                           [where, updates, net.const(shape, INT32)]), shape=shape)
    model = net.finish(*([y] if wide or name.startswith("host") else [y, net.op("RELU", x, shape=shape)]))
    said = [outcome(model, net.given, backend) for backend in ("numpy", "native")]
    if wrong:
        assert isinstance(said[0], str) and "index" in said[0] and said[0] == said[1]
    else:
        np.testing.assert_array_equal(said[0][0], said[1][0])
