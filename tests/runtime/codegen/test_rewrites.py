"""Arrays copied but for what a run's numbers say, natively: what NumPy gives, to the bit, and what it says."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, draw, runs
from odd import outcome

from nnx_convert import OperandCode

FLOAT32, FLOAT16, INT32, INT64, BOOL8, FLOAT64 = KINDS = [OperandCode[f"TENSOR_{n}"] for n in (
    "FLOAT32", "FLOAT16", "INT32", "INT64", "BOOL8", "FLOAT64")]
#: Numbers that are beyond every array.
ENDS = {INT32: 2 ** 31 - 1, INT64: 2 ** 63 - 1}


def drawn(rng: np.random.Generator, least: int) -> tuple[Net, tuple[int, ...], OperandCode]:
    """A shape of at least so many axes, and a type."""
    return Net(), tuple(draw(rng, 1, 12, draw(rng, least, 5, 1)[0])), KINDS[int(rng.integers(0, len(KINDS)))]


def any_of(rng: np.random.Generator, net: Net, shape: tuple[int, ...], kind: OperandCode) -> int:
    return net.input(rng.integers(-9, 9, shape) if kind != BOOL8 else rng.random(shape) < 0.5, kind)


def window(rng: np.random.Generator) -> Net:
    """A part written over, some of it beyond the array."""
    net, shape, kind = drawn(rng, 1)
    part = tuple(int(rng.integers(1, n + 1)) if rng.random() < 0.6 else n for n in shape)
    start = rng.integers(-3, 12, len(shape))
    start[0] = rng.choice([start[0], -ENDS[INT32], ENDS[INT32]])
    y = net.op("host.DYNAMIC_UPDATE_SLICE", any_of(rng, net, shape, kind), any_of(rng, net, part, kind),
               net.input(start, INT32), shape=shape, kind=kind)
    net.model = net.finish(y)
    return net


def rows(rng: np.random.Generator) -> Net:
    """Rows written from any of them on, round the end."""
    net, shape, kind = drawn(rng, 2)
    axis, at, circular = draw(rng, 1, len(shape), 1)[0], (INT32, INT64)[int(rng.integers(0, 2))], bool(rng.integers(2))
    count = int(rng.integers(1, shape[axis] + 1))
    part = tuple(count if n == axis else size for n, size in enumerate(shape))
    start = rng.integers(-20, 20, shape[0]) if circular else rng.integers(0, shape[axis] - count + 1, shape[0])
    start[0] = rng.choice([start[0], ENDS[at]]) if circular else start[0]
    y = net.op("WRITE_ROWS", any_of(rng, net, shape, kind), any_of(rng, net, part, kind), net.input(start, at),
               net.scalar(axis - len(shape)), net.scalar(circular), shape=shape, kind=kind)
    net.model = net.finish(y)
    return net


def turned(rng: np.random.Generator) -> Net:
    """The first of each batch back to front, none and all of them as well."""
    net, shape, kind = drawn(rng, 2)
    axis, batch = rng.permutation(len(shape))[:2].tolist()
    lengths = net.input(rng.integers(0, shape[axis] + 1, shape[batch]), INT32)
    y = net.op("host.REVERSE_SEQUENCE", any_of(rng, net, shape, kind), lengths, net.scalar(axis), net.scalar(batch),
               shape=shape, kind=kind)
    net.model = net.finish(y)
    return net


def triangle(rng: np.random.Generator) -> Net:
    """Both sides of any diagonal, and of such as matrices do not have."""
    net, shape, kind = drawn(rng, 2)
    k = rng.choice([*range(-13, 13), ENDS[INT32], -1 - ENDS[INT32]])
    y = net.op("host.TRILU", any_of(rng, net, shape, kind), net.input(np.array([k]), INT32),
               net.scalar(bool(rng.integers(2))), shape=shape, kind=kind)
    net.model = net.finish(y)
    return net


MAKES = {"window": window, "rows": rows, "turned": turned, "triangle": triangle}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    for net, want, got in runs(MAKES[family], machine, 31, 12, 3):
        assert got[0].dtype == want[0].dtype
        np.testing.assert_array_equal(got[0], want[0], err_msg=f"{net.given}")


@pytest.mark.parametrize("starts", [(0, 3), (-1, 0), (2, -2 ** 31), (2 ** 62, 0), (2 ** 62, 9), (1, 2)])
def test_a_row_that_is_none_is_told(starts: tuple[int, int]) -> None:
    net = Net()
    y = net.op("WRITE_ROWS", net.input(np.ones((2, 4))), net.input(np.ones((2, 2))), net.input(np.array(starts), INT64),
               net.scalar(1), net.scalar(False), shape=(2, 4))
    model = net.finish(y)
    said = [outcome(model, net.given, backend) for backend in ("numpy", "native")]
    if starts == (1, 2):
        np.testing.assert_array_equal(said[0][0], said[1][0])
    else:
        assert isinstance(said[0], str) and "index" in said[0] and said[0] == said[1]


@pytest.mark.parametrize("lengths", [(5, 0), (0, -1), (-2 ** 31, 2 ** 31 - 1)])
def test_a_length_that_is_none_is_told(lengths: tuple[int, int]) -> None:
    net = Net()
    y = net.op("host.REVERSE_SEQUENCE", net.input(np.ones((2, 4))), net.input(np.array(lengths), INT32), net.scalar(1),
               net.scalar(0), shape=(2, 4))
    model = net.finish(y)
    said = [outcome(model, net.given, backend) for backend in ("numpy", "native")]
    assert said[0] == said[1] == "NNX402 a length is not in [0, 4]"
