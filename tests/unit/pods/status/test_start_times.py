"""How long a pod took to start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from glasslet.api.volume import EmptyDirVolumeSource, HostPathVolumeSource, Volume
from glasslet.pods.memory import PodMemory
from glasslet.pods.status.start_times import StartTimes, covered
from tests.builders.pod import container, pod

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = 100.0
RUNNING = ContainerState(running=ContainerStateRunning())


class Clock:
    """Ten seconds after the pod was made, eight after it was seen."""

    def now(self) -> datetime:
        return CREATED + timedelta(seconds=10)

    def monotonic(self) -> float:
        return SEEN + 8


class Counted:
    def __init__(self) -> None:
        self.ran: list[float] = []
        self.started_in: list[tuple[float, float | None, bool]] = []

    def running(self, seconds: float) -> None:
        self.ran.append(seconds)

    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None:
        self.started_in.append((total_seconds, sli_seconds, host_network))


def api_pod(**spec: Any) -> Pod:
    made = pod(source="api", **spec)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=CREATED))


def one(state: ContainerState, name: str = "main") -> ContainerStatus:
    return ContainerStatus(name=name, state=state, ready=False, restart_count=0, image="", image_id="")


def status(state: ContainerState = RUNNING, phase: str = "Running", **fields: Any) -> PodStatus:
    return PodStatus(phase=phase, container_statuses=(one(state),), **fields)


def looked(made: Pod, *told: PodStatus, images: tuple[tuple[float, float], ...] = ()) -> Counted:
    counted, memory = Counted(), PodMemory(pod=made)
    times = StartTimes(metrics=counted, pod=made, seen_at=SEEN)
    memory.images = list(images)
    for now in told:
        times.look(memory, now, Clock())
    return counted


def test_a_pod_is_counted_once_from_its_creation_and_from_being_seen() -> None:
    counted = looked(api_pod(), status(), status())
    assert counted.ran == [8.0]
    assert counted.started_in == [(10.0, 10.0, False)]


@pytest.mark.parametrize(
    "told", [status(phase="Pending"), status(ContainerState(waiting=ContainerStateWaiting(reason="ErrImagePull")))]
)
def test_nothing_is_counted_before_all_containers_have_started(told: PodStatus) -> None:
    counted = looked(api_pod(), told)
    assert (counted.ran, counted.started_in) == ([], [])


def test_pulls_and_init_containers_are_taken_off_and_overlaps_only_once() -> None:
    # metrics.md: "overlapping pulls count once"
    setup = ContainerStateTerminated(
        exit_code=0, started_at=CREATED + timedelta(seconds=3), finished_at=CREATED + timedelta(seconds=5)
    )
    made = api_pod(init=(container("setup"),))
    told = status(init_container_statuses=(one(ContainerState(terminated=setup), "setup"),))
    counted = looked(made, told, images=((101.0, 103.0), (102.0, 104.0)))
    assert counted.started_in == [(10.0, 5.0, False)]


def test_a_pod_with_other_volumes_has_only_a_total() -> None:
    # metrics.md: "pods with volumes other than secret, configMap, downwardAPI, emptyDir, projected are left out"
    stateless = Volume(name="a", empty_dir=EmptyDirVolumeSource())
    stateful = Volume(name="b", host_path=HostPathVolumeSource(path="/data"))
    assert looked(api_pod(volumes=(stateless,)), status()).started_in == [(10.0, 10.0, False)]
    assert looked(api_pod(volumes=(stateless, stateful)), status()).started_in == [(10.0, None, False)]


def test_a_static_pod_has_no_creation() -> None:
    counted = looked(pod(), status())
    assert (counted.ran, counted.started_in) == ([8.0], [])


def test_a_pod_that_runs_already_is_not_counted_again() -> None:
    made = replace(api_pod(), status=PodStatus(phase="Running"))
    assert looked(made, status()).ran == []


def test_covered_time_counts_once() -> None:
    assert covered([]) == 0.0
    assert covered([(5, 6), (1, 3), (2, 4), (2, 3)]) == 4.0
