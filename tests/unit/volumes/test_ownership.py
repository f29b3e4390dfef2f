from __future__ import annotations

import os
from pathlib import Path

import pytest

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
