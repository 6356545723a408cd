"""Arrays drawn, read and written."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnx_convert import FormatError, InputError, TensorSpec
from nnx_convert.archived import read_archive, read_array
from nnx_convert.arrays import drawn, gathered, write_archive


def spec(dtype: str, shape: tuple[int | None, ...] | None = (400,), name: str = "x") -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, None)


#: dtype -> the least and the greatest value that 400 numbers must come near, and may not pass.
RANGES = {"bool": (0, 1), "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535),
          "int32": (0, 9), "uint32": (0, 9), "int64": (0, 9), "float32": (-5, 5), "float16": (-5, 5),
          "float64": (-5, 5)}


@pytest.mark.parametrize("dtype", RANGES)
def test_values_fill_the_range(dtype: str) -> None:
    low, high = RANGES[dtype]
    found = drawn(spec(dtype), (1, 0), {})
    assert (found.dtype, found.shape) == (np.dtype(dtype), (400,))
    width = high - low
    assert low <= found.min() < low + width / 2 - width / 10
    assert high - width / 2 + width / 10 < found.max() <= high


@pytest.mark.parametrize("dtype", [*RANGES, "complex64"])
def test_a_seed_is_one_set_of_values(dtype: str) -> None:
    assert np.array_equal(drawn(spec(dtype), (1, 0), {}), drawn(spec(dtype), (1, 0), {}))
    assert not np.array_equal(drawn(spec(dtype), (1, 0), {}), drawn(spec(dtype), (1, 1), {}))


@pytest.mark.parametrize("shape", [None, (None, 3)])
def test_open_sizes_have_to_be_given(shape: tuple[int | None, ...] | None) -> None:
    with pytest.raises(InputError, match="--shape x="):
        drawn(spec("float32", shape), (1, 0), {})
    assert drawn(spec("float32", shape), (1, 0), {"x": (2, 3)}).shape == (2, 3)


def test_files_go_before_the_archive_and_that_before_the_seed(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1.0]))
    np.savez(tmp_path / "all.npz", in0=np.array([2.0]), b=np.array([3.0]), in_c=np.array([4.0]))
    specs = [spec("float64", (1,), name) for name in "abcd"]
    single = str(tmp_path / "a.npy")
    found = gathered(specs, {}, {"a": single, "z": single}, str(tmp_path / "all.npz"), 7)
    values = {g.name: (g.array.item(), g.origin.removeprefix(f"{tmp_path}/")) for g in found}
    assert values["a"] == (1.0, "a.npy")
    assert values["b"] == (3.0, "all.npz[b]")
    assert values["c"] == (4.0, "all.npz[in_c]")
    assert values["d"][1] == "seed 7"
    assert "z" in values


ARRAYS = {"file": np.arange(6).reshape(2, 3), "a/b:0": np.array(1.5, np.float32), "none": np.zeros((0, 2), np.int8),
          "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3))}


def test_an_archive_reads_back_and_is_the_same_each_time(tmp_path: Path) -> None:
    size = write_archive(str(tmp_path / "a.npz"), ARRAYS)
    write_archive(str(tmp_path / "b.npz"), ARRAYS)
    data = (tmp_path / "a.npz").read_bytes()
    assert data == (tmp_path / "b.npz").read_bytes()
    assert len(data) == size
    found = read_archive(str(tmp_path / "a.npz"))
    assert list(found) == list(ARRAYS)
    assert all(np.array_equal(found[n], a) and found[n].dtype == a.dtype for n, a in ARRAYS.items())


BROKEN = {"empty": b"", "noise": bytes(range(256)), "a pickle": b"\x80\x04N.", "zip": b"PK\x03\x04" + bytes(40),
          "cut": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }"}


@pytest.mark.parametrize("name", BROKEN)
def test_what_holds_no_arrays_is_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(BROKEN[name])
    for read in (read_array, read_archive):
        with pytest.raises(FormatError, match=r"x\.npz"):
            read(str(path))


def test_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    np.savez(tmp_path / "o.npz", o=np.array([None]), allow_pickle=True)
    with pytest.raises(FormatError):
        read_array(str(tmp_path / "o.npy"))
    with pytest.raises(FormatError):
        read_archive(str(tmp_path / "o.npz"))


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 99)], ids=["encrypted", "compressed strangely"])
def test_an_archive_that_cannot_be_unpacked_is_refused(offset: int, value: int, tmp_path: Path) -> None:
    """The general purpose flags and the method stand at 6 and 8 of a member, two bytes later in the directory."""
    path = tmp_path / "a.npz"
    np.savez(path, x=np.ones(3))
    data = bytearray(path.read_bytes())
    for mark, more in ((b"PK\3\4", 0), (b"PK\1\2", 2)):
        data[data.index(mark) + offset + more] = value
    path.write_bytes(data)
    with pytest.raises((FormatError, InputError)):
        read_archive(str(path))


def test_an_archive_that_memory_does_not_hold_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[io.BytesIO] = []

    class Full(io.BytesIO):
        """The archive does as one that memory does not hold: it is closed."""

        def __init__(self) -> None:
            super().__init__()
            made.append(self)

        def write(self, data: Any, /) -> int:
            if self is made[0] and len(data) > 1000:
                self.close()
                raise MemoryError
            return super().write(data)
    monkeypatch.setattr("nnx_convert.arrays.io.BytesIO", Full)
    with pytest.raises(MemoryError):
        write_archive(str(tmp_path / "a.npz"), {"x": np.zeros(4), "y": np.zeros(1000)})
    assert not list(tmp_path.iterdir())
