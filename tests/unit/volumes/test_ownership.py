from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.files import descent
from glasslet.host.files.removal import remove_own_tree
from glasslet.volumes import ownership
from glasslet.volumes.ownership import belongs_to_group, give_to_group

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to any group")

GROUP = 4711


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "volume"
    (path / "dir").mkdir(parents=True, mode=0o700)
    (path / "dir" / "file").write_text("x")
    (path / "dir" / "file").chmod(0o600)
    (tmp_path / "outside").write_text("x")
    (tmp_path / "outside").chmod(0o600)
    (path / "link").symlink_to(tmp_path / "outside")
    path.chmod(0o755)
    return path


def test_files_and_directories_go_to_the_group(volume: Path) -> None:
    # behaviours.md §22: "fsGroup: recursive chgrp; files get |=0660, ...; directories also setgid and g+x"
    give_to_group(str(volume), GROUP)
    modes = {p.name: p.stat().st_mode & 0o7777 for p in (volume, volume / "dir", volume / "dir" / "file")}
    assert modes == {"volume": 0o2775, "dir": 0o2770, "file": 0o660}
    assert {p.lstat().st_gid for p in (volume, volume / "dir", volume / "dir" / "file", volume / "link")} == {GROUP}


def test_a_read_only_volume_is_only_made_readable(volume: Path) -> None:
    # behaviours.md §22: "in read-only volumes |=0440"
    (volume / "dir" / "file").chmod(0o400)
    give_to_group(str(volume), GROUP, read_only=True)
    assert (volume / "dir" / "file").stat().st_mode & 0o7777 == 0o440


def test_what_links_point_to_is_left_alone(volume: Path) -> None:
    give_to_group(str(volume), GROUP)
    outside = (volume.parent / "outside").stat()
    assert (outside.st_gid, outside.st_mode & 0o7777) == (0, 0o600)


def test_what_cannot_be_changed_is_logged_and_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # behaviours.md §22: "errors are only logged"
    give_to_group(str(tmp_path / "none"), GROUP)
    assert [record.message for record in caplog.records] == ["fsGroup could not be set everywhere"]


@pytest.mark.parametrize(("group", "mode", "belongs"), [(4711, 0o2770, True), (4711, 0o770, False), (1, 0o2770, False)])
def test_a_volume_belongs_to_the_group_by_its_root(tmp_path: Path, group: int, mode: int, belongs: bool) -> None:
    # behaviours.md §22: "fsGroupChangePolicy OnRootMismatch checks only the root"
    os.chown(tmp_path, -1, group)
    tmp_path.chmod(mode)
    assert belongs_to_group(str(tmp_path), GROUP) is belongs


def deep_tree(root: Path, depth: int) -> None:
    """Directories in directories, each with a file; deeper than a path can name."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here))
        os.mkdir("in", 0o700, dir_fd=here)
        inner = os.open("in", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def groups_down(root: Path) -> tuple[int, set[int]]:
    """The depth of the tree, and the groups of all that it holds."""
    groups, depth, here = {root.stat().st_gid}, 0, os.open(root, os.O_RDONLY)
    while True:
        names = os.listdir(here)
        groups |= {os.stat(name, dir_fd=here).st_gid for name in names}
        if "in" not in names:
            os.close(here)
            return depth, groups
        inner = os.open("in", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here, depth = inner, depth + 1


def test_a_volume_of_any_depth_goes_to_the_group(tmp_path: Path) -> None:
    # A walk that calls itself ends at 1,000 levels, or with 1,000 open files.
    deep_tree(tmp_path, 3000)
    before = len(os.listdir("/proc/self/fd"))
    most = 0

    def passed(count: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")) - before)

    give_to_group(str(tmp_path), GROUP, passed=passed)
    assert groups_down(tmp_path) == (3000, {GROUP})
    assert most < 100
    assert len(os.listdir("/proc/self/fd")) == before
    remove_own_tree(str(tmp_path / "in"))


def test_a_volume_goes_to_the_group_on_kernels_without_openat2(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(parent: int, name: str, flags: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(descent, "open_by_kernel", missing)
    give_to_group(str(volume), GROUP)
    assert {path.lstat().st_gid for path in (volume, *volume.rglob("*"))} == {GROUP}
    assert (volume.parent / "outside").stat().st_gid == 0


def test_very_many_directories_go_to_the_group_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_WAITING", 3)
    counted: list[int] = []
    for number in range(10):
        (tmp_path / f"dir-{number}").mkdir()
        (tmp_path / f"dir-{number}" / "file").touch()
        (tmp_path / f"file-{number}").touch()
    give_to_group(str(tmp_path), GROUP, passed=counted.append)
    assert {path.stat().st_gid for path in (tmp_path, *tmp_path.rglob("*"))} == {GROUP}
    assert sum(counted) == 30


def test_a_walk_whose_caller_has_left_ends(volume: Path) -> None:
    class Left(Exception):
        """The caller has left."""

    def passed(count: int) -> None:
        raise Left

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Left):
        give_to_group(str(volume), GROUP, passed=passed)
    assert volume.stat().st_gid == 0
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_mounted_in_a_volume_keeps_its_group(tmp_path: Path) -> None:
    volume, away = tmp_path / "volume", tmp_path / "away"
    (volume / "dir").mkdir(parents=True)
    away.mkdir()
    (away / "file").touch()
    if subprocess.run(["mount", "--bind", str(away), str(volume / "dir")], check=False, capture_output=True).returncode:
        pytest.skip("mounts are not allowed here")
    try:
        give_to_group(str(volume), GROUP)
    finally:
        subprocess.run(["umount", str(volume / "dir")], check=True)
    assert (volume.stat().st_gid, (away / "file").stat().st_gid, away.stat().st_gid) == (GROUP, 0, 0)


def test_a_file_that_is_swapped_meanwhile_keeps_its_own_mode(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A container that runs swaps a program of root and one of its own between the look and the change.
    ours, of_root = volume / "dir" / "file", volume / "dir" / "of-root"
    ours.chmod(0o4777)
    of_root.touch(0o600)
    chown = os.chown

    def swapped(*args: Any, **options: Any) -> None:
        chown(*args, **options)
        if ours.exists() and ours.lstat().st_gid == GROUP and of_root.exists():
            os.replace(of_root, ours)

    monkeypatch.setattr(os, "chown", swapped)
    give_to_group(str(volume), GROUP)
    assert ours.stat().st_mode & 0o7777 in (0o600, 0o660)
