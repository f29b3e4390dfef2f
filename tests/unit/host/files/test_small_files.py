from __future__ import annotations

import io
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.files.small_files import (
    Absent,
    Damaged,
    FileTooLarge,
    Intact,
    NotRegularFile,
    make_directory,
    read_checked,
    read_end,
    read_regular,
    write_atomically,
    write_checked,
    write_in_place,
)


def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    before = path.stat().st_ino
    write_atomically(str(path), b"new", mode=0o640)
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != before
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_atomic_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    (path / "inside").write_text("old")
    with pytest.raises(OSError, match="directory"):
        write_atomically(str(path), b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_in_place_keeps_the_inode(tmp_path: Path) -> None:
    path = tmp_path / "etc-hosts"
    assert write_in_place(str(path), b"a longer text") is True
    before = path.stat().st_ino
    assert write_in_place(str(path), b"short") is True
    assert path.read_bytes() == b"short"
    assert path.stat().st_ino == before


def test_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "etc-hosts"
    write_in_place(str(path), b"text")
    assert write_in_place(str(path), b"text") is False


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        write_in_place(str(tmp_path / "link"), b"text")


@pytest.fixture
def own_memory() -> Iterator[None]:
    """The process may have 512 MiB more than it has now."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + (512 << 20), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("own_memory")
def test_a_file_that_a_container_made_huge_is_rewritten_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "etc-hosts"
    write_in_place(str(path), b"text")
    before = path.stat().st_ino
    os.truncate(path, 8 << 30)
    assert write_in_place(str(path), b"text") is True
    assert path.read_bytes() == b"text"
    assert path.stat().st_ino == before


@pytest.mark.parametrize("kind", ["pipe", "directory", "device"])
def test_only_a_regular_file_is_read_or_rewritten_and_nothing_is_waited_for(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "it")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            os.mkdir(path)
        case "device":
            path = "/dev/zero"
    for call in (lambda: read_regular(path, most=10), lambda: read_end(path, 10), lambda: write_in_place(path, b"x")):
        with pytest.raises((NotRegularFile, IsADirectoryError)):
            call()


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"0123456789")
    assert read_regular(str(tmp_path / "it"), most=10) == b"0123456789"
    with pytest.raises(FileTooLarge, match="is larger than 9 bytes"):
        read_regular(str(tmp_path / "it"), most=9)
    # Its size is said to be 0.
    with pytest.raises(FileTooLarge):
        read_regular("/proc/self/maps", most=10)
    assert read_end(str(tmp_path / "it"), 4) == b"6789"


def test_a_link_is_followed_only_where_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "goal").write_text("x")
    (tmp_path / "link").symlink_to("goal")
    with pytest.raises(OSError, match="symbolic links"):
        read_regular(str(tmp_path / "link"), most=10)
    assert read_regular(str(tmp_path / "link"), most=10, follow=True) == b"x"


def test_a_pipe_in_place_of_a_state_file_is_moved_aside(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    os.mkfifo(path)
    assert isinstance(read_checked(path), Damaged)
    assert read_checked(path) == Absent()


def test_a_state_file_of_gigabytes_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.touch()
    os.truncate(path, 8 << 30)
    found = read_checked(str(path))
    assert isinstance(found, Damaged)
    assert "is larger than 67108864 bytes" in found.why
    assert read_checked(str(path)) == Absent()


def test_checked_content_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    write_checked(path, b"two\nlines")
    assert read_checked(path) == Intact(b"two\nlines")


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert read_checked(str(tmp_path / "none")) == Absent()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"{}", None])
def test_a_damaged_file_is_moved_aside(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "state"
    write_checked(str(path), b"content")
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    found = read_checked(str(path))
    assert isinstance(found, Damaged)
    assert Path(f"{path}.damaged").exists()
    assert read_checked(str(path)) == Absent()


def test_directories_have_the_mode_that_was_asked_for_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_directory(str(tmp_path / "a" / "b"), 0o755)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o755


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    make_directory(str(tmp_path / "a"), 0o755)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_a_file_in_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(FileExistsError):
        make_directory(str(tmp_path / "a"), 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_write_in_place_to_a_full_disk_is_an_error_and_leaves_the_old_text(tmp_path: Path) -> None:
    small = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    if subprocess.run(small, check=False, capture_output=True).returncode:
        pytest.skip("mounts are not allowed here")
    try:
        path = tmp_path / "hosts"
        path.write_text("old text")
        with pytest.raises(OSError, match="No space left"):
            write_in_place(str(path), b"x" * 100_000)
        assert path.read_text() == "old text"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_write_in_place_that_takes_parts_writes_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class InParts(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    monkeypatch.setattr("builtins.open", lambda descriptor, mode, **_: InParts(descriptor, "r+b"))
    path = str(tmp_path / "hosts")
    assert write_in_place(path, b"much longer than a part")
    monkeypatch.undo()
    assert Path(path).read_bytes() == b"much longer than a part"
