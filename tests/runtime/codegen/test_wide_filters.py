"""Filters of more cells in a row than have code of their own, natively: what NumPy gives, by code of any filter's size.

A row's cells are apart where the filter is dilated, or where it reads some channels of each.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_bytes
from natively import EVERY, MACHINES, NEAR, Array, Net, apart, both, left_to

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen import program
from nnx_convert.runtime.codegen.ir import UNROLLED
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.program import segments

#: Cells in a row; rows of images, columns of results, filters' rows, channels and units.
WIDE = UNROLLED + 3
H, COLUMNS, KH, DEPTH, UNITS = 3, 20, 2, 6, 10
#: A hybrid convolution's scheme of padding.
VALID = 2


def grouped(net: Any, x: int, filters: tuple[int, int]) -> int:
    """Two groups of channels."""
    y = net.op("GROUPED_CONV_2D", x, *filters, *map(net.scalar, (0, 0, 0, 0, 1, 1, 2, 0, False)),
               shape=(1, H - KH + 1, COLUMNS, UNITS))
    return int(y)


def dilated(net: Any, x: int, filters: tuple[int, int]) -> int:
    """Every second column."""
    y = net.op("CONV_2D", x, *filters, *map(net.scalar, (0, 0, 0, 0, 1, 1, 0, False, 2, 1)),
               shape=(1, H - KH + 1, COLUMNS, UNITS))
    return int(y)


def image(kind: Any, wide: int) -> tuple[int, ...]:
    """The shape of what so wide filters make so many columns of."""
    return 1, H, COLUMNS + (wide - 1) * (1 if kind is grouped else 2), DEPTH


def floats(kind: Any, wide: int) -> Net:
    net, rng = Net(), np.random.default_rng(wide)
    shape = UNITS, KH, wide, DEPTH // 2 if kind is grouped else DEPTH
    x = net.input(rng.standard_normal(image(kind, wide)))
    filters = net.const(rng.standard_normal(shape)), net.const(rng.standard_normal(UNITS))
    net.model = net.finish(kind(net, x, filters))
    return net


def of_bytes(kind: Any, wide: int, seed: int) -> test_bytes.Net:
    net = test_bytes.Net(np.random.default_rng(seed))
    x = net.input(image(kind, wide))
    net.finish(kind(net, x, net.weights(x, (UNITS, KH, wide, DEPTH // 2 if kind is grouped else DEPTH), 0)))
    return net


def hybrid(wide: int, seed: int) -> Net:
    net, rng = Net(), np.random.default_rng(seed)
    x = net.input(rng.standard_normal(image(dilated, wide)))
    w = net.const(rng.integers(-127, 128, (UNITS, KH, wide, DEPTH)), OperandCode.TENSOR_QUANT8_ASYMM_SIGNED, (0.005, 0))
    y = net.op("HYBRID_CONV_2D", x, w, net.nothing(), *map(net.scalar, (VALID, 1, 1, 2, 1, 1, True, 0)),
               shape=(1, H - KH + 1, COLUMNS, UNITS))
    net.model = net.finish(y)
    return net


def answers(net: Any, machine: str) -> tuple[list[Array], list[Array]]:
    want, got, native = both(net.model, net.given, EVERY[machine], 1)
    assert native == 1
    return want, got


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("kind", [grouped, dilated])
def test_floats(kind: Any, machine: str) -> None:
    want, got = answers(floats(kind, WIDE), machine)
    assert apart(got, want) <= NEAR


@pytest.mark.parametrize("machine", EVERY)
@pytest.mark.parametrize("kind", [grouped, dilated])
def test_bytes_are_equal(kind: Any, machine: str) -> None:
    for seed in range(4):
        want, got = answers(of_bytes(kind, WIDE, seed), machine)
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_floats_by_bytes_are_equal(machine: str) -> None:
    for seed in range(4):
        want, got = answers(hybrid(WIDE, seed), machine)
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("make", [lambda n: floats(grouped, n), lambda n: floats(dilated, n),
                                  lambda n: of_bytes(grouped, n, 0), lambda n: of_bytes(dilated, n, 0),
                                  lambda n: hybrid(n, 0)], ids=["grouped", "dilated", "grouped bytes", "dilated bytes",
                                                                "hybrid"])
def test_code_does_not_grow_with_the_filter(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[int]()

    def counted(found: Any, machine: Any) -> list[str]:
        texts = segments(found, machine)
        sizes.append(sum(text.count("\n") for text in texts))
        return texts
    monkeypatch.setattr(program, "segments", counted)
    for wide in (WIDE, WIDE + 4):
        net = make(wide)
        program.NativeProgram(left_to(net.model, net.given, host()), host(), 1)
    assert abs(sizes[1] - sizes[0]) <= 20
