"""Figures that are not read again each time: limits, and kills for lack of memory."""

from __future__ import annotations

from pathlib import Path

from glasslet.stats.cgroup_v1 import CgroupV1
from glasslet.stats.figures import Limits, Part
from glasslet.stats.kept_limits import AGE, KeptLimits
from glasslet.stats.oom_kills import OomKills
from tests.builders.cgroup_tree import write_v1


class Hand:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_limits_are_read_again_after_two_to_four_minutes() -> None:
    clock = Hand()
    kept = KeptLimits(clock=clock)
    asked: list[str] = []

    def read(group: str) -> Limits:
        asked.append(group)
        return Limits(shares=len(asked))

    groups = [f"/pod{number}" for number in range(30)]
    first = [kept.get(group, lambda group=group: read(group)) for group in groups]
    clock.now += AGE - 1
    assert [kept.get(group, lambda group=group: read(group)) for group in groups] == first
    clock.now += AGE / 2
    for group in groups:
        kept.get(group, lambda group=group: read(group))
    assert 30 < len(asked) < 60  # not all at once
    clock.now += AGE
    for group in groups:
        kept.get(group, lambda group=group: read(group))
    assert set(asked[30:]) == set(groups)


def test_a_reading_without_details_keeps_no_limits(tmp_path: Path) -> None:
    write_v1(tmp_path, "/a")
    tree = CgroupV1(str(tmp_path))
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
