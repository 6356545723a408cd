"""Products by matrices that are mostly zeros, natively against NumPy: every form of block, and when it is taken."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Array, Net, apart, both
from stacks import spilt

from nnx_convert.runtime.codegen import sparse
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import AVX512, Machine, host
from nnx_convert.runtime.codegen.places import Place
from nnx_convert.runtime.codegen.sparse import BLOCKS, FEW, Form, Sparse, best, packed

Rng = np.random.Generator
WIDEST = Machine("x86_64-unknown-linux-gnu", AVX512)


def matrix(rng: Rng, block: tuple[int, int], rows: int, columns: int, density: float) -> Array:
    """A matrix of so many rows and columns of blocks; one row of them is empty, one has all."""
    there = rng.random((rows, columns)) < density
    there[rng.integers(rows)] = False
    there[rng.integers(rows)] |= density > 0
    return (rng.standard_normal((rows * block[0], columns * block[1])) * np.kron(there, np.ones(block))).astype(
        np.float32)


def product(rng: Rng, block: tuple[int, int] | None = None, density: float | None = None) -> Net:
    """A few rows by such a matrix with any number of rows of blocks, which is no trifle."""
    net, few = Net(), int(rng.integers(1, FEW + 1))
    high, wide = block or BLOCKS[rng.integers(len(BLOCKS))]
    columns = int(rng.integers(1, 40))
    rows = -(-sparse.LARGE // (high * wide * columns)) + int(rng.integers(0, 20))
    w = matrix(rng, (high, wide), rows, columns, rng.uniform(0, 0.1) if density is None else density)
    units, depth = w.shape
    y = net.op("FULLY_CONNECTED", net.input(rng.standard_normal((few, depth))), net.const(w),
               net.const(rng.standard_normal(units)), net.scalar(int(rng.integers(0, 4))), shape=(few, units))
    net.model = net.finish(y)
    return net


MAKES = {"sparse": product}


@pytest.mark.parametrize("machine", MACHINES)
def test_native_code_gives_what_numpy_gives(machine: str) -> None:
    rng = np.random.default_rng(7)
    for n in range(16 if machine == "host" else 4):
        net = product(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1, n
        assert apart(got, want) <= NEAR, n


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_block_at_any_density(machine: str, block: tuple[int, int], density: float,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()

    def given(*args: object) -> tuple[int, int]:
        asked.append(args)
        return block
    monkeypatch.setattr(sparse, "best", given)
    net = product(np.random.default_rng(int(10 * density)), block, density)
    want, got, _ = both(net.model, net.given, MACHINES[machine], 2)
    assert asked and apart(got, want) <= NEAR


@pytest.mark.parametrize("block", BLOCKS)
def test_weights_that_are_fetched_ahead(block: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "FAR", 1)
    monkeypatch.setattr(sparse, "best", lambda *_: block)
    net = product(np.random.default_rng(5), block, 0.2)
    want, got, native = both(net.model, net.given, host(), 2)
    assert native == 1 and apart(got, want) <= NEAR


@pytest.mark.parametrize("block", BLOCKS)
def test_a_matrix_shows_its_blocks(block: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    w = matrix(rng, block, 512 // block[0], 512 // block[1], 0.04)
    for few in range(1, FEW + 1):
        found = best(w, few, host())
        assert found is not None and (found == block or block in ((1, 1), (4, 4)))
    assert best(rng.standard_normal(w.shape).astype(np.float32), 1, host()) is None


def test_nothing_is_multiplied_that_is_not_there() -> None:
    net = product(np.random.default_rng(3), (1, 1), 0)
    net.given[0][:] = np.inf
    _, got, _ = both(net.model, net.given, host(), 1)
    assert np.isfinite(got[0]).all()


FORMS = [Form(4, 1, 8, 2, 8), Form(1, 4, 8, 2, 8), Form(1, 4, 16, 4, 4), Form(1, 8, 8, 1, 8), Form(4, 4, 8, 2, 4)]


@pytest.mark.parametrize("density", [0.3, 1])
@pytest.mark.parametrize("form", FORMS)
def test_the_longest_rows_come_first_and_lack_least(form: Form, density: float) -> None:
    w = matrix(np.random.default_rng(1), (form.high, form.wide), 50, 63, density)
    order, bounds, indices, weights = packed(w, form)
    blocks = (w.reshape(50, form.high, 63, form.wide) != 0).any((1, 3)).sum(1)
    steps = -(-blocks // form.blocks)
    first, single, entry = bounds.T
    assert (np.diff(steps[order]) <= 0).all() and len(order) == -(-50 // form.slice) * form.slice
    assert set(order) == set(range(50)) and (np.diff(first) == steps[order[::form.slice]]).all()
    assert (single > first)[:-1].any() == form.runs and len(weights) * 4 == first[-1] * form.bytes
    assert len(indices) == entry[-1] and len(indices) % form.slice == 0


@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize("form", FORMS)
def test_what_steps_read_is_all_of_the_matrix(form: Form, density: float) -> None:
    w = matrix(np.random.default_rng(2), (form.high, form.wide), 50, 63, density)
    order, bounds, indices, weights = packed(w, form)
    steps, found, count = weights.reshape(-1, form.slice, form.bytes // form.slice // 4), np.zeros_like(w), form.blocks
    for n, rows in enumerate(order.reshape(-1, form.slice)):
        first, single, entry = bounds[n]
        for step in range(first, bounds[n + 1][0]):
            for row, values in zip(rows, steps[step], strict=True):
                at = indices[entry:entry + (1 if step < single else count)]
                entry += len(at)
                inputs = at[:, None] + np.arange(form.wide * count // len(at))
                blocks = values.reshape(form.wide, count, form.high).transpose(1, 0, 2) if form.high > 1 else values
                for out in range(form.high):
                    own = blocks[..., out] if form.high > 1 else blocks
                    np.add.at(found[row * form.high + out], inputs.ravel(), own.ravel())
    last = order.tolist().count(order[-1])                       # which fills the last slice
    found.reshape(50, form.high, -1)[order[-1]] /= last
    np.testing.assert_allclose(found, w, rtol=1e-6)


@pytest.mark.parametrize("machine", [*MACHINES.values(), WIDEST])
def test_no_step_spills(machine: Machine) -> None:
    m = Module(machine)
    for block in BLOCKS:
        for few in range(1, FEW + 1):
            x, out = (Place("%arena", at, (1, 1, few, 1024), (0, 0, 4096, 4), 4) for at in (0, 16384))
            form = Form.of(block, few, machine)
            if form.parts * few <= sparse.SUMS:
                for far in (False, True):
                    Sparse(x, out, form, 9, 0, 64, 4096, 8192, 1 << 20, 3, far).emit(m)
    assert not spilt(m)
