"""CPU use now, from the last two readings."""

from __future__ import annotations

from glasslet.stats.cgroups.container_cgroups import ContainerCgroups
from glasslet.stats.cgroups.cpu_rates import ROLL, WINDOW, CPURates

SECOND = 1_000_000_000


def test_one_reading_gives_no_rate() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 5)
    assert rates.rate("/a") is None
    assert rates.lacks(["/a", "/b"]) == ["/a", "/b"]


def test_the_rate_is_use_per_second() -> None:
    rates = CPURates()
    rates.observe("/a", 0, SECOND)
    rates.observe("/a", 10 * SECOND, 6 * SECOND)
    assert rates.rate("/a") == SECOND // 2


def test_a_reading_older_than_the_window_says_nothing_about_now() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 0)
    rates.observe("/a", WINDOW + 1, SECOND)
    assert rates.rate("/a") is None

    rates.observe("/a", WINDOW + 1 + SECOND // 5, SECOND + SECOND // 10)
    assert rates.rate("/a") == SECOND // 2


def test_readings_in_quick_succession_keep_an_older_base() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 0)
    for step in range(1, 5):
        rates.observe("/a", step * SECOND, step * SECOND)
    rates.observe("/a", 4 * SECOND + 1000, 4 * SECOND)
    assert rates.rate("/a") == 4 * SECOND * SECOND // (4 * SECOND + 1000)


def test_the_base_moves_on_once_the_last_reading_is_old_enough() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 0)
    rates.observe("/a", ROLL, ROLL)
    rates.observe("/a", 2 * ROLL, ROLL)
    assert rates.rate("/a") == 0


def test_a_counter_that_went_back_is_another_group() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 10 * SECOND)
    rates.observe("/a", SECOND, 5)
    assert rates.rate("/a") is None


def test_readings_too_close_together_give_no_rate() -> None:
    rates = CPURates()
    rates.observe("/a", 0, 0)
    rates.observe("/a", 1000, 900)
    rates.observe("/a", 1000, 950)
    assert rates.rate("/a") is None


def test_groups_that_are_gone_are_forgotten() -> None:
    rates = CPURates()
    for group in ("/a", "/b"):
        rates.observe(group, 0, 0)
        rates.observe(group, SECOND, SECOND)
    rates.keep_only(["/b"])
    assert (rates.rate("/a"), rates.rate("/b")) == (None, SECOND)


def test_a_containers_group_is_found_by_any_runtimes_habit() -> None:
    there = {
        "/kubepods/pod1/c1",
        "/kubepods.slice/kubepods-pod2.slice/cri-containerd-c2.scope",
        "/kubepods.slice/kubepods-pod3.slice/crio-c3.scope",
        "/k8s.io/c4",
    }
    groups = ContainerCgroups(exists=there.__contains__)

    assert groups.find("c1", "/kubepods/pod1") == "/kubepods/pod1/c1"
    assert groups.find("c2", "/kubepods.slice/kubepods-pod2.slice").endswith("cri-containerd-c2.scope")
    assert groups.find("c3", "/kubepods.slice/kubepods-pod3.slice").endswith("crio-c3.scope")
    assert groups.find("c4", "") == "/k8s.io/c4"
    assert groups.find("c5", "/kubepods/pod1") == ""


def test_a_group_is_looked_for_again_until_it_is_found() -> None:
    there: set[str] = set()
    groups = ContainerCgroups(exists=there.__contains__)
    assert groups.find("c1", "/p") == ""
    there.add("/p/c1")
    assert groups.find("c1", "/p") == "/p/c1"
    there.clear()
    assert groups.find("c1", "/p") == "/p/c1"
    groups.keep_only([])
    assert groups.find("c1", "/p") == ""
