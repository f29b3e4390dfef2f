"""Figures of control groups from recorded trees of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.cgroups.figures import NO_PRESSURE, CgroupFigures, Details, MemoryFigures, Part, Stall, Transfers
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.figures_v2 import FiguresV2
from tests.builders.cgroup_tree import write_v1, write_v2

ALL = Part.PRESSURE | Part.PROCESSES | Part.DETAILS
MIB = 1 << 20


@pytest.fixture(params=["v1", "v2"])
def figures(request: pytest.FixtureRequest, tmp_path: Path) -> CgroupFigures:
    """The same group as either version shows it."""
    if request.param == "v1":
        write_v1(tmp_path, "/kubepods/pod1")
        found = FiguresV1(str(tmp_path)).read("/kubepods/pod1", ALL)
    else:
        write_v2(tmp_path, "/kubepods/pod1")
        found = FiguresV2(str(tmp_path)).read("/kubepods/pod1", ALL)
    assert found is not None
    return found


def details(figures: CgroupFigures) -> Details:
    assert figures.details is not None
    return figures.details


def memory(figures: CgroupFigures | None) -> MemoryFigures:
    assert figures is not None
    assert figures.memory is not None
    return figures.memory


def test_cpu_is_counted_in_nanoseconds(figures: CgroupFigures) -> None:
    assert figures.cpu == 5_000_000_000
    assert (details(figures).user, details(figures).system) == (3_000_000_000, 1_500_000_000)


def test_the_working_set_is_use_without_inactive_files(figures: CgroupFigures) -> None:
    # behaviours.md §15: "working set = usage - inactive file"
    assert memory(figures).usage == 54 * MIB
    assert memory(figures).working_set == 50 * MIB


def test_memory_is_told_apart(figures: CgroupFigures) -> None:
    found = memory(figures)
    assert (found.rss, found.cache, found.mapped_file) == (32 * MIB, 20 * MIB, 8 * MIB)
    assert (found.active_file, found.inactive_file, found.swap) == (6 * MIB, 4 * MIB, MIB)
    assert (found.faults, found.major_faults) == (78523, 3)


def test_a_limit_that_limits_nothing_is_none(figures: CgroupFigures) -> None:
    assert (memory(figures).limit, memory(figures).swap_limit) == (64 * MIB, None)


def test_throttling_and_quota_are_there(figures: CgroupFigures) -> None:
    found = details(figures)
    assert (found.periods, found.throttled_periods, found.throttled) == (40, 7, 1_500_000_000)
    assert (found.limits.quota, found.limits.period) == (50_000, 100_000)


def test_processes_threads_and_kills_are_counted(figures: CgroupFigures) -> None:
    found = details(figures)
    assert (figures.processes, found.threads, found.oom_kills) == (2, 5, 2)
    assert found.max_usage == 60_000_000


def test_transfers_are_by_device(figures: CgroupFigures) -> None:
    assert details(figures).transfers == (Transfers("8:0", read_bytes=4096, written_bytes=8192, reads=1, writes=2),)


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    write_v2(tmp_path, "/a")

    found = FiguresV2(str(tmp_path)).read("/a", Part.NOTHING_MORE)

    assert found is not None
    assert (found.details, found.processes, found.memory_pressure) == (None, None, NO_PRESSURE)


@pytest.mark.parametrize("kind", [FiguresV1, FiguresV2])
def test_a_group_that_is_not_there_has_no_figures(kind: type[FiguresV1 | FiguresV2], tmp_path: Path) -> None:
    assert kind(str(tmp_path)).read("/gone", ALL) is None


def test_pressure_totals_are_nanoseconds(tmp_path: Path) -> None:
    # http.md: "psi: full and some, each total (ns), avg10, avg60, avg300"
    write_v2(tmp_path, "/a")

    found = FiguresV2(str(tmp_path)).read("/a", Part.PRESSURE)

    assert found is not None
    assert found.memory_pressure.some == Stall(1.5, 0.75, 0.2, 2_000_000)
    assert found.memory_pressure.full == Stall(0.5, 0.25, 0.1, 1_000_000)
    assert found.cpu_pressure.some.total == 7000
    assert found.cpu_pressure.full == Stall()


def test_version_1_has_no_pressure(tmp_path: Path) -> None:
    write_v1(tmp_path, "/a")

    found = FiguresV1(str(tmp_path)).read("/a", ALL)

    assert found is not None
    assert found.memory_pressure is NO_PRESSURE


def test_without_swap_accounting_no_swap_may_be_used(tmp_path: Path) -> None:
    write_v2(tmp_path, "/a", {"memory.swap.max": None, "memory.swap.current": None})
    write_v1(tmp_path, "/a", {"memory/memory.memsw.limit_in_bytes": None})

    for tree in (FiguresV1(str(tmp_path)), FiguresV2(str(tmp_path))):
        assert memory(tree.read("/a", Part.NOTHING_MORE)).swap_limit == 0


def test_the_root_group_of_version_2_is_counted_by_what_is_in_use(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8000000 kB\nSwapTotal:  2048 kB\nSwapFree:   1024 kB\n")
    absent = ("memory.current", "memory.max", "memory.swap.current", "memory.swap.max")
    write_v2(tmp_path / "root", "/", dict.fromkeys(absent))

    found = memory(FiguresV2(str(tmp_path / "root"), meminfo=str(meminfo)).read("/", Part.NOTHING_MORE))

    assert (found.usage, found.working_set) == (52 * MIB, 48 * MIB)
    assert (found.swap, found.limit) == (MIB, None)


def test_inactive_files_larger_than_the_use_leave_no_working_set(tmp_path: Path) -> None:
    write_v2(tmp_path, "/a", {"memory.current": "1000\n"})

    assert memory(FiguresV2(str(tmp_path)).read("/a", Part.NOTHING_MORE)).working_set == 0


def test_shares_of_version_2_are_the_kubelets_own_weights_back(tmp_path: Path) -> None:
    # behaviours.md §16: "cpu.weight = 1 + (shares-2)*9999/262142, integer division, 1..10000"
    for shares in (2, 102, 1024, 262144):
        weight = 1 + (shares - 2) * 9999 // 262142
        write_v2(tmp_path, "/a", {"cpu.weight": f"{weight}\n"})
        found = FiguresV2(str(tmp_path)).read("/a", Part.DETAILS)
        assert found is not None
        assert abs(details(found).limits.shares - shares) <= 262142 // 9999 + 1


def test_broken_files_count_nothing(tmp_path: Path) -> None:
    write_v2(tmp_path, "/a", {"memory.pressure": "some avg10=x total=1\n", "io.stat": "\n8:0\n", "cpu.max": "\n"})

    found = FiguresV2(str(tmp_path)).read("/a", ALL)

    assert found is not None
    assert found.memory_pressure.some == Stall()
    assert (details(found).transfers, details(found).limits.quota) == ((), None)


def test_controllers_may_be_mounted_anywhere(tmp_path: Path) -> None:
    write_v1(tmp_path / "elsewhere", "/a")
    mounts = {name: str(tmp_path / "elsewhere" / name) for name in ("cpu", "cpuacct", "memory", "pids", "blkio")}

    assert FiguresV1(str(tmp_path), mounts=mounts).read_cpu("/a") == 5_000_000_000
