"""Tiles of bytes: what is cut into them, what they hold, and that they are used where the kernel grants them."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, both
from test_bytes import Net

from nnx_convert.runtime.codegen import machine as machines
from nnx_convert.runtime.codegen.amx import Depth, config, height_of, packed, repeated
from nnx_convert.runtime.codegen.epilogue import dealt, order_of
from nnx_convert.runtime.codegen.machine import AMX, AVX512


@pytest.mark.parametrize(("row", "rows", "height"), [
    (112, 1, 16), (49, 1, 16), (31, 1, 16), (14, 1, 7), (12, 1, 0), (16, 4, 16), (14, 14, 14), (17, 5, 9), (7, 7, 7),
    (6, 40, 0), (16, 1, 8), (40, 3, 14), (9, 1, 0)])
def test_rows_are_cut_into_tiles_of_one_height(row: int, rows: int, height: int) -> None:
    assert height_of(row, rows) == height


@pytest.mark.parametrize(("length", "steps", "size"), [
    (3, 1, 4), (16, 1, 16), (64, 1, 64), (96, 2, 48), (144, 3, 48), (320, 5, 64), (72, 2, 36), (65, 2, 36)])
def test_runs_are_cut_evenly(length: int, steps: int, size: int) -> None:
    depth = Depth.of(3, 100, ((0, length), (7, length)))
    assert (depth.taps, depth.row, depth.runs, depth.steps, depth.size) == (3, 100, (0, 7), steps, size)
    assert depth.whole(length) == (steps == 1 or steps * size == length)


@pytest.mark.parametrize("channels", [5, 16, 33, 64, 100])
@pytest.mark.parametrize("length", [3, 64, 100])
def test_tiles_of_weights_hold_all_weights(channels: int, length: int) -> None:
    w = np.random.default_rng(0).integers(-128, 128, (2, length, channels)).astype(np.int16)
    depth, vectors = Depth.of(2, 0, ((0, length),)), min(4, -(-channels // 16))
    where = order_of(channels, vectors, 16, x86=True)
    found = packed(dealt(w, where), depth, vectors)
    assert found.size == where.size * depth.tiles * depth.size
    assert found.view(np.int8).sum(dtype=np.int64) == w.sum(dtype=np.int64)


def test_a_repeated_tile_has_no_weight_beyond_the_depth() -> None:
    tile = repeated(5, Depth.of(1, 0, ((0, 27),)), 27)
    assert tile.shape == (7, 16, 4) and tile.sum() == 5 * 27 * 16


def test_a_configuration_is_what_the_instruction_reads() -> None:
    found = config(14, 48)
    assert found[0] == 1 and found[16:32].view(np.uint16).tolist() == [64] * 4 + [48] * 2 + [64] * 2
    assert found[48:56].tolist() == [14] * 6 + [12] * 2


#: Images, rows, columns, channels, results, the filter's size, and whether what reads the result wants a border.
SHAPES = [(1, 9, 14, 24, 144, 1, True), (2, 7, 7, 96, 70, 1, True), (2, 7, 7, 40, 64, 1, False),
          (1, 8, 8, 64, 33, 3, False), (1, 5, 40, 3, 16, 3, True), (3, 6, 16, 128, 100, 1, False)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("machine", ["host", "avx2"])
def test_tiles_give_what_numpy_gives(shape: tuple[int, ...], machine: str) -> None:
    n, h, w, c, out, k, border = shape
    for seed in range(6):
        net = Net(np.random.default_rng(seed))
        x = net.input((n, h, w, c))
        y = net.op("CONV_2D", x, *net.weights(x, (out, k, k, c), 0), *map(net.scalar, (k // 2,) * 4 + (1, 1, seed % 4)),
                   shape=(n, h, w, out))
        if seed % 2:
            y = net.op("ADD", y, net.input((n, h, w, out)), net.scalar(0), shape=(n, h, w, out))
        k = 3 if border else 1
        z = net.op("CONV_2D", y, *net.weights(y, (7, k, k, out), 0), *map(net.scalar, (k // 2,) * 4 + (1, 1, 0)),
                   shape=(n, h, w, 7))
        net.finish(z)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + seed % 2)
        assert native == len(net.model.operations)
        np.testing.assert_array_equal(got[0], want[0], err_msg=str(seed))


@pytest.mark.parametrize("granted", [True, False])
def test_a_machine_has_tiles_where_the_kernel_grants_them(granted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "told", lambda: AVX512 | AMX | {"avx512vnni", "amx-bf16"})
    monkeypatch.setattr(machines, "permitted", lambda: granted)
    monkeypatch.setattr(machines.os, "uname", lambda: type("Uname", (), {"machine": "x86_64"}))
    found = machines.host.__wrapped__()
    assert found.amx == granted and any(f.startswith("amx") for f in found.features) == granted
