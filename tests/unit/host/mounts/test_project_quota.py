"""Folders whose file system counts what is below them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from glasslet.host.mounts.project_quota import FIRST_ID, MOST_TRIES, LinuxQuotas, ProjectQuotas, ProjectUse


class CountingDisk:
    """A file system with project quotas. `counts`: whether it was mounted with them."""

    def __init__(self, *, counts: bool = True) -> None:
        self.counts = counts
        self.projects: dict[int, int] = {}
        self.uses: dict[int, ProjectUse] = {0: ProjectUse(4096, 7)}

    def project(self, folder: int) -> int:
        return self.projects.get(os.fstat(folder).st_ino, 0)

    def set_project(self, folder: int, project: int) -> None:
        self.projects[os.fstat(folder).st_ino] = project
        self.uses[project] = ProjectUse(4096, 1)

    def used(self, folder: int, project: int) -> ProjectUse:
        if not self.counts:
            raise OSError(errno.ESRCH, "no quota here")
        if project not in self.uses:
            raise OSError(errno.ENOENT, "no such quota")
        return self.uses[project]


def made(place: Path, *names: str) -> list[str]:
    for name in names:
        (place / name).mkdir()
    return [str(place / name) for name in names]


def test_each_folder_gets_an_id_of_its_own_and_its_use_is_what_the_file_system_says(tmp_path: Path) -> None:
    disk = CountingDisk()
    quotas = ProjectQuotas(disk, etc=str(tmp_path))
    one, two, plain = made(tmp_path, "one", "two", "plain")
    assert quotas.count(one)
    assert quotas.count(two)
    assert quotas.count(one), "it has one already"
    assert sorted(disk.projects.values()) == [FIRST_ID, FIRST_ID + 1]
    disk.uses[FIRST_ID] = ProjectUse(12 << 20, 300)
    assert quotas.used(one) == ProjectUse(12 << 20, 300)
    assert quotas.used(plain) is None


def test_ids_that_others_have_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "projects").write_text(f"{FIRST_ID}:/srv/a\n# 5:/srv/b\n")
    (tmp_path / "projid").write_text(f"backup:{FIRST_ID + 1}\nbroken\n")
    disk = CountingDisk()
    disk.uses[FIRST_ID + 2] = ProjectUse(1, 0)
    (folder,) = made(tmp_path, "volume")
    assert ProjectQuotas(disk, etc=str(tmp_path)).count(folder)
    assert list(disk.projects.values()) == [FIRST_ID + 3]


def test_the_next_agent_finds_the_id_again(tmp_path: Path) -> None:
    disk = CountingDisk()
    (folder,) = made(tmp_path, "volume")
    assert ProjectQuotas(disk, etc=str(tmp_path)).count(folder)
    later = ProjectQuotas(disk, etc=str(tmp_path))
    assert later.used(folder) == ProjectUse(4096, 1)
    assert later.count(folder)
    assert list(disk.projects.values()) == [FIRST_ID]


def test_where_the_file_system_counts_nothing_no_folder_gets_an_id(tmp_path: Path) -> None:
    disk = CountingDisk(counts=False)
    (folder,) = made(tmp_path, "volume")
    assert not ProjectQuotas(disk, etc=str(tmp_path)).count(folder)
    assert disk.projects == {}
    assert ProjectQuotas(disk, etc=str(tmp_path)).used(folder) is None


def test_a_disk_full_of_ids_is_searched_only_so_far(tmp_path: Path) -> None:
    disk = CountingDisk()
    disk.uses |= {FIRST_ID + number: ProjectUse(1, 1) for number in range(MOST_TRIES)}
    (folder,) = made(tmp_path, "volume")
    assert not ProjectQuotas(disk, etc=str(tmp_path)).count(folder)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(OSError, match="link"):
        ProjectQuotas(CountingDisk(), etc=str(tmp_path)).count(str(tmp_path / "link"))


def test_the_kernels_own_calls_work_or_say_that_they_do_not(tmp_path: Path) -> None:
    """On a file system with project quotas the folder is counted, on others it is walked."""
    quotas = ProjectQuotas(LinuxQuotas(), etc=str(tmp_path))
    (folder,) = made(tmp_path, "volume")
    counted = quotas.count(folder)
    used = quotas.used(folder)
    assert (used is not None and used.inodes == 1) if counted else used is None
