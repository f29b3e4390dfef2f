from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.host.files.small_files import (
    Absent,
    Damaged,
    Intact,
    make_directory,
    read_checked,
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
