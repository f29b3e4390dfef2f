"""Which instance's log is meant."""

from __future__ import annotations

import pytest

from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from glasslet.runtime.logs.choice import NoLog, choose_log

RUNNING = ContainerState(running=ContainerStateRunning())


def ended(instance: str) -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(exit_code=1, container_id=instance))


def waiting(reason: str) -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


def status_of(
    name: str, state: ContainerState, last: ContainerState | None = None, instance: str = "containerd://now"
) -> ContainerStatus:
    return ContainerStatus(
        name=name,
        ready=True,
        restart_count=0,
        image="a",
        image_id="a",
        state=state,
        last_state=last or ContainerState(),
        container_id=instance,
    )


def choose(state: ContainerState, last: ContainerState | None = None, *, previous: bool = False) -> object:
    status = status_of("main", state, last)
    found = choose_log("web", PodStatus(container_statuses=(status,)), "main", previous=previous)
    return found.message if isinstance(found, NoLog) else found


@pytest.mark.parametrize(
    ("state", "last", "found"),
    [
        pytest.param(RUNNING, None, "now", id="running"),
        pytest.param(ended("containerd://dead"), None, "dead", id="terminated"),
        pytest.param(ended(""), ended("containerd://dead"), "dead", id="terminated without instance, one before"),
        pytest.param(ended(""), None, 'container "main" in pod "web" is terminated', id="terminated, no instance"),
        pytest.param(waiting("CrashLoopBackOff"), ended("containerd://dead"), "dead", id="waiting after a termination"),
        pytest.param(
            waiting("CrashLoopBackOff"),
            ended(""),
            'container "main" in pod "web" is terminated',
            id="waiting, the one before has no instance",
        ),
        pytest.param(
            waiting("ErrImagePull"),
            None,
            'container "main" in pod "web" is waiting to start: image can\'t be pulled',
            id="waiting for its image",
        ),
        pytest.param(
            waiting("ImagePullBackOff"),
            None,
            'container "main" in pod "web" is waiting to start: trying and failing to pull image',
            id="pull back-off",
        ),
        pytest.param(
            waiting("ContainerCreating"),
            None,
            'container "main" in pod "web" is waiting to start: ContainerCreating',
            id="waiting for something else",
        ),
        pytest.param(
            ContainerState(),
            None,
            'container "main" in pod "web" is waiting to start - no logs yet',
            id="no state at all",
        ),
    ],
)
def test_the_state_decides(state: ContainerState, last: ContainerState | None, found: str) -> None:
    # behaviours.md §18: "A waiting container with an earlier termination gives the logs of that one."
    assert choose(state, last) == found


def test_previous_is_the_last_dead_instance() -> None:
    # behaviours.md §18: "previous = last dead instance"
    assert choose(RUNNING, ended("containerd://dead"), previous=True) == "dead"


def test_without_a_dead_instance_there_is_no_previous() -> None:
    assert choose(RUNNING, previous=True) == 'previous terminated container "main" in pod "web" not found'


def test_a_container_without_status_is_not_available() -> None:
    found = choose_log("web", PodStatus(), "main")
    assert found == NoLog('container "main" in pod "web" is not available')


def test_init_and_ephemeral_containers_are_found_too() -> None:
    one = status_of("setup", RUNNING, None, "containerd://a")
    two = status_of("debug", RUNNING, None, "b")
    status = PodStatus(init_container_statuses=(one,), ephemeral_container_statuses=(two,))
    assert (choose_log("web", status, "setup"), choose_log("web", status, "debug")) == ("a", "b")
