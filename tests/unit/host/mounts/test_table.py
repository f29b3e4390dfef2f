from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.host.mounts.table import MountTable, MountTableUnreadable, read_mount_table, resolved

TEXT = rb"""22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:50 / /pods/u/volumes/kubernetes.io~empty-dir/mem rw,relatime shared:1 - tmpfs tmpfs rw,size=1024k,inode64
41 40 0:51 / /pods/u/volumes/kubernetes.io~empty-dir/mem/deep rw - ext4 /dev/sda1 rw
42 27 8:1 /data/a\040b /pods/u2/with\040space\134x rw master:2 propagate_from:3 - ext4 /dev/sda1 rw,errors=remount-ro
43 40 0:52 / /pods/u/volumes/kubernetes.io~empty-dir/mem rw - tmpfs second rw,size=2048k
"""


def test_the_topmost_mount_of_a_path_is_seen() -> None:
    entry = MountTable(TEXT).at("/pods/u/volumes/kubernetes.io~empty-dir/mem")
    assert entry is not None
    assert (entry.source, entry.option("size")) == ("second", "2048k")


def test_escaped_characters_are_read() -> None:
    entry = MountTable(TEXT).at("/pods/u2/with space\\x")
    assert entry is not None
    assert (entry.root, entry.fs_type, entry.device) == ("/data/a b", "ext4", "8:1")


def test_mounts_inside_come_innermost_and_newest_first() -> None:
    found = MountTable(TEXT).at_or_below("/pods/u")
    assert [entry.mount_id for entry in found] == [41, 43, 40]


def test_a_sibling_with_the_same_beginning_is_not_inside() -> None:
    assert [e.mount_id for e in MountTable(TEXT).at_or_below("/pods/u2/")] == [42]


@pytest.mark.parametrize(
    "odd", ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2028", "\u2029", "\udcff", "#"]
)
def test_a_name_may_hold_any_character_that_the_kernel_does_not_escape(odd: str) -> None:
    path = f"/pods/u/a{odd}b"
    line = b"42 27 8:1 /data%b %b rw - ext4 /dev/%b rw" % (os.fsencode(odd), os.fsencode(path), os.fsencode(odd))
    table = MountTable(line + b"\n43 42 8:1 / /pods/u/after rw - ext4 /dev/sda1 rw\n")
    found = table.at(path)
    assert found is not None
    assert (found.path, found.root, found.source) == (path, f"/data{odd}", f"/dev/{odd}")
    assert [entry.mount_id for entry in table.at_or_below("/pods/u")] == [43, 42]


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"44 1",
        b"44 1 8:1 / /here rw",
        b"44 1 8:1 / /here rw - ext4",
        b"x 1 8:1 / /here rw - ext4 /dev/sda1 rw",
        b"44 1 8:1 / /here - ext4 /dev/sda1 rw",
    ],
)
def test_a_line_of_another_form_is_an_error_and_not_left_out(line: bytes) -> None:
    with pytest.raises(MountTableUnreadable, match="mountinfo has a line of an unknown form"):
        MountTable(TEXT + line + b"\n").at_or_below("/")


def test_what_is_not_mounted_is_not_there() -> None:
    table = MountTable(TEXT)
    assert table.at("/pods") is None
    assert table.at_or_below("/elsewhere") == ()


def test_this_machines_table_is_read() -> None:
    assert read_mount_table().at("/proc") is not None


def test_links_in_front_are_resolved_but_the_last_element_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "last").symlink_to("/nowhere")
    real = os.path.realpath(tmp_path)
    assert resolved(f"{tmp_path}/link/last/") == f"{real}/real/last"
    assert resolved("/") == "/"
