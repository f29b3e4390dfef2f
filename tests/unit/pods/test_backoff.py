"""Restart back-off."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from glasslet.api.container import ResourceRequirements
from glasslet.api.quantity import Quantity
from glasslet.pods.backoff import (
    BackOffEntry,
    BackOffKey,
    BackOffLimits,
    back_off_key,
    back_off_limits,
    held_until,
    restarted,
)
from tests.builders.observed import START
from tests.builders.pod import container

KEY = back_off_key(container())
LIMITS = BackOffLimits()


def crash_loop(times: int, limits: BackOffLimits, ran: float = 1.0) -> list[float]:
    """Pauses between end and restart of a container that runs `ran` seconds each time."""
    entries: dict[BackOffKey, BackOffEntry] = {}
    now, pauses = START, []
    for _ in range(times):
        ended = now + timedelta(seconds=ran)
        held = held_until(entries, KEY, ended, limits)
        now = max(ended, held[0]) if held else ended
        entries = restarted(entries, KEY, ended, now, limits)
        pauses.append((now - ended).total_seconds())
    return pauses


def test_pauses_double_up_to_the_cap() -> None:
    # behaviours.md §7: "First restart immediate, then 10 s, 20, 40, 80, 160, 300, 300, ..."
    assert crash_loop(8, LIMITS) == [0, 10, 20, 40, 80, 160, 300, 300]


def test_pauses_with_reduced_decay() -> None:
    # behaviours.md §7: "With gate ReduceDefaultCrashLoopBackOffDecay (alpha, off): 1 s to 60 s."
    assert crash_loop(9, back_off_limits(reduced_decay=True)) == [0, 1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(("cap", "expected"), [(60, [0, 10, 20, 40, 60, 60]), (4, [0, 4, 4, 4, 4, 4])])
def test_pauses_with_a_cap_for_the_node(cap: float, expected: list[float]) -> None:
    # behaviours.md §7: "With KubeletCrashLoopBackOffMax (alpha, off): cap from config (1..300 s), start lowered to the
    # cap."
    assert crash_loop(6, back_off_limits(node_maximum=cap)) == expected


def test_running_longer_than_twice_the_cap_is_forgiven() -> None:
    # behaviours.md §7: "The key is forgotten when the container ran longer than 10 min (2 x cap) since the last entry."
    assert crash_loop(3, LIMITS, ran=601) == [0, 0, 0]


def test_time_that_the_container_ran_does_not_count_as_pause() -> None:
    assert crash_loop(3, LIMITS, ran=600) == [0, 10, 20]


def _limits(cpu: str) -> ResourceRequirements:
    return ResourceRequirements(limits={"cpu": Quantity.parse(cpu)})


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (container(image="other:1"), False),
        (container(resources=_limits("1")), False),
        (container(command=("sh",)), True),
    ],
)
def test_a_changed_image_or_changed_resources_start_over(changed: object, same: bool) -> None:
    # behaviours.md §7: "Restart back-off key: ... over pod name, namespace, UID, container name, image and resources
    # joined by /"
    # behaviours.md §7: "A changed image or changed resources make a fresh key."
    assert (back_off_key(changed) == KEY) is same  # type: ignore[arg-type]


def test_equal_resources_are_one_key_however_they_are_written() -> None:
    assert back_off_key(container(resources=_limits("1"))) == back_off_key(container(resources=_limits("1000m")))


def test_a_container_that_never_restarted_is_not_held() -> None:
    assert held_until({}, KEY, datetime(2026, 1, 1, tzinfo=START.tzinfo), LIMITS) is None
