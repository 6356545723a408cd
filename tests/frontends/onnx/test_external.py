"""External data: what may be opened, and what is said of the rest."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nnx_convert.errors import FormatError, Unsupported
from nnx_convert.frontends.onnx.external import Folder
from nnx_convert.frontends.onnx.weights import OWN
from nnx_convert.reading import SMALL, refuse

DATA = np.arange(256, dtype=np.uint8)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A model's folder, with a file of 256 bytes in it and one beside it."""
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    for path in (folder / "w.bin", folder / "deep" / "w.bin", tmp_path / "secret.bin"):
        path.write_bytes(DATA.tobytes())
    return folder


@pytest.mark.parametrize(("told", "size", "first"), [
    ({"location": "w.bin"}, 256, 0), ({"location": "w.bin", "length": "0"}, 4, 0),
    ({"location": "w.bin", "offset": "3", "length": "5", "checksum": "wrong"}, 5, 3),
    ({"location": "deep/w.bin", "offset": "255"}, 1, 255), ({"location": "./deep//w.bin", "offset": "256"}, 0, 0),
    ({OWN: "7", "length": "2"}, 2, 7)], ids=str)
def test_what_is_there(place: Path, told: dict[str, str], size: int, first: int) -> None:
    folder = Folder(place, DATA.tobytes())
    assert folder.bytes(told, size).tolist() == list(range(first, first + size))


def test_a_large_file_is_mapped_once_at_any_offset(place: Path) -> None:
    (place / "large.bin").write_bytes(DATA.tobytes() * (SMALL // 128))
    folder = Folder(place)
    found = [folder.bytes({"location": "large.bin", "offset": str(at)}, 8) for at in (0, 4097, 2 * SMALL - 8)]
    assert [int(f[0]) for f in found] == [0, 1, 248] and len(folder.opened) == 1
    assert not any(f.flags.owndata or f.flags.writeable for f in found)


def test_a_link_within_the_folder(place: Path) -> None:
    (place / "link.bin").symlink_to("deep/w.bin")
    assert Folder(place).bytes({"location": "link.bin"}, 1).tolist() == [0]


def test_a_folder_that_is_a_link(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to("model")
    assert Folder(tmp_path / "other").bytes({"location": "w.bin"}, 1).tolist() == [0]


@pytest.mark.parametrize(("location", "said"), [
    ("", "no name"), ("w\0.bin", "no name"), ("../secret.bin", "'..'"), ("deep/../w.bin", "'..'"),
    ("deep\\..\\..\\secret.bin", "'..'"), ("/etc/passwd", "absolute"), ("\\w.bin", "absolute"),
    ("C:w.bin", "absolute"), ("C:\\w.bin", "absolute"), ("//host/w.bin", "absolute"), ("..", "'..'"),
    ("deep", "a folder"), (".", "a folder"), ("none.bin", "no such file"), ("none/w.bin", "no such file"),
    ("w.bin/x", "cannot be read"), ("x" * 5000, "cannot be read")], ids=lambda v: v[:12])
def test_names_that_are_refused(place: Path, location: str, said: str) -> None:
    with pytest.raises(FormatError) as found:
        Folder(place).bytes({"location": location}, 1)
    assert said in str(found.value) and len(str(found.value)) < 400


def _outward(place: Path) -> None:
    (place / "bad").symlink_to("../secret.bin")


def _outward_folder(place: Path) -> None:
    (place / "up").symlink_to("..")
    (place / "bad").symlink_to("up/secret.bin")


def _to_a_device(place: Path) -> None:
    (place / "bad").symlink_to("/dev/zero")


def _hard(place: Path) -> None:
    os.link(place.parent / "secret.bin", place / "bad")


def _pipe(place: Path) -> None:
    os.mkfifo(place / "bad")


def _circle(place: Path) -> None:
    (place / "bad").symlink_to("bad")


@pytest.mark.parametrize(("make", "said"), [
    (_outward, "leads out of the model's folder"), (_outward_folder, "leads out of the model's folder"),
    (_to_a_device, "leads out of the model's folder"), (_hard, "several hard links"), (_pipe, "no plain file"),
    (_circle, "cannot be read")], ids=lambda v: getattr(v, "__name__", ""))
def test_files_that_are_refused(place: Path, make: Callable[[Path], None], said: str) -> None:
    make(place)
    with pytest.raises(FormatError) as found:
        Folder(place).bytes({"location": "bad"}, 1)
    assert said in str(found.value)


@pytest.mark.parametrize(("told", "size", "said"), [
    ({"offset": "-1"}, 1, "the offset of its external data is '-1'"), ({"offset": "1_0"}, 1, "is '1_0'"),
    ({"length": "x"}, 1, "the length of its external data is 'x'"), ({"length": "4"}, 8, "take 8 bytes"),
    ({"offset": "250"}, 7, "bytes 250 to 257 of 'w.bin', which has 256"), ({"offset": "9" * 18}, 1, "has 256"),
    ({"offset": "9" * 30}, 1, "the offset"), ({"offset": "257"}, 0, "has 256")], ids=str)
def test_places_that_are_refused(place: Path, told: dict[str, str], size: int, said: str) -> None:
    with pytest.raises(FormatError) as found:
        Folder(place).bytes({"location": "w.bin", **told}, size)
    assert said in str(found.value)


def test_bytes_have_no_folder() -> None:
    with pytest.raises(Unsupported, match="given as bytes has no folder"):
        Folder(None).bytes({"location": "w.bin"}, 1)


def test_a_plain_name_is_not_refused() -> None:
    refuse("weights/..data.bin", "its external data are")
