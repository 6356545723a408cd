"""Arrays in files: what a header says and the file does not hold, what grows without end, what is no array."""
from __future__ import annotations

import io
import resource
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nnx_convert import FormatError, Oversized, limited
from nnx_convert.archived import read_archive, read_array
from nnx_convert.reading import DIRECTORY


def npy(shape: str, dtype: object = "<f4", size: int = 0, version: int = 1) -> bytes:
    """A .npy file with `size` bytes of elements."""
    head = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes((version, 0)) + length + head + bytes(size)


#: Files of one array, and what is said of them.
BROKEN: dict[str, tuple[bytes, str]] = {
    "larger than the file": (npy("(1099511627776,)"), "is cut short: its array takes 4,398,046,511,104 bytes, 0 are"),
    "sizes that overflow": (npy("(4294967296, 4294967296, 4294967296)"), "is cut short"),
    "that wrap to nothing": (npy("(4611686018427387904, 4)"), "its array takes 73,786,976,294,838,206,464 bytes"),
    "a negative size": (npy("(-1,)", size=64), "has the shape [-1]"),
    "a size that is true": (npy("(True,)", size=64), "has the shape [True]"),
    "more axes than there are": (npy("(" + "1, " * 99 + ")", size=4), "is no array"),
    "no tuple": (npy("[1]", size=4), "is no array"),
    "objects": (npy("(1,)", "|O", 64), "is an array of objects"),
    "records": (npy("(1,)", [("a", "<f4")], 64), "is an array of records"),
    "records of objects": (npy("(1,)", [("a\x1b", "O")], 64), "is an array of objects"),
    "a strange type": (npy("(1,)", "|V8589934592"), "is no array"),
    "a call": (npy("__import__('os').getcwd()"), "is no array"),
    "deeper than Python": (b"\x93NUMPY\1\0" + struct.pack("<H", 9000) + b"[" * 9000, "is no array"),
    "an endless header": (b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1) + b"{}", "is no array"),
    "a long header": (npy("(1," + " " * 20_000 + ")", size=4, version=2), "is no array"),
    "another version": (b"\x93NUMPY\3\0" + bytes(64), "a header of version 3.0"),
    "nothing more": (b"\x93NUMPY", "is no array")}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_array_is_refused_by_name(name: str, tmp_path: Path) -> None:
    data, said = BROKEN[name]
    (tmp_path / "x.npy").write_bytes(data)
    archive(tmp_path / "x.npz", [("a.npy", npy("(2,)", size=8)), ("b.npy", data)])
    with pytest.raises(FormatError) as error:
        read_array(str(tmp_path / "x.npy"))
    assert said in error.value.text and error.value.where == f"{tmp_path}/x.npy"
    with pytest.raises(FormatError) as error:
        read_archive(str(tmp_path / "x.npz"))
    assert said in error.value.text and error.value.where == f"{tmp_path}/x.npz: array 'b'"
    assert len(str(error.value)) - len(str(tmp_path)) < 400 and str(error.value).isprintable()


def archive(path: Path, members: Sequence[tuple[str, bytes]], how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", how) as made:
        for name, data in members:
            made.writestr(name, data)


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_expands_beyond_its_limit(how: int, tmp_path: Path) -> None:
    archive(tmp_path / "x.npz", [(f"{i}.npy", npy("(4194304,)", "|u1", 1 << 22)) for i in range(4)], how)
    assert (tmp_path / "x.npz").stat().st_size < 1 << 18
    assert len(read_archive(str(tmp_path / "x.npz"))) == 4
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with limited(total_bytes=9 << 20), pytest.raises(Oversized, match=r"array '2'.*total_bytes"):
        read_archive(str(tmp_path / "x.npz"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10


def test_an_array_beyond_its_limit(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy("(3,)", size=12))
    assert read_array(str(tmp_path / "x.npy")).shape == (3,)
    with limited(tensor_bytes=11), pytest.raises(Oversized, match="12 bytes, 11 at most"):
        read_array(str(tmp_path / "x.npy"))


def test_a_member_that_says_more_than_it_holds(tmp_path: Path) -> None:
    """The sizes of a member stand at 22 of its header, at 24 in the directory."""
    archive(tmp_path / "x.npz", [("a.npy", npy("(1048576,)", "|u1", 9))], zipfile.ZIP_STORED)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    for mark, at in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        struct.pack_into("<I", data, data.index(mark) + at, 1 << 21)
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(FormatError):
        read_archive(str(tmp_path / "x.npz"))


def test_bytes_changed_anywhere_do_no_harm(tmp_path: Path) -> None:
    whole, path = io.BytesIO(), tmp_path / "x.npz"
    np.savez_compressed(whole, a=np.arange(50.0), b=np.array(["text"]))
    data, rng, fine = whole.getvalue(), np.random.default_rng(1), 0
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            fine += len(read_archive(str(path))) == 2
        except (FormatError, Oversized) as error:
            assert str(path) in error.where
    assert 0 < fine < len(data)


def test_a_directory_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    archive(path, [("a.npy", npy("()", size=4))])
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\5\6") + 12, DIRECTORY + 1)
    path.write_bytes(data)
    with pytest.raises(FormatError, match="its directory takes 16,777,217 bytes"):
        read_archive(str(path))


def test_names_of_members(tmp_path: Path) -> None:
    array = npy("()", size=4)
    archive(tmp_path / "x.npz", [("../\x1b[31m.npy", array), ("readme.txt", b"text"), ("a", array)])
    assert list(read_archive(str(tmp_path / "x.npz"))) == ["../\x1b[31m"]
    with pytest.warns(UserWarning, match="Duplicate"):
        archive(tmp_path / "y.npz", [("a.npy", array), ("a.npy", array)])
    with pytest.raises(FormatError, match="has the array 'a' twice"):
        read_archive(str(tmp_path / "y.npz"))
