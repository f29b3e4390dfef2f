"""Figures that are not read again each time: limits, kills for lack of memory, and what needs a process that runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from glasslet.host.cgroups.figures import Limits, Part
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.figures_v2 import FiguresV2
from glasslet.host.cgroups.kept_figures import AGE, KeptFigures
from glasslet.host.cgroups.oom_kills import OomKills
from tests.builders.cgroup_tree import write_v1, write_v2


class Hand:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_limits_are_read_again_after_two_to_four_minutes() -> None:
    clock = Hand()
    kept = KeptFigures[Limits](clock=clock)
    asked: list[str] = []

    def read(group: str) -> Limits:
        asked.append(group)
        return Limits(shares=len(asked))

    groups = [f"/pod{number}" for number in range(30)]
    first = [kept.get(group, partial(read, group)) for group in groups]
    clock.now += AGE - 1
    assert [kept.get(group, partial(read, group)) for group in groups] == first
    clock.now += AGE / 2
    for group in groups:
        kept.get(group, partial(read, group))
    assert 30 < len(asked) < 60  # not all at once
    clock.now += AGE
    for group in groups:
        kept.get(group, partial(read, group))
    assert set(asked[30:]) == set(groups)


def test_a_reading_without_details_keeps_no_limits(tmp_path: Path) -> None:
    write_v1(tmp_path, "/a")
    tree = FiguresV1(str(tmp_path))
    tree.read("/a", Part.DETAILS)
    (tmp_path / "memory" / "a" / "memory.limit_in_bytes").write_text("4096\n")

    found, kept = tree.read("/a", Part.NOTHING_MORE), tree.read("/a", Part.DETAILS)

    assert found is not None
    assert found.memory is not None
    assert found.memory.limit == 4096
    assert kept is not None
    assert kept.memory is not None
    assert kept.memory.limit == 67108864


def test_groups_are_asked_for_kills_again_once_the_machine_counted_one(tmp_path: Path) -> None:
    clock = Hand()
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("pgfault 1\noom_kill 3\nballoon_inflate 0\n")
    kills = OomKills(proc=str(tmp_path), clock=clock)
    assert kills.get("/a", lambda: 1) == 1
    clock.now += 30
    assert kills.get("/a", lambda: 2) == 1
    vmstat.write_text("pgfault 1\noom_kill 4\nballoon_inflate 0\n")
    clock.now += 30
    assert kills.get("/a", lambda: 2) == 2


def test_a_machine_that_counts_no_kills_is_asked_by_group(tmp_path: Path) -> None:
    kills = OomKills(proc=str(tmp_path), clock=Hand())
    assert [kills.get("/a", lambda: 1), kills.get("/a", lambda: 2)] == [1, 2]


def test_figures_are_read_again_as_soon_as_what_they_hang_on_changes() -> None:
    kept = KeptFigures[int](clock=Hand())
    assert [kept.get("/a", lambda: 1, as_of=(5, 6)), kept.get("/a", lambda: 2, as_of=(5, 6))] == [1, 1]
    assert kept.get("/a", lambda: 3, as_of=(5, 7)) == 3


@pytest.mark.parametrize(
    ("tree", "write", "files", "cpu"),
    [
        (
            FiguresV1,
            write_v1,
            {"pids/a/pids.current": "77\n", "memory/a/cgroup.procs": "1\n2\n3\n"},
            ("cpuacct/a/cpuacct.usage", "5000000001\n"),
        ),
        (
            FiguresV2,
            write_v2,
            {"a/pids.current": "77\n", "a/cgroup.procs": "1\n2\n3\n"},
            ("a/cpu.stat", "usage_usec 5000001\nuser_usec 3000000\nsystem_usec 1500000\n"),
        ),
    ],
)
def test_processes_and_details_are_read_again_once_something_ran_in_the_group(
    tree: type[FiguresV1 | FiguresV2],
    write: Callable[[Path, str], None],
    files: dict[str, str],
    cpu: tuple[str, str],
    tmp_path: Path,
) -> None:
    write(tmp_path, "/a")
    groups = tree(str(tmp_path))

    def counts() -> tuple[int, int | None]:
        found = groups.read("/a", Part.DETAILS | Part.PROCESSES)
        assert found is not None
        assert found.details is not None
        return found.details.threads, found.processes

    first = counts()
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    quiet = counts()
    (tmp_path / cpu[0]).write_text(cpu[1])
    assert (first, quiet, counts()) == ((5, 2), (5, 2), (77, 3))


def test_what_the_kernel_writes_to_disk_for_a_quiet_group_is_seen(tmp_path: Path) -> None:
    write_v2(tmp_path, "/a")
    tree = FiguresV2(str(tmp_path))
    tree.read("/a", Part.DETAILS)
    (tmp_path / "a" / "io.stat").write_text("8:0 rbytes=1 wbytes=999 rios=1 wios=9\n")
    found = tree.read("/a", Part.DETAILS)
    assert found is not None
    assert found.details is not None
    assert [one.written_bytes for one in found.details.transfers] == [999]


def test_memory_is_read_each_time(tmp_path: Path) -> None:
    write_v1(tmp_path, "/a")
    tree = FiguresV1(str(tmp_path))
    tree.read("/a", Part.DETAILS)
    (tmp_path / "memory" / "a" / "memory.stat").write_text("total_inactive_file 56623104\n")
    found = tree.read("/a", Part.DETAILS)
    assert found is not None
    assert found.memory is not None
    assert found.memory.working_set == 0
