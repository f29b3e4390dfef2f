"""Files that stay open between readings."""

from __future__ import annotations

import os
from pathlib import Path

from glasslet.host.cgroups.figures import Part
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.open_files import UNUSED_FOR, OpenFiles
from tests.builders.cgroup_tree import write_v1
from tests.unit.host.cgroups.test_kept_figures import Hand


def open_descriptors() -> int:
    """Of this process."""
    return len(os.listdir("/proc/self/fd"))


def test_a_file_that_stays_open_says_what_is_in_it_now(tmp_path: Path) -> None:
    files, path = OpenFiles(most=5), tmp_path / "usage"
    path.write_text("1\n")
    assert files.contents(str(path)) == b"1\n"
    path.write_text("22\n")
    assert files.contents(str(path)) == b"22\n"
    assert len(files) == 1
    files.close()


def test_a_long_file_is_read_to_its_end_each_time(tmp_path: Path) -> None:
    files, path = OpenFiles(most=5), tmp_path / "stat"
    path.write_bytes(b"inactive_file 4096\n" * 8000)
    first, again = files.contents(str(path)), files.contents(str(path))
    files.close()
    assert first == again == path.read_bytes()


def test_a_file_that_is_gone_is_empty_and_not_kept(tmp_path: Path) -> None:
    files = OpenFiles(most=5)
    assert files.contents(str(tmp_path / "usage")) == b""
    assert len(files) == 0


def test_a_file_that_was_made_anew_is_read_anew(tmp_path: Path) -> None:
    """The kernel's files of a removed group cannot be read any more; here an empty one stands for that."""
    files, path = OpenFiles(most=5), tmp_path / "usage"
    path.write_text("1\n")
    files.contents(str(path))
    path.write_text("")
    path.rename(tmp_path / "old")
    path.write_text("2\n")
    assert files.contents(str(path)) == b"2\n"
    files.close()


def test_files_beyond_the_most_are_read_but_do_not_stay_open(tmp_path: Path) -> None:
    files, before = OpenFiles(most=1), open_descriptors()
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}\n")
    assert [files.contents(str(tmp_path / name)) for name in ("a", "b", "b")] == [b"a\n", b"b\n", b"b\n"]
    assert open_descriptors() - before == 1
    files.close()


def test_files_nobody_reads_any_more_are_closed_at_a_later_reading(tmp_path: Path) -> None:
    clock, before = Hand(), open_descriptors()
    files = OpenFiles(most=5, clock=clock)
    for name in ("a", "b"):
        (tmp_path / name).write_text("1\n")
        files.contents(str(tmp_path / name))
    clock.now += UNUSED_FOR / 2
    files.contents(str(tmp_path / "a"))
    clock.now += UNUSED_FOR / 2
    files.contents(str(tmp_path / "a"))
    assert open_descriptors() - before == 1
    files.close()


def test_a_group_keeps_no_more_than_three_files_open(tmp_path: Path) -> None:
    write_v1(tmp_path, "/a")
    tree, before = FiguresV1(str(tmp_path)), open_descriptors()
    for parts in (Part.NOTHING_MORE, Part.PROCESSES | Part.DETAILS):
        tree.read("/a", parts)
    assert open_descriptors() - before == 3
