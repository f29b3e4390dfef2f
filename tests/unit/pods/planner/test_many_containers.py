"""Planning for a pod with very many containers takes time in proportion to their number."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.pods.planner import PlanInput, plan
from glasslet.runtime.model import ObservedContainer
from tests.builders.observed import exited_container, observed_container, observed_pod
from tests.builders.plans import given, made_from
from tests.builders.pod import pod

MANY = 12_000
"""An eighth of them is still more than the number of hashes that are kept, so each plan computes its own."""


def of(count: int, make: Callable[[str], ObservedContainer]) -> PlanInput:
    containers = tuple(Container(name=f"c{number}", image="busybox") for number in range(count))
    one = pod()
    instances = [made_from(container, make(container.name)) for container in containers]
    # A snapshot of its own for each call: nothing is known of it yet.
    return given(pod=replace(one, spec=replace(one.spec, containers=containers)), observed=observed_pod(*instances))


def seconds(count: int, make: Callable[[str], ObservedContainer]) -> float:
    subject = of(count, make)
    began = time.process_time()
    plan(subject)
    return time.process_time() - began


@pytest.mark.parametrize("make", [observed_container, exited_container])
def test_eight_times_as_many_containers_take_about_eight_times_as_long(
    make: Callable[[str], ObservedContainer],
) -> None:
    few, many = min(seconds(MANY // 8, make) for _ in range(5)), min(seconds(MANY, make) for _ in range(2))
    assert many < 24 * few
