from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from glasslet.host.files import descent
from glasslet.host.files.descent import MountInside, open_and_compare, open_by_kernel
from glasslet.host.files.removal import StillMounted, remove_empty, remove_own_tree, remove_tree
from glasslet.host.mounts.table import MountTable
from tests.fakes.mounts import FakeMounts

NOTHING = MountTable(b"")


def test_a_tree_is_removed_with_all_it_holds(tmp_path: Path) -> None:
    (tmp_path / "v" / "a" / "b").mkdir(parents=True)
    (tmp_path / "v" / "a" / "file").write_text("x")
    os.mkfifo(tmp_path / "v" / "pipe")
    remove_tree(str(tmp_path / "v"), NOTHING)
    assert list(tmp_path.iterdir()) == []


def test_what_links_point_to_stays(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("x")
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to(tmp_path / "outside")
    remove_tree(str(tmp_path / "v"), NOTHING)
    assert (tmp_path / "outside" / "precious").exists()
    assert not (tmp_path / "v").exists()


def test_removing_what_is_gone_is_fine(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "none" / "deeper"), NOTHING)


def test_a_tree_of_any_depth_is_removed_with_few_descriptors(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "v")
    descriptor = os.open(tmp_path / "v", os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, before[1]))
    try:
        remove_tree(str(tmp_path / "v"), NOTHING)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mounted", ["v", "v/inner"])
def test_nothing_is_touched_while_something_is_mounted_in_it(tmp_path: Path, mounted: str) -> None:
    # behaviours.md §22: "remaining content or mounts are left and logged"
    (tmp_path / "v" / "inner").mkdir(parents=True)
    (tmp_path / "v" / "first").write_text("x")
    mounts = FakeMounts()
    mounts.mount_tmpfs(str(tmp_path / mounted))
    with pytest.raises(StillMounted) as caught:
        remove_tree(str(tmp_path / "v"), mounts.table())
    assert caught.value.mounted == (str(tmp_path / mounted),)
    assert (tmp_path / "v" / "first").exists()


def test_empty_directories_go_and_data_stays(tmp_path: Path) -> None:
    (tmp_path / "v" / "empty" / "deeper").mkdir(parents=True)
    (tmp_path / "v" / "full").mkdir()
    (tmp_path / "v" / "full" / "data").write_text("x")
    assert remove_empty(str(tmp_path / "v")) is False
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["v", "v/full", "v/full/data"]


def test_only_empty_directories_means_all_is_gone(tmp_path: Path) -> None:
    (tmp_path / "v" / "empty").mkdir(parents=True)
    assert remove_empty(str(tmp_path / "v")) is True
    assert remove_empty(str(tmp_path / "v")) is True
    assert not (tmp_path / "v").exists()


def test_only_directories_are_entered_and_links_never(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "link").symlink_to("away")
    (tmp_path / "file").touch()
    parent = os.open(tmp_path, os.O_RDONLY)
    try:
        for way in (open_by_kernel, open_and_compare):
            os.close(way(parent, "away"))
            for name in ("link", "file"):
                with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
                    way(parent, name)
    finally:
        os.close(parent)


def test_a_directory_on_which_something_is_mounted_is_not_entered() -> None:
    root = os.open("/", os.O_RDONLY)
    try:
        for way in (open_by_kernel, open_and_compare):
            with pytest.raises(MountInside, match="another file system is mounted here: 'proc'"):
                way(root, "proc")
    finally:
        os.close(root)


def test_trees_are_removed_on_kernels_without_openat2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(parent: int, name: str, flags: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)

    monkeypatch.setattr(descent, "open_by_kernel", missing)
    (tmp_path / "v" / "a" / "b").mkdir(parents=True)
    remove_own_tree(str(tmp_path / "v"))
    assert list(tmp_path.iterdir()) == []


def test_links_in_what_should_be_empty_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "away" / "empty").mkdir(parents=True)
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to(tmp_path / "away")
    assert remove_empty(str(tmp_path / "v")) is False
    assert (tmp_path / "away" / "empty").exists()


def test_empty_directories_deeper_than_any_program_makes_them_are_no_failure(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "v")
    descriptor = os.open(tmp_path / "v", os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert remove_empty(str(tmp_path / "v")) is False
    remove_own_tree(str(tmp_path / "v"))


def test_a_name_that_is_no_text_is_shown_in_messages_as_bytes(tmp_path: Path) -> None:
    mounts = FakeMounts()
    place = os.fsdecode(os.fsencode(tmp_path / "v") + b"/a\xffb")
    os.makedirs(place)
    mounts.mount_tmpfs(place)
    with pytest.raises(StillMounted) as caught:
        remove_tree(str(tmp_path / "v"), mounts.table())
    assert str(caught.value).endswith(r"v/a\xffb")
