"""Disks with scripts in the place of blkid(8), mkfs(8), fsck(8) and mount(8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.mounts.filesystems import PARTITIONS, format_of, mount_disk
from glasslet.host.mounts.program import MountFailed, run_program


class Programs:
    """Scripts that are all there is on the PATH; `ran` are their calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"

    def put(self, name: str, then: str = "exit 0") -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{then}\n')
        path.chmod(0o755)

    def ran(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.setenv("PATH", str(tmp_path))
    made = Programs(tmp_path)
    for name in ("mount", "fsck", "mkfs.ext4", "mkfs.xfs"):
        made.put(name)
    return made


def test_an_empty_disk_gets_a_file_system_first(programs: Programs) -> None:
    programs.put("blkid", "exit 2")
    mount_disk("/dev/x", "/target", fs_type="ext4", options=("noatime",))
    assert programs.ran()[1:] == ["mkfs.ext4 -F -m0 /dev/x", "mount -t ext4 -o noatime,defaults /dev/x /target"]


def test_a_disk_with_a_file_system_is_checked_and_kept(programs: Programs) -> None:
    programs.put("blkid", "echo DEVNAME=/dev/x; echo TYPE=xfs")
    mount_disk("/dev/x", "/target", fs_type="ext4", options=())
    assert programs.ran()[1:] == ["fsck -a /dev/x", "mount -t ext4 -o defaults /dev/x /target"]


def test_a_disk_that_is_only_read_is_neither_made_nor_repaired(programs: Programs) -> None:
    programs.put("blkid", "echo TYPE=ext4")
    mount_disk("/dev/x", "/target", fs_type="ext4", options=("ro",))
    assert [line.split()[0] for line in programs.ran()] == ["blkid", "mount"]
    programs.put("blkid", "exit 2")
    with pytest.raises(
        MountFailed, match="cannot mount unformatted disk /dev/x as we are manipulating it in read-only"
    ):
        mount_disk("/dev/x", "/target", fs_type="ext4", options=("ro",))


def test_a_disk_with_partitions_is_never_formatted(programs: Programs) -> None:
    programs.put("blkid", "echo PTTYPE=gpt")
    assert format_of("/dev/x") == PARTITIONS
    mount_disk("/dev/x", "/target", fs_type="ext4", options=())
    assert not [line for line in programs.ran() if line.startswith("mkfs")]


def test_errors_that_cannot_be_repaired_are_told(programs: Programs) -> None:
    programs.put("blkid", "echo TYPE=ext4")
    programs.put("fsck", "echo broken; exit 4")
    with pytest.raises(MountFailed, match="'fsck' found errors on device /dev/x but could not correct them: broken"):
        mount_disk("/dev/x", "/target", fs_type="ext4", options=())


@pytest.mark.parametrize("fs_type", ["../sh", "a b", "", "ext4;x"])
def test_a_type_that_is_no_name_starts_nothing(programs: Programs, fs_type: str) -> None:
    with pytest.raises(MountFailed, match="is not a name"):
        mount_disk("/dev/x", "/target", fs_type=fs_type, options=())
    assert programs.ran() == []


def test_a_disk_that_cannot_be_read_is_not_taken_for_empty(programs: Programs) -> None:
    programs.put("blkid", "exit 8")
    with pytest.raises(MountFailed, match="failed to get disk format of disk /dev/x: exit status 8"):
        mount_disk("/dev/x", "/target", fs_type="ext4", options=())


def test_a_program_that_does_not_end_is_killed(programs: Programs) -> None:
    programs.put("slow", "while :; do :; done")
    ended = run_program(("slow",), within=0.2)
    assert (ended.code, ended.problem) == (None, "no end within 0.2 s")
