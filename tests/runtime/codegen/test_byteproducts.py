"""Products of matrices of bytes natively: what NumPy gives, to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import EVERY, Net, both, draw, runs

from nnx_convert import OperandCode

Q8, Q8S = (OperandCode[f"TENSOR_QUANT8_{n}"] for n in ("ASYMM", "ASYMM_SIGNED"))


def raw(rng: np.random.Generator, shape: tuple[int, ...], kind: OperandCode) -> np.ndarray:
    """Bytes, many of them the ends of their range."""
    info = np.iinfo(kind.dtype)
    return np.clip(rng.normal(rng.integers(info.min, info.max), 90, shape), info.min, info.max)


def grid(rng: np.random.Generator, kind: OperandCode, scale: float) -> tuple[float, int]:
    info = np.iinfo(kind.dtype)
    return float(np.float32(scale * rng.uniform(0.5, 2))), int(rng.choice([info.min, info.max, *rng.integers(
        info.min, info.max, 3)]))


def turned(shape: tuple[int, ...], turn: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turn else shape


def product(rng: np.random.Generator) -> Net:
    """Matrices of any size, turned or not, some of them repeated, more rows than are brought at once."""
    net, kind, lead = Net(), (Q8, Q8S)[int(rng.integers(0, 2))], tuple(draw(rng, 1, 4, draw(rng, 0, 3, 1)[0]))
    rows, depth, columns = int(rng.choice([1, 3, 4, 17, 70, 131])), *draw(rng, 1, 70, 2)
    adj_x, adj_y, fewer = (bool(rng.integers(2)) for _ in range(3))
    x = net.input(raw(rng, turned((*lead, rows, depth), adj_x), kind), kind, grid(rng, kind, 0.02))
    other = (1,) * len(lead) if fewer else lead
    y = net.input(raw(rng, turned((*other, depth, columns), adj_y), kind), kind, grid(rng, kind, 0.02))
    z = net.op("host.MATMUL", x, y, net.scalar(adj_x), net.scalar(adj_y), shape=(*lead, rows, columns), kind=kind,
               grid=grid(rng, kind, rng.choice([0.002, 0.02, 0.2])))
    net.model = net.finish(z)
    return net


def batch(rng: np.random.Generator) -> Net:
    """NNAPI's own, of signed bytes."""
    net, (batches, rows, depth, columns) = Net(), (*draw(rng, 1, 4, 1), *draw(rng, 1, 40, 3))
    x, y = (net.input(raw(rng, (batches, *size), Q8S), Q8S, grid(rng, Q8S, 0.02))
            for size in ((rows, depth), (columns, depth)))
    net.model = net.finish(net.op("BATCH_MATMUL", x, y, net.scalar(False), net.scalar(True),
                                  shape=(batches, rows, columns), kind=Q8S, grid=grid(rng, Q8S, 0.05)))
    return net


MAKES = {"product": product, "batch": batch}


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    for n, (_, want, got) in enumerate(runs(MAKES[family], machine, 37, 9, 3)):
        np.testing.assert_array_equal(got[0], want[0], err_msg=f"{n}")


@pytest.mark.parametrize(("depth", "there"), [(33025, True), (33030, False)])
def test_no_sum_leaves_its_32_bits(depth: int, there: bool) -> None:
    """All of them as large as they can be."""
    net = Net()
    x, y = (net.input(np.full(size, 255), Q8, (1e-3, 0)) for size in ((1, depth), (depth, 1)))
    model = net.finish(net.op("host.MATMUL", x, y, net.scalar(False), net.scalar(False), shape=(1, 1), kind=Q8,
                              grid=(10.0, 3)))
    want, got, native = both(model, net.given, EVERY["host"], 1)
    assert native == there and np.array_equal(got[0], want[0])
