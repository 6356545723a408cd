"""Files that are read: plain ones, within limits, and nobody is waited for; by every command that reads one."""
from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from nnx_convert import ArtifactError, FormatError, NnxError, Oversized, UsageError, from_json, limited, load
from nnx_convert.archived import read_archive, read_array
from nnx_convert.ci import settings
from nnx_convert.convert import read
from nnx_convert.device_limits import read as read_target
from nnx_convert.reading import LARGEST_TOML, json, mapped, text, toml
from nnx_convert.record.reading import read_record


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _socket(place: Path) -> None:
    before = os.getcwd()
    os.chdir(place.parent)                         # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(place.name)
    finally:
        os.chdir(before)


def _device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _circle(place: Path) -> None:
    place.symlink_to(place.name)


#: What a name may stand for that is no plain file, and what is said of it.
KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder": (Path.mkdir, "it is a folder"), "pipe": (_pipe, "it is no plain file"),
    "socket": (_socket, "cannot be read"), "device": (_device, "it is no plain file"),
    "circle": (_circle, "cannot be read"), "nothing": (lambda place: None, "No such file")}
#: Whatever reads a file by its path.
READERS: dict[str, Callable[[str], object]] = {
    "read": read, "load": load, "from_json": from_json, "mapped": mapped, "text": text, "toml": toml,
    "array": read_array, "archive": read_archive, "target": read_target, "ci": settings.load}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_refused_at_once(kind: str, reader: str, tmp_path: Path) -> None:
    make, said = KINDS[kind]
    make(tmp_path / "m")
    handles = len(os.listdir("/proc/self/fd"))
    with pytest.raises((FormatError, UsageError)) as error:
        READERS[reader](str(tmp_path / "m"))
    assert said in error.value.text and error.value.where == str(tmp_path / "m")
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_record_whose_files_are_none(tmp_path: Path) -> None:
    _pipe(tmp_path / "model.json")
    with pytest.raises(FormatError, match="no plain file"):
        read_record(tmp_path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_beyond_its_limit_is_not_read(reader: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\x93NUMPY")
    os.truncate(tmp_path / "m", 1 << 40)           # a hole
    with pytest.raises(Oversized, match=r"its bytes are 1,099,511,627,776, [\d,]+ at most") as error:
        READERS[reader](str(tmp_path / "m"))
    assert error.value.exit_code == 3 and str(error.value).startswith("NNX104")


def test_bytes_have_the_limit_of_files() -> None:
    with limited(file_bytes=9), pytest.raises(Oversized):
        read(bytes(10))


@pytest.mark.parametrize("data", [
    b"[" * 100_000, b"9" * 100_000, b"NaN", b"-Infinity", b"\xff", b"{", b"", b"{'a': 1}", b"\xef\xbb\xbf{}"])
def test_texts_that_are_no_json(data: bytes) -> None:
    with pytest.raises(ArtifactError, match="is no JSON text"):
        json(data, ArtifactError)


@pytest.mark.parametrize("data", [
    b"a=" + b"[" * 100_000, b"a=" + b"9" * 100_000, b"a=1" + b"\n" * LARGEST_TOML, b"\xff", b"a=\0", b"a=1\na=2",
    b".".join([b"a"] * 50_000) + b"=1"], ids=lambda d: str(d[:6]))
def test_texts_that_are_no_toml(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_bytes(data)
    for reader in ("toml", "target", "ci"):
        try:
            READERS[reader](str(tmp_path / "m.toml"))
        except NnxError as error:
            assert len(error.said) < 400
        else:
            raise AssertionError(reader)
