"""FLOAT16 natively: conversions to the bit, and every row of the table that has it against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both
from placed import rows, wrong

from nnx_convert import OperandCode

FLOAT16, FLOAT32 = OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_FLOAT32
#: Every number that FLOAT16 has, those that are none among them.
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def conversions(rng: np.random.Generator) -> Net:
    """Sums, products and casts of arrays that broadcast, both ways."""
    shape, net = tuple(rng.integers(1, 30, rng.integers(1, 4)).tolist()), Net()
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)
    x, y = (net.input(rng.choice(ALL, s), FLOAT16) for s in (shape, other))
    outs = [net.op(n, x, y, net.scalar(0), shape=shape, kind=FLOAT16) for n in ("ADD", "SUB", "MUL", "DIV")]
    outs += [net.op("MAXIMUM", x, y, shape=shape, kind=FLOAT16), net.op("CAST", x, shape=shape),
             net.op("CAST", net.input(rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)), shape=shape,
                    kind=FLOAT16)]
    net.model = net.finish(*outs)
    return net


MAKES = {"conversions": conversions}


@pytest.mark.parametrize("machine", MACHINES)
def test_sums_and_products_are_those_of_numpy(machine: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(12):
        net = conversions(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_is_converted_both_ways(machine: str) -> None:
    wide = ALL.astype(np.float32)
    with np.errstate(all="ignore"):
        beside = np.nextafter(wide, np.float32(np.inf)), np.nextafter(wide, np.float32(-np.inf))
        between = (wide[:-1] + wide[1:]) / 2
    given = np.concatenate([wide, *beside, between])
    for name, values, kind in ((FLOAT32, ALL, FLOAT16), (FLOAT16, given, FLOAT32)):
        net = Net()
        model = net.finish(net.op("CAST", net.input(values, kind), shape=values.shape, kind=name))
        want, got, native = both(model, net.given, MACHINES[machine], 2)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("machine", ["host", "baseline"])
def test_rows_of_the_table_give_what_numpy_gives(machine: str) -> None:
    found = [c for c in rows(MACHINES[machine]) if any(o.type == FLOAT16 for o in c.model.operands)]
    assert len(found) > 60
    for case in found:
        want, got, _ = both(case.model, case.given, MACHINES[machine], 1)
        assert not wrong(got, want), case.name
