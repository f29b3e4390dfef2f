from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from glasslet.api.codec import convert
from glasslet.api.volume import Volume
from glasslet.exchange.volume import MountedVolume
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.types.host_path import HostPath, check_type
from tests.builders.podspec import pod_of
from tests.fakes.inline_threads import InlineThreads
from tests.skips import on_purpose


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("dir")
    # The path of a socket is limited to 107 bytes.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
    return tmp_path


def block_device() -> str | None:
    devices = (f"/dev/{name}" for name in os.listdir("/dev"))
    return next((d for d in devices if stat.S_ISBLK(os.stat(d, follow_symlinks=False).st_mode)), None)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Directory", "dir"),
        ("Directory", "link"),
        ("DirectoryOrCreate", "dir"),
        ("File", "file"),
        ("FileOrCreate", "file"),
        ("Socket", "sock"),
        ("CharDevice", "/dev/null"),
    ],
)
def test_what_is_of_its_type_passes(place: Path, kind: str, name: str) -> None:
    check_type(str(place / name), kind)


def test_a_block_device_passes_as_one() -> None:
    device = block_device()
    if device is None:
        pytest.skip(on_purpose("this machine has no block device"))
    check_type(device, "BlockDevice")
    with pytest.raises(VolumeProblem, match="is not a character device"):
        check_type(device, "CharDevice")


@pytest.mark.parametrize(
    ("kind", "name", "noun"),
    [
        ("Directory", "file", "directory"),
        ("Directory", "none", "directory"),
        ("DirectoryOrCreate", "file", "directory"),
        ("File", "dir", "file"),
        ("File", "none", "file"),
        ("FileOrCreate", "dir", "file"),
        ("Socket", "file", "socket file"),
        ("Socket", "none", "socket file"),
        ("CharDevice", "file", "character device"),
        ("BlockDevice", "/dev/null", "block device"),
        ("Directory", "file/below", "directory"),
    ],
)
def test_what_is_of_another_type_is_named(place: Path, kind: str, name: str, noun: str) -> None:
    path = str(place / name)
    with pytest.raises(VolumeProblem) as caught:
        check_type(path, kind)
    assert str(caught.value) == f"hostPath type check failed: {path} is not a {noun}"


@pytest.mark.parametrize("kind", ["SocketOrCreate", "OrCreate", "dir", "Sideways"])
def test_an_unknown_type_is_refused(place: Path, kind: str) -> None:
    with pytest.raises(VolumeProblem, match=f"{kind} is an invalid volume type"):
        check_type(str(place / "none"), kind)


def test_a_missing_directory_is_made_with_its_parents(place: Path) -> None:
    # behaviours.md §22: 'hostPath types: "", DirectoryOrCreate (0755), Directory, FileOrCreate (0644), ...'
    check_type(str(place / "new" / "deeper"), "DirectoryOrCreate")
    assert (place / "new" / "deeper").stat().st_mode & 0o7777 == 0o755


def test_a_missing_file_is_made_empty(place: Path) -> None:
    check_type(str(place / "new"), "FileOrCreate")
    assert (place / "new").stat().st_mode & 0o7777 == 0o644
    assert (place / "new").read_bytes() == b""


def test_a_missing_file_in_a_missing_directory_is_an_error(place: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_type(str(place / "none" / "new"), "FileOrCreate")


def test_a_file_that_is_made_can_be_read_whatever_the_agents_umask(place: Path) -> None:
    before = os.umask(0o077)
    try:
        check_type(str(place / "new"), "FileOrCreate")
    finally:
        os.umask(before)
    assert stat.S_IMODE((place / "new").stat().st_mode) == 0o644


def asked(path: str, kind: str | None = None) -> VolumeRequest:
    volume = convert({"name": "v", "hostPath": {"path": path, "type": kind}}, Volume)
    return VolumeRequest(pod=pod_of(), volume=volume)


async def test_without_type_the_path_is_taken_unseen() -> None:
    plugin = HostPath(threads=InlineThreads())
    assert await plugin.set_up(asked("/does/not/exist")) == MountedVolume(name="v", path="/does/not/exist")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/var/../etc", "invalid HostPath `/var/../etc`: must not contain '..'"),
        ("relative", "invalid HostPath `relative`: must be an absolute path"),
    ],
)
async def test_a_path_that_is_not_plain_is_refused(path: str, message: str) -> None:
    with pytest.raises(VolumeProblem) as caught:
        await HostPath(threads=InlineThreads()).set_up(asked(path))
    assert str(caught.value) == message
