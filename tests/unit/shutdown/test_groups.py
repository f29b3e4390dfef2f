"""Which pods end together in a shutdown, and how long they get."""

from __future__ import annotations

import pytest

from glasslet.config.duration import Duration
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration, ShutdownGracePeriod
from glasslet.shutdown.groups import CRITICAL_PRIORITY, Group, grace_of, grouped, groups_of, total_seconds
from tests.builders.podspec import pod_of


def periods(whole: float, critical: float) -> KubeletConfiguration:
    return KubeletConfiguration(
        shutdown_grace_period=Duration.of_nanoseconds(round(whole * 1e9)),
        shutdown_grace_period_critical_pods=Duration.of_nanoseconds(round(critical * 1e9)),
    )


@pytest.mark.parametrize(
    ("whole", "critical", "seconds"),
    [(40, 10, (30, 10)), (30.9, 10.5, (20, 10)), (10, 10, (0, 10)), (10, 0, (10, 0))],
)
def test_two_periods_are_a_group_of_all_and_one_of_critical_pods(
    whole: float, critical: float, seconds: tuple[int, int]
) -> None:
    # behaviours.md §27: "Two-field form = priority 0 group (total - critical) and priority 2000000000 group
    # (critical)."
    # Upstream: "group priority 0 with (total - critical), group priority 2000000000 with critical; whole seconds, cut
    # off"
    normal, last = seconds
    expected = (Group(0, normal), Group(CRITICAL_PRIORITY, last))
    assert groups_of(periods(whole, critical), FeatureGates()) == expected


@pytest.mark.parametrize(("whole", "critical"), [(0, 0), (0, 10), (5, 10)])
def test_there_are_no_groups_without_a_usable_period(whole: float, critical: float) -> None:
    # Upstream: "none if shutdownGracePeriod is 0 or critical > total"
    assert groups_of(periods(whole, critical), FeatureGates()) == ()


def test_a_list_by_priority_is_sorted() -> None:
    listed = [ShutdownGracePeriod(priority=p, shutdown_grace_period_seconds=s) for p, s in ((100, 20), (0, 5))]
    configuration = KubeletConfiguration(shutdown_grace_period_by_pod_priority=listed)
    assert groups_of(configuration, FeatureGates()) == (Group(0, 5), Group(100, 20))


def test_all_groups_together_are_what_logind_must_wait() -> None:
    assert total_seconds((Group(0, 30), Group(7, 10))) == 40


GROUPS = (Group(0, 30), Group(100, 20), Group(1000, 10))


@pytest.mark.parametrize(
    ("priority", "group"), [(None, 0), (-5, 0), (0, 0), (99, 0), (100, 100), (999, 100), (1000, 1000), (10**9, 1000)]
)
def test_a_pod_is_in_the_highest_group_that_is_not_above_it(priority: int | None, group: int) -> None:
    # behaviours.md §27: "Groups by ascending priority"
    # behaviours.md §27: "A pod between bands takes the lower one, below all bands the lowest, above all the highest."
    pod = pod_of(priority=priority)
    assert [(found.priority, len(pods)) for found, pods in grouped([pod], GROUPS)] == [(group, 1)]


def test_groups_end_from_the_lowest_priority_up_and_empty_ones_are_left_out() -> None:
    pods = [pod_of(priority=priority) for priority in (2000, 5, 1)]
    assert [(group.priority, [p.spec.priority for p in members]) for group, members in grouped(pods, GROUPS)] == [
        (0, [5, 1]),
        (1000, [2000]),
    ]


@pytest.mark.parametrize(
    ("own", "seconds", "grace"), [(5, 30, 5), (60, 30, 30), (None, 10, 10), (None, 40, 30), (5, 0, 0)]
)
def test_a_pods_grace_is_at_most_its_groups_time(own: int | None, seconds: int, grace: int) -> None:
    # behaviours.md §27: "grace = min(group, pod)"
    pod = pod_of(terminationGracePeriodSeconds=own)
    assert grace_of(pod, Group(0, seconds)) == grace
