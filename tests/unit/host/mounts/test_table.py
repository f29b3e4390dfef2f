from __future__ import annotations

import os
from pathlib import Path

from glasslet.host.mounts.table import parse_mount_table, read_mount_table, resolved

TEXT = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:50 / /pods/u/volumes/kubernetes.io~empty-dir/mem rw,relatime shared:1 - tmpfs tmpfs rw,size=1024k,inode64
41 40 0:51 / /pods/u/volumes/kubernetes.io~empty-dir/mem/deep rw - ext4 /dev/sda1 rw
42 27 8:1 /data/a\040b /pods/u2/with\040space\134x rw master:2 propagate_from:3 - ext4 /dev/sda1 rw,errors=remount-ro
43 40 0:52 / /pods/u/volumes/kubernetes.io~empty-dir/mem rw - tmpfs second rw,size=2048k
nonsense
44 1
"""


def test_the_topmost_mount_of_a_path_is_seen() -> None:
    entry = parse_mount_table(TEXT).at("/pods/u/volumes/kubernetes.io~empty-dir/mem")
    assert entry is not None
    assert (entry.source, entry.option("size")) == ("second", "2048k")


def test_escaped_characters_are_read() -> None:
    entry = parse_mount_table(TEXT).at("/pods/u2/with space\\x")
    assert entry is not None
    assert (entry.root, entry.fs_type, entry.device) == ("/data/a b", "ext4", "8:1")


def test_mounts_inside_come_innermost_and_newest_first() -> None:
    found = parse_mount_table(TEXT).at_or_below("/pods/u")
    assert [entry.mount_id for entry in found] == [41, 43, 40]


def test_a_sibling_with_the_same_beginning_is_not_inside() -> None:
    assert [e.mount_id for e in parse_mount_table(TEXT).at_or_below("/pods/u2/")] == [42]


def test_what_is_not_mounted_is_not_there() -> None:
    table = parse_mount_table(TEXT)
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
